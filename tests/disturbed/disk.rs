//! Full and read-only disks. Each run has its own file system in memory, in its own mount namespace.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::example;
use support::tools::{self, need, need_root};

use crate::publications;
use crate::room::all;
use crate::scenarios::{AT_ONCE, Scenario};
use crate::wheels;

/// Runs a command twice over an earlier output, first on a file system with some options, then with enough
/// space. Lists the contents of `disk/out` before, between and at the end. Arguments: the room's folder, the
/// options, the command. The option `size+4` leaves 4 KiB beside the existing content. Where the first run
/// left all as it was, the second one gives the same each time: its result is kept in the room.
const SCRIPT: &str = r#"
set -eu
room=$1 options=$2
shift 2
mount -t tmpfs -o size=64m none "$room/disk"
cp -a "$room/earlier" "$room/disk/out"
listing() {
  (cd "$room/disk/out" && find . -not -path './.rockpack-*' -type f -exec sha256sum {} + | sort)
  (cd "$room/disk/out" && find . -not -path './.rockpack-*' | sort)
}
places() { find "$room/disk/out" -printf '%y %m %i %p\n' | sort; }
listing >"$room/before"
places >"$room/before.places"
of() { df -k --output="$1" "$room/disk" | tail -n 1; }
case $options in
  size+*) options=size=$(($(of used) + ${options#size+}))k ;;
  nr_inodes+*) options=nr_inodes=$(($(of iused) + ${options#nr_inodes+})) ;;
esac
mount -o "remount,$options" "$room/disk"
status=0
TMPDIR=$room/disk/out "$@" >"$room/said" 2>&1 || status=$?
echo "$status" >"$room/status"
listing >"$room/after"
places >"$room/after.places"
find "$room/disk/out" -name '.rockpack-*' >"$room/unfinished"
mount -o remount,rw,size=64m,nr_inodes=100k "$room/disk"
untouched() {
  cmp -s "$room/before" "$room/after" && cmp -s "$room/before.places" "$room/after.places"
}
if untouched && [ -e "$room/kept" ]; then
  cp "$room/kept" "$room/again"
else
  TMPDIR=$room/disk/out "$@" >"$room/said.again" 2>&1
  listing >"$room/again"
  if untouched; then cp "$room/again" "$room/kept"; fi
fi
"#;

/// The end of the run on the small disk.
struct Ended {
    status: i32,
    said: String,
    before: String,
    after: String,
    again: String,
    unfinished: String,
}

/// Skips the calling test unless this process may mount.
fn need_to_mount() {
    need_root();
    need(&["unshare", "mount", "sha256sum"]);
    let folder = tempfile::tempdir().unwrap();
    let mut mount = Command::new("unshare");
    mount.args(["-m", "mount", "-t", "tmpfs", "none"]).arg(folder.path());
    if !mount.output().unwrap().status.success() {
        tools::skip("needs to mount file systems");
    }
}

fn run_on(scenario: &Scenario, options: &str) -> Ended {
    let room = scenario.room.path();
    fs::create_dir_all(room.join("disk")).unwrap();
    if all() {
        let _ = fs::remove_file(room.join("kept"));
    }
    let command = scenario.command_into(&room.join("disk/out"));
    let mut script = Command::new("unshare");
    script.args(["-m", "sh", "-c", SCRIPT, "sh"]).arg(room).arg(options);
    script.arg(command.get_program()).args(command.get_args());
    script.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    tools::run(&mut script);
    Ended {
        status: written(room, "status").trim().parse().unwrap(),
        said: written(room, "said"),
        before: written(room, "before"),
        after: written(room, "after"),
        again: written(room, "again"),
        unfinished: written(room, "unfinished"),
    }
}

/// Reads what [`SCRIPT`] wrote into a file of the room.
fn written(room: &Path, name: &str) -> String {
    fs::read_to_string(room.join(name)).unwrap()
}

impl Ended {
    /// Returns whether the run succeeded; if not, it must have said why and left the earlier output.
    fn judge(&self, scenario: &Scenario, options: &str, why: &str) -> bool {
        let about = format!("{} with {options}: {}\n{}", scenario.name, self.status, self.said);
        assert!(self.before != self.again, "{about}");
        assert_eq!(self.unfinished, "", "{about}");
        let unit = scenario.promise.unit;
        let [before, after, again] =
            [&self.before, &self.after, &self.again].map(|listing| units(listing, unit));
        match self.status {
            0 => assert!(after == again, "{about}: not the new output"),
            2 => {
                assert!(self.said.contains(why), "{about}");
                for name in before.keys().chain(after.keys()).chain(again.keys()) {
                    let (old, new) = (before.get(name), again.get(name));
                    let found = after.get(name);
                    let may_be_new = *name != AT_ONCE && found == new;
                    assert!(found == old || may_be_new, "{about}: {name} is {found:?}");
                }
            }
            _ => panic!("{about}"),
        }
        self.status == 0
    }
}

/// The lines of a listing by the unit that becomes visible at once, without rockpack's own state.
fn units(listing: &str, unit: fn(&str) -> &str) -> BTreeMap<&str, Vec<&str>> {
    let mut units = BTreeMap::<_, Vec<_>>::new();
    for line in listing.lines().filter(|line| !line.contains("./.rockpack")) {
        let path = line.split_once("./").map_or(".", |(_, path)| path);
        units.entry(unit(path)).or_default().push(line);
    }
    units
}

/// Leaves more and more space until a run succeeds. A sample takes `rough` steps.
fn sweep(scenario: &Scenario, (option, fine, rough): (&str, usize, usize)) {
    let (mut left, mut full) = (0, 0);
    loop {
        let options = format!("{option}+{left}");
        if run_on(scenario, &options).judge(scenario, &options, "No space left on device") {
            break;
        }
        full += 1;
        left += if all() { fine } else { rough };
        assert!(left < 10_000, "{} is never done", scenario.name);
    }
    assert!(full >= 2, "{}: {option}+{left} is enough", scenario.name);
    if all() {
        println!("{}: disk full at {full} sizes ({option} by {fine})", scenario.name);
    }
}

/// Fills the disk in `rough` steps of KiB, then of inodes.
fn full_disks(scenario: &Scenario, rough: (usize, usize)) {
    sweep(scenario, ("size", 4, rough.0));
    sweep(scenario, ("nr_inodes", 1, rough.1));
}

#[test]
fn a_build_on_a_full_disk_leaves_the_earlier_set() {
    need_to_mount();
    full_disks(&Scenario::build(), (72, 9));
}

/// The content of packed artifacts goes into an anonymous temporary file beside the output.
#[test]
fn a_build_without_room_for_its_spool_leaves_the_earlier_set() {
    need_to_mount();
    need(&["tar", "zstd"]);
    let scenario = Scenario::build_of_packed();
    sweep(&scenario, ("size", 4, 100));
}

#[test]
fn wheels_on_a_full_disk_leave_the_earlier_ones() {
    need_to_mount();
    full_disks(&wheels::scenario(), (24, 4));
}

#[test]
fn a_recombination_on_a_full_disk_leaves_the_earlier_artifacts() {
    need_to_mount();
    full_disks(&Scenario::recombine(), (72, 9));
}

#[test]
fn a_split_on_a_full_disk_leaves_whole_components() {
    need_to_mount();
    full_disks(&Scenario::split(), (72, 9));
}

#[test]
fn an_extraction_on_a_full_disk_leaves_whole_code_objects() {
    need_to_mount();
    full_disks(&Scenario::extract(), (4, 1));
}

#[test]
fn a_publication_on_a_full_disk_leaves_a_repository_of_whole_files() {
    need_to_mount();
    need(&publications::TOOLS);
    full_disks(&publications::scenario(), (12, 4));
}

#[test]
fn nothing_is_changed_where_nothing_may_be_written() {
    need_to_mount();
    for scenario in [Scenario::build(), Scenario::recombine()] {
        let ended = run_on(&scenario, "ro");
        assert!(!ended.judge(&scenario, "ro", "Read-only file system"));
    }
}

/// Commands without an output folder keep the content of packed artifacts in TMPDIR.
#[test]
fn a_full_folder_for_temporary_files_is_named() {
    need_to_mount();
    need(&["tar", "zstd"]);
    let scenario = Scenario::build_of_packed();
    let room = scenario.room.path();
    let disk = room.join("disk");
    fs::create_dir(&disk).unwrap();
    for size in ["4k", "8k"] {
        let mut plan = Command::new("unshare");
        let script = "mount -t tmpfs -o size=$1 none \"$TMPDIR\" && shift && \"$@\"";
        plan.args(["-m", "sh", "-c", script, "sh", size]).env("TMPDIR", &disk);
        plan.arg(example::rockpack().get_program());
        plan.args(["plan", "--version", "1.0", "--artifacts"]).arg(packed(room));
        let output = plan.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{size}: {said}");
        assert!(output.stdout.is_empty() && said.contains("No space left"), "{size}: {said}");
        assert!(said.contains(disk.to_str().unwrap()), "{size}: {said}");
    }
}

fn packed(room: &Path) -> PathBuf {
    room.join("packed/gfx1151-build")
}
