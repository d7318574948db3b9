//! A budget belongs to its run: builds in one process, at the same time, each keep to their own.

use std::fs;
use std::ops::Range;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use rockpack::pipeline::build;
use rockpack::settings::BuildSettings;
use rockpack_core::error::Kind;
use rockpack_core::run::{Budget, BuildNeeds, Limits};
use rockpack_report::{Progress, Silent, Stage};
use rockpack_split::input::artifact::{ScanOptions, scan};
use support::example::{GROUPS, VERSION, configuration, contents, copy_shards};
use support::program::build_settings;

/// The least memory that a build can have.
const SMALL: u64 = 512 << 20;
const LARGE: u64 = 64 << 30;

fn settings(artifacts: &Path, out: &Path, memory: u64) -> BuildSettings {
    let paths = [artifacts, &configuration(), out].map(|path| path.to_str().unwrap().to_owned());
    let ([artifacts, configuration, out], memory) = (paths, memory.to_string());
    let words = [
        ["--artifacts", &artifacts, "--config", &configuration, "--out", &out],
        ["--version", VERSION, "--format", "deb", "--jobs", "2"],
        ["--compression", "xz", "--payload-level", "0", "--memory", &memory],
    ];
    build_settings(words.as_flattened()).unwrap()
}

/// The example shards with just enough links and empty files that a scan fits into the records of the small
/// build, with no room for another code object. Links with long texts take the most records.
fn artifacts(root: &Path) {
    copy_shards(root);
    let needs = BuildNeeds { compressors: 0, thread: 0, jobs: 1 };
    let limits = Limits::of_build(Some(SMALL), needs).unwrap();
    let artifact = GROUPS[0].folder(root).join("pad_lib_generic");
    let stage = artifact.join("pad/stage");
    let deep = (0..17).map(|_| "p".repeat(200)).collect::<PathBuf>();
    fs::create_dir_all(stage.join(&deep)).unwrap();
    let file = deep.join("file");
    fs::write(stage.join(&file), "").unwrap();
    fs::write(artifact.join("artifact_manifest.txt"), "pad/stage\n").unwrap();
    let named = |n: u64| stage.join(format!("{n:06}"));
    let add = |is_link: bool, names: Range<u64>| {
        for name in names.map(named) {
            if is_link { symlink(&file, name) } else { fs::write(name, "") }.unwrap();
        }
    };
    // More than fits beside any budget.
    add(true, 0..2000);
    for (is_link, first, keep) in [(true, 100_000, 1), (false, 200_000, 0)] {
        let before = excess_records_of(root);
        add(is_link, first..first + 1);
        let with_one = excess_records_of(root);
        let more = (limits.records - with_one) / (with_one - before);
        add(is_link, first + 1..first + 1 + more - keep);
    }
    let budget = Budget::new(limits);
    scan(&[root.to_path_buf().into()], &ScanOptions::within(&budget)).unwrap();
    budget.charge_code_object(0).unwrap_err();
}

fn excess_records_of(root: &Path) -> u64 {
    let budget = Budget::new(Limits::default());
    scan(&[root.to_path_buf().into()], &ScanOptions::within(&budget)).unwrap();
    budget.excess_records()
}

/// Waits between the scan and the split until the other build has reached the same point, or has failed.
struct Meeting {
    here: Sender<()>,
    there: Mutex<Receiver<()>>,
}

impl Progress for Meeting {
    fn begin(&self, stage: Stage) {
        if stage == Stage::Split {
            let _ = self.here.send(());
            let _ = self.there.lock().unwrap().recv_timeout(PATIENCE);
        }
    }
}

const PATIENCE: Duration = Duration::from_secs(300);

#[test]
fn two_builds_at_once_keep_to_their_own_memory() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path();
    artifacts(&folder.join("artifacts"));
    build(&settings_in(folder, "alone", LARGE), &Silent).unwrap();
    let (here, large_is_here) = channel();
    let (small_is_here, there) = channel();
    let meeting = Meeting { here, there: Mutex::new(there) };
    let (large, small) = thread::scope(|scope| {
        let large = scope.spawn(|| build(&settings_in(folder, "large", LARGE), &meeting));
        // The small build begins once the large one has scanned, and both split at the same time.
        large_is_here.recv_timeout(PATIENCE).unwrap();
        let (_, nobody) = channel();
        let meeting = Meeting { here: small_is_here, there: Mutex::new(nobody) };
        let small = build(&settings_in(folder, "small", SMALL), &meeting);
        drop(meeting);
        (large.join().unwrap(), small)
    });
    let small = small.unwrap_err();
    assert_eq!(small.kind(), Kind::Limit);
    assert!(
        small.to_string().contains("the list of files and code objects of the input needs"),
        "{small}"
    );
    assert!(!folder.join("small").exists());
    large.unwrap();
    assert_eq!(contents(&folder.join("large")), contents(&folder.join("alone")));
}

fn settings_in(folder: &Path, out: &str, memory: u64) -> BuildSettings {
    settings(&folder.join("artifacts"), &folder.join(out), memory)
}
