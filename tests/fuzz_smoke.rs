//! The targets of `fuzz/` without libFuzzer: seeds and what simple mutations make of them, in an
//! order that is always the same. For a few seconds in every test run; `ROCKPACK_FUZZ_SECONDS` sets
//! how many over all targets. What libFuzzer finds in hours is not found here: this shows that
//! targets and seeds still work, that plain damage is an error, and what an input may cost.

#![allow(clippy::unwrap_used, reason = "a test helper outside of test functions")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

#[path = "../fuzz/src/lib.rs"]
mod targets;

use targets::{TARGETS, Target};

/// Seconds over all targets, where the environment says nothing.
const SECONDS: f64 = 4.0;

/// Seconds that no input may take, on a machine busy with other things.
const INPUT_SECONDS: u64 = 60;

/// Longest input: a mutation may double a seed, again and again.
const LONGEST: usize = 256 << 10;

#[test]
fn seeds_and_what_becomes_of_them_are_read_or_refused() {
    let seconds = std::env::var("ROCKPACK_FUZZ_SECONDS");
    let seconds: f64 = seconds.map_or(SECONDS, |text| text.parse().unwrap());
    let share = Duration::from_secs_f64(seconds / TARGETS.len() as f64);
    let watched = watch();
    println!("{:17} {:>7} {:>9} {:>12}", "target", "inputs", "heap", "heap of");
    for target in TARGETS {
        let seeds = seeds(target.name);
        assert!(!seeds.is_empty(), "{} has no seeds", target.name);
        let (end, mut count, mut most) = (Instant::now() + share, 0, (0, 0));
        // Every seed as it is, and some mutations on the slowest machine.
        while count < 2 * seeds.len() as u64 || Instant::now() < end {
            let input = input(&seeds, count);
            most = most.max((feed(target, &input, &watched), input.len()));
            count += 1;
        }
        println!("{:17} {count:7} {:9} {:12}", target.name, most.0, most.1);
    }
}

/// Input number `count`: the seeds first.
fn input(seeds: &[Vec<u8>], count: u64) -> Vec<u8> {
    if let Some(seed) = usize::try_from(count).ok().and_then(|at| seeds.get(at)) {
        return seed.clone();
    }
    let mut random = Random(count);
    let mut bytes = seeds[random.below(seeds.len())].clone();
    for _ in 0..=random.below(4) {
        mutate(&mut bytes, &seeds[random.below(seeds.len())], &mut random);
    }
    bytes.truncate(LONGEST);
    bytes
}

/// The files in the folders of a target, by folder and name.
fn seeds(target: &str) -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let more = std::fs::read_to_string(root.join("fuzz/seeds/more")).unwrap();
    let own = format!("fuzz/seeds/{target}");
    let more = more.lines().filter_map(|line| line.strip_prefix(target)?.strip_prefix(' '));
    let mut seeds = Vec::new();
    for folder in [own.as_str()].into_iter().chain(more) {
        let files = std::fs::read_dir(root.join(folder)).into_iter().flatten();
        let mut files: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
        files.sort();
        seeds.extend(files.iter().map(|file| std::fs::read(file).unwrap()));
    }
    seeds
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

/// Runs the target on one input, which is kept where the target fails.
fn feed(target: &Target, input: &[u8], watched: &Watched) -> usize {
    *watched.lock().unwrap() = Some((Instant::now(), target.name.to_owned(), input.to_vec()));
    let taken = catch_unwind(AssertUnwindSafe(|| target.run(input)));
    *watched.lock().unwrap() = None;
    taken.unwrap_or_else(|_| {
        panic!("a find of {}: see {}", target.name, keep(target.name, input).display())
    })
}

fn keep(target: &str, input: &[u8]) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("find-{target}"));
    std::fs::write(&path, input).unwrap();
    path
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number below `limit`; zero if there is none.
    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % (limit as u64).max(1)).unwrap()
    }

    /// A part of `len` bytes, short ones more often.
    fn range(&mut self, len: usize) -> std::ops::Range<usize> {
        let start = self.below(len);
        let most = len.saturating_sub(start).min(1 << self.below(12));
        start..start + self.below(most + 1)
    }
}

/// Numbers at which readers go wrong.
const NUMBERS: [u64; 10] =
    [0, 1, 2, 0x7f, 0xff, 0x7fff, 0xffff, 0x7fff_ffff, 0xffff_ffff, u64::MAX >> 1];

/// One change.
fn mutate(bytes: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let range = random.range(bytes.len());
    match random.below(9) {
        0 => bytes.truncate(range.start),
        1 => drop(bytes.drain(range)),
        2 => {
            let copy = bytes[range].to_vec();
            let at = random.below(bytes.len() + 1);
            drop(bytes.splice(at..at, copy));
        }
        3 => {
            let part = &other[random.range(other.len())];
            drop(bytes.splice(range, part.iter().copied()));
        }
        4 => repeat(bytes, range, random),
        5 | 6 => number(bytes, range.start, random),
        _ => {
            if let Some(byte) = bytes.get_mut(range.start) {
                *byte ^= 1 << random.below(8);
            }
        }
    }
}

/// Puts copies of a part behind it, so many that what each of them costs shows.
fn repeat(bytes: &mut Vec<u8>, range: std::ops::Range<usize>, random: &mut Random) {
    let most = (LONGEST / 2).saturating_sub(bytes.len()) / range.len().max(1);
    let most = most.min(1 << random.below(16));
    let copies = bytes[range.clone()].repeat(random.below(most + 1));
    drop(bytes.splice(range.end..range.end, copies));
}

/// Puts another number over one of 1 to 8 bytes, or moves the one that is there a little.
fn number(bytes: &mut [u8], at: usize, random: &mut Random) {
    let width = 1 << random.below(4);
    let at = at / width * width;
    let Some(place) = bytes.get_mut(at..at + width) else {
        return;
    };
    let mut old = [0; 8];
    old[..width].copy_from_slice(place);
    let new = match random.below(3) {
        0 => NUMBERS[random.below(NUMBERS.len())],
        1 => u64::MAX - NUMBERS[random.below(NUMBERS.len())],
        _ => u64::from_le_bytes(old).wrapping_add(random.below(17) as u64).wrapping_sub(8),
    };
    place.copy_from_slice(&new.to_le_bytes()[..width]);
}
