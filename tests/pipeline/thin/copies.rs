//! `--out`: thinned copies of folders and files, which appear together or not at all.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use support::example::names;

use super::{Room, bundle_of, bundles_in, code, snapshot};

/// A time with a fraction of a second, `day` days after 2001-09-09.
fn time(day: u64) -> SystemTime {
    UNIX_EPOCH + Duration::new(1_000_000_000 + day * 86_400, 123_000_000)
}

fn set(path: &Path, mode: u32, day: u64) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    File::open(path).unwrap().set_modified(time(day)).unwrap();
}

/// Mode and time of modification.
fn stamp(path: &Path) -> (u32, SystemTime) {
    let metadata = fs::metadata(path).unwrap();
    (metadata.permissions().mode() & 0o7777, metadata.modified().unwrap())
}

#[test]
fn a_folder_becomes_a_folder_with_modes_and_times() {
    let room = Room::new();
    let library = room.usual("tree/lib/libx.so.1");
    let text = room.write("tree/share/readme.txt", "text\n");
    room.write("tree/lib/gone.hsaco", code("gfx90a", 3));
    fs::create_dir(room.path("tree/empty")).unwrap();
    symlink("libx.so.1", room.path("tree/lib/libx.so")).unwrap();
    symlink("absent", room.path("tree/lib/dangling")).unwrap();
    set(&library, 0o555, 1);
    set(&text, 0o640, 2);
    for (day, (folder, mode)) in
        (3..).zip([("empty", 0o700), ("lib", 0o750), ("share", 0o755), ("", 0o711)])
    {
        set(&room.path("tree").join(folder), mode, day);
    }
    let before = snapshot(&room.path("tree"));
    room.thin("tree --target gfx1100 --out out").done();
    assert_eq!(snapshot(&room.path("tree")), before);
    assert_eq!(names(&room.path("out")), ["tree".to_owned()].into());
    let copy = room.path("out/tree");
    assert_eq!(stamp(&copy), (0o711, time(6)));
    assert_eq!(stamp(&copy.join("lib/libx.so.1")), (0o555, time(1)));
    let mut expected = before;
    expected.remove("lib/gone.hsaco").unwrap();
    expected.remove("lib/libx.so.1").unwrap();
    let mut after = snapshot(&copy);
    after.remove("lib/libx.so.1").unwrap();
    assert_eq!(after, expected);
    let [old, new] = [&library, &copy.join("lib/libx.so.1")].map(|path| bundles_in(path));
    assert_eq!(new[0].entries, old[0].only(&["gfx1100"]));
}

#[test]
fn a_file_becomes_a_file_with_mode_and_time() {
    let room = Room::new();
    let library = room.usual("lib/libx.so");
    set(&library, 0o4711, 1);
    room.thin("lib/libx.so --target gfx90a --out new/folder").done();
    assert_eq!(names(&room.path("new/folder")), ["libx.so".to_owned()].into());
    let copy = room.path("new/folder/libx.so");
    assert_eq!(stamp(&copy), (0o4711, time(1)));
    assert_eq!(bundles_in(&copy)[0].entries, bundles_in(&library)[0].only(&["gfx90a"]));
}

#[test]
fn each_path_has_a_copy_beside_what_was_there() {
    let room = Room::new();
    room.usual("a/tree/libx.so");
    let file = room.usual("b/liby.so");
    symlink("a/tree", room.path("link")).unwrap();
    room.write("plain/text", "text");
    room.write("out/other", "other");
    room.thin("link b/liby.so plain --target gfx1100 --out out").done();
    let expected = ["liby.so", "link", "other", "plain"].map(str::to_owned);
    assert_eq!(names(&room.path("out")), expected.into());
    // The path may be a link, and its copy is what it leads to.
    assert!(!room.path("out/link").is_symlink());
    for copy in ["out/link/libx.so", "out/liby.so"] {
        let kept = bundles_in(&file)[0].only(&["gfx1100"]);
        assert_eq!(bundles_in(&room.path(copy))[0].entries, kept, "{copy}");
    }
    assert_eq!(fs::read(room.path("out/plain/text")).unwrap(), b"text");
    assert_eq!(fs::read(room.path("out/other")).unwrap(), b"other");
}

#[test]
fn a_file_of_other_targets_alone_has_no_copy() {
    let room = Room::new();
    room.write("one.hsaco", code("gfx90a", 1));
    room.write("other.hsaco", code("gfx1100", 1));
    room.thin("one.hsaco other.hsaco --target gfx1100 --out out").done();
    assert_eq!(names(&room.path("out")), ["other.hsaco".to_owned()].into());
}

#[test]
fn a_taken_name_is_refused_and_nothing_is_written() {
    let room = Room::new();
    room.usual("tree/libx.so");
    room.usual("other/tree/libx.so");
    room.usual("more/libx.so");
    let what = "already exists";
    for (name, bytes) in [("tree/file", "x"), ("libx.so", "x")] {
        room.write(&format!("out/{name}"), bytes);
    }
    let before = snapshot(&room.path("out"));
    room.thin("more tree --target gfx1100 --out out").failed(64, &["out/tree", what]);
    room.thin("more other/tree/libx.so --target gfx1100 --out out")
        .failed(64, &["out/libx.so", what]);
    assert_eq!(snapshot(&room.path("out")), before);
    room.thin("tree other/tree --target gfx1100 --out new").failed(64, &["new/tree"]);
    assert!(!room.path("new").exists());
}

#[test]
fn a_failed_run_leaves_nothing_behind() {
    let room = Room::new();
    let library = room.usual("tree/lib/liba.so");
    let whole = fs::read(&library).unwrap();
    room.write("tree/lib/libz.so", &whole[..30_000]);
    room.library("empty/libx.so", &[bundle_of(&["gfx90a"], 1)]);
    room.usual("empty/liby.so");
    room.write("out/other", "other");
    let before = snapshot(&room.path("out"));
    for out in ["out", "new"] {
        let damaged = room.thin(&format!("empty tree --target gfx90a --out {out}"));
        damaged.failed(2, &["lib/libz.so", "outside of the file"]);
        let empty = room.thin(&format!("empty --target gfx1100 --out {out}"));
        empty.failed(64, &["empty/libx.so", "--allow-empty"]);
    }
    assert_eq!(snapshot(&room.path("out")), before);
    assert!(!room.path("new").exists());
}
