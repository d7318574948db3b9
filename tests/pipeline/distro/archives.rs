//! Tables of packages that are not installed. dpkg-deb makes the packages, and gzip, xz and zstd compress lists.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::Command;

use support::tools::{need, run};

use super::{FAILED, Room, refused};

/// The folder of packages, and the list that names them.
const POOL: &str = "repository/pool/main";
const LIST: &str = "repository/dists/stable/main/binary-amd64/Packages";

/// The table of [`Room::debs`], without packages of ROCm.
const TABLE: &str = r#"# Libraries, programs and packages of ROCm of own-3.
# Made by `rockpack distro`.

schema = 1
format = "deb"
name = "own-3"
compression = "zstd"
version_references = false

[os_release]
"ID" = "own"
"VERSION_ID" = "3"

[sources]
"libblas3" = "2.0"
"libz1" = "1.0"

[programs]
"" = "/usr/bin/dpkg"
"editor" = "/usr/bin/editor /usr/bin/vi"

[packages]

[libraries."libblas.so.3"]
depends = ["libblas3"]

[libraries."libz.so.1"]
depends = ["libz1 #MINVER#"]
minimum = "1"
"#;

/// A package: name, version, architecture, further fields, files, control files.
type Package<'a> =
    (&'a str, &'a str, &'a str, &'a str, &'a [(&'a str, &'a str)], &'a [(&'a str, &'a str)]);

const PACKAGES: [Package<'_>; 5] = [
    ("dpkg", "1.22.6", "amd64", "Essential: yes\n", &[("usr/bin/dpkg", "")], &[]),
    ("base-files", "3", "all", "", &[("usr/lib/os-release", "ID=own\nVERSION_ID=\"3\"\n")], &[]),
    (
        "libz1",
        "1.0",
        "amd64",
        "Multi-Arch: same\n",
        &[("usr/lib/x86_64-linux-gnu/libz.so.1.2", ""), ("usr/lib/own/libhidden.so.1", "")],
        &[
            ("symbols", "libz.so.1 libz1 #MINVER#\n adler32@Base 1\n"),
            ("shlibs", "libz 1 wrong\nlibhidden 1 hidden\n"),
        ],
    ),
    // The library in the linker path is a link that the package makes when it is installed.
    (
        "libblas3",
        "2.0",
        "amd64",
        "",
        &[("usr/lib/x86_64-linux-gnu/blas/libblas.so.3", "")],
        &[
            ("shlibs", "libblas 3 libblas3\n"),
            (
                "postinst",
                "#!/bin/sh\nupdate-alternatives --install /usr/lib/x86_64-linux-gnu/libblas.so.3 blas \
                 /usr/lib/x86_64-linux-gnu/blas/libblas.so.3 10\n",
            ),
        ],
    ),
    (
        "editor",
        "1.0",
        "all",
        "",
        &[("usr/bin/editor", "")],
        &[(
            "postinst",
            "#!/bin/sh\nupdate-alternatives --install /usr/bin/vi vi /usr/bin/editor 5\n",
        )],
    ),
];

impl Room {
    /// Builds a package into `folder`.
    fn deb(&self, folder: &str, package: Package<'_>) {
        let (name, version, arch, fields, files, control) = package;
        let place = |path: &str| format!("build/{folder}/{name}/{path}");
        self.write(
            &place("DEBIAN/control"),
            format!(
                "Package: {name}\nVersion: {version}\nArchitecture: {arch}\n\
                 Maintainer: Packager <packager@example.org>\n{fields}Description: one of {name}\n"
            ),
        );
        for (path, text) in files {
            self.write(&place(path), text);
        }
        for (path, text) in control {
            let path = self.write(&place(&format!("DEBIAN/{path}")), text);
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        if name == "libz1" {
            let link = self.path(&place("usr/lib/x86_64-linux-gnu/libz.so.1"));
            symlink("libz.so.1.2", link).unwrap();
        }
        fs::create_dir_all(self.path(folder)).unwrap();
        let mut build = Command::new("dpkg-deb");
        build.args(["--root-owner-group", "--build"]).arg(self.path(&place("")));
        run(build.arg(self.path(folder).join(format!("{name}.deb"))));
    }

    fn debs(&self) {
        PACKAGES.iter().for_each(|package| self.deb(POOL, *package));
    }

    /// Writes the list of all packages and of one that the pool lacks.
    fn list(&self) -> PathBuf {
        let mut list = String::new();
        for (name, ..) in PACKAGES {
            let deb = self.path(POOL).join(format!("{name}.deb"));
            let output = run(Command::new("dpkg-deb").arg("--field").arg(deb));
            let fields = String::from_utf8(output.stdout).unwrap();
            list.push_str(&format!("{fields}Filename: pool/main/{name}.deb\n\n"));
        }
        list.push_str(
            "Package: rocm-smi\nVersion: 5.2.3-2\nArchitecture: amd64\n\
             Homepage: https://github.com/ROCm/rocm_smi_lib\nFilename: pool/main/absent.deb\n",
        );
        self.write(LIST, list)
    }
}

#[test]
fn a_folder_of_packages_becomes_a_table() {
    need(&["dpkg-deb"]);
    let room = Room::new();
    room.debs();
    assert_eq!(room.table(POOL), TABLE);
    // A list in the folder adds names.
    let list = room.list();
    fs::copy(list, room.path(POOL).join("Packages")).unwrap();
    let expected = TABLE.replace("[packages]\n", "[packages]\n\"rocm-smi\" = \"5.2.3-2\"\n");
    assert_eq!(room.table(POOL), expected);
    run(&mut room.plan(&["--distro", &format!("./{POOL}")]));
}

#[test]
fn a_list_finds_its_pool_and_may_be_compressed() {
    need(&["dpkg-deb", "gzip", "xz", "zstd"]);
    let room = Room::new();
    room.debs();
    let list = room.list();
    let expected = TABLE.replace("[packages]\n", "[packages]\n\"rocm-smi\" = \"5.2.3-2\"\n");
    assert_eq!(room.table(LIST), expected);
    run(&mut room.plan(&["--distro", LIST]));
    for (tool, ending) in [("gzip", "gz"), ("xz", "xz"), ("zstd", "zst")] {
        let packed = run(Command::new(tool).arg("-c").arg(&list)).stdout;
        let name = format!("{LIST}.{ending}");
        room.write(&name, &packed);
        assert_eq!(room.table(&name), expected, "{tool}");
        let cut = format!("repository/cut/Packages.{ending}");
        room.write(&cut, &packed[..packed.len() / 2]);
        refused(&mut room.distro(&cut, "cut.toml"), FAILED, &[&cut]);
    }
}

#[test]
fn packages_that_make_no_table_are_named() {
    need(&["dpkg-deb"]);
    let room = Room::new();
    let [dpkg, .., editor] = PACKAGES;
    room.deb("lacking", editor);
    let lacking = ["lacking: does not have the package dpkg", "add its .deb"];
    refused(&mut room.distro("lacking", "out.toml"), FAILED, &lacking);
    for folder in ["foreign", "damaged"] {
        room.deb(folder, dpkg);
    }
    room.deb("foreign", ("arm", "1.0", "arm64", "", &[], &[]));
    let foreign =
        ["foreign/arm.deb: package 1 is not for the architecture amd64", "those of amd64"];
    refused(&mut room.distro("foreign", "out.toml"), FAILED, &foreign);
    let whole = fs::read(room.path("damaged/dpkg.deb")).unwrap();
    room.write("damaged/cut.deb", &whole[..whole.len() / 2]);
    refused(&mut room.distro("damaged", "out.toml"), FAILED, &["damaged/cut.deb"]);
    assert!(!room.path("out.toml").exists());
}
