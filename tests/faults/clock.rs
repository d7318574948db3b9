//! The clock is set while a run works: to before 1970, into 1970, and far ahead.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::publications;
use crate::room::{Fault, Struck, strike, visible};
use crate::scenarios::Scenario;
use crate::tools::have;

/// Seconds: 126 and 60 years back, and 63 ahead.
const SHIFTS: [i64; 3] = [-4_000_000_000, -1_900_000_000, 2_000_000_000];

/// A run with a clock that is off by `shift` from its reading `at` on.
fn shifted(command: &mut Command, room: &Path, (shift, at): (i64, usize)) -> Struck {
    let act = format!("clock:{shift}");
    strike(command, room, Fault { calls: "", act: &act, at })
}

#[test]
fn what_is_built_asks_for_no_time() {
    if !have(&["gcc"]) {
        return;
    }
    let scenarios = [
        Scenario::build_with_document(),
        Scenario::split(),
        Scenario::recombine(),
        Scenario::extract(),
    ];
    for scenario in scenarios {
        scenario.undisturbed(|mut run, out| {
            let struck = shifted(&mut run, scenario.room.path(), (SHIFTS[0], 1));
            assert_eq!((struck.code(), struck.counted), (Some(0), 0), "{}", struck.stderr);
            assert!(visible(out) == scenario.whole, "{}", scenario.name);
        });
    }
}

/// It notes when an entry was used, which nothing but the choice of what to remove depends on.
#[test]
fn a_cache_with_a_wrong_clock_gives_the_same() {
    if !have(&["gcc"]) {
        return;
    }
    let scenario = Scenario::build_with_cache();
    for shift in SHIFTS {
        for at in [1, 3] {
            let fault = Fault { calls: "", act: &format!("clock:{shift}"), at };
            scenario.disturb((fault, ""), |left| {
                assert!(left.struck.counted >= at, "{}", left.about);
                left.is_whole();
            });
        }
    }
}

/// Indexes say when they were made. Without SOURCE_DATE_EPOCH that is what the clock says, and no
/// date before 1970.
#[test]
fn a_publication_is_dated_by_the_clock_or_refused() {
    if !have(&publications::TOOLS) {
        return;
    }
    let scenario = publications::scenario();
    let publish = |shift, at, judge: &dyn Fn(&Struck, &Path)| {
        scenario.undisturbed(|mut run, out| {
            run.env_remove("SOURCE_DATE_EPOCH");
            judge(&shifted(&mut run, scenario.room.path(), (shift, at)), out);
        });
    };
    for shift in SHIFTS {
        for at in [1, 2] {
            publish(shift, at, &|struck, out| {
                assert!(struck.counted >= at, "{} readings", struck.counted);
                if shift < 0 {
                    assert_eq!(struck.code(), Some(64), "{}", struck.stderr);
                    assert!(struck.stderr.contains("before 1970"), "{}", struck.stderr);
                    assert!(visible(out) == scenario.earlier, "{shift} {at}");
                    return;
                }
                assert_eq!(struck.code(), Some(0), "{}", struck.stderr);
                (scenario.promise.also)(out);
                let release = fs::read_to_string(out.join("dists/stable/Release")).unwrap();
                let date = release.lines().find(|line| line.starts_with("Date: ")).unwrap();
                let year = date.split(' ').nth(4).unwrap();
                assert!(year.parse::<u32>().unwrap() >= 2089, "{date}");
            });
        }
    }
}
