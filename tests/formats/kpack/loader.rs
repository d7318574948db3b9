//! The code objects that loaders find in our archives.
//!
//! The invariant: for every device and every wrapper, a loader gets the most specific code object of the
//! wrapper that the device can run, if there is one. The tests simulate loaders on the archive's bytes, as
//! the sources of AMD's runtime describe them, without the packer's own rules.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::sample::subsequence;
use rockpack_elf::kpack::KpackReader;
use rockpack_plan::config::ArchiveLevel;
use rockpack_plan::recombine::Kernel;
use support::kpack::{LEVELS, bytes, judged, kernel, need_python, pack, pack_at};

/// The two kinds of loaders in use.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Loader {
    /// Commits to the first compatible target that any archive lists.
    Commits,
    /// Continues with the next compatible target if a row is missing.
    GoesOn,
}

/// All target IDs made by leaving out features of `device`: each feature is a bit, earlier ones higher, and
/// larger masks come first.
fn compatible(device: &str) -> Vec<String> {
    let mut parts = device.split(':');
    let processor = parts.next().unwrap();
    let features: Vec<&str> = parts.collect();
    let count = features.len();
    let named = |mask: usize| {
        let kept = (0..count).filter(|n| mask & (1 << (count - 1 - n)) != 0);
        let kept = kept.map(|n| format!(":{}", features[n]));
        format!("{processor}{}", kept.collect::<String>())
    };
    (0..1 << count).rev().map(named).collect()
}

/// The code object that `loader` returns for `device` and a key.
fn load(archive: &KpackReader, loader: Loader, device: &str, key: &str) -> Option<Vec<u8>> {
    let toc = archive.toc();
    for target in compatible(device) {
        if !toc.gfx_arches.contains(&target) {
            continue;
        }
        match toc.rows.get(key).and_then(|targets| targets.get(&target)) {
            Some(row) => return Some(bytes(&archive.code_object(row.ordinal).unwrap())),
            None if loader == Loader::Commits => return None,
            None => {}
        }
    }
    None
}

/// The target that a device must get: the most specific one it can run.
fn wanted<'a>(targets: &[&'a str], device: &str) -> Option<&'a str> {
    let by_rank = compatible(device).into_iter();
    by_rank.filter_map(|target| targets.iter().copied().find(|t| *t == target)).next()
}

/// Packs wrappers with the given targets. A code object's content is its key and target.
fn packed(level: ArchiveLevel, wrappers: &[Vec<&str>]) -> Option<KpackReader> {
    let mut kernels: Vec<Kernel> = Vec::new();
    for (co_index, targets) in (0..).zip(wrappers) {
        for target in targets {
            let content = format!("{co_index} {target}");
            kernels.push(kernel("lib/x.so", co_index, target, content));
        }
    }
    let archives = pack_at(level, &kernels, u64::MAX);
    assert!(archives.len() <= 1, "one arch, one archive");
    let archive = archives.into_iter().next()?;
    Some(KpackReader::open(archive.content).unwrap())
}

fn check(wrappers: &[Vec<&str>], devices: &[&str]) {
    for archive in LEVELS.into_iter().filter_map(|level| packed(level, wrappers)) {
        check_archive(&archive, wrappers, devices);
    }
}

fn check_archive(archive: &KpackReader, wrappers: &[Vec<&str>], devices: &[&str]) {
    for target in &archive.toc().gfx_arches {
        let answered = archive.toc().rows.values().any(|row| row.contains_key(target));
        assert!(answered, "{target} is listed without a row: {wrappers:?}");
    }
    for device in devices {
        for (co_index, targets) in wrappers.iter().enumerate() {
            let wanted = wanted(targets, device).map(|target| format!("{co_index} {target}"));
            for loader in [Loader::Commits, Loader::GoesOn] {
                let loaded = load(archive, loader, device, &format!("lib/x.so#{co_index}"))
                    .map(|bytes| String::from_utf8(bytes).unwrap());
                assert_eq!(loaded, wanted, "{device} {loader:?} {wrappers:?}");
            }
        }
    }
}

#[test]
fn one_wrapper_of_a_feature_variant_hides_no_other() {
    let wrappers = [vec!["gfx90a"], vec!["gfx90a:xnack-"], vec!["gfx90a"]];
    check(&wrappers, &["gfx90a:sramecc+:xnack-", "gfx90a:sramecc+:xnack+"]);
}

#[test]
fn targets_are_listed_most_specific_first_and_only_where_needed() {
    let plain = packed(LEVELS[0], &[vec!["gfx90a"], vec!["gfx90a"]]).unwrap();
    assert_eq!(plain.toc().gfx_arches, ["gfx90a"]);
    let mixed = packed(LEVELS[0], &[vec!["gfx90a"], vec!["gfx90a:xnack+"]]).unwrap();
    let expected = [
        "gfx90a:sramecc+:xnack+",
        "gfx90a:sramecc+:xnack-",
        "gfx90a:sramecc-:xnack+",
        "gfx90a:sramecc-:xnack-",
        "gfx90a:xnack+",
        "gfx90a",
    ];
    let mut sorted = mixed.toc().gfx_arches.clone();
    sorted.sort();
    let mut wanted = expected.to_vec();
    wanted.sort_unstable();
    assert_eq!(sorted, wanted);
    let counts: Vec<_> = mixed.toc().gfx_arches.iter().map(|t| t.matches(':').count()).collect();
    assert_eq!(counts, [2, 2, 2, 2, 1, 0]);
    // Every row's code object exists.
    let rows: BTreeMap<_, _> =
        mixed.toc().rows.iter().map(|(k, t)| (k.as_str(), t.len())).collect();
    assert_eq!(rows, [("lib/x.so#0", 6), ("lib/x.so#1", 3)].into());
    assert_eq!(mixed.len(), 2, "aliases store nothing");
}

#[test]
fn a_device_that_nothing_can_run_on_is_not_promised_anything() {
    let archive = packed(LEVELS[0], &[vec!["gfx90a:xnack+"]]).unwrap();
    let listed = &archive.toc().gfx_arches;
    assert_eq!(listed.len(), 3, "{listed:?}");
    assert!(listed.iter().all(|target| target.contains("xnack+")));
}

#[test]
fn the_independent_reader_accepts_aliases() {
    need_python();
    let kernels =
        [kernel("lib/x.so", 0, "gfx90a", "any"), kernel("lib/x.so", 1, "gfx90a:xnack+", "on")];
    let json = judged(&pack(&kernels, u64::MAX)[0].content);
    let rows = &json["rows"];
    let on = &rows["lib/x.so#1"]["gfx90a:xnack+"];
    assert_eq!(&rows["lib/x.so#1"]["gfx90a:sramecc-:xnack+"], on);
    assert_eq!(rows["lib/x.so#0"]["gfx90a:sramecc-:xnack+"], rows["lib/x.so#0"]["gfx90a"]);
    assert!(rows["lib/x.so#1"]["gfx90a:sramecc-:xnack-"].is_null());
}

#[test]
fn features_that_the_table_does_not_know_are_listed_as_well() {
    let wrappers = [vec!["gfx1999:xnack-"], vec!["gfx1999"]];
    check(&wrappers, &["gfx1999:xnack+", "gfx1999:xnack-", "gfx1999:sramecc+:xnack-", "gfx1999"]);
}

/// All wrappers with up to three target sets, for one arch and its devices.
fn case(
    targets: &'static [&'static str],
    devices: &'static [&'static str],
) -> impl Strategy<Value = (Vec<Vec<&'static str>>, &'static [&'static str])> {
    let sets = subsequence(targets.to_vec(), 0..=targets.len());
    proptest::collection::vec(sets, 1..4).prop_map(move |wrappers| (wrappers, devices))
}

const GFX90A: &[&str] = &[
    "gfx90a",
    "gfx90a:sramecc+",
    "gfx90a:sramecc-",
    "gfx90a:xnack+",
    "gfx90a:xnack-",
    "gfx90a:sramecc+:xnack+",
    "gfx90a:sramecc+:xnack-",
    "gfx90a:sramecc-:xnack+",
    "gfx90a:sramecc-:xnack-",
];
const GFX900: &[&str] = &["gfx900", "gfx900:xnack+", "gfx900:xnack-"];
const GENERIC: &[&str] = &["gfx9-generic", "gfx9-generic:xnack+", "gfx9-generic:xnack-"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Devices of processors with features report all of them. Runtimes may ask for less (`gfx90a:xnack-`),
    /// so partial target IDs are tried, too.
    #[test]
    fn every_device_gets_the_most_specific_code_object(
        (wrappers, devices) in prop_oneof![
            case(GFX90A, GFX90A),
            case(GFX900, GFX900),
            case(GENERIC, GENERIC),
            case(&["gfx1100"], &["gfx1100"]),
            case(&["gfx1250-strict"], &["gfx1250-strict"]),
            case(&["amdgcnspirv"], &["amdgcnspirv"]),
        ],
    ) {
        check(&wrappers, devices);
    }
}
