//! Random damage to a signed repository with packages, wheels, files for clients and states.
//! `verify` notices all of it that a client would notice: where `verify` finds nothing, the clients
//! that read the damaged file are asked.

mod damage;
mod judges;

use std::collections::BTreeMap;

use damage::{kind, passing, random_damage};
use judges::{Judges, readers};

/// How many times files of a kind were damaged, and what noticed it.
#[derive(Default)]
struct Counts {
    tried: usize,
    /// `verify` finds nothing.
    passed: usize,
    /// `verify` finds nothing, and a client notices.
    missed: usize,
}

fn try_damage(count: usize, seed: u64) {
    let mut judges = Judges::new();
    let all = random_damage(&judges.good, count, seed);
    let mut counts: BTreeMap<&str, Counts> = BTreeMap::new();
    for damage in &all {
        counts.entry(kind(&damage.file)).or_default().tried += 1;
    }
    let (mut passed, mut missed) = (0, Vec::new());
    for damage in passing(&judges.good, &judges.room.key.public, &all) {
        note!("{} {}", damage.file, damage.what);
        let mut clients = readers(&damage.file).iter();
        let client = clients.find(|client| judges.is_noticed(**client, damage));
        let counts = counts.entry(kind(&damage.file)).or_default();
        counts.passed += 1;
        passed += 1;
        if let Some(client) = client {
            counts.missed += 1;
            missed.push(format!("{client:?}: {} {}", damage.file, damage.what));
        }
    }
    for (kind, Counts { tried, passed, missed }) in &counts {
        println!("{kind:16} {tried:5} tried, {passed:4} pass, {missed:4} noticed by clients alone");
    }
    println!("seed {seed}: {count} tried, {passed} pass, {} missed", missed.len());
    assert!(missed.is_empty(), "clients notice what `verify` does not:\n{}", missed.join("\n"));
    assert!(5 * passed < count, "`verify` lets {passed} of {count} pass");
}

#[test]
fn random_damage_that_clients_notice_is_noticed() {
    try_damage(90, 1);
}

/// The number of places that `ROCKPACK_FLIPS=COUNT/SEED` says.
#[test]
#[ignore = "3000 places: .ci/nightly"]
fn more_random_damage_that_clients_notice_is_noticed() {
    let asked = std::env::var("ROCKPACK_FLIPS").unwrap_or_else(|_| "3000/2".to_owned());
    let numbers = asked.split_once('/').map(|(count, seed)| (count.parse(), seed.parse()));
    let Some((Ok(count), Ok(seed))) = numbers else {
        panic!("ROCKPACK_FLIPS={asked}: name a count and a seed, as in 3000/2")
    };
    try_damage(count, seed);
}
