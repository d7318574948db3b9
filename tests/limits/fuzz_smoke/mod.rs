//! The targets of `fuzz/` without libFuzzer: seeds and simple mutations of them, in a fixed order for each
//! slice (`ROCKPACK_SLICE`). They run for a few seconds in every test run; `ROCKPACK_FUZZ_SECONDS` sets the
//! time for all targets together. This does not replace hours of libFuzzer: it shows that targets and seeds
//! still work, that plain damage is an error, and that the cost of an input is bounded.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

pub mod dense;
pub mod dense_elf;
pub mod dense_verify;
pub mod dense_wheels;
mod mutation;
pub mod rpms;

use support::harness;
use support::program::{kept_file, repository};
use support::random::Random;
use support::sweep;

use crate::targets::{TARGETS, Target};
use mutation::mutate;

/// The seconds for all targets, unless the environment sets them.
const SECONDS: f64 = 2.0;
const SECONDS_VARIABLE: &str = "ROCKPACK_FUZZ_SECONDS";

/// The most seconds for an input, on a busy machine.
const INPUT_SECONDS: u64 = 60;

/// The most processor time for an input of N bytes without optimisation: a constant for content that is
/// decoded up to a limit, and an amount for each byte.
const CPU_SECONDS: f64 = 10.0;
const CPU_SECONDS_PER_BYTE: f64 = 20e-6;

/// The least number of mutations for each target, even on a slow machine.
const MUTATIONS: u64 = 8;

/// The longest input in bytes: mutations may double a seed repeatedly.
const LONGEST: usize = 256 << 10;

/// The length in bytes above which the heap for each input byte is shown; below, it means nothing.
const LONG: usize = 32 << 10;

/// The program for libFuzzer; `.ci/nightly fuzz/compiles` compiles it.
const PROGRAM: &str = "#![no_main]\n\n\
    libfuzzer_sys::fuzz_target!(|bytes: &[u8]| rockpack_fuzz::run(env!(\"CARGO_BIN_NAME\"), bytes));\n";

/// This test program contains all other parts of the crate `fuzz`.
#[test]
fn every_target_is_a_program_of_the_crate() {
    let manifest = std::fs::read_to_string(repository("fuzz/Cargo.toml")).unwrap();
    let manifest: toml::Table = manifest.parse().unwrap();
    let mut programs = Vec::new();
    for program in manifest["bin"].as_array().unwrap() {
        let [name, path] = ["name", "path"].map(|key| program[key].as_str().unwrap());
        assert_eq!(path, format!("fuzz_targets/{name}.rs"));
        let text = std::fs::read_to_string(repository("fuzz").join(path)).unwrap();
        assert_eq!(text, PROGRAM, "{name}");
        programs.push(name);
    }
    programs.sort_unstable();
    let mut targets: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
    targets.sort_unstable();
    assert_eq!(programs, targets);
    assert_eq!(std::fs::read_dir(repository("fuzz/fuzz_targets")).unwrap().count(), programs.len());
}

#[test]
fn seeds_and_what_becomes_of_them_are_read_or_refused() {
    // Heap and processor time are counted for a whole process.
    let Some(said) =
        harness::alone("fuzz_smoke::seeds_and_what_becomes_of_them_are_read_or_refused")
    else {
        return feed_all();
    };
    if std::env::var_os(SECONDS_VARIABLE).is_some() {
        println!("{said}");
    }
}

fn feed_all() {
    let seconds = std::env::var(SECONDS_VARIABLE);
    let seconds: f64 = seconds.map_or(SECONDS, |text| text.parse().unwrap());
    let share = Duration::from_secs_f64(seconds / TARGETS.len() as f64);
    assert_that_all_seeds_are_a_targets();
    let watched = watch();
    println!(
        "{:17} {:>7} {:>9} {:>9} {:>9} {:>8}",
        "target", "inputs", "heap", "of", "heap/byte", "seconds"
    );
    for target in TARGETS {
        let seeds = seeds(target.name);
        let (end, mut count) = (Instant::now() + share, 0);
        let (mut most, mut per_byte, mut slowest) = ((0, 0), 0, 0.0_f64);
        // Every seed unchanged, and some mutations.
        while count < seeds.len() as u64 + MUTATIONS || Instant::now() < end {
            let input = input(&seeds, count);
            let (taken, time) = feed(target, &input, &watched);
            slowest = slowest.max(time);
            most = most.max((taken, input.len()));
            if input.len() >= LONG {
                per_byte = per_byte.max(taken / input.len());
            }
            count += 1;
        }
        println!(
            "{:17} {count:7} {:9} {:9} {per_byte:9} {:8.3}",
            target.name, most.0, most.1, slowest
        );
    }
}

/// Input number `count`; seeds come first.
fn input(seeds: &[Vec<u8>], count: u64) -> Vec<u8> {
    if let Some(seed) = usize::try_from(count).ok().and_then(|at| seeds.get(at)) {
        return seed.clone();
    }
    // Each slice has other mutations.
    let (slice, _) = sweep::slice();
    let mut random = Random(count + ((slice as u64 - 1) << 32));
    let mut bytes = seeds[random.below(seeds.len())].clone();
    for _ in 0..=random.below(4) {
        mutate(&mut bytes, &seeds[random.below(seeds.len())], &mut random);
    }
    bytes.truncate(LONGEST);
    bytes
}

/// The files in a target's folders, by folder and name, then its dense inputs.
fn seeds(target: &str) -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for folder in folders(target) {
        let listed = std::fs::read_dir(&folder);
        let files = listed.unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let mut files: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
        assert!(!files.is_empty(), "{} has no seeds of {target}", folder.display());
        files.sort();
        seeds.extend(files.iter().map(|file| std::fs::read(file).unwrap()));
    }
    assert!(!seeds.is_empty(), "{target} has no seeds");
    seeds.extend(dense::inputs(target));
    seeds
}

/// The folder of a target, unless the target only has folders from the list of more folders.
fn folders(target: &str) -> Vec<PathBuf> {
    let more = more();
    let more = more.iter().filter(|(name, _)| name == target).map(|(_, folder)| folder.clone());
    let mut folders: Vec<PathBuf> = more.collect();
    let own = repository("fuzz/seeds").join(target);
    if folders.is_empty() || own.exists() {
        folders.insert(0, own);
    }
    folders
}

/// Further seed folders of targets: (target, folder).
fn more() -> Vec<(String, PathBuf)> {
    let text = std::fs::read_to_string(repository("fuzz/seeds/more")).unwrap();
    let row = |line: &str| {
        let (target, folder) = line.split_once(' ').unwrap();
        (target.to_owned(), repository(folder))
    };
    text.lines().map(row).collect()
}

/// No test would read seeds under a name that is no target's.
fn assert_that_all_seeds_are_a_targets() {
    let targets: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
    for entry in std::fs::read_dir(repository("fuzz/seeds")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(name == "more" || targets.contains(&name.as_str()), "fuzz/seeds/{name}");
    }
    for (target, folder) in more() {
        assert!(targets.contains(&target.as_str()), "{target} {}", folder.display());
    }
}

/// The start, target and bytes of the input being read.
type Watched = Arc<Mutex<Option<(Instant, String, Vec<u8>)>>>;

/// Ends the program if an input takes too long: a thread cannot be stopped from outside.
fn watch() -> Watched {
    let watched = Watched::default();
    let current = Arc::clone(&watched);
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(Duration::from_secs(1));
            if let Some((since, name, input)) = &*current.lock().unwrap()
                && since.elapsed().as_secs() >= INPUT_SECONDS
            {
                eprintln!("{name} does not end: see {}", keep(name, input).display());
                std::process::exit(1);
            }
        }
    });
    watched
}

/// Runs the target on one input, and saves the input if the target fails. Returns the bytes of heap and the
/// seconds of processor time.
fn feed(target: &Target, input: &[u8], watched: &Watched) -> (usize, f64) {
    *watched.lock().unwrap() = Some((Instant::now(), target.name.to_owned(), input.to_vec()));
    let start = processor_seconds();
    let taken = catch_unwind(AssertUnwindSafe(|| target.run(input)));
    let time = processor_seconds() - start;
    *watched.lock().unwrap() = None;
    let most = CPU_SECONDS + CPU_SECONDS_PER_BYTE * input.len() as f64;
    let name = target.name;
    assert!(
        time <= most,
        "{name} took {time:.1} s of the processor, over {most:.1}: see {}",
        keep(name, input).display()
    );
    let find = |_| panic!("a find of {name}: see {}", keep(name, input).display());
    (taken.unwrap_or_else(find), time)
}

/// The processor time of this program in seconds, independent of other load.
fn processor_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap().as_secs_f64()
}

fn keep(target: &str, input: &[u8]) -> PathBuf {
    let path = kept_file(&format!("find-{target}"));
    std::fs::write(&path, input).unwrap();
    path
}
