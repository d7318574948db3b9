//! Commands and trees that are refused by name.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::{Room, bundle_of, code, snapshot};

#[test]
fn one_place_for_the_result_is_required() {
    let room = Room::new();
    room.usual("tree/libx.so");
    room.thin("tree --target gfx1100").failed(64, &["--in-place", "--out"]);
    room.thin("tree --target gfx1100 --in-place --out out")
        .failed(64, &["--in-place", "--out", "cannot be used"]);
    room.thin("--target gfx1100 --in-place").failed(64, &["PATH"]);
}

#[test]
fn paths_that_are_absent_or_within_each_other_are_refused() {
    let room = Room::new();
    room.usual("tree/lib/libx.so");
    symlink("tree", room.path("link")).unwrap();
    let before = snapshot(&room.path(""));
    for (paths, texts) in [
        ("absent", ["absent", "No such file"]),
        ("tree absent", ["absent", "No such file"]),
        ("tree tree", ["tree", "is also given"]),
        ("tree ./tree/../tree", ["tree", "is also given"]),
        ("tree link", ["link", "is also given"]),
        ("tree tree/lib", ["tree/lib", "is also given"]),
        ("tree/lib/libx.so tree", ["tree", "is also given"]),
    ] {
        for place in ["--in-place", "--out out", "--dry-run"] {
            room.thin(&format!("{paths} --target gfx1100 {place}")).failed(64, &texts);
        }
    }
    assert_eq!(snapshot(&room.path("")), before);
}

#[test]
fn an_output_folder_inside_of_a_path_is_refused() {
    let room = Room::new();
    room.usual("tree/lib/libx.so");
    symlink("tree/lib", room.path("link")).unwrap();
    let before = snapshot(&room.path("tree"));
    for out in ["tree", "tree/out", "tree/lib/more/out", "link/out"] {
        let run = room.thin(&format!("tree --target gfx1100 --out {out}"));
        run.failed(64, &[out, "inside of tree"]);
    }
    assert_eq!(snapshot(&room.path("tree")), before);
}

#[test]
fn a_tree_without_device_code_is_refused() {
    let room = Room::new();
    room.library("tree/libx.so", &[]);
    room.write("tree/text", "gfx1100\n");
    room.write("text", "gfx1100\n");
    fs::create_dir(room.path("empty")).unwrap();
    for path in ["tree", "text", "empty", "tree text empty"] {
        let named = path.replace(' ', ", ");
        for place in ["--in-place", "--out out", "--dry-run"] {
            let run = room.thin(&format!("{path} --target gfx1100 {place}"));
            run.failed(64, &[&format!("{named} has no device code")]);
        }
    }
    assert!(!room.path("out").exists());
}

/// Links out of the tree keep code that looks thinned.
#[test]
fn links_out_of_the_tree_to_code_or_folders_are_refused() {
    let room = Room::new();
    room.usual("tree/lib/libx.so");
    room.usual("other/liby.so");
    room.write("other/kernel.hsaco", code("gfx90a", 1));
    room.write("other/bundle.hsaco", bundle_of(&["gfx90a"], 1));
    let absolute = room.path("other/liby.so").into_os_string().into_string().unwrap();
    for (target, what) in [
        ("../../other/liby.so", "device code"),
        (&absolute, "device code"),
        ("../../other/kernel.hsaco", "device code"),
        ("../../other/bundle.hsaco", "device code"),
        ("../../other", "a folder"),
        ("/etc", "a folder"),
    ] {
        let link = room.path("tree/lib/link");
        symlink(target, &link).unwrap();
        let before = snapshot(&room.path(""));
        for place in ["--in-place", "--out out", "--dry-run"] {
            let run = room.thin(&format!("tree --target gfx1100 {place}"));
            run.failed(2, &["tree/lib/link", "leads out of the tree", what]);
        }
        assert_eq!(snapshot(&room.path("")), before);
        fs::remove_file(link).unwrap();
    }
}

#[test]
fn links_out_of_the_tree_that_keep_no_code_are_copied() {
    let room = Room::new();
    room.usual("tree/lib/libx.so");
    room.usual("other/liby.so");
    room.write("text", "text");
    let links = [("text", "../../text"), ("null", "/dev/null"), ("absent", "/absent/library.so")];
    for (name, target) in links {
        symlink(target, room.path("tree/lib").join(name)).unwrap();
    }
    room.thin("tree --target gfx1100 --out out").done();
    for (name, target) in links {
        let copy = fs::read_link(room.path("out/tree/lib").join(name)).unwrap();
        assert_eq!(copy.to_str(), Some(target));
    }
    // What a link leads to may be thinned in the same run.
    symlink("../../other/liby.so", room.path("tree/lib/liby.so")).unwrap();
    room.thin("tree other --target gfx1100 --in-place").done();
}

#[test]
fn all_faults_are_reported_together() {
    let room = Room::new();
    let whole = fs::read(room.usual("tree/liba.so")).unwrap();
    for name in ["libb.so", "libc.so"] {
        room.write(&format!("tree/{name}"), &whole[..30_000]);
    }
    room.write("other/libd.so", &whole[..30_000]);
    let run = room.thin("tree other --target gfx1100 --in-place");
    run.failed(2, &["tree/libb.so", "tree/libc.so", "other/libd.so"]);
}

#[test]
fn in_the_root_of_an_image_absolute_links_begin_there() {
    let room = Room::new();
    room.usual("tree/lib/libx.so");
    for folder in ["run", "var"] {
        fs::create_dir(room.path("tree").join(folder)).unwrap();
    }
    symlink("/run", room.path("tree/var/run")).unwrap();
    room.thin("tree --target gfx1100 --out out").done();
    assert_eq!(fs::read_link(room.path("out/tree/var/run")).unwrap(), Path::new("/run"));
}

#[test]
fn packages_and_wheels_are_to_be_unpacked_first() {
    let room = Room::new();
    room.usual("tree/lib/libx.so");
    for name in ["x.whl", "x.deb", "x.rpm"] {
        room.write(name, "x");
        let run = room.thin(&format!("tree {name} --target gfx1100 --dry-run"));
        run.failed(64, &[name, "is a package or wheel", "unpack it"]);
    }
}
