//! `--in-place`: each file is the old or the new one, whatever happens, with owner, mode and time.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, UNIX_EPOCH};

use support::example::{files, names};
use support::tools::{self, by_nobody};

use super::{Room, Run, bundle_of, bundles_in, changed_paths, code, snapshot};

#[test]
fn owner_mode_and_time_stay() {
    let room = Room::new();
    let library = room.usual("tree/lib/libx.so");
    // Only root gives files away.
    let is_given = chown(&library, Some(12345), Some(678)).is_ok();
    fs::set_permissions(&library, Permissions::from_mode(0o4751)).unwrap();
    let time = UNIX_EPOCH + Duration::new(1_000_000_000, 123_000_000);
    File::open(&library).unwrap().set_modified(time).unwrap();
    let before = bundles_in(&library);
    room.thin("tree --target gfx1100 --in-place").done();
    let after = fs::metadata(&library).unwrap();
    assert_eq!((after.mode() & 0o7777, after.modified().unwrap()), (0o4751, time));
    if is_given {
        assert_eq!((after.uid(), after.gid()), (12345, 678));
    }
    assert_eq!(bundles_in(&library)[0].entries, before[0].only(&["gfx1100"]));
    assert_eq!(names(&room.path("tree/lib")), ["libx.so".to_owned()].into());
}

/// Such as the file in uv's cache that an environment is made from.
#[test]
fn a_hard_link_outside_of_the_tree_keeps_the_old_content() {
    let room = Room::new();
    let library = room.usual("tree/libx.so");
    let cached = room.write("cache/text", "text").with_file_name("libx.so");
    fs::hard_link(&library, &cached).unwrap();
    let whole = fs::read(&cached).unwrap();
    room.thin("tree --target gfx1100 --in-place").done();
    assert!(fs::read(&cached).unwrap() == whole);
    assert!(fs::metadata(&library).unwrap().len() < whole.len() as u64);
}

#[test]
fn both_names_of_a_hard_link_in_the_tree_are_thinned() {
    let room = Room::new();
    let library = room.usual("tree/libx.so");
    let other = room.path("tree/liby.so");
    fs::hard_link(&library, &other).unwrap();
    room.thin("tree --target gfx90a --in-place").done();
    for path in [library, other] {
        assert_eq!(bundles_in(&path)[0].only(&["gfx1100"]).len(), 1);
    }
}

#[test]
fn a_path_that_is_a_link_stays_one_and_its_file_is_thinned() {
    let room = Room::new();
    let library = room.usual("lib/libx.so.1");
    let before = bundles_in(&library);
    symlink("libx.so.1", room.path("lib/libx.so")).unwrap();
    room.thin("lib/libx.so --target gfx90a --in-place").done();
    assert_eq!(fs::read_link(room.path("lib/libx.so")).unwrap().to_str(), Some("libx.so.1"));
    assert_eq!(bundles_in(&library)[0].entries, before[0].only(&["gfx90a"]));
}

#[test]
fn a_file_of_other_targets_alone_is_removed() {
    let room = Room::new();
    room.write("one.hsaco", code("gfx90a", 1));
    room.write("other.hsaco", code("gfx1100", 1));
    room.thin("one.hsaco other.hsaco --target gfx1100 --in-place").done();
    assert_eq!(names(&room.path("")), ["other.hsaco".to_owned()].into());
}

#[test]
fn files_that_do_not_change_are_not_touched() {
    let room = Room::new();
    room.usual("tree/libx.so");
    room.library("tree/liby.so", &[bundle_of(&["gfx1100"], 7)]);
    room.write("tree/text", "text");
    let inode = |name: &str| fs::metadata(room.path("tree").join(name)).unwrap().ino();
    let before = ["liby.so", "text"].map(inode);
    room.thin("tree --target gfx1100 --in-place").done();
    assert_eq!(["liby.so", "text"].map(inode), before);
}

/// All faults are found before the first byte is written.
#[test]
fn a_damaged_library_fails_the_run_before_anything_changes() {
    let room = Room::new();
    let library = room.usual("tree/lib/liba.so");
    room.write("tree/lib/a.hsaco", code("gfx90a", 3));
    room.usual("other/libb.so");
    let whole = fs::read(&library).unwrap();
    let bundle = whole.windows(8).position(|bytes| bytes == b"__CLANG_").unwrap();
    let mut damaged = whole.clone();
    damaged[bundle + 24] = 200;
    for bytes in [&whole[..30_000], &damaged] {
        room.write("tree/lib/libz.so", bytes);
        let before = snapshot(&room.path(""));
        let run = room.thin("other tree --target gfx1100 --in-place");
        run.failed(2, &["lib/libz.so"]);
        assert_eq!(snapshot(&room.path("")), before);
    }
}

#[test]
fn a_folder_that_cannot_be_written_to_fails_the_run_and_keeps_its_files() {
    tools::need(&["setpriv"]);
    tools::need_root();
    let room = Room::new();
    room.usual("tree/a/liba.so");
    let library = room.usual("tree/b/libb.so");
    for (path, mode) in [("", 0o755), ("tree/a", 0o777), ("tree/b", 0o755)] {
        fs::set_permissions(room.path(path), Permissions::from_mode(mode)).unwrap();
    }
    let whole = fs::read(&library).unwrap();
    // Nobody may give the new file the owner of the old one.
    chown(room.path("tree/a/liba.so"), Some(65534), Some(65534)).unwrap();
    let words = format!("thin {} --target gfx1100 --in-place", room.path("tree").display());
    let run = Run::of(&mut by_nobody(&room.rockpack(&words)));
    run.failed(2, &["tree/b", "Permission denied", "each file is either old or new"]);
    assert!(fs::read(&library).unwrap() == whole);
    for (folder, name) in [("a", "liba.so"), ("b", "libb.so")] {
        assert_eq!(names(&room.path("tree").join(folder)), [name.to_owned()].into());
    }
    room.thin("tree --target gfx1100 --in-place").done();
    assert!(fs::metadata(&library).unwrap().len() < whole.len() as u64);
}

/// What a killed run left is no file of the tree, and goes.
#[test]
fn leftovers_of_a_killed_run_are_removed_by_the_next() {
    let room = Room::new();
    let whole = fs::read(room.usual("tree/lib/libx.so")).unwrap();
    let left =
        [("tree/lib/.rockpack-new-a", &whole[..30_000]), ("tree/lib/.rockpack-new-b", &whole)];
    for (name, bytes) in left {
        room.write(name, bytes);
    }
    let report = room.thin("tree --target gfx1100 --in-place --json").json();
    assert_eq!(changed_paths(&report), ["lib/libx.so"]);
    assert_eq!(names(&room.path("tree/lib")), ["libx.so".to_owned()].into());
}

#[test]
fn a_killed_run_leaves_old_or_new_files_and_the_next_one_ends_it() {
    let room = Room::new();
    let library = fs::read(room.usual("libx.so")).unwrap();
    for number in 0..24 {
        room.write(&format!("tree/{number:02}/libx.so"), &library);
        room.write(&format!("tree/{number:02}/x.hsaco"), code("gfx90a", number));
    }
    let old = files(&room.path("tree"));
    room.thin("tree --target gfx1100 --out out").done();
    let new = files(&room.path("out/tree"));
    let mut stopped = 0;
    for number in (0..24).step_by(3) {
        for (path, bytes) in &old {
            fs::write(room.path("tree").join(path), bytes).unwrap();
        }
        let next = room.path(&format!("tree/{number:02}/libx.so"));
        let mut command = room.rockpack("thin tree --target gfx1100 --in-place");
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let is_old = || fs::metadata(&next).unwrap().len() == library.len() as u64;
        while is_old() && child.try_wait().unwrap().is_none() {
            thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let mut now = files(&room.path("tree"));
        now.retain(|path, _| !path.contains("/.rockpack-new-"));
        assert!(now.keys().all(|path| old.contains_key(path)), "{:?}", now.keys());
        for (path, bytes) in &old {
            let is_whole = now.get(path) == Some(bytes) || now.get(path) == new.get(path);
            assert!(is_whole, "{path} after the kill at {number}");
        }
        stopped += u32::from(now != new);
        room.thin("tree --target gfx1100 --in-place").done();
        let ended = files(&room.path("tree"));
        assert!(ended == new, "after the kill at {number}: {:?}", ended.keys());
    }
    assert!(stopped > 0);
}
