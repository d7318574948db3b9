//! A build's effects on the machine: it writes below its output folder, its cache and its repository, opens
//! no connection, and runs no program except the one that signs.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use support::example::{build_of, copy_shards, shards};
use support::gpg_keys::key;
use support::program::rockpack_path;
use support::strace::Trace;
use support::tools;

/// System calls that start programs, and those that reach a network.
const STARTING: [&str; 2] = ["execve", "execveat"];
const REACHING: [&str; 3] = ["socket", "connect", "bind"];

#[test]
fn a_build_runs_no_program_opens_no_connection_and_writes_nowhere_else() {
    tools::need(&["strace"]);
    let folder = tempfile::tempdir().unwrap();
    let artifacts = folder.path().join("shards");
    copy_shards(&artifacts);
    let own = ["out", "cache", "repository"].map(|name| folder.path().join(name));
    // The output folders exist: making one would write beside it.
    own.iter().for_each(|folder| fs::create_dir(folder).unwrap());
    let [out, cache, repository] = &own;
    let mut build = build_of(&artifacts, out);
    build.arg("--sbom").arg("--cache").arg(cache).arg("--repo").arg(repository);
    let trace = Trace::of(&build, &[&STARTING[..], &REACHING].concat());
    assert_eq!(trace.code, Some(0));
    let [starting, reaching] = [&STARTING[..], &REACHING].map(|names| {
        let is = |call: &&String| names.iter().any(|name| call.starts_with(&format!("{name}(")));
        trace.calls.iter().filter(is).collect::<Vec<_>>()
    });
    // The build itself.
    assert_eq!(starting.len(), 1, "{starting:?}");
    assert_eq!(reaching, Vec::<&String>::new());
    let is_own = |path: &PathBuf| {
        let leaves = path.components().any(|part| part.as_os_str() == "..");
        !leaves && own.iter().any(|own| path.starts_with(own))
    };
    let (inside, outside): (Vec<_>, Vec<_>) = trace.changed().into_iter().partition(is_own);
    assert_eq!(outside, Vec::<PathBuf>::new());
    assert!(inside.len() > 20, "{inside:?}");
}

/// strace would also show any program that the signing program starts.
#[test]
fn a_build_runs_no_program_but_the_one_it_signs_by() {
    tools::need(&["strace", "gpg", "gpgconf"]);
    let folder = tempfile::tempdir().unwrap();
    let own = key(folder.path(), "own", "ed25519");
    // Otherwise gpg starts its agent, which does not end.
    tools::run(Command::new("gpgconf").args(["--launch", "gpg-agent"]).env("GNUPGHOME", &own.home));
    let places = std::env::var_os("PATH").unwrap();
    let mut places = std::env::split_paths(&places).map(|folder| folder.join("gpg"));
    let gpg = places.find(|path| path.is_file()).unwrap();
    let gpg = gpg.to_str().unwrap();
    let line = format!("{gpg} --batch --yes --local-user own@example.org --armor --{{mode}}");
    let mut build = build_of(&shards(), &folder.path().join("out"));
    build.arg("--repo").arg(folder.path().join("repository")).env("GNUPGHOME", &own.home);
    build.args(["--sign-command", &line]).arg("--public-key").arg(&own.public);
    let trace = Trace::of(&build, &STARTING);
    assert_eq!(trace.code, Some(0));
    let starts = trace.calls.iter().filter(|call| call.starts_with("execve"));
    let programs: Vec<&str> = starts.map(|call| call.split('"').nth(1).unwrap()).collect();
    let build = rockpack_path().to_str().unwrap();
    // A trial, the receipt, twice the index of apt, and that of dnf.
    assert_eq!(programs, [build, gpg, gpg, gpg, gpg, gpg]);
}
