//! Distributions by roots and folders that are unusual or damaged.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::program::rockpack;
use support::tools;

use crate::dependencies::Case;

const STATUS: &str = "Package: dpkg\nStatus: install ok installed\nArchitecture: amd64\nVersion: 1.22.22\n\n\
    Package: libway1\nStatus: install ok installed\nArchitecture: amd64\nVersion: 3-1\n\n\
    Package: libway1\nStatus: install ok installed\nArchitecture: i386\nVersion: 3-1\n\n\
    Package: snapd\nStatus: hold ok not-installed\n";

/// A list that apt keeps for a second architecture, as the maintainers of a repository may write it.
const LIST: &str = "Package: hipcc\nVersion: 5.7.1-6\nArchitecture: i386\nMaintainer: Debian ROCm Team <t@example.org>\n\n\
    Package: rocm-smi\nVersion: 6.1.2-1\nArchitecture: amd64\nMaintainer: Debian ROCm Team <t@example.org>\n";

/// A file of the loader's configuration that includes itself and its neighbours.
const CIRCULAR: &str = "include /etc/ld.so.conf.d/*.conf\n/opt/way\n";

fn write(file: &Path, text: &str) {
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
}

/// The root of a system with a library, whose package has the line `shlibs`.
fn root(case: &Case, shlibs: &str) -> PathBuf {
    let root = case.path("root");
    write(&root.join("etc/os-release"), "ID=example\nVERSION_ID=3\n");
    write(&root.join("etc/ld.so.conf"), &format!("/etc/os-release\n{CIRCULAR}"));
    let info = root.join("var/lib/dpkg/info");
    write(&info.join("dpkg.list"), "/usr/bin/dpkg\n");
    write(&info.join("libway1.list"), "/opt/way/libway.so.1\n");
    write(&info.join("libway1.shlibs"), shlibs);
    write(&root.join("var/lib/dpkg/status"), STATUS);
    case.library(&root.join("opt/way/libway.so.1"), "");
    root
}

#[test]
fn a_root_has_lists_of_other_architectures_and_circular_includes() {
    tools::need(&["cc"]);
    let case = Case::new();
    let root = root(&case, "libway 1 libway1 (>= 3)\n");
    write(&root.join("var/lib/apt/lists/example_binary-i386_Packages"), LIST);
    let list = root.join("var/lib/dpkg/info/dpkg.list");
    fs::write(list, b"/usr/share/doc/J\xf6rg\n/usr/bin/dpkg\n").unwrap();
    for name in ["a", "b"] {
        write(&root.join(format!("etc/ld.so.conf.d/{name}.conf")), CIRCULAR);
    }
    // The target of an absolute link is in the root, too.
    fs::rename(root.join("var/lib/dpkg"), root.join("usr-dpkg")).unwrap();
    symlink("/usr-dpkg", root.join("var/lib/dpkg")).unwrap();
    let table = case.path("example.toml");
    tools::run(rockpack().arg("distro").arg(&root).arg("--out").arg(&table));
    let text = fs::read_to_string(&table).unwrap();
    assert!(text.contains("\n[packages]\n\"rocm-smi\" = \"6.1.2-1\"\n\n"), "{text}");
    assert!(text.contains("\"dpkg\" = \"/usr/bin/dpkg\"\n"), "{text}");
    assert!(
        text.ends_with("[libraries.\"libway.so.1\"]\ndepends = [\"libway1 (>= 3)\"]\n"),
        "{text}"
    );
}

#[test]
fn a_dependency_that_is_not_valid_is_no_bug_of_rockpack() {
    tools::need(&["cc", "dpkg-deb"]);
    let case = Case::new();
    let root = root(&case, "libway 1 libway1 !!\n");
    let program = case.stage("tool").join("bin/program");
    case.program(&program, &root.join("opt/way/libway.so.1"), "");
    let options = ["--format", "deb", "--distro", root.to_str().unwrap()];
    let parts = [
        "a library of example-3 is not valid",
        "`libway1 !!`",
        "correct the symbols or shlibs file",
    ];
    case.refused("", &options, &parts);
    // The way out that the hint names.
    case.built("libraries.\"libway.so.*\".deb = 'libway1 (>= 3)'", &options);
    assert_eq!(case.depends("rocm-tool"), "libway1 (>= 3)");
}

#[test]
fn places_without_a_distribution_are_named() {
    tools::need(&["cc"]);
    let case = Case::new();
    case.compile(&case.stage("tool").join("bin/program"), "void _start(void) {}", "-nostdlib");
    let rpm = case.path("rpm");
    fs::create_dir_all(rpm.join("var/lib/rpm")).unwrap();
    write(&rpm.join("etc/os-release"), "ID=\"amzn\"\nVERSION_ID=\"2023\"\n");
    let parts =
        ["rpm: is a system with rpm, `amzn2023` by its os-release", "such as el9 or fedora"];
    case.refused("", &["--distro", rpm.to_str().unwrap()], &parts);
    case.refused("", &["--distro", "./nowhere"], &["./nowhere: cannot open: No such file"]);
    let parts = ["has the other package format", "`deb=debian-13,rpm=el9`"];
    case.refused("", &["--distro", "deb=el9"], &parts);
}

#[test]
fn the_highest_version_in_a_folder_counts() {
    tools::need(&["dpkg-deb"]);
    let case = Case::new();
    let folder = case.path("packages");
    fs::create_dir_all(&folder).unwrap();
    for (name, version) in
        [("dpkg", "1.22.22"), ("libway1", "3"), ("libway1", "4"), ("libway1", "10")]
    {
        let tree = tempfile::tempdir().unwrap();
        let control = format!(
            "Package: {name}\nVersion: {version}\nArchitecture: amd64\nMaintainer: P <p@example.org>\n\
             Description: one\n"
        );
        write(&tree.path().join("DEBIAN/control"), &control);
        if name == "libway1" {
            let shlibs = format!("libway 1 libway1 (>= {version})\n");
            write(&tree.path().join("DEBIAN/shlibs"), &shlibs);
            write(&tree.path().join("usr/lib/libway.so.1"), "");
        }
        tools::run(Command::new("dpkg-deb").arg("--build").arg(tree.path()).arg(&folder));
    }
    let table = case.path("example.toml");
    let mut distro = rockpack();
    tools::run(distro.current_dir(&folder).args(["distro", ".", "--out"]).arg(&table));
    let text = fs::read_to_string(&table).unwrap();
    assert!(text.contains("\nname = \"packages\"\n"), "{text}");
    assert!(text.contains("\n\"libway1\" = \"10\"\n"), "{text}");
    assert!(text.ends_with("\ndepends = [\"libway1 (>= 10)\"]\n"), "{text}");

    fs::write(folder.join("Packages.bz2"), b"BZh\xff").unwrap();
    let told = tools::told(rockpack().arg("distro").arg(&folder).arg("--out").arg(&table));
    assert!(told.contains("Packages.bz2: ") && told.contains(".zst or .lz4"), "{told}");
}
