//! Packages from strangers, read by inspect, verify, extract, plan and repo. None of these commands unpacks a
//! package, so none of its files can be written; they refuse or show anything odd.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rockpack_core::run::Budget;
use support::archives::Handmade;
use support::example::{files, rockpack, tree};
use support::tampered::Archive;
use support::tools::{self, repository};

use crate::{inspect, limited, text};

pub const CONTROL: &str =
    "Package: odd\nVersion: 1\nArchitecture: amd64\nMaintainer: A <a@b.c>\nDescription: x\n";

/// The key that [`extracted`] renames.
const ORIGINAL_KEY: &str = "lib/libexblas.so.1.2#0";

/// The folder of the archive and of the output folder, below a test's own.
const ROOM: &str = "a/b/room";

/// A `.deb` whose data archive has the members that `add` adds.
pub fn deb(folder: &Path, add: impl FnOnce(&mut Handmade)) -> PathBuf {
    controlled(folder, &[("control", CONTROL)], add)
}

/// A `.deb` with these files in its control archive.
pub fn controlled(
    folder: &Path,
    files: &[(&str, &str)],
    add: impl FnOnce(&mut Handmade),
) -> PathBuf {
    let (mut control, mut data) = (Handmade::new(), Handmade::new());
    files.iter().for_each(|(name, text)| control.file(&format!("./{name}"), text.as_bytes()));
    add(&mut data);
    write(folder, &control.finish(), &data.finish())
}

/// Writes a package with these two archives.
pub fn write(folder: &Path, control: &[u8], data: &[u8]) -> PathBuf {
    members(folder, control, "zst", zstd::encode_all(data, 1).unwrap())
}

/// Writes a package whose `data.tar`, with the ending `method`, is `data`.
pub fn with_data(folder: &Path, method: &str, data: &[u8]) -> PathBuf {
    let mut control = Handmade::new();
    control.file("./control", CONTROL.as_bytes());
    members(folder, &control.finish(), method, data.to_vec())
}

fn members(folder: &Path, control: &[u8], method: &str, data: Vec<u8>) -> PathBuf {
    let name = format!("data.tar.{method}");
    let mut bytes = b"!<arch>\n".to_vec();
    let members = [
        ("debian-binary", b"2.0\n".to_vec()),
        ("control.tar.zst", zstd::encode_all(control, 1).unwrap()),
        (name.as_str(), data),
    ];
    for (name, content) in members {
        let size = content.len();
        bytes.extend(
            format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{size:<10}`\n", 0, 0, 0, 100_644).bytes(),
        );
        bytes.extend(content);
        bytes.resize(bytes.len().next_multiple_of(2), b'\n');
    }
    let path = folder.join("odd_1_amd64.deb");
    fs::write(&path, bytes).unwrap();
    path
}

/// Builds a package from `specification` with rpmbuild.
pub fn rpm(folder: &Path, specification: &str) -> PathBuf {
    let spec = folder.join("odd.spec");
    fs::write(&spec, specification).unwrap();
    let mut build = Command::new("rpmbuild");
    for define in ["_topdir", "_rpmdir"] {
        build.arg("--define").arg(format!("{define} {}", folder.display()));
    }
    build.args(["--define", "__os_install_post %{nil}", "--define", "_build_name_fmt odd.rpm"]);
    build.args(["--define", "_binary_payload w3.zstdio", "-bb", "--quiet"]);
    tools::run(build.arg(&spec));
    folder.join("odd.rpm")
}

/// The commands that read a package as input.
fn readers(package: &Path, folder: &Path) -> [Command; 4] {
    let command = |arguments: &[&str]| {
        let mut command = rockpack();
        command.args(arguments);
        command
    };
    let mut extract = command(&["extract"]);
    extract.arg(package).arg("--out").arg(folder.join("objects"));
    let mut verify = command(&["verify"]);
    verify.arg(package);
    let mut repo = command(&["repo"]);
    repo.arg(package).arg("--out").arg(folder.join("repo"));
    [inspect(package), verify, extract, repo]
}

/// The commands that read a package's content. A repository only needs the control file of a `.deb`.
pub fn openers(package: &Path, folder: &Path) -> Vec<Command> {
    readers(package, folder).into_iter().take(3).collect()
}

/// Only the messages count: the commands fail for any stranger's package, which has no device code to extract
/// and does not pass verification.
#[test]
fn members_that_lead_out_of_the_root_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["./../x", "../x", "./opt/../../x", "./two\nlines"] {
        for (kind, target) in [(b'0', ""), (b'2', "x"), (b'5', "")] {
            let package = deb(folder.path(), |data| data.member(name, kind, target, 0o644, b""));
            for mut command in openers(&package, folder.path()) {
                let output = command.output().unwrap();
                let said = text(&output);
                assert_ne!(output.status.code(), Some(0), "{command:?} with {name:?}: {said}");
                let why = ["has `..` in its path", "has a line break in its name"];
                let refused = said.contains("odd_1_amd64.deb")
                    && why.iter().any(|why| said.contains(why))
                    && !said.contains('\u{1b}');
                assert!(refused, "{command:?} with {name:?}: {said}");
            }
        }
    }
    // dpkg takes these for paths below the root.
    for (name, shown) in [
        ("/etc/x", "/etc/x"),
        ("./opt/./x", "/opt/x"),
        ("./opt//x", "/opt/x"),
        ("./\u{1b}[2Jx", "[2Jx"),
    ] {
        let package = deb(folder.path(), |data| data.member(name, b'0', "", 0o644, b""));
        let said = tools::succeed(&mut inspect(&package));
        assert!(said.contains(shown) && !said.contains('\u{1b}'), "{name:?}: {said}");
    }
    assert_eq!(support::example::names(folder.path()).len(), 1, "nothing but the package");
}

#[test]
fn members_whose_names_are_not_utf8_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let package = deb(folder.path(), |data| {
        data.member("././@LongLink", b'L', "", 0o644, b"./opt/lib\xff.so\0");
        data.file("./x", b"");
    });
    for mut command in openers(&package, folder.path()) {
        let output = command.output().unwrap();
        let said = text(&output);
        assert_ne!(output.status.code(), Some(0), "{command:?}: {said}");
        assert!(said.contains("odd_1_amd64.deb") && said.contains("UTF-8"), "{command:?}: {said}");
    }
}

#[test]
fn members_that_are_no_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (kind, target) in [(b'1', "./etc/passwd"), (b'7', ""), (b'S', ""), (b'x', ""), (b'g', "")] {
        let package = deb(folder.path(), |data| {
            data.member("./x", kind, target, 0o644, b"");
        });
        for mut command in openers(&package, folder.path()) {
            let output = command.output().unwrap();
            let said = text(&output);
            assert_ne!(output.status.code(), Some(0), "{command:?}: {said}");
            let why = ["which is not an earlier file", "has a type that dpkg does not install"];
            assert!(why.iter().any(|why| said.contains(why)), "{command:?}: {said}");
        }
    }
    for (kind, shown) in [(b'3', "character device"), (b'4', "block device"), (b'6', "named pipe")]
    {
        let package = deb(folder.path(), |data| data.member("./x", kind, "", 0o644, b""));
        let said = tools::succeed(&mut inspect(&package));
        assert!(said.contains(shown), "{said}");
    }
}

/// The program would run as another user after the installation.
#[test]
fn setuid_files_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    let package = deb(folder.path(), |data| data.member("./opt/su", b'0', "", 0o4755, b"x"));
    let shown = tools::succeed(&mut inspect(&package));
    assert!(shown.contains("4755") || shown.contains("rws"), "{shown}");
}

/// The exit code and report of `verify` for a package with these members, whose files all have the content
/// that its checksums state. Fails unless the listing for differences refuses exactly the packages in which
/// `verify` finds a path twice.
pub fn verified(members: &[(&str, u8, u32)]) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().unwrap();
    let files: BTreeSet<&str> =
        members.iter().filter(|(_, kind, _)| *kind == b'0').map(|(name, ..)| &name[2..]).collect();
    let sums: String = files
        .iter()
        .map(|name| format!("{}  {name}\n", "0cc175b9c0f1b6a831c399e269772661"))
        .collect();
    let package = controlled(folder.path(), &[("control", CONTROL), ("md5sums", &sums)], |data| {
        for (name, kind, mode) in members {
            let target = if *kind == b'2' { "elsewhere" } else { "" };
            let content: &[u8] = if *kind == b'0' { b"a" } else { b"" };
            data.member(name, *kind, target, *mode, content);
        }
    });
    tools::run(&mut inspect(&package));
    let output = rockpack().arg("verify").arg(&package).output().unwrap();
    let (said, listed) = (
        text(&output),
        rockpack_package::receipt::listing::read(&package, &Budget::unlimited(), &|_| Ok(None)),
    );
    assert_eq!(listed.is_err(), said.contains("is in the package twice"), "{listed:?}");
    (output.status.code(), said)
}

/// dpkg installs the last of them, in place of any earlier one.
#[test]
fn members_of_one_path_are_named() {
    let (file, set_id, link) = (("./x", b'0', 0o644), ("./x", b'0', 0o4755), ("./x", b'2', 0o777));
    let (folder, open) = (("./x", b'5', 0o755), ("./x", b'5', 0o777));
    for (members, kinds) in [
        ([file, link], "as a file and as a link"),
        ([link, file], "as a link and as a file"),
        ([set_id, file], "as a file and as a file"),
        ([folder, file], "as a folder and as a file"),
        ([file, file], "as a file and as a file"),
        ([folder, open], "as a folder and as a folder"),
    ] {
        let (code, said) = verified(&members);
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains("V040 path-owned-twice: odd_1_amd64.deb"), "{said}");
        assert!(said.contains("/x") && said.contains(kinds), "{said}");
    }
    let (code, said) = verified(&[folder, folder]);
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn members_below_a_link_are_named() {
    for kind in [b'2', b'0'] {
        let (code, said) = verified(&[("./x", kind, 0o777), ("./x/below", b'0', 0o644)]);
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains("V040 path-owned-twice: /x/below: is below /x"), "{said}");
    }
}

#[test]
fn control_archives_that_decode_to_much_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (name, mib, refusal) in [
        ("./md5sums", 300, "control archive exceeds 268435456 bytes"),
        ("./control", 5, "control file exceeds 4194304 bytes"),
    ] {
        let mut control = Handmade::new();
        control.file(name, &vec![b' '; mib << 20]);
        let package = write(folder.path(), &control.finish(), &Handmade::new().finish());
        assert!(fs::metadata(&package).unwrap().len() < 1 << 20);
        let output = limited(&inspect(&package), 400).output().unwrap();
        let said = text(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(refusal), "{said}");
    }
}

/// rockpack keeps only a list's text and the offsets of its paths.
#[test]
fn lists_of_lines_that_say_nothing_cost_little_memory() {
    let folder = tempfile::tempdir().unwrap();
    let files = [("control", CONTROL), ("conffiles", &"\n".repeat(24 << 20))];
    let package = controlled(folder.path(), &files, |_| {});
    assert!(fs::metadata(&package).unwrap().len() < 1 << 14);
    tools::run(&mut limited(&inspect(&package), 128));
}

/// A package that holds ten packages, each holding ten more, and so on, would take very long.
#[test]
fn packages_in_packages_are_not_looked_into() {
    let folder = tempfile::tempdir().unwrap();
    let inner = fs::read(deb(folder.path(), |_| {})).unwrap();
    for content in [&inner[..], &inner[..90], b"\xed\xab\xee\xdb\x03\0"] {
        let package = deb(folder.path(), |data| data.file("./opt/inner.dat", content));
        let shown = tools::succeed(inspect(&package).arg("--json"));
        assert!(shown.contains("/opt/inner.dat") && !shown.contains("fault"), "{shown}");
    }
}

#[test]
fn files_that_decode_to_much_are_read_in_windows() {
    let folder = tempfile::tempdir().unwrap();
    let package = deb(folder.path(), |data| data.file("./opt/zeros", &vec![0; 132 << 20]));
    let mut codes = Vec::new();
    for command in readers(&package, folder.path()) {
        let output = limited(&command, 128).output().unwrap();
        let said = text(&output);
        codes.push(output.status.code());
        assert!(!said.contains("memory allocation"), "{said}");
    }
    // The package is not one of rockpack's, and has no device code to extract.
    assert_eq!(codes, [0, 1, 64, 0].map(Some));
}

/// Keys of archives name the extracted files, and may contain anything.
#[test]
fn extracted_files_lie_in_the_output_folder() {
    // The test knows and checks all folders above the output folder that a key leads to here.
    let folder = tempfile::tempdir().unwrap();
    let room = folder.path().join(ROOM);
    fs::create_dir_all(&room).unwrap();
    fs::create_dir(folder.path().join("absolute")).unwrap();
    let absolute = folder.path().join("absolute/escaped#0");
    let shard = repository("examples/shards/gfx1151-build");
    let split = room.join("split");
    let mut run = rockpack();
    tools::run(run.args(["split", "--artifacts"]).arg(shard).arg("--output-dir").arg(&split));
    let inside = "gfx1151-build/blas_lib_gfx1151/math-libs/BLAS/rocBLAS/stage/lib/.kpack";
    let archive = split.join(inside).join("blas_lib_gfx1151.kpack");
    let long = "x".repeat(300);
    let (code, whole) = extracted(folder.path(), &archive, ORIGINAL_KEY);
    assert_eq!(code, Some(0));
    let renamed = "lib%2Flibexblas.so.1.2-0-gfx1151.hsaco";
    assert!(whole.contains_key(renamed), "{:?}", whole.keys());
    for (key, expected) in [
        ("../escaped#0", "%2E.%2Fescaped"),
        ("../../escaped#0", "%2E.%2F..%2Fescaped"),
        ("../../../escaped#0", "%2E.%2F..%2F..%2Fescaped"),
        ("a/../../escaped#0", "a%2F..%2F..%2Fescaped"),
        (absolute.to_str().unwrap(), ""),
        ("\u{1b}[2J#0", "%1B%5B2J"),
        (".#0", "%2E"),
        ("..#0", "%2E."),
        ("#0", ""),
    ] {
        let (code, found) = extracted(folder.path(), &archive, key);
        assert_eq!(code, Some(0), "{key}");
        assert_eq!(found.len(), whole.len(), "{key}: {:?}", found.keys());
        let new: Vec<_> = found.iter().filter(|(name, _)| !whole.contains_key(*name)).collect();
        assert_eq!(new.len(), 1, "{key}: {:?}", found.keys());
        let (name, code_object) = new[0];
        let is_expected = if Path::new(key).is_absolute() {
            name.starts_with("%2F") && name.ends_with("%2Fabsolute%2Fescaped-0-gfx1151.hsaco")
        } else {
            *name == format!("{expected}-0-gfx1151.hsaco")
        };
        assert!(is_expected, "{key}: {name}");
        assert!(*code_object == whole[renamed], "{key}");
    }
    // No file can have such a long name: no file is written, not even earlier ones.
    let (code, found) = extracted(folder.path(), &archive, &long);
    assert_eq!((code, found.len()), (Some(2), 0));
}

/// Renames a key of `archive`, and extracts it. Returns the exit code and the extracted files.
fn extracted(folder: &Path, archive: &Path, key: &str) -> (Option<i32>, BTreeMap<String, Vec<u8>>) {
    let room = folder.join(ROOM);
    let (hostile, out) = (room.join("hostile.kpack"), room.join("objects"));
    fs::copy(archive, &hostile).unwrap();
    Archive::edit(&hostile, |archive| archive.rename(ORIGINAL_KEY, key));
    let before = tree(folder);
    let mut extract = rockpack();
    extract.arg("extract").arg(&hostile).arg("--out").arg(&out);
    let output = extract.output().unwrap();
    let said = text(&output);
    assert!(!said.contains("panicked") && !said.contains('\u{1b}'), "{key}: {said}");
    let files = if out.exists() { files(&out) } else { BTreeMap::new() };
    assert!(files.keys().all(|name| !name.contains('/')), "{key}: {:?}", files.keys());
    let _ = fs::remove_dir_all(&out);
    assert!(tree(folder) == before, "{key}: something else has changed");
    (output.status.code(), files)
}
