//! What a run prints, and that `--dry-run` changes nothing.

use std::fs;

use serde_json::{Value, json};

use super::{Room, bundle_of, code, snapshot};

/// Two paths with files that change, that are removed, and that stay.
fn room() -> Room {
    let room = Room::new();
    room.usual("one/lib/libx.so");
    room.write("one/lib/a.hsaco", code("gfx90a", 3));
    room.write("one/text", "text");
    room.library("other/liby.so", &[bundle_of(&["gfx1100"], 7)]);
    room
}

fn len(room: &Room, path: &str) -> u64 {
    fs::metadata(room.path(path)).unwrap().len()
}

#[test]
fn the_json_has_the_bytes_of_each_file_and_of_each_path() {
    let room = room();
    let report = room.thin("one other --target gfx1100 --out out --json").json();
    let (before, after) = (len(&room, "one/lib/libx.so"), len(&room, "out/one/lib/libx.so"));
    let (code, same) = (len(&room, "one/lib/a.hsaco"), len(&room, "other/liby.so"));
    let expected = json!({
        "targets": ["gfx1100"],
        "inputs": [
            {
                "path": "one",
                "bytes_before": before + code + 4,
                "bytes_after": after + 4,
                "files_before": 3,
                "files": [
                    {"path": "lib/a.hsaco", "before": code},
                    {"path": "lib/libx.so", "before": before, "after": after},
                ],
            },
            {
                "path": "other",
                "bytes_before": same,
                "bytes_after": same,
                "files_before": 1,
                "files": [],
            },
        ],
        "findings": [],
    });
    assert_eq!(report, expected);
    assert!(after < before);
}

#[test]
fn a_dry_run_changes_nothing_and_has_the_numbers_of_the_run() {
    let room = room();
    let before = snapshot(&room.path(""));
    for place in ["", "--out out", "--in-place"] {
        let shown = room.thin(&format!("one other --target gfx1100 --dry-run --json {place}"));
        assert_eq!(snapshot(&room.path("")), before, "{place}");
        let text = room.thin(&format!("one other --target gfx1100 --dry-run {place}")).done();
        assert_eq!(snapshot(&room.path("")), before, "{place}");
        let report: Value = shown.json();
        let copy = room.thin("one other --target gfx1100 --out copy --json").json();
        assert_eq!(report, copy, "{place}");
        fs::remove_dir_all(room.path("copy")).unwrap();
        let run = room.thin("one other --target gfx1100 --out copy").done();
        let told =
            text.stdout.replace("would become", "became").replace("would be thinned", "thinned");
        assert_eq!(told, run.stdout);
        fs::remove_dir_all(room.path("copy")).unwrap();
    }
    let shown = room.thin("one other --target gfx1100 --dry-run --json --in-place").json();
    let done = room.thin("one other --target gfx1100 --in-place --json").json();
    assert_eq!(shown, done);
}

#[test]
fn a_dry_run_fails_as_the_run_would() {
    let room = room();
    room.write("out/one/text", "taken");
    room.thin("one --target gfx1100 --out out --dry-run").failed(64, &["out/one"]);
    room.library("one/lib/libz.so", &[bundle_of(&["gfx90a", "gfx942"], 9)]);
    let run = room.thin("one --target gfx1100 --dry-run");
    run.failed(64, &["one/lib/libz.so", "--allow-empty"]);
}

#[test]
fn the_table_names_each_changed_file_and_the_sums() {
    let room = room();
    let text = room.thin("one other --target gfx1100 --in-place").done().stdout;
    let lines: Vec<&str> = text.lines().collect();
    let [head, removed, thinned, one, other, targets] = lines[..] else { panic!("{text}") };
    assert!(head.starts_with("file ") && head.ends_with("after"), "{head}");
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words(removed), ["one/lib/a.hsaco", "20.06", "kB", "removed"]);
    assert_eq!(words(thinned)[0], "one/lib/libx.so");
    assert_eq!(words(thinned).len(), 5, "{thinned}");
    assert!(one.starts_with("one: ") && one.ends_with("of 3 files, 1 thinned, 1 removed"), "{one}");
    assert!(other.starts_with("other: ") && other.ends_with("of 1 file, 0 thinned, 0 removed"));
    assert_eq!(targets, "code for gfx1100 is kept");
}

/// The path of a file is not repeated behind the path that was given.
#[test]
fn a_single_file_has_its_own_path_in_the_table() {
    let room = room();
    let text = room.thin("one/lib/libx.so --target gfx1100 --dry-run").done().stdout;
    let row = text.lines().nth(1).unwrap();
    assert_eq!(row.split_whitespace().next(), Some("one/lib/libx.so"), "{text}");
}

#[test]
fn nothing_to_do_is_said_without_a_table() {
    let room = room();
    let text = room.thin("other --target gfx1100 --in-place").done().stdout;
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert!(lines[0].ends_with("of 1 file, 0 thinned, 0 removed"), "{text}");
}
