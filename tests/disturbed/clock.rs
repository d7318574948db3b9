//! The clock jumps during a run: to before 1970, into the seventies, and far ahead.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use support::example::rockpack;
use support::repo_fixture::EPOCH;
use support::tools::need;

use crate::publications;
use crate::room::{Fault, Struck, strike, visible};
use crate::scenarios::Scenario;

/// Shifts in seconds: 126 and 54 years back, 63 years ahead.
const SHIFTS: [i64; 3] = [-4_000_000_000, -1_700_000_000, 2_000_000_000];

/// Runs with a clock that is off by `shift`, starting with its reading number `at`.
fn shifted(command: &mut Command, room: &Path, (shift, at): (i64, usize)) -> Struck {
    let act = format!("clock:{shift}");
    strike(command, room, Fault { calls: "", act: &act, at })
}

#[test]
fn what_is_built_asks_for_no_time() {
    need(&["gcc"]);
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

/// The cache records when an entry was used, which only affects the choice of entries to remove.
#[test]
fn a_cache_with_a_wrong_clock_gives_the_same() {
    need(&["gcc"]);
    let mut scenario = Scenario::build_with_cache();
    for shift in SHIFTS {
        for at in [1, 3] {
            // The next run finds entries with this time, which their content does not show.
            scenario.forget();
            let fault = Fault { calls: "", act: &format!("clock:{shift}"), at };
            scenario.disturb((fault, ""), |left| {
                assert!(left.struck.counted >= at, "{}", left.about);
                left.is_whole();
            });
        }
    }
}

/// The time of a clock that is off by `shift`, in seconds since 1970.
fn date(shift: i64) -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(now.as_secs()).unwrap() + shift
}

fn is_refused(struck: &Struck, why: &str) {
    assert_eq!(struck.code(), Some(64), "{}", struck.stderr);
    assert!(struck.stderr.contains(why), "{}", struck.stderr);
}

/// Fails unless apt's list has the year of `seconds`.
fn is_dated(out: &Path, seconds: i64) {
    let release = fs::read_to_string(out.join("dists/stable/Release")).unwrap();
    let date = release.lines().find(|line| line.starts_with("Date: ")).unwrap();
    let year: i64 = date.split(' ').nth(4).unwrap().parse().unwrap();
    let mean = 1970 + seconds / 31_556_952;
    assert!((year - mean).abs() <= 1, "{date}, not about {mean}");
}

/// Indexes state when they were made. Without SOURCE_DATE_EPOCH that is the clock's time, unless that is
/// before 1970 or before the last publication.
#[test]
fn a_publication_is_dated_by_the_clock_or_refused() {
    need(&publications::TOOLS);
    let scenario = publications::scenario();
    for shift in SHIFTS {
        scenario.undisturbed(|mut run, out| {
            run.env_remove("SOURCE_DATE_EPOCH");
            let struck = shifted(&mut run, scenario.room.path(), (shift, 1));
            assert_eq!(struck.counted, 1, "readings");
            match date(shift) {
                ..0 => is_refused(&struck, "before 1970"),
                // The signing key, like the last publication, is newer than that.
                0..EPOCH => is_refused(&struck, "more than a day ahead of the clock"),
                date => {
                    assert_eq!(struck.code(), Some(0), "{}", struck.stderr);
                    (scenario.promise.also)(out);
                    return is_dated(out, date);
                }
            }
            assert!(visible(out) == scenario.earlier, "{shift}");
        });
    }
}

/// Commands also build nothing that could not be published, and verify nothing against such a date.
#[test]
fn other_commands_that_need_a_date_refuse_such_a_clock() {
    need(&["gcc"]);
    let scenario = Scenario::build();
    let room = scenario.room.path();
    let (out, repository) = (room.join("dated"), room.join("repository"));
    let verify = |what: &Path| {
        let mut verify = rockpack();
        verify.arg("verify").arg(what);
        verify
    };
    let build = || {
        let mut build = scenario.command_into(&out);
        build.env_remove("SOURCE_DATE_EPOCH").arg("--repo").arg(&repository);
        build
    };
    for mut command in [build(), verify(&room.join("whole"))] {
        is_refused(&shifted(&mut command, room, (SHIFTS[0], 1)), "before 1970");
    }
    assert!(!out.join("packages.json").exists() && !repository.exists());
    for shift in &SHIFTS[1..] {
        let struck = shifted(&mut build(), room, (*shift, 1));
        assert_eq!(struck.code(), Some(0), "{}", struck.stderr);
        is_dated(&repository, date(*shift));
        let struck = shifted(&mut verify(&out), room, (*shift, 1));
        assert_eq!(struck.code(), Some(0), "{}", struck.stderr);
    }
}
