//! Tarballs: every header and member that does not change stays byte for byte.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use support::archives::Handmade;
use support::example::{Entry, names, tree};
use support::sha256;
use support::tools::{self, need};

use super::{Room, bundles_in, changed, changed_paths, code};
use crate::odd_code::{GFX1100, HOST};

/// Endings, and the tools that decode them.
const FORMS: [(&str, &str); 5] =
    [("tar", "cat"), ("tar.gz", "gzip"), ("tgz", "gzip"), ("tar.xz", "xz"), ("tar.zst", "zstd")];

const TOOLS: [&str; 4] = ["tar", "gzip", "xz", "zstd"];

/// A directory name that no header of the oldest format has room for.
const LONG: &str = "share/a-folder-with-a-name-of-sixty-four-bytes-in-the-tarball-of-this-test/\
                    and-a-second-one-below-it-with-another-sixty-bytes-of-name";

/// A tree with files that change, that are removed, and that stay.
fn room() -> Room {
    let room = Room::new();
    need(&TOOLS);
    room.usual("tree/lib/libx.so.1");
    fs::hard_link(room.path("tree/lib/libx.so.1"), room.path("tree/lib/libx.so.1.0")).unwrap();
    symlink("libx.so.1", room.path("tree/lib/libx.so")).unwrap();
    room.write("tree/lib/a.hsaco", code("gfx90a", 3));
    symlink("a.hsaco", room.path("tree/lib/b.hsaco")).unwrap();
    room.write("tree/lib/c.hsaco", code("gfx1100", 4));
    room.write(&format!("tree/{LONG}/gone.hsaco"), code("gfx90a", 5));
    room.write(&format!("tree/{LONG}/stays.txt"), "text\n");
    let setuid = room.write("tree/bin/tool", "#!/bin/sh\n");
    fs::set_permissions(setuid, Permissions::from_mode(0o4755)).unwrap();
    room.write("tree/z-last.hsaco", code("gfx90a", 6));
    room
}

/// Packs `tree` into `name`, with further options of tar.
fn pack(room: &Room, name: &str, options: &[&str]) {
    let mut tar = Command::new("tar");
    tar.args(options).arg("--sort=name").arg("-caf").arg(room.path(name)).arg("tree");
    tools::run(tar.current_dir(room.path("")));
}

/// The decoded bytes.
fn decoded(path: &Path, tool: &str) -> Vec<u8> {
    match tool {
        "cat" => fs::read(path).unwrap(),
        _ => tools::run(Command::new(tool).arg("-dc").arg(path)).stdout,
    }
}

/// A member of a tar archive as its bytes are: extended headers are members of their own.
#[derive(Clone, PartialEq, Eq)]
struct Raw {
    name: String,
    header: [u8; 512],
    data: Vec<u8>,
}

/// The members of a tar archive, and the number of bytes behind them.
fn members(tar: &[u8]) -> (Vec<Raw>, usize) {
    let (mut found, mut at) = (Vec::new(), 0);
    while tar[at..at + 512].iter().any(|byte| *byte != 0) {
        let header: [u8; 512] = tar[at..at + 512].try_into().unwrap();
        let text = |range: std::ops::Range<usize>| {
            let bytes = header[range].split(|byte| *byte == 0).next().unwrap();
            String::from_utf8(bytes.to_vec()).unwrap()
        };
        let size = usize::from_str_radix(text(124..136).trim(), 8).unwrap();
        let data = tar[at + 512..at + 512 + size].to_vec();
        at += 512 + size.next_multiple_of(512);
        found.push(Raw { name: text(0..100), header, data });
    }
    assert!(tar[at..].iter().all(|byte| *byte == 0));
    (found, tar.len() - at)
}

/// Whether the members differ in size, checksum and content alone.
fn only_content_differs(one: &Raw, other: &Raw) -> bool {
    let others =
        |raw: &Raw| [&raw.header[..124], &raw.header[136..148], &raw.header[156..]].concat();
    others(one) == others(other) && one.data != other.data
}

/// The members that stay: a file or link goes with the extended headers in front of it, which may have its path.
fn kept(all: &[Raw]) -> Vec<&Raw> {
    let is_extended = |raw: &Raw| b"xgLK".contains(&raw.header[156]);
    let is_removed = |raw: &Raw| {
        let text = String::from_utf8_lossy(&raw.data);
        ["lib/a.hsaco", "lib/b.hsaco", "gone.hsaco", "z-last.hsaco"].iter().any(|end| {
            let mut lines = text.split(['\0', '\n']);
            raw.name.ends_with(end) || is_extended(raw) && lines.any(|line| line.ends_with(end))
        })
    };
    let units = all.split_inclusive(|raw| !is_extended(raw));
    units.filter(|unit| !unit.iter().any(is_removed)).flatten().collect()
}

#[test]
fn members_that_do_not_change_stay_byte_for_byte() {
    let room = room();
    for format in ["gnu", "pax", "ustar"] {
        note!("{format}");
        pack(&room, "in.tar", &[&format!("--format={format}")]);
        let _ = fs::remove_dir_all(room.path("out"));
        room.thin("in.tar --target gfx1100 --out out").done();
        let [before, after] =
            ["in.tar", "out/in.tar"].map(|name| members(&fs::read(room.path(name)).unwrap()));
        assert_eq!(before.1, after.1, "the end");
        let expected = kept(&before.0);
        assert!(expected.len() + 4 <= before.0.len());
        let names = |all: &[&Raw]| all.iter().map(|raw| raw.name.clone()).collect::<Vec<_>>();
        let after: Vec<&Raw> = after.0.iter().collect();
        assert_eq!(names(&after), names(&expected));
        for (before, after) in expected.into_iter().zip(after) {
            let changes = before.name == "tree/lib/libx.so.1";
            let right = if changes { only_content_differs(before, after) } else { before == after };
            assert!(right, "{}", before.name);
        }
        unpacked_is_thinned(&room, "out/in.tar");
    }
}

/// tar unpacks the same from the tarball as the folder becomes.
fn unpacked_is_thinned(room: &Room, tarball: &str) {
    let _ = fs::remove_dir_all(room.path("unpacked"));
    fs::create_dir(room.path("unpacked")).unwrap();
    let mut tar = Command::new("tar");
    tar.arg("-C").arg(room.path("unpacked")).arg("-xpf").arg(room.path(tarball));
    tools::run(&mut tar);
    if !room.path("thin").exists() {
        room.thin("tree --target gfx1100 --out thin").done();
    }
    let [unpacked, thin] = ["unpacked/tree", "thin/tree"].map(|folder| {
        let entries = tree(&room.path(folder));
        let hashed = |(path, entry): (String, Entry)| {
            let text = match entry {
                Entry::File { mode, bytes } => format!("{mode:o} {}", sha256(&bytes)),
                other => format!("{other:?}"),
            };
            (path, text)
        };
        entries.into_iter().map(hashed).collect::<BTreeMap<_, _>>()
    });
    assert_eq!(unpacked, thin);
    let [one, other] = ["libx.so.1", "libx.so.1.0"]
        .map(|name| fs::metadata(room.path("unpacked/tree/lib").join(name)).unwrap().ino());
    assert_eq!(one, other, "the hard link");
}

#[test]
fn a_tarball_keeps_its_compression() {
    let room = room();
    for (ending, tool) in FORMS {
        note!("{ending}");
        let name = format!("rocm.{ending}");
        pack(&room, &name, &[]);
        let before = room.path(&name);
        fs::set_permissions(&before, Permissions::from_mode(0o640)).unwrap();
        let report = room.thin(&format!("{name} --target gfx1100 --out out --json")).json();
        let after = room.path("out").join(&name);
        let [old, new] = [&before, &after].map(|path| fs::metadata(path).unwrap());
        assert_eq!(new.modified().unwrap(), old.modified().unwrap());
        assert_eq!(new.permissions(), old.permissions());
        let magic = |path: &Path| fs::read(path).unwrap()[..2].to_vec();
        assert_eq!(magic(&after), magic(&before));
        assert!(decoded(&after, tool).len() < decoded(&before, tool).len());
        unpacked_is_thinned(&room, &format!("out/{name}"));
        let mut names = changed_paths(&report);
        names.retain(|path| !path.starts_with("tree/share/"));
        let lib = ["a.hsaco", "b.hsaco", "libx.so.1", "libx.so.1.0"];
        let mut expected = lib.map(|name| format!("tree/lib/{name}")).to_vec();
        expected.push("tree/z-last.hsaco".to_owned());
        assert_eq!(names, expected);
    }
    assert_eq!(names(&room.path("out")).len(), FORMS.len());
}

#[test]
fn a_tarball_is_changed_in_place_and_only_if_it_loses_code() {
    let room = room();
    for (ending, tool) in FORMS {
        let name = format!("rocm.{ending}");
        pack(&room, &name, &[]);
        let tarball = room.path(&name);
        fs::set_permissions(&tarball, Permissions::from_mode(0o604)).unwrap();
        let (whole, was) = (fs::read(&tarball).unwrap(), fs::metadata(&tarball).unwrap());
        room.thin(&format!("{name} --target gfx1100,gfx90a --in-place")).done();
        assert!(fs::read(&tarball).unwrap() == whole, "{ending}");
        room.thin(&format!("{name} --target gfx1100 --in-place")).done();
        let is = fs::metadata(&tarball).unwrap();
        assert_eq!(is.modified().unwrap(), was.modified().unwrap());
        assert_eq!((is.mode(), is.uid(), is.gid()), (was.mode(), was.uid(), was.gid()));
        unpacked_is_thinned(&room, &name);
        let thin = fs::read(&tarball).unwrap();
        let report = room.thin(&format!("{name} --target gfx1100 --in-place --json")).json();
        assert_eq!(changed_paths(&report), [""; 0]);
        assert!(fs::read(&tarball).unwrap() == thin && !decoded(&tarball, tool).is_empty());
        assert!(!names(&room.path("")).iter().any(|name| name.starts_with('.')));
    }
}

/// Sizes are those of the files in the tarball, however it is compressed.
#[test]
fn the_report_of_a_tarball_is_that_of_its_tree() {
    let room = room();
    pack(&room, "tree.tar.zst", &[]);
    let [folder, tarball] = ["tree", "tree.tar.zst"]
        .map(|path| room.thin(&format!("{path} --target gfx1100 --dry-run --json")).json());
    let inside: Vec<_> = changed(&folder)
        .into_iter()
        .map(|(path, before, after)| (format!("tree/{path}"), before, after))
        .collect();
    assert_eq!(changed(&tarball), inside);
    for key in ["bytes_before", "bytes_after"] {
        assert_eq!(folder["inputs"][0][key], tarball["inputs"][0][key], "{key}");
    }
}

#[test]
fn a_damaged_or_ambiguous_tarball_is_refused_by_name() {
    let room = room();
    pack(&room, "cut.tar.gz", &[]);
    let whole = fs::read(room.path("cut.tar.gz")).unwrap();
    room.write("cut.tar.gz", &whole[..whole.len() / 2]);
    room.write("no.tar.xz", "no tarball");
    let library = fs::read(room.path("tree/lib/libx.so.1")).unwrap();
    let mut twice = Handmade::new();
    twice.file("lib/libx.so", &library);
    twice.file("./lib/libx.so", &library);
    room.write("twice.tar", twice.finish());
    let mut above = Handmade::new();
    above.file("../libx.so", &library);
    room.write("above.tar", above.finish());
    for name in ["cut.tar.gz", "no.tar.xz", "twice.tar", "above.tar"] {
        let before = fs::read(room.path(name)).unwrap();
        for place in ["--in-place", "--out out"] {
            let run = room.thin(&format!("{name} --target gfx1100 {place}"));
            run.failed(2, &[name]);
            assert!(!run.stderr.contains("this is a bug"), "{name}: {}", run.stderr);
        }
        assert!(fs::read(room.path(name)).unwrap() == before, "{name}");
    }
    assert!(!room.path("out").exists());
}

/// A hard link to a removed file goes with it, because both have the same code.
#[test]
fn hard_links_to_a_removed_file_go_with_it() {
    let room = room();
    for other in ["d.hsaco", "e.hsaco"] {
        fs::hard_link(room.path("tree/lib/a.hsaco"), room.path("tree/lib").join(other)).unwrap();
    }
    pack(&room, "in.tar", &[]);
    let before = fs::read(room.path("in.tar")).unwrap();
    room.thin("in.tar --target gfx1100 --in-place").done();
    unpacked_is_thinned(&room, "in.tar");
    let after = fs::read(room.path("in.tar")).unwrap();
    let links = |tar: &[u8]| members(tar).0.iter().filter(|raw| raw.header[156] == b'1').count();
    assert_eq!((links(&before), links(&after)), (3, 1));
}

/// Devices and pipes, such as in an image of a system, stay in the tarball.
#[test]
fn special_members_stay() {
    let room = room();
    let library = fs::read(room.path("tree/lib/libx.so.1")).unwrap();
    let mut archive = Handmade::new();
    archive.member("dev/null", b'3', "", 0o666, b"");
    archive.file("lib/libx.so", &library);
    archive.member("run/pipe", b'6', "", 0o600, b"");
    let before = archive.finish();
    room.write("image.tar", &before);
    room.thin("image.tar --target gfx1100 --in-place").done();
    let after = fs::read(room.path("image.tar")).unwrap();
    let [(before, _), (after, _)] = [&before, &after].map(|tar| members(tar));
    assert_eq!((before.len(), after.len()), (3, 3));
    assert!(before[0] == after[0] && before[2] == after[2]);
    assert!(only_content_differs(&before[1], &after[1]));
    let thin = room.write("libx.so", &after[1].data);
    let ids: Vec<String> =
        bundles_in(&thin).remove(0).entries.into_iter().map(|(id, _)| id).collect();
    assert_eq!(ids, [HOST, GFX1100]);
}
