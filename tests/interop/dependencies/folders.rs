//! The table of a folder with packages that dpkg-deb made, and dependencies by it.

use std::fs;
use std::path::Path;
use std::process::Command;

use support::program::rockpack;
use support::tools;

use crate::dependencies::Case;

/// Where a repository has the package list of a release.
const LIST_FOLDER: &str = "dists/example/main/binary-amd64";

/// Lines of control files, the program or library of the package, and its postinst.
const PACKAGES: [(&str, &str, &str); 7] = [
    ("Package: base-files\nVersion: 13\nEssential: yes", "usr/lib/os-release", ""),
    ("Package: dpkg\nVersion: 1.22.22\nEssential: yes", "usr/bin/dpkg", ""),
    ("Package: bash\nVersion: 5.2\nEssential: yes\nPre-Depends: libc6 (>= 2.38)", "bin/bash", ""),
    ("Package: libc6\nVersion: 2.41", "lib64/ld-linux-x86-64.so.2", ""),
    (
        "Package: lua5.3\nVersion: 5.3.6",
        "usr/bin/lua5.3",
        "update-alternatives --install /usr/bin/lua lua /usr/bin/lua5.3 110",
    ),
    (
        "Package: lua5.4\nVersion: 5.4.7",
        "usr/bin/lua5.4",
        "update-alternatives \\\n  --install \\\n  /usr/bin/lua lua /usr/bin/lua5.4 120",
    ),
    (
        "Package: php8.4-cli\nVersion: 8.4",
        "usr/bin/php8.4",
        "for b in php; do update-alternatives --install /usr/bin/${b} ${b} /usr/bin/${b}8.4 84; done",
    ),
];

/// Packages without files. Another project than ROCm has a name that begins like one of its.
const LIST: &str = "Package: hipcc\nVersion: 5.7.1-6\nArchitecture: amd64\nMaintainer: Debian ROCm Team <t@example.org>\n\
    \nPackage: rocm-smi\nVersion: 6.1.2-1\nArchitecture: amd64\nHomepage: https://github.com/ROCm/rocm_smi_lib\n\
    \nPackage: rocksdb-tools\nVersion: 9.10\nArchitecture: amd64\nSource: rocksdb\nHomepage: https://rocksdb.org/\n";

const SECTIONS: &str = r#"
[programs]
"" = "/usr/bin/bash /usr/bin/dpkg /usr/lib64/ld-linux-x86-64.so.2"
"lua5.3" = "/usr/bin/lua5.3"
"lua5.4" = "/usr/bin/lua5.4"
"lua5.4 | lua5.3" = "/usr/bin/lua"
"php8.4-cli" = "/usr/bin/php8.4"

[packages]
"hipcc" = "5.7.1-6"
"rocm-smi" = "6.1.2-1"
"#;

fn write(file: &Path, text: &str) {
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
}

fn write_package(case: &Case, control: &str, file: &str, postinst: &str) {
    let script = format!("#!/bin/sh\n{postinst}\n");
    write_packed(case, control, file, ("postinst", &script));
}

fn write_library(case: &Case, control: &str, shlibs: &str) {
    write_packed(case, control, "usr/lib/libway.so.1", ("shlibs", &format!("{shlibs}\n")));
}

/// Makes a package with a file of its control archive.
fn write_packed(case: &Case, control: &str, file: &str, (name, text): (&str, &str)) {
    let tree = tempfile::tempdir().unwrap();
    let own = format!(
        "{control}\nArchitecture: amd64\nMaintainer: Packager <p@example.org>\nDescription: one\n"
    );
    write(&tree.path().join("DEBIAN/control"), &own);
    write(&tree.path().join(file), "ID=example\nVERSION_ID=\"13\"\n");
    let member = tree.path().join("DEBIAN").join(name);
    write(&member, text);
    tools::run(Command::new("chmod").arg("755").arg(member));
    fs::create_dir_all(case.path("packages")).unwrap();
    let mut build = Command::new("dpkg-deb");
    tools::run(build.arg("--build").arg(tree.path()).arg(case.path("packages")));
}

#[test]
fn programs_and_rocm_of_a_folder_are_in_its_table() {
    tools::need(&["cc", "dpkg-deb", "rpm"]);
    let case = Case::new();
    write(&case.path("packages/Packages"), LIST);
    for (control, file, postinst) in PACKAGES {
        write_package(&case, control, file, postinst);
    }
    let table = case.path("example.toml");
    let mut distro = rockpack();
    tools::run(distro.arg("distro").arg(case.path("packages")).arg("--out").arg(&table));
    let text = fs::read_to_string(&table).unwrap();
    assert!(text.contains("\nname = \"example-13\"\n"), "{text}");
    assert!(text.contains(SECTIONS), "{text}");

    // The loader of a program is known, and the first of several packages with the interpreter is the latest.
    let bin = case.stage("tool").join("bin");
    case.compile(&bin.join("program"), "void _start(void) {}", "-nostdlib -pie");
    write(&bin.join("script"), "#!/usr/bin/lua\n");
    tools::run(Command::new("chmod").arg("755").arg(bin.join("script")));
    let told = case.built("", &["--distro", table.to_str().unwrap()]);
    assert!(!told.contains("R066"), "{told}");
    assert_eq!(case.depends("rocm-tool"), "lua5.4 | lua5.3");
}

/// Makes the table of `source` in the folder of the case.
fn table(case: &Case, source: &str, name: &str) -> String {
    let (source, file) = (case.path(source), case.path(name));
    tools::run(rockpack().arg("distro").arg(source).arg("--out").arg(&file));
    fs::read_to_string(file).unwrap()
}

#[test]
fn a_package_list_answers_by_its_pool() {
    tools::need(&["dpkg-deb", "dpkg-scanpackages", "xz"]);
    let case = Case::new();
    for (control, file, postinst) in PACKAGES {
        write_package(&case, control, file, postinst);
    }
    tools::run(Command::new("sh").current_dir(case.folder.path()).args([
        "-ec",
        "mkdir -p $0 && dpkg-scanpackages packages >$0/Packages && xz -k $0/Packages",
        LIST_FOLDER,
    ]));
    let expected = table(&case, "packages", "folder.toml");
    for name in ["Packages", "Packages.xz"] {
        let made = table(&case, &format!("{LIST_FOLDER}/{name}"), &format!("{name}.toml"));
        assert_eq!(made, expected, "{name}");
    }

    // Of two versions of a package, the higher one counts.
    for version in ["1", "2"] {
        let control = format!("Package: libway1\nVersion: {version}");
        write_library(&case, &control, &format!("libway 1 libway1 (>= {version})"));
    }
    let made = table(&case, "packages", "library.toml");
    assert!(made.contains("\"libway1\" = \"2\""), "{made}");
    assert!(made.contains("depends = [\"libway1 (>= 2)\"]"), "{made}");
}

/// apt lists the packages of each architecture that the administrator added to the system.
#[test]
fn a_root_with_package_lists_of_two_architectures_answers() {
    let case = Case::new();
    let dpkg = "Package: dpkg\nStatus: install ok installed\nVersion: 1.22.22\nArchitecture: ";
    write(&case.path("root/var/lib/dpkg/status"), &format!("{dpkg}amd64\n"));
    write(&case.path("root/var/lib/dpkg/info/dpkg.list"), "/usr/bin/dpkg\n");
    let lists = case.path("root/var/lib/apt/lists");
    write(&lists.join("example.org_main_binary-amd64_Packages"), LIST);
    let foreign = LIST.replace("amd64", "i386").replace("rocm-smi", "foreign-smi");
    write(&lists.join("example.org_main_binary-i386_Packages"), &foreign);
    let made = table(&case, "root", "root.toml");
    assert!(made.contains("\"rocm-smi\" = \"6.1.2-1\"\n"), "{made}");
    assert!(!made.contains("foreign-smi"), "{made}");

    // A list of another architecture, and a system of it, are no sources.
    write(&case.path("foreign/Packages"), &foreign);
    write(&case.path("other/var/lib/dpkg/status"), &format!("{dpkg}arm64\n"));
    for source in ["foreign/Packages", "other"] {
        let out = case.path("refused.toml");
        let mut distro = rockpack();
        let output = distro.arg("distro").arg(case.path(source)).arg("--out").arg(&out).output();
        let output = output.unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        let words: Vec<&str> = told.split_whitespace().collect();
        assert!(words.join(" ").contains("is not for the architecture amd64"), "{told}");
        assert!(!output.status.success() && !out.exists(), "{told}");
    }
}
