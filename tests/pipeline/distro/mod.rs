//! `rockpack distro`, and `--distro` with what it makes tables of. `interop` compares the answers of roots with those
//! of dpkg-shlibdeps.

mod archives;
mod refused;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use support::example::{Entry, rockpack, tree};
use support::tools::run;

use crate::thin::Room;

/// The exit code of wrong usage.
const USAGE: i32 = 64;

/// The exit code of a run that failed.
const FAILED: i32 = 2;

/// The table of [`Room::root`].
const TABLE: &str = r#"# Libraries, programs and packages of ROCm of Own 3.
# Made by `rockpack distro`.

schema = 1
format = "deb"
name = "own-3"
compression = "zstd"
version_references = true

[os_release]
"ID" = "own"
"PRETTY_NAME" = "Own 3"
"VERSION_ID" = "3"

[sources]
"libz1" = "1:1.3-1"

[programs]
"" = "/usr/bin/dpkg"
"lang-core" = "/usr/bin/lang"

[packages]
"rocm-smi" = "5.2.3-2"

[libraries."libz.so.1"]
depends = ["libz1 #MINVER#"]
minimum = "1:1.1"
"#;

impl Room {
    /// The root of a system with dpkg, a library, and packages of other architectures.
    fn root(&self) -> PathBuf {
        let library_failure =
            "Package: libz1\nStatus: install ok installed\nMulti-Arch: same\nVersion: 1:1.3-1\n";
        let language =
            "Package: lang-core\nStatus: install ok unpacked\nArchitecture: all\nVersion: 2\n\n";
        self.write(
            "root/var/lib/dpkg/status",
            format!(
                "Package: dpkg\nEssential: yes\nStatus: install ok installed\nArchitecture: amd64\n\
                 Version: 1.22.22\n\n{language}{library_failure}Architecture: amd64\n\n{library_failure}Architecture: i386\n"
            ),
        );
        self.write("root/var/lib/dpkg/info/dpkg.list", "/.\n/usr/bin/dpkg\n");
        self.write("root/var/lib/dpkg/info/lang-core.list", "/.\n/bin/lang\n");
        let library = "usr/lib/x86_64-linux-gnu/libz.so.1";
        self.write("root/var/lib/dpkg/info/libz1:amd64.list", format!("/.\n/{library}\n"));
        self.write(
            "root/var/lib/dpkg/info/libz1:amd64.symbols",
            "libz.so.1 libz1 #MINVER#\n adler32@Base 1:1.1\n",
        );
        self.write(
            &format!("root/{library}.2"),
            b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0",
        );
        symlink("libz.so.1.2", self.path("root").join(library)).unwrap();
        self.write("root/etc/ld.so.conf", "include /etc/ld.so.conf.d/*.conf\n");
        self.write("root/etc/ld.so.conf.d/a.conf", "/usr/lib/x86_64-linux-gnu\n");
        // Each of these includes all.
        for name in ["b", "c", "d"] {
            self.write(
                &format!("root/etc/ld.so.conf.d/{name}.conf"),
                "include /etc/ld.so.conf.d/*.conf\n",
            );
        }
        self.write("root/usr/lib/os-release", "ID=own\nVERSION_ID=\"3\"\nPRETTY_NAME='Own 3'\n");
        symlink("/usr/lib/os-release", self.path("root/etc/os-release")).unwrap();
        for (arch, name) in [("amd64", "rocm-smi"), ("i386", "rocm-foreign")] {
            self.write(
                &format!("root/var/lib/apt/lists/deb.example.org_dists_x_binary-{arch}_Packages"),
                format!(
                    "Package: {name}\nVersion: 5.2.3-2\nArchitecture: {arch}\n\
                     Homepage: https://github.com/ROCm/rocm_smi_lib\n"
                ),
            );
        }
        self.path("root")
    }

    /// `rockpack distro` in this folder.
    fn distro(&self, source: &str, out: &str) -> Command {
        let mut command = rockpack();
        command.current_dir(self.0.path()).args(["distro", source, "--out", out]);
        command
    }

    /// The table that `rockpack distro` makes of `source`.
    fn table(&self, source: &str) -> String {
        run(&mut self.distro(source, "made.toml"));
        let text = fs::read_to_string(self.path("made.toml")).unwrap();
        fs::remove_file(self.path("made.toml")).unwrap();
        text
    }

    /// `rockpack plan` of a tree with a script, in this folder.
    fn plan(&self, words: &[&str]) -> Command {
        let script = self.write("tree/bin/script", "#!/usr/bin/lang\n");
        fs::set_permissions(script, fs::Permissions::from_mode(0o755)).unwrap();
        let mut command = rockpack();
        command.current_dir(self.0.path()).args(["plan", "hello=tree", "--version", "7.1"]);
        command.args(words);
        command
    }
}

/// Fails unless the command ends with this exit code and its message has each of `expected`, wherever lines are broken.
#[track_caller]
fn refused(command: &mut Command, code: i32, expected: &[&str]) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let said = String::from_utf8_lossy(&stderr);
    assert_eq!(status.code(), Some(code), "{said}");
    assert!(stdout.is_empty());
    let flat = |text: &str| text.split_whitespace().collect::<String>();
    for part in expected {
        assert!(flat(&said).contains(&flat(part)), "{part} is not in:\n{said}");
    }
}

/// Everything below a folder, with the seconds and nanoseconds of modification.
fn stamped(folder: &Path) -> BTreeMap<String, (Entry, i64, i64)> {
    let entries = tree(folder).into_iter().map(|(path, entry)| {
        let metadata = fs::symlink_metadata(folder.join(&path)).unwrap();
        (path, (entry, metadata.mtime(), metadata.mtime_nsec()))
    });
    entries.collect()
}

#[test]
fn a_root_becomes_a_table_and_stays_as_it_is() {
    let room = Room::new();
    let root = room.root();
    let before = stamped(&root);
    run(&mut room.distro("root", "own.toml"));
    assert_eq!(fs::read_to_string(room.path("own.toml")).unwrap(), TABLE);
    // A second run makes the same table, and leaves it alone.
    let written = fs::metadata(room.path("own.toml")).unwrap();
    run(&mut room.distro("./root/", "own.toml"));
    assert_eq!(fs::metadata(room.path("own.toml")).unwrap().ino(), written.ino());
    assert_eq!(room.table("root"), TABLE);
    assert_eq!(stamped(&root), before);
    assert_eq!(
        support::example::names(room.0.path()),
        ["own.toml", "root"].map(str::to_owned).into()
    );
}

/// The table and the root that it is from give the same packages, by the same name.
#[test]
fn a_table_stands_for_its_root() {
    let room = Room::new();
    room.root();
    room.write("own.toml", TABLE);
    let plans =
        ["own.toml", "./root", "deb=own.toml,rpm=el9", "rpm=el9,deb=./root"].map(|distro| {
            let output = run(room.plan(&["--json", "--format", "deb"]).args(["--distro", distro]));
            String::from_utf8(output.stdout).unwrap()
        });
    assert!(plans[0].contains("\"lang-core\""), "{}", plans[0]);
    assert!(plans.iter().all(|plan| *plan == plans[0]), "{plans:#?}");
}
