//! Damage to files of a repository, and what `verify` says of it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;

use support::example::files;
use support::random::Random;
use support::repo_fixture::verify_by;
use support::tools::run;

/// Damage to one file.
pub struct Damage {
    pub file: String,
    pub what: String,
    /// The content afterwards; absent if the file is deleted.
    bytes: Option<Vec<u8>>,
}

impl Damage {
    /// Damages the repository in a folder. Hard links stay, as on a disk that fails.
    pub fn strike(&self, repository: &Path) {
        let file = repository.join(&self.file);
        // Packages with keys are hard links; one of the two is damaged.
        fs::remove_file(&file).unwrap();
        if let Some(bytes) = &self.bytes {
            fs::write(file, bytes).unwrap();
        }
    }

    /// Tells whether `verify` finds nothing in a copy of a repository with the damage. Undoes it.
    fn passes(&self, copy: &Path, good: &Path, key: &Path) -> bool {
        self.strike(copy);
        let said = verify_by(copy, key);
        fs::write(copy.join(&self.file), fs::read(good.join(&self.file)).unwrap()).unwrap();
        let is_noticed = said.ends_with("exit status: 1\n") || said.ends_with("exit status: 2\n");
        let Self { file, what, .. } = self;
        assert!(is_noticed || said.ends_with("exit status: 0\n"), "{file} {what}: {said}");
        !is_noticed
    }
}

/// The kind of a file. Each kind is damaged equally often, however many and large files it has.
pub fn kind(file: &str) -> &str {
    let (folder, name) = file.rsplit_once('/').unwrap_or(("", file));
    let ending = name.rsplit('.').next().unwrap_or(name);
    match file.split('/').next() {
        Some(".rockpack") if ending == "zst" => "states",
        Some(".rockpack") => "beside states",
        Some("dists") if folder.contains("/by-hash/") => "by-hash",
        Some("dists" | "simple") => name,
        Some("repodata") if name.starts_with("repomd.") => name,
        Some("repodata") => "lists of rpm-md",
        _ => ending,
    }
}

/// Damage to `count` places, in an order that the seed determines.
pub fn random_damage(good: &Path, count: usize, seed: u64) -> Vec<Damage> {
    let files = files(good);
    let mut kinds: BTreeMap<&str, Vec<(&String, &Vec<u8>)>> = BTreeMap::new();
    for (file, bytes) in &files {
        kinds.entry(kind(file)).or_default().push((file, bytes));
    }
    let kinds: Vec<_> = kinds.into_values().collect();
    let (mut random, mut all) = (Random(seed), Vec::new());
    while all.len() < count {
        let alike = &kinds[random.below(kinds.len())];
        let (file, bytes) = alike[random.below(alike.len())];
        let (_, other) = alike[random.below(alike.len())];
        let (what, damaged) = change(bytes, other, &mut random);
        if damaged.as_ref() != Some(bytes) {
            all.push(Damage { file: file.clone(), what, bytes: damaged });
        }
    }
    all
}

/// Changes content in one way; three times of five, by one bit.
fn change(bytes: &[u8], other: &[u8], random: &mut Random) -> (String, Option<Vec<u8>>) {
    if bytes.is_empty() {
        return ("is no longer empty".to_owned(), Some(b"x".to_vec()));
    }
    let at = random.below(bytes.len());
    let (head, tail) = bytes.split_at(at);
    let (part, rest) = tail.split_at(tail.len().min(1 + random.below(40)));
    match random.below(20) {
        0 => (format!("is cut at {at}"), Some(head.to_vec())),
        1 => ("is deleted".to_owned(), None),
        2 => ("is another file of its kind".to_owned(), Some(other.to_vec())),
        3 => {
            let byte = b"\n\0 x"[random.below(4)];
            (format!("has {byte:#x} after its end"), Some([bytes, &[byte]].concat()))
        }
        4 => {
            let what = format!("has {} bytes from {at} on twice", part.len());
            (what, Some([head, part, tail].concat()))
        }
        5 => {
            let what = format!("has {} zeros from {at} on", part.len());
            (what, Some([head, &[0; 40][..part.len()], rest].concat()))
        }
        way => {
            let mut changed = bytes.to_vec();
            changed[at] ^= if way < 8 { 1 + random.below(255) as u8 } else { 1 << random.below(8) };
            (format!("has {:#x} for {:#x} at {at}", changed[at], bytes[at]), Some(changed))
        }
    }
}

/// The damage in which `verify` finds nothing.
pub fn passing<'a>(good: &Path, key: &Path, all: &'a [Damage]) -> Vec<&'a Damage> {
    let workers = thread::available_parallelism().map_or(1, usize::from).min(8);
    thread::scope(|scope| {
        let work = |worker: usize| {
            scope.spawn(move || {
                let copy = tempfile::tempdir().unwrap();
                copy_all(good, copy.path());
                let own = all.iter().skip(worker).step_by(workers);
                own.filter(|damage| damage.passes(copy.path(), good, key)).collect::<Vec<_>>()
            })
        };
        let started: Vec<_> = (0..workers).map(work).collect();
        started.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    })
}

/// Copies everything below a folder, hard links and times included.
pub fn copy_all(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    run(Command::new("cp").arg("-a").arg(from.join(".")).arg(to));
}
