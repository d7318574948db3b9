//! The targets of `fuzz/` without libFuzzer: seeds and what simple mutations make of them, in an
//! order that is the same for each slice (`ROCKPACK_SLICE`). For a few seconds in every test run;
//! `ROCKPACK_FUZZ_SECONDS` sets how many over all targets. What libFuzzer finds in hours is not found
//! here: this shows that targets and seeds still work, that plain damage is an error, and what an input
//! may cost.

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
use support::sweep;

use crate::targets::{TARGETS, Target};
use mutation::{Random, mutate};

/// Seconds over all targets, where the environment says nothing.
const SECONDS: f64 = 2.0;
const SECONDS_VARIABLE: &str = "ROCKPACK_FUZZ_SECONDS";

/// Seconds that no input may take, on a machine busy with other things.
const INPUT_SECONDS: u64 = 60;

/// Processor time that an input of N bytes may take, without optimisation: so much, for what is
/// decoded up to a limit, and so much for each byte.
const CPU_SECONDS: f64 = 10.0;
const CPU_SECONDS_PER_BYTE: f64 = 20e-6;

/// Mutations of the seeds of each target that are tried at least, however slow the machine is.
const MUTATIONS: u64 = 8;

/// Longest input: a mutation may double a seed, again and again.
const LONGEST: usize = 256 << 10;

/// Inputs of which the heap for each byte is shown: of shorter ones it says nothing.
const LONG: usize = 32 << 10;

/// What libFuzzer runs: `.ci/nightly fuzz/compiles` compiles it.
const PROGRAM: &str = "#![no_main]\n\n\
    libfuzzer_sys::fuzz_target!(|bytes: &[u8]| rockpack_fuzz::run(env!(\"CARGO_BIN_NAME\"), bytes));\n";

/// Everything else of the crate `fuzz` is compiled into this program.
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
        // Every seed as it is, and some mutations.
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

/// Input number `count`: the seeds first.
fn input(seeds: &[Vec<u8>], count: u64) -> Vec<u8> {
    if let Some(seed) = usize::try_from(count).ok().and_then(|at| seeds.get(at)) {
        return seed.clone();
    }
    // Each slice mutates in other ways.
    let (slice, _) = sweep::slice();
    let mut random = Random(count + ((slice as u64 - 1) << 32));
    let mut bytes = seeds[random.below(seeds.len())].clone();
    for _ in 0..=random.below(4) {
        mutate(&mut bytes, &seeds[random.below(seeds.len())], &mut random);
    }
    bytes.truncate(LONGEST);
    bytes
}

/// The files in the folders of a target, by folder and name, and inputs that cost much.
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

/// The folder of a target, unless it has only those that the list of more folders names.
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

/// Which targets have seeds in which other folders.
fn more() -> Vec<(String, PathBuf)> {
    let text = std::fs::read_to_string(repository("fuzz/seeds/more")).unwrap();
    let row = |line: &str| {
        let (target, folder) = line.split_once(' ').unwrap();
        (target.to_owned(), repository(folder))
    };
    text.lines().map(row).collect()
}

/// Seeds of a name that no target has would be read by none.
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

/// The input that is being read, and since when.
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

/// Runs the target on one input, which is kept where the target fails. Returns the heap and the
/// processor time that it took.
fn feed(target: &Target, input: &[u8], watched: &Watched) -> (usize, f64) {
    *watched.lock().unwrap() = Some((Instant::now(), target.name.to_owned(), input.to_vec()));
    let start = processor_seconds();
    let taken = catch_unwind(AssertUnwindSafe(|| target.run(input)));
    let time = processor_seconds() - start;
    *watched.lock().unwrap() = None;
    let kept = || keep(target.name, input).display().to_string();
    let most = CPU_SECONDS + CPU_SECONDS_PER_BYTE * input.len() as f64;
    let name = target.name;
    assert!(
        time <= most,
        "{name} took {time:.1} s of the processor, over {most:.1}: see {}",
        kept()
    );
    (taken.unwrap_or_else(|_| panic!("a find of {name}: see {}", kept())), time)
}

/// Of this program so far: other load does not count.
fn processor_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap().as_secs_f64()
}

fn keep(target: &str, input: &[u8]) -> PathBuf {
    let path = kept_file(&format!("find-{target}"));
    std::fs::write(&path, input).unwrap();
    path
}
