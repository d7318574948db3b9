//! Packages come from the sources configured on each machine: apt, pip and cargo know them, and no file of
//! the repository names one.

use std::path::Path;
use std::process::Command;

use support::program::repository;
use support::tools::{need, told};

/// Patterns for package mirrors. Documents may name them, and so does this file.
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

/// The lines in files below `folder` that name a mirror, printed by `git grep`.
fn named(folder: &Path) -> String {
    let mut git = Command::new("git");
    // Includes files that git neither tracks nor ignores, and works without a history.
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
    // git grep exits with 1 if nothing matches.
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
