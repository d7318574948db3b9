//! Packages with duplicate content or odd names: the tools that install them see something else than a
//! careless reader.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use rpm::IndexData;
use support::archives::Handmade;
use support::example::{names, rockpack};
use support::headers::{Tagged, remade, retagged};
use support::queries::rpm_tags;
use support::raw_header::{header_of, package};
use support::roots::dpkg_database;
use support::tools::{have, need, run, succeed, told};

use crate::hostile_packages::{CONTROL, controlled, write};
use crate::{Input, inspect, refusal, text};

/// Fails unless `inspect` and `repo` refuse a package with all of `parts`, and `verify` says that it cannot
/// be read.
pub fn refused(package: &Path, parts: &[&str]) {
    let room = tempfile::tempdir().unwrap();
    let out = room.path().join("repo");
    let mut repo = rockpack();
    repo.arg("repo").arg(package).arg("--out").arg(&out);
    let verify = rockpack().arg("verify").arg(package).output().unwrap();
    let verified = text(&verify);
    assert_eq!(verify.status.code(), Some(1), "{parts:?}: {verified}");
    assert!(verified.contains("V001 unreadable"), "{verified}");
    for said in [refusal(&mut inspect(package)), refusal(&mut repo), verified] {
        for part in parts {
            assert!(said.contains(part), "{part}: {said}");
        }
    }
    assert!(!out.join("dists").exists() && !out.join("repodata").exists());
}

/// Fails unless a package is read, verified and published.
fn accepted(package: &Path) {
    let room = tempfile::tempdir().unwrap();
    run(&mut inspect(package));
    run(rockpack().arg("verify").arg(package));
    run(rockpack().arg("repo").arg(package).arg("--out").arg(room.path().join("repo")));
}

/// The `.rpm` of a build, with more tags in its header and its signature.
fn rpm(folder: &Path, header: &[Tagged], signature: &[Tagged]) -> PathBuf {
    built(folder, |bytes| retagged(bytes, header, signature))
}

/// The name and the bytes of the `.rpm` of a build.
static BUILT: LazyLock<(String, Vec<u8>)> = LazyLock::new(|| {
    let input = Input::folder();
    fs::write(input.stage().join("lib/text"), "x").unwrap();
    fs::write(input.stage().join("lib/other"), "").unwrap();
    run(&mut input.build());
    let made = names(&input.out());
    let name = made.iter().find(|n| n.starts_with("rocm-a-") && n.ends_with(".rpm")).unwrap();
    (name.clone(), fs::read(input.out().join(name)).unwrap())
});

/// The `.rpm` of a build after `change`.
pub fn built(folder: &Path, change: impl FnOnce(&[u8]) -> Vec<u8>) -> PathBuf {
    let (name, bytes) = &*BUILT;
    let package = folder.join(name);
    fs::write(&package, change(bytes)).unwrap();
    package
}

fn line(text: &str) -> IndexData {
    IndexData::StringTag(text.to_owned())
}

/// A query of the package by rpm, to which all of these packages are intact.
fn rpm_says(package: &Path, format: &str) -> String {
    run(Command::new("rpm").args(["-K", "--nosignature"]).arg(package));
    rpm_tags(package, format)
}

#[test]
fn a_tag_twice_is_refused() {
    let room = tempfile::tempdir().unwrap();
    // Nobody minds further tags that are unknown.
    let package = rpm(room.path(), &[(5_000_000, line("x"))], &[(5_000_000, line("x"))]);
    accepted(&package);
    let directories = IndexData::StringArray(vec!["/etc/".to_owned()]);
    let cases =
        [(1001, line("9.9"), "%{VERSION}", "9.9"), (1118, directories, "[%{DIRNAMES} ]", "/etc/ ")];
    for (tag, data, format, seen) in cases {
        let package = rpm(room.path(), &[(tag, data)], &[]);
        refused(&package, &[".rpm", "rpm header", &format!("tag {tag} appears twice")]);
        if have(&["rpm"]) {
            assert_eq!(rpm_says(&package, format), seen);
        }
    }
    let script = (1023, line("touch /tmp/x"));
    let package = rpm(room.path(), &[script.clone(), script], &[]);
    refused(&package, &["tag 1023 appears twice"]);
    let package = rpm(room.path(), &[], &[(1007, IndexData::Int32(vec![7]))]);
    refused(&package, &["tag 1007 appears twice"]);
}

#[test]
fn sizes_that_an_rpm_states_in_two_ways_have_to_agree() {
    let room = tempfile::tempdir().unwrap();
    for tag in [270, 271] {
        let package = rpm(room.path(), &[], &[(tag, IndexData::Int64(vec![7]))]);
        refused(&package, &["states a size as both ", " and 7 bytes"]);
    }
}

/// The `.rpm` of a build whose header has these device and inode numbers for all files, or lacks them.
fn numbered(folder: &Path, devices: Option<u32>, inodes: Option<u32>) -> PathBuf {
    let changed = |(tag, data): Tagged| match tag {
        1095 => all_of(tag, &data, devices),
        1096 => all_of(tag, &data, inodes),
        _ => Some((tag, data)),
    };
    let change = |tags: Vec<Tagged>| tags.into_iter().filter_map(changed).collect();
    built(folder, |bytes| remade(bytes, change, &[]))
}

/// A tag with the same number for each of its old ones; `None` leaves the tag out.
fn all_of(tag: u32, old: &IndexData, number: Option<u32>) -> Option<Tagged> {
    let IndexData::Int32(old) = old else { panic!("tag {tag} is {old:?}") };
    number.map(|number| (tag, IndexData::Int32(vec![number; old.len()])))
}

/// rpm installs files with the same inode in the header as one file, whatever the payload says. If they differ,
/// nobody can say which one is meant. `repo` lists such a package as createrepo_c does: lists have no inodes.
#[test]
fn different_files_of_one_inode_are_refused() {
    let room = tempfile::tempdir().unwrap();
    let hard = numbered(room.path(), Some(1), Some(7));
    let verify = rockpack().arg("verify").arg(&hard).output().unwrap();
    let verified = text(&verify);
    assert!(!verify.status.success() && verified.contains("V001 unreadable"), "{verified}");
    for said in [refusal(&mut inspect(&hard)), verified] {
        assert!(said.contains(" is a hard link to /") && said.contains("/lib/text"), "{said}");
    }
    if have(&["rpm"]) {
        assert!(has_links(&hard));
    }
    run(rockpack().arg("repo").arg(&hard).arg("--out").arg(room.path().join("repo")));
    for (devices, inodes) in [(Some(1), Some(0)), (None, Some(7)), (Some(1), None), (None, None)] {
        let package = numbered(room.path(), devices, inodes);
        accepted(&package);
        if have(&["rpm"]) {
            assert!(!has_links(&package), "{devices:?} {inodes:?}");
        }
    }
}

/// Tells whether rpm counts more than one link for any file; for others it says 0, 1 or nothing.
fn has_links(package: &Path) -> bool {
    let counts = rpm_says(package, "[%{FILENLINKS} ]");
    counts.split(' ').any(|count| !["", "0", "1"].contains(&count))
}

/// rpm refuses such a header: each of its tags would take the same memory again.
#[test]
fn tags_of_the_same_bytes_are_refused() {
    let room = tempfile::tempdir().unwrap();
    let file = room.path().join("x-1-1.noarch.rpm");
    let rows: Vec<[u32; 4]> = (0..1000).map(|n| [100_000 + n, 2, 0, 1 << 14]).collect();
    fs::write(&file, package(&header_of(&rows, &[0; 1 << 14]))).unwrap();
    refused(&file, &["rpm header", "tag 100001 shares bytes of the data with other tags"]);
    need(&["rpm"]);
    let said = told(Command::new("rpm").args(["-qp", "--nosignature"]).arg(&file));
    assert!(said.contains("tag[1]: BAD"), "{said}");
}

/// A package whose control archive has more members after `./` and the control file.
fn with_control(folder: &Path, add: impl FnOnce(&mut Handmade)) -> PathBuf {
    let mut control = Handmade::new();
    control.member("./", b'5', "", 0o755, b"");
    control.file("./control", CONTROL.as_bytes());
    add(&mut control);
    write(folder, &control.finish(), &Handmade::new().finish())
}

/// dpkg-deb unpacks the archive unchanged, and dpkg then reads the result.
#[test]
fn a_control_archive_has_files_alone() {
    let room = tempfile::tempdir().unwrap();
    accepted(&with_control(room.path(), |control| control.file("./triggers", b"")));
    let other = CONTROL.replace("Version: 1", "Version: 9");
    let forged = with_control(room.path(), |control| {
        control.file("./other", other.as_bytes());
        control.member("./control", b'2', "other", 0o777, b"");
    });
    refused(&forged, &["odd_1_amd64.deb", "control archive has ./control, which is not a file"]);
    if have(&["dpkg-deb"]) {
        assert_eq!(succeed(Command::new("dpkg-deb").arg("-f").arg(&forged).arg("Version")), "9\n");
    }
    let again = with_control(room.path(), |control| control.file("./control", other.as_bytes()));
    refused(&again, &["odd_1_amd64.deb", "control archive has control twice"]);
    for (name, kind, target) in [
        ("./postinst", b'2', "/bin/true"),
        ("./control", b'5', ""),
        ("./folder", b'5', ""),
        ("./folder/file", b'0', ""),
    ] {
        let package = with_control(room.path(), |control| {
            control.member(name, kind, target, 0o755, b"");
        });
        refused(&package, &[&format!("control archive has {name}, which is not a file")]);
    }
}

#[test]
fn fields_that_differ_in_case_are_one() {
    let room = tempfile::tempdir().unwrap();
    let lower = of_control(room.path(), &format!("{CONTROL}depends: libc6\n"));
    accepted(&lower);
    if have(&["dpkg-deb"]) {
        let depends = succeed(Command::new("dpkg-deb").arg("-f").arg(&lower).arg("Depends"));
        assert_eq!(depends, "libc6\n");
    }
    let fields = "Depends: libc6\ndepends: other\n";
    let twice = of_control(room.path(), &format!("{CONTROL}{fields}"));
    refused(&twice, &["field depends appears twice"]);
    need(&["dpkg-deb"]);
    let root = room.path().join("root");
    fs::create_dir_all(root.join("DEBIAN")).unwrap();
    fs::write(root.join("DEBIAN/control"), format!("{CONTROL}{fields}")).unwrap();
    let said = told(Command::new("dpkg-deb").arg("--build").arg(&root));
    assert!(said.contains("duplicate value for 'Depends' field"), "{said}");
}

fn of_control(folder: &Path, control: &str) -> PathBuf {
    controlled(folder, &[("control", control)], |_| {})
}

/// dpkg-deb's value of a package's field.
fn dpkg_says(package: &Path, field: &str) -> String {
    succeed(Command::new("dpkg-deb").arg("-f").arg(package).arg(field))
}

#[test]
fn lines_that_end_for_dpkg_alone_are_refused() {
    let room = tempfile::tempdir().unwrap();
    let head = CONTROL.trim_end();
    for (control, field, seen) in [
        (format!("{head}\u{1a}Conflicts: bash\n"), "Conflicts", "bash\n"),
        (format!("{CONTROL}Conflicts: bash\0, dpkg\n"), "Conflicts", "bash\n"),
        (format!("{CONTROL}\u{b}Conflicts: bash\n"), "Conflicts", "\n"),
        (format!("{CONTROL}\rConflicts: bash\n"), "Conflicts", "\n"),
        (format!("{CONTROL}X-\u{1b}[2J: bash\n"), "X-\u{1b}[2J", "bash\n"),
    ] {
        let odd = of_control(room.path(), &control);
        refused(&odd, &["odd_1_amd64.deb", "has control characters"]);
        if have(&["dpkg-deb"]) {
            assert_eq!(dpkg_says(&odd, field), seen, "{control:?}");
        }
    }
    let windows = of_control(room.path(), &CONTROL.replace('\n', "\r\n"));
    accepted(&windows);
    need(&["dpkg-deb"]);
    assert_eq!(dpkg_says(&windows, "Version"), "1\n");
}

/// The conffiles that dpkg records for a package when it unpacks it; `None` if it refuses the package.
fn unpacked_conffiles(package: &Path) -> Option<Vec<String>> {
    let root = tempfile::tempdir().unwrap();
    let database = root.path().join("var/lib/dpkg");
    dpkg_database(root.path(), "");
    let mut dpkg = Command::new("dpkg");
    dpkg.args(["--force-all", "--force-script-chrootless", "--log=/dev/null", "--root"]);
    dpkg.arg(root.path()).arg("--unpack").arg(package);
    dpkg.output().unwrap().status.success().then(|| {
        let status = fs::read_to_string(database.join("status")).unwrap();
        let lines = status.lines().filter_map(|line| line.strip_prefix(" /"));
        let present = lines.filter(|line| !line.ends_with("remove-on-upgrade"));
        present.map(|line| line.split(' ').next().unwrap().to_owned()).collect()
    })
}

#[test]
fn conffiles_are_those_that_dpkg_sees() {
    let room = tempfile::tempdir().unwrap();
    for (text, seen) in [
        ("/etc/a\n", Some(&["etc/a"][..])),
        ("/etc/a \t\r\n\n  \n/etc/b\n", Some(&["etc/a", "etc/b"])),
        ("/etc/a\n/etc/a\n", Some(&["etc/a", "etc/a"])),
        ("//etc/a\n/./etc/b\n", Some(&["etc/a", "etc/b"])),
        ("remove-on-upgrade /etc/c\n", Some(&[])),
        ("/etc/a", None),
        ("etc/a\n", None),
        (" /etc/a\n", None),
        ("unknown /etc/a\n", None),
        ("remove-on-upgrade  /etc/c\n", None),
    ] {
        let files = [("control", CONTROL), ("conffiles", text)];
        let package = controlled(room.path(), &files, |data| {
            data.member("./etc/", b'5', "", 0o755, b"");
            data.file("./etc/a", b"");
            data.file("./etc/b", b"");
        });
        let output = inspect(&package).output().unwrap();
        assert_eq!(output.status.success(), seen.is_some(), "{text:?}");
        // Files that are not conffiles need a digest.
        let said = crate::text(&rockpack().arg("verify").arg(&package).output().unwrap());
        for name in ["etc/a", "etc/b"].into_iter().filter(|_| seen.is_some()) {
            let bare = said.contains(&format!("/{name}: the package states no digest"));
            assert_eq!(bare, !seen.unwrap_or_default().contains(&name), "{text:?}: {said}");
        }
        if have(&["dpkg"]) {
            let kept = unpacked_conffiles(&package);
            let kept =
                kept.as_ref().map(|kept| kept.iter().map(String::as_str).collect::<Vec<_>>());
            assert_eq!(kept.as_deref(), seen, "{text:?}");
        }
    }
}
