//! Files that dpkg or rpm installed are changed only with `--allow-owned`.

use std::fs;
use std::os::unix::fs::symlink;

use support::example::names;

use super::{Room, bundles_in, changed_paths, code, snapshot};

/// A root with a library and a code file in `folder`, and a list of dpkg's with `lines`.
fn listed(folder: &str, lines: &str) -> Room {
    let room = Room::new();
    room.usual(&format!("root/{folder}/libx.so.1"));
    room.write(&format!("root/{folder}/x.hsaco"), code("gfx90a", 3));
    room.write("root/var/lib/dpkg/info/librocx1:amd64.list", lines);
    room.write("root/var/lib/dpkg/info/uninvolved.list", "/.\n/usr\n/usr/bin\n/usr/bin/other\n");
    room.write("root/var/lib/dpkg/info/uninvolved.md5sums", "/usr/lib/libx.so.1\n");
    room
}

const DEBIAN: &str = "/.\n/usr\n/usr/lib\n/usr/lib/libx.so.1\n/usr/lib/x.hsaco\n";

#[test]
fn files_of_dpkg_are_refused_in_place_with_their_package() {
    let room = listed("usr/lib", DEBIAN);
    let before = snapshot(&room.path("root"));
    for path in ["root", "root/usr", "root/usr/lib", "root/usr/lib/libx.so.1"] {
        let run = room.thin(&format!("{path} --target gfx1100 --in-place"));
        run.failed(64, &["usr/lib/libx.so.1", "librocx1:amd64", "--out", "--allow-owned"]);
        assert!(run.stderr.contains("dpkg -V"), "{}", run.stderr);
        assert!(!run.stderr.contains("uninvolved"), "{}", run.stderr);
        assert_eq!(snapshot(&room.path("root")), before, "{path}");
    }
    // A removed file alone, too.
    let run = room.thin("root/usr/lib/x.hsaco root/usr/lib/libx.so.1 --target gfx1100 --in-place");
    run.failed(64, &["x.hsaco"]);
}

#[test]
fn files_of_dpkg_may_be_copied_and_shown() {
    let room = listed("usr/lib", DEBIAN);
    room.thin("root/usr --target gfx1100 --out out").done();
    assert_eq!(names(&room.path("out/usr/lib")), ["libx.so.1".to_owned()].into());
    let before = snapshot(&room.path("root"));
    let shown = room.thin("root/usr --target gfx1100 --dry-run --json");
    assert!(shown.stderr.contains("librocx1:amd64"), "{}", shown.stderr);
    assert_eq!(changed_paths(&shown.json()), ["lib/libx.so.1", "lib/x.hsaco"]);
    assert_eq!(snapshot(&room.path("root")), before);
}

#[test]
fn files_of_dpkg_are_changed_if_that_is_allowed_with_a_note() {
    let room = listed("usr/lib", DEBIAN);
    let library = room.path("root/usr/lib/libx.so.1");
    let before = bundles_in(&library);
    let run = room.thin("root/usr --target gfx1100 --in-place --allow-owned").done();
    for text in ["librocx1:amd64", "dpkg -V", "missing", "??5??????"] {
        assert!(run.stderr.contains(text), "no `{text}` in {}", run.stderr);
    }
    assert_eq!(bundles_in(&library)[0].entries, before[0].only(&["gfx1100"]));
    assert!(!room.path("root/usr/lib/x.hsaco").exists());
}

#[test]
fn files_that_no_list_has_are_no_ones() {
    let room = listed("usr/lib/local", DEBIAN);
    let run = room.thin("root --target gfx1100 --in-place").done();
    assert_eq!(run.stderr, "");
    assert!(!room.path("root/usr/lib/local/x.hsaco").exists());
}

/// Only files that change count.
#[test]
fn files_of_dpkg_that_stay_do_not_matter() {
    let room = listed("usr/lib", DEBIAN);
    room.usual("root/usr/lib/own/liby.so");
    fs::remove_file(room.path("root/usr/lib/x.hsaco")).unwrap();
    let run = room.thin("root/usr/lib/own --target gfx1100 --in-place").done();
    assert_eq!(run.stderr, "");
    room.thin("root/usr/lib --target gfx1100,gfx90a --in-place").done();
}

/// Lists of older packages have the paths from before /lib became a link.
#[test]
fn lists_may_name_the_alias_of_a_merged_root() {
    let room = listed("usr/lib/x86_64-linux-gnu", "/.\n/lib\n/lib/x86_64-linux-gnu/libx.so.1\n");
    symlink("usr/lib", room.path("root/lib")).unwrap();
    for path in ["root/usr", "root/lib/x86_64-linux-gnu"] {
        let run = room.thin(&format!("{path} --target gfx1100 --in-place"));
        run.failed(64, &["librocx1:amd64", "libx.so.1"]);
    }
}

#[test]
fn system_paths_are_refused_where_rpm_has_a_database() {
    for database in
        ["var/lib/rpm/rpmdb.sqlite", "var/lib/rpm/Packages", "usr/lib/sysimage/rpm/rpmdb.sqlite"]
    {
        for (folder, is_refused) in [
            ("usr/lib64", true),
            ("usr/lib/python3.13/site-packages", true),
            ("opt/rocm/lib", true),
            ("lib64", true),
            ("usr/local/lib", false),
            ("srv/lib", false),
            ("root/venv/lib", false),
        ] {
            let room = Room::new();
            let library = room.usual(&format!("image/{folder}/libx.so"));
            room.write(&format!("image/{database}"), "");
            let whole = fs::read(&library).unwrap();
            let words = format!("image/{folder} --target gfx1100 --in-place");
            let run = room.thin(&words);
            if is_refused {
                run.failed(64, &["libx.so", "rpm", "--allow-owned", "rpm -V"]);
                assert!(fs::read(&library).unwrap() == whole, "{folder}");
                let allowed = room.thin(&format!("{words} --allow-owned")).done();
                assert!(allowed.stderr.contains("rpm -V"), "{}", allowed.stderr);
            } else {
                assert_eq!(run.done().stderr, "", "{folder}");
            }
            assert!(fs::read(&library).unwrap().len() < whole.len(), "{folder}");
        }
    }
}
