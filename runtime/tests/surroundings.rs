//! One cache while its environment changes: working directory, descriptors, files.

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant, UNIX_EPOCH};

use tempfile::TempDir;

use crate::archives::{Draft, code, digest, marker};
use crate::program::{both, steps};
use crate::world::{World, loaded};

#[test]
fn relative_paths_are_those_of_the_working_directory_of_the_load() {
    for (paths, binary) in [(&["x_@GFXARCH@.kpack"][..], "./x.so"), (&["../b/y.kpack"], "c/x.so")] {
        let world = World::new(paths);
        for (folder, seed) in [("A", 1), ("B", 2)] {
            world.archive(&format!("{folder}/x_gfx1100.kpack"), seed);
            world.archive(&format!("{folder}/b/y.kpack"), seed);
            fs::create_dir_all(world.path().join(folder).join("c")).unwrap();
        }
        let load = format!("load {binary} 0 gfx1100");
        let got =
            world.run(&["cd @/A", &load, "cd @/B", &load, &load, "cd @/A", &load, "cd /", &load]);
        assert_eq!(got[..4], [loaded(1), loaded(2), loaded(2), loaded(1)]);
        assert!(got[4].starts_with("13 "), "{got:?}");
    }
}

#[test]
fn relative_paths_of_the_environment_are_those_of_the_working_directory() {
    for variable in ["ROCM_KPACK_PATH", "ROCM_KPACK_PATH_PREFIX"] {
        let world = World::new(&["none"]);
        let (folder, load) = (world.path().to_str().unwrap(), "load /x.so 0 gfx1100");
        world.archive("A/x", 1);
        world.archive("B/x", 2);
        let (marker, a, b) =
            (format!("marker {folder}/marker"), format!("cd {folder}/A"), format!("cd {folder}/B"));
        let mut command = steps(&[&marker, &a, "cache", load, &b, load]);
        let (out, _) = both(command.env(variable, "x"));
        assert_eq!(out, format!("{}\n{}\n", loaded(1), loaded(2)), "{variable}");
    }
}

/// A lack of descriptors does not count as a missing archive, for which a device would be skipped.
#[test]
fn without_a_descriptor_open_archives_go_on_and_others_are_an_error_of_input() {
    let world = World::new(&["x.kpack"]);
    world.archive("x.kpack", 1);
    world.archive("b/x.kpack", 2);
    let load = "load @/x.so 0 gfx1100";
    let (out, errors) = world.both(&[
        load,
        "exhaust",
        load,
        // Another binary, a missing row and a missing device of the open archive.
        "load @/y.so 0 gfx1100",
        "load @/y.so 7 gfx1100",
        "load @/y.so 0 gfx1103",
        // A closed archive.
        "load @/b/x.so 0 gfx1100",
    ]);
    assert_eq!(out[..3], [loaded(1), loaded(1), loaded(1)]);
    assert!(out[3].starts_with("5 ") && out[4].starts_with("14 "), "{out:?}");
    assert!(out[5].starts_with("9 ") && out[5].contains("b/x.kpack: cannot open: too many open"));
    // Only the device without kernels is reported.
    assert!(errors.contains("gfx1103") && errors.lines().count() == 1, "{errors}");
}

/// If one archive cannot be opened, another one with the code object is used.
#[test]
fn a_machine_fault_of_one_candidate_leaves_the_others() {
    let world = World::new(&["other.kpack", "x.kpack"]);
    world.archive("x.kpack", 1);
    let load = "load @/x.so 0 gfx1100";
    let got = world.run(&[
        load,
        "exhaust",
        "run cp @/x.kpack @/other.kpack",
        "load @/y.so 0 gfx1100",
        "load @/y.so 0 gfx1103",
    ]);
    assert_eq!(got[..2], [loaded(1), loaded(1)]);
    assert!(got[2].starts_with("9 ") && got[2].contains("other.kpack: cannot open"), "{got:?}");
}

/// An archive with many rows, so that a second read of its table shows.
fn large(world: &World, name: &str, damage: bool) -> u64 {
    let mut draft = Draft::zstd(&["gfx1100"], &[code(1, 5000)]);
    let row = draft.rows[0].clone();
    draft.rows.extend((1..3000).map(|index| {
        let (_, target, ordinal, size) = row.clone();
        (format!("lib/x.so#{index}"), target, ordinal, size)
    }));
    if damage {
        draft.rows.last_mut().unwrap().2 = "none".into();
    }
    let path = draft.write(world.path().join(name));
    fs::metadata(path).unwrap().len()
}

#[test]
fn an_archive_that_is_open_is_not_read_again() {
    let world = World::new(&["../lib/x.kpack", "x.kpack", "./x.kpack", "x.kpack"]);
    let len = large(&world, "lib/x.kpack", false);
    let (hit, miss) = ("load @/lib/x.so 7 gfx1100", "load @/lib/x.so 5000 gfx1100");
    let other = "load @/lib/y.so 7 gfx1100";
    let device = "load @/lib/x.so 7 gfx1103";
    let got = world.run(&[hit, "start", miss, miss, device, device, other, "read"]);
    let codes: Vec<&str> = got.iter().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(codes[..6], ["0", "5", "5", "14", "14", "0"]);
    let read: u64 = got[6].parse().unwrap();
    assert!(read < len / 10, "{read} of {len}");
}

/// A marker names a file many times, under one path or under many.
#[test]
fn a_file_that_is_named_often_is_read_once() {
    for damage in [false, true] {
        let names: Vec<String> =
            (0..200).map(|number| format!("{}x.kpack", "./".repeat(number % 50))).collect();
        let world = World::new(&names.iter().map(String::as_str).collect::<Vec<_>>());
        let len = large(&world, "x.kpack", damage);
        let got = world.run(&["start", "load @/x.so 7 gfx1100", "read"]);
        assert!(got[0].starts_with(if damage { "13 " } else { "0 " }), "{got:?}");
        let read: u64 = got[1].parse().unwrap();
        assert!(read < 2 * len, "{read} of {len}");
    }
}

#[test]
fn an_archive_that_was_replaced_gives_its_descriptor_back() {
    let world = World::new(&["x.kpack"]);
    world.archive("x.kpack", 1);
    world.archive("y.kpack", 2);
    let (load, miss) = ("load @/x.so 0 gfx1100", "load @/x.so 9 gfx1100");
    let mut list = vec![load.to_owned(), "descriptors".to_owned()];
    for number in 0..20 {
        // Changed in place: the next load notices.
        list.push(format!("run touch -d 2020-01-{:02} @/x.kpack", number + 1));
        list.push(load.to_owned());
        // Replaced: the next load that fails notices.
        list.push("run cp @/y.kpack @/new && mv @/new @/x.kpack".to_owned());
        list.extend([load.to_owned(), miss.to_owned(), load.to_owned()]);
    }
    list.push("descriptors".to_owned());
    let got = world.run(&list.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(got.first(), Some(&loaded(1)));
    assert_eq!(got[1], *got.last().unwrap(), "{got:?}");
    // The open file stays until a load fails; then the new one is found.
    assert_eq!(got[2..6], [loaded(1), loaded(1), got[4].clone(), loaded(2)]);
    assert!(got[4].starts_with("5 "), "{got:?}");
}

/// Threads load while the file is replaced and touched. Each load gives the bytes, which never differ, and no
/// descriptor leaks.
#[test]
fn threads_load_while_an_archive_is_replaced_and_touched() {
    let world = World::new(&["x.kpack"]);
    let (path, new) = (world.archive("x.kpack", 1), world.path().join("new"));
    let folder = world.path().to_str().unwrap();
    let threads = format!("threads {folder}/x.so 4000 gfx1100 {}", digest(&code(1, 5000)));
    let (marker, load) =
        (format!("marker {folder}/marker"), format!("load {folder}/x.so 0 gfx1100"));
    let list = [&marker, "cache", &load, "descriptors", &threads, &load, "descriptors"];
    let mut child = steps(&list).stdout(Stdio::piped()).spawn().unwrap();
    let mut changes = 0;
    while child.try_wait().unwrap().is_none() {
        fs::copy(&path, &new).unwrap();
        fs::rename(&new, &path).unwrap();
        let seconds = UNIX_EPOCH + Duration::from_secs(changes);
        fs::File::options().append(true).open(&path).unwrap().set_modified(seconds).unwrap();
        changes += 1;
        std::thread::sleep(Duration::from_millis(3));
    }
    let out = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    let lines: Vec<&str> = out.lines().collect();
    assert!(changes > 10 && lines[2] == "0 faults", "{changes} changes: {out}");
    let [before, after]: [u32; 2] = [lines[1], lines[4]].map(|count| count.parse().unwrap());
    // An archive that another thread was reading is closed after the next change.
    assert!(after <= before + 4, "{out}");
}

/// The load of a neighbouring frame reads the frames behind it, too.
#[test]
fn frames_that_were_read_ahead_are_those_of_the_file_that_was_opened() {
    let world = World::new(&[]);
    let content = |seed: u32, index: u32| code(seed + index, 1000);
    for (name, seed) in [("x.kpack", 0), ("other.kpack", 100)] {
        let contents: Vec<Vec<u8>> = (0..60).map(|index| content(seed, index)).collect();
        Draft::zstd(&["gfx1100"], &contents).write(world.path().join(name));
    }
    let loaded = |seed, index| format!("0 1000 {}", digest(&content(seed, index)));
    let get = |index: u32| format!("get lib/x.so#{index} gfx1100");
    let [first, second, third, last] = [0, 1, 2, 59].map(get);
    let opened = ["open @/x.kpack", &first, &second, "start", &third, "read"];
    let changed = ["run cat @/other.kpack > @/x.kpack", &third, &first, &last];
    let other = ["open @/other.kpack", &third];
    let got = world.run(&[&opened[..], &changed, &other].concat());
    assert_eq!(got[1..4], [0, 1, 2].map(|index| loaded(0, index)));
    let read: u64 = got[4].parse().unwrap();
    assert!(read < 400, "{read}");
    assert_eq!(got[5], loaded(0, 2));
    assert!(got[6].starts_with("9 ") && got[7].starts_with("9 "), "{got:?}");
    assert_eq!(got[9], loaded(100, 2));
}

/// Another binary, whose loads have not failed, keeps using the file that its kernels came from.
#[test]
fn a_removed_archive_stays_open_for_those_whose_plan_has_it() {
    let world = World::new(&["x.kpack"]);
    world.archive("x.kpack", 1);
    world.archive("new", 2);
    let (one, other) = ("load @/x.so 0 gfx1100", "load @/y.so 0 gfx1100");
    let miss = "load @/x.so 9 gfx1100";
    let got = world.run(&[one, other, "run mv @/new @/x.kpack", miss, one, other]);
    assert_eq!([&got[3], &got[4]], [&loaded(2), &loaded(1)]);
}

/// dpkg links the file that it replaces under a second name, puts the new file in its place, and unlinks the
/// second name when the whole package is unpacked. Programs with the file open keep using it throughout.
#[test]
fn an_archive_that_dpkg_replaces_is_used_until_the_end() {
    let world = World::new(&["x.kpack"]);
    world.archive("x.kpack", 1);
    world.archive("new", 2);
    let (load, get) = ("load @/x.so 0 gfx1100", "get lib/x.so#0 gfx1100");
    let both = [load, get];
    let second = "run ln @/x.kpack @/x.kpack.dpkg-tmp && chmod 644 @/x.kpack";
    let replaced = "run mv @/new @/x.kpack";
    let gone = "run rm @/x.kpack.dpkg-tmp";
    let steps = ["open @/x.kpack", load, get, second, load, get, replaced, load, get, gone];
    let got = world.run(&[&steps[..], &both].concat());
    assert_eq!(got[1..], vec![loaded(1); 8], "{got:?}");
}

/// Paths that differ only behind a NUL differ.
#[test]
fn markers_that_differ_by_a_nul_have_plans_of_their_own() {
    let world = World::new(&["a\0b", "c"]);
    let second = TempDir::new_in(world.path()).unwrap();
    marker(second.path(), &["a", "b\0c"]);
    world.archive("a", 1);
    world.archive("c", 2);
    let load = "load @/x.so 0 gfx1100";
    let other = format!("marker {}/marker", second.path().display());
    assert_eq!(world.run(&[load, &other, load]), [loaded(2), loaded(1)]);
}

/// A fault from which a call recovered is no error.
#[test]
fn a_call_that_succeeds_leaves_the_last_error_as_it_is() {
    let world = World::new(&["none.kpack", "x.kpack"]);
    world.archive("x.kpack", 1);
    let load = "load @/x.so 0 gfx1100:xnack-";
    let got = world.run(&["error", load, "error", "open @/nowhere", load, "error"]);
    assert_eq!([got[0].as_str(), got[1].as_str(), got[2].as_str()], ["", &loaded(1), ""]);
    assert!(got[3].contains("/nowhere: cannot open") && got[3] == format!("2 {}", got[5]));
}

#[test]
fn looking_at_many_candidates_takes_no_long_time() {
    let names: Vec<String> = (0..5000).map(|number| format!("{number}")).collect();
    let world = World::new(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let start = Instant::now();
    let got = world.run(&["load @/x.so 7 gfx1100"]);
    assert!(got[0].starts_with("13 ") && start.elapsed().as_secs() < 5, "{got:?}");
}

/// Search paths lead where AMD's loader leads them: over existing links, and through missing folders by their
/// text. Other paths are not normalised.
#[test]
fn parent_folders_are_those_of_links_and_of_missing_folders() {
    let world = World::new(&[]);
    for folder in ["other/dir", "lib/file"] {
        fs::create_dir_all(world.path().join(folder)).unwrap();
    }
    std::os::unix::fs::symlink("../other/dir", world.path().join("lib/link")).unwrap();
    world.archive("other/x", 1);
    world.archive("lib/x", 2);
    world.archive("x", 3);
    let absolute = world.path().join("lib/missing/../x");
    let cases = [
        ("link/../x", Some(1)),
        ("link/../missing/../x", Some(1)),
        ("link/missing/../../x", Some(1)),
        ("missing/../x", Some(2)),
        ("missing/deeper/.././../x", Some(2)),
        ("missing/../../x", Some(3)),
        ("../missing/../x", Some(3)),
        ("x/../x", Some(2)),
        ("../none/x", None),
        (absolute.to_str().unwrap(), None),
    ];
    for (path, seed) in cases {
        marker(world.path(), &[path]);
        for load in [&["load @/lib/x.so 0 gfx1100"][..], &["cd @/lib", "load x.so 0 gfx1100"]] {
            let got = world.run(load);
            match seed {
                Some(seed) => assert_eq!(got, [loaded(seed)], "{path}"),
                None => assert!(got[0].starts_with("13 "), "{path}: {got:?}"),
            }
        }
    }
    let (folder, load) = (world.path().to_str().unwrap(), "load /x.so 0 gfx1100");
    let mut command = steps(&[&format!("marker {folder}/marker"), "cache", load]);
    let (out, _) = both(command.env("ROCM_KPACK_PATH", absolute.to_str().unwrap()));
    assert!(out.starts_with("13 "), "{out}");
}

/// Opening never waits for a named pipe, but waits until a lease is released.
#[test]
fn a_lease_is_waited_for_and_a_pipe_is_not() {
    let world = World::new(&["pipe", "x.kpack"]);
    world.archive("x.kpack", 1);
    let got = world.run(&[
        "run mkfifo @/pipe",
        "open @/pipe",
        "lease @/x.kpack",
        "open @/x.kpack",
        "load @/x.so 0 gfx1100",
    ]);
    assert!(got[0].starts_with("9 ") && got[0].ends_with("is not a regular file"), "{got:?}");
    assert_eq!(got[1..], ["0".to_owned(), "0".to_owned(), loaded(1)]);
}
