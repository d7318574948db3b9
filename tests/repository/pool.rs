//! The pool: files that several channels share, that keep their times, or that somebody deleted.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::Ordering;

use crate::faults::{Failing, Room};
use crate::fixture::{contents, deb, publish, refused};
use crate::tools::{have, run};

#[test]
fn a_file_that_stays_in_the_pool_is_read_no_more_than_once() {
    if !have(&["dpkg-deb", "gpg"]) {
        return;
    }
    let room = Room::new();
    let first = deb(&room.path("first"), ("one", "1", "amd64"), "");
    let copy = room.path("copy.deb");
    fs::copy(&first, &copy).unwrap();
    let touch = |file: &Path, date: &str| run(Command::new("touch").args(["-d", date]).arg(file));
    touch(&copy, "2024-01-02");
    let out = room.path("out");
    publish(&mut room.run(&[&first], &out, 0));
    publish(room.run(&[&copy], &out, 0).args(["--suite", "other"]));
    let opened = |suite: &str| {
        let store = Failing::open(&out, usize::MAX);
        assert!(room.publish_to(&store, (&[], &out), 1, suite));
        store.opened.load(Ordering::SeqCst)
    };
    assert_eq!((opened("stable"), opened("other")), (0, 0));
    // Where the time does not tell, once.
    touch(&out.join("pool/main/o/one/one_1_amd64.deb"), "2024-01-03");
    assert_eq!((opened("stable"), opened("other")), (1, 1));
    assert_eq!((opened("stable"), opened("other")), (0, 0));
}

#[test]
fn a_package_that_comes_back_is_the_one_that_was_given() {
    if !have(&["dpkg-deb", "gpg"]) {
        return;
    }
    let room = Room::new();
    let first = deb(&room.path("first"), ("one", "1", "amd64"), "");
    let out = room.path("out");
    let own = fs::read(&first).unwrap();
    let pool = out.join("pool/main/o/one/one_1_amd64.deb");
    let changed = || fs::write(&pool, vec![b'x'; own.len()]).unwrap();
    publish(&mut room.run(&[&first], &out, 0));
    // What an earlier generation left, and what another suite has.
    publish(room.run(&[], &out, 1).args(["--remove", "one"]));
    changed();
    publish(&mut room.run(&[&first], &out, 2));
    assert!(fs::read(&pool).unwrap() == own);
    changed();
    publish(room.run(&[&first], &out, 2).args(["--suite", "other"]));
    assert!(fs::read(&pool).unwrap() == own);
}

#[test]
fn what_becomes_visible_is_finished_though_an_older_package_is_gone() {
    if !have(&["dpkg-deb", "gpg"]) {
        return;
    }
    let room = Room::new();
    let old = deb(&room.path("old"), ("one", "1", "amd64"), "");
    let new = deb(&room.path("new"), ("two", "1", "amd64"), "");
    let [old_path, new_path] =
        ["one", "two"].map(|name| format!("pool/main/{}/{name}/{name}_1_amd64.deb", &name[..1]));
    let base = room.path("base");
    publish(&mut room.run(&[&old], &base, 0));
    let release = "dists/stable/Release";
    let before = contents(&base);
    let mut partly = 0;
    for ends in 0.. {
        let out = room.path("out");
        run(Command::new("cp").arg("-a").arg(&base).arg(&out));
        let done = room.fails_after(ends, &new, &out, 10);
        let begun = out.join(".rockpack/next-apt-stable.json").exists();
        let is_new = |path: &str| contents(&out).get(path) != before.get(path);
        let visible = is_new(release);
        partly += usize::from(begun && visible && !is_new("dists/stable/InRelease"));
        fs::remove_file(out.join(&old_path)).unwrap();
        // What is refused comes after the interrupted publication was settled.
        refused(&mut room.run(&[], &out, 1));
        assert!(!out.join(".rockpack/next-apt-stable.json").exists());
        assert!(!visible || is_new(release), "{ends}: what was visible was taken back");
        let index = out.join("dists/stable/main/binary-amd64/Packages");
        let names_new = fs::read_to_string(index).unwrap().contains("Package: two\n");
        assert_eq!(names_new, is_new("dists/stable/InRelease"), "{ends}");
        assert_eq!(names_new, out.join(&new_path).exists(), "{ends}");
        fs::remove_dir_all(&out).unwrap();
        if done {
            break;
        }
    }
    assert!(partly > 0, "no run ended between Release and InRelease");
}
