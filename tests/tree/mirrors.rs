//! Packages come from where each machine is configured to get them: apt, pip and cargo know that, and
//! no file says it for them.

use std::path::Path;
use std::process::Command;

use support::program::repository;
use support::tools::{need, told};

/// Patterns of what serves packages. Documents may name it, and so does this file.
const MIRRORS: [&str; 8] = [
    r"(deb|archive|security|snapshot|httpredir|ftp[a-z.]*)\.debian\.org",
    r"(archive|security)\.ubuntu\.com",
    r"(dl|mirrors|download)\.fedoraproject\.org",
    r"(mirror\.centos|download\.opensuse|dl\.rockylinux|repo\.almalinux)\.org",
    r"repo\.radeon\.com",
    r"(pypi|pythonhosted)\.org",
    r"(static|index)\.crates\.io",
    r"registry\.npmjs\.org",
];

/// What `git grep` prints of the lines in files below `folder` that name a mirror.
fn named(folder: &Path) -> String {
    let mut git = Command::new("git");
    // Those that git does not track yet and does not ignore, too; and it reads a tree without history.
    git.args(["grep", "--no-index", "--exclude-standard", "-InE"]);
    for pattern in MIRRORS {
        git.args(["-e", pattern]);
    }
    git.args(["--", ".", ":!*.md", ":!tests/tree/mirrors.rs"]).env("LC_ALL", "C");
    told(git.current_dir(folder))
}

#[test]
fn no_file_names_a_mirror() {
    need(&["git"]);
    // Without a match git grep exits with 1.
    assert_eq!(named(&repository("")), "exit status: 1\n");
}

#[test]
fn a_mirror_is_found_in_files_but_not_in_documents() {
    need(&["git"]);
    let folder = tempfile::tempdir().unwrap();
    for name in ["document.md", "script"] {
        std::fs::write(folder.path().join(name), "\nhttp://deb.debian.org/debian\n").unwrap();
    }
    let expected = "script:2:http://deb.debian.org/debian\nexit status: 0\n";
    assert_eq!(named(folder.path()), expected);
}
