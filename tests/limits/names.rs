//! Names, paths, modes and types of files in artifacts.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use support::raw_header::{header, numbers, package, texts};
use support::sweep;
use support::tools::{self, need, need_root};

use crate::hostile_packages::verified;
use crate::two_readings::refused;
use crate::{Input, STAGE, refusal};

const UNPACKERS: [&str; 3] = ["dpkg-deb", "rpm2cpio", "cpio"];

#[test]
fn folders_are_packed_up_to_a_depth() {
    need(&UNPACKERS);
    let input = Input::folder();
    let deep: PathBuf = std::iter::repeat_n("folder", 256).collect();
    fs::create_dir_all(input.stage().join(&deep)).unwrap();
    fs::write(input.stage().join(&deep).join("file"), "deep").unwrap();
    for root in input.installed() {
        assert_eq!(fs::read(root.join(&deep).join("file")).unwrap(), b"deep");
    }
    let deeper = deep.join("folder");
    fs::create_dir(input.stage().join(&deeper)).unwrap();
    fs::write(input.stage().join(&deeper).join("file"), "deep").unwrap();
    fs::remove_dir_all(input.out()).unwrap();
    input.refused(&["folder/folder/file", "is nested in more than 256 folders"]);
    let input = Input::handmade(|archive| {
        let path = format!("{STAGE}/{}x\0", "y/".repeat(257));
        archive.member("././@LongLink", b'L', "", 0o644, path.as_bytes());
        archive.file("x", b"");
    });
    input
        .refused(&["a_lib_generic.tar.zst(libs/A/stage/y/y", "is nested in more than 256 folders"]);
}

/// No path can be so deep; like tar, the test goes from folder to folder to make it.
#[test]
fn folders_deeper_than_a_path_are_refused() {
    let input = Input::folder();
    let script =
        "cd \"$0\"; i=0; while [ $i -lt 21 ]; do mkdir $1 && cd -P ./$1 || exit; i=$((i+1)); done";
    let mut make = Command::new("bash");
    make.args(["-c", script]).arg(input.stage()).arg("f".repeat(200));
    tools::run(&mut make);
    input.refused(&["fff/fff", "File name too long"]);
}

/// A header stores a folder once for all of its files.
#[test]
fn long_paths_in_an_rpm_are_refused() {
    let room = tempfile::tempdir().unwrap();
    let file = room.path().join("x-1-1.noarch.rpm");
    write_rpm(&file, 4091, 1);
    refused(&file, &["rpm header", "lists a path of 4097 bytes, and the longest has 4096"]);
    write_rpm(&file, 1000, 1000);
    refused(&file, &["rpm header", "lists paths of 1006000, more than 16 for each byte"]);
}

/// Writes an `.rpm` of `count` files in a folder with a name of this length.
fn write_rpm(file: &Path, folder_len: usize, count: usize) {
    let tags = [
        texts(1117, (0..count).map(|n| format!("{n:04}"))),
        numbers(1116, vec![0; count]),
        texts(1118, [format!("/{}/", "d".repeat(folder_len))]),
    ];
    fs::write(file, package(&header(&tags))).unwrap();
}

#[test]
fn long_names_in_an_archive_are_refused() {
    let long = "x".repeat(5000);
    let input = Input::handmade(|archive| {
        archive.member("././@LongLink", b'L', "", 0o644, format!("{STAGE}/{long}\0").as_bytes());
        archive.file("x", b"");
    });
    input.refused(&["a_lib_generic.tar.zst", "has a name beyond PATH_MAX"]);
}

/// A member costs few bytes, but a path of hundreds of folders makes as many entries, each with a path.
#[test]
fn folders_that_stand_there_only_by_name_count() {
    let input = Input::handmade(|archive| {
        for number in 0..700 {
            let path = format!("{STAGE}/{number}/{}x\0", "a-longer-name/".repeat(250));
            archive.member("././@LongLink", b'L', "", 0o644, path.as_bytes());
            archive.file("x", b"");
        }
    });
    // Even with the memory of most machines there are too many to remember, and they are refused.
    let said = refusal(input.build().args(["--memory", "100G"]));
    assert!(said.contains("a_lib_generic.tar.zst"), "{said}");
    assert!(said.contains("or more than 268435456 bytes of paths"), "{said}");
}

/// The most entries for an archive: members and the folders around them.
const ENTRIES: usize = 1 << 20;

/// An archive with the most entries, with short paths, and a last member that is refused: `last`.
fn entries(last: &str) -> Input {
    // The numbered folder, the folders in it, and the file.
    const DEPTH: usize = 39;
    const EACH: usize = DEPTH + 2;
    // The manifest, `libs`, `libs/A`, and the stage prefix.
    let left = ENTRIES - 4;
    Input::handmade(|archive| {
        for number in 0..left / EACH {
            archive.file(&format!("{STAGE}/{number}/{}x", "y/".repeat(DEPTH)), b"");
        }
        for number in 0..left % EACH {
            archive.file(&format!("{STAGE}/x{number}"), b"");
        }
        archive.file(last, b"");
    })
}

/// The short paths stay below the limit in bytes, so exactly this many are read. Only full sweeps show that
/// it is not one less, as each of the two runs takes seconds.
#[test]
fn members_and_folders_count_up_to_a_million() {
    const TOO_MANY: &str = "has more than 1048576 members and folders around them";
    let beyond = refusal_of(&format!("{STAGE}/one-more"));
    assert!(beyond.contains("a_lib_generic.tar.zst") && beyond.contains(TOO_MANY), "{beyond}");
    if !sweep::all() {
        return;
    }
    let whole = refusal_of("../x");
    assert!(whole.contains("a_lib_generic.tar.zst(../x"), "{whole}");
    assert!(!whole.contains(TOO_MANY), "{whole}");
}

fn refusal_of(last: &str) -> String {
    refusal(entries(last).build().args(["--memory", "100G"]))
}

#[test]
fn names_that_are_not_utf8_are_refused() {
    let name = std::ffi::OsStr::from_bytes(b"lib\xff.so");
    let input = Input::folder();
    fs::write(input.stage().join(name), "").unwrap();
    input.refused(&["lib", "is not UTF-8"]);
    let input = Input::folder();
    symlink(name, input.stage().join("link")).unwrap();
    input.refused(&["stage/link", "is not UTF-8"]);
    let input = Input::handmade(|archive| {
        let record = b"30 path=libs/A/stage/liba\xff.so\n";
        archive.member("pax", b'x', "", 0o644, record);
        archive.file("x", b"");
    });
    input.refused(&["a_lib_generic.tar.zst", "UTF-8"]);
}

/// A line break would forge lines of a list, an escape sequence the content of a terminal.
#[test]
fn control_characters_in_names_are_refused_and_not_printed() {
    for name in ["two\nlines", "\u{1b}[2Jx", "bell\u{7}", "tab\t", "back\u{8}", "c1\u{9b}2J"] {
        let input = Input::folder();
        fs::write(input.stage().join(name), "").unwrap();
        assert_lacks(&input.refused(&["is not a path inside the prefix"]), name);
        let input = Input::handmade(|archive| archive.file(&format!("{STAGE}/{name}"), b""));
        assert_lacks(&input.refused(&["a_lib_generic.tar.zst(libs/A/stage/"]), name);
        let input = Input::folder();
        symlink(name, input.stage().join("link")).unwrap();
        assert_lacks(&input.refused(&["stage/link", "the link leads to"]), name);
    }
}

fn assert_lacks(said: &str, name: &str) {
    assert!(!said.contains(name), "{said:?}");
}

#[test]
fn names_that_differ_in_case_are_two_files() {
    need(&UNPACKERS);
    const NAMES: [&str; 3] = ["lib/Readme", "lib/README", "Lib/readme"];
    let folder = Input::folder();
    for name in NAMES {
        let path = folder.stage().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, name).unwrap();
    }
    let archive = Input::handmade(|archive| {
        NAMES.iter().for_each(|name| archive.file(&format!("{STAGE}/{name}"), name.as_bytes()));
    });
    for root in folder.installed().into_iter().chain(archive.installed()) {
        for name in NAMES {
            assert_eq!(fs::read(root.join(name)).unwrap(), name.as_bytes());
        }
    }
    let (code, said) = verified(&[("./x", b'0', 0o644), ("./X", b'0', 0o644)]);
    assert!(code == Some(0) && !said.contains("V040"), "{said}");
}

/// Package names become lower-case, since dpkg accepts no others.
#[test]
fn packages_whose_names_differ_in_case_are_refused() {
    let input = Input::folder();
    fs::write(input.stage().join("lib/x"), "").unwrap();
    let other = input.shard().join("A_lib_generic");
    fs::create_dir_all(other.join(STAGE)).unwrap();
    fs::write(other.join("artifact_manifest.txt"), format!("{STAGE}\n")).unwrap();
    fs::write(other.join(STAGE).join("y"), "").unwrap();
    input.refused(&["the artifacts A, a all become rocm-a"]);
}

#[test]
fn hard_links_in_a_folder_are_files_of_their_own() {
    need(&UNPACKERS);
    let input = Input::folder();
    fs::write(input.stage().join("one"), "linked").unwrap();
    fs::hard_link(input.stage().join("one"), input.stage().join("two")).unwrap();
    for root in input.installed() {
        let [one, two] = ["one", "two"].map(|name| fs::metadata(root.join(name)).unwrap().ino());
        assert_ne!(one, two);
        assert_eq!(fs::read(root.join("two")).unwrap(), b"linked");
    }
}

#[test]
fn sparse_files_in_a_folder_are_packed_with_their_zeros() {
    need(&UNPACKERS);
    let input = Input::folder();
    let file = fs::File::create(input.stage().join("sparse")).unwrap();
    file.set_len(3 << 20).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, b"end", 3 << 20).unwrap();
    for root in input.installed() {
        let bytes = fs::read(root.join("sparse")).unwrap();
        assert!(bytes.len() == (3 << 20) + 3 && bytes.ends_with(b"\0end"));
    }
}

#[test]
fn devices_in_a_folder_are_refused() {
    need_root();
    for (kind, numbers) in [("c", ["1", "3"]), ("b", ["7", "0"])] {
        let input = Input::folder();
        let device = input.stage().join("device");
        let made = Command::new("mknod").arg(&device).arg(kind).args(numbers).output().unwrap();
        if !made.status.success() {
            tools::skip("needs to make devices");
        }
        input.refused(&["stage/device", "is a device"]);
    }
}

/// Packages give each type of file a fixed mode, independent of the umask and of attackers.
#[test]
fn modes_do_not_reach_the_packages() {
    need(&UNPACKERS);
    let input = Input::folder();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    for (name, mode) in [("open", 0o666), ("tool", 0o777), ("closed", 0o600), ("sticky", 0o1755)] {
        let path = input.stage().join(name);
        fs::write(&path, name).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }
    let folder = input.stage().join("lib");
    fs::write(folder.join("x"), "").unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o3777)).unwrap();
    for root in input.installed() {
        let modes = ["open", "tool", "closed", "sticky", "lib"].map(|name| mode(&root.join(name)));
        assert_eq!(modes.map(|mode| format!("{mode:o}")), ["644", "755", "644", "755", "755"]);
    }
}
