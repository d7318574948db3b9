//! `rockpack fetch`: what it writes, and what it does not ask for again.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use support::example::files;
use support::waiting::until;

use super::*;

#[test]
fn fetch_writes_the_objects_as_they_are() {
    let servers = servers();
    let room = tempfile::tempdir().unwrap();
    let check = |command: Command, address: &str, folder: &str, out: &Path| {
        let result = fetched(&mut fetch(command, &[address], out));
        let expected = files(&servers.buckets.join(folder));
        assert!(files(out) == expected, "{address}: {:?}", files(out).keys());
        assert_eq!(result["dry_run"], false);
    };
    for store in STORES {
        let out = room.path().join(store);
        check(signed(servers.url(store)), "s3://private/run-17/", "private/run-17", &out);
        let large = out.join("large");
        run(&mut fetch(signed(servers.url(store)), &["s3://private/large"], &out));
        assert!(files(&large) == files(&servers.buckets.join("private/large")), "{store}");
    }
    for server in WEB {
        let out = room.path().join(server);
        check(client(), &servers.web(server, "public/run-17"), "public/run-17", &out);
        run(&mut fetch(client(), &[&servers.web(server, "private/large")], &out));
        assert!(
            files(&out.join("large")) == files(&servers.buckets.join("private/large")),
            "{server}"
        );
    }
}

/// The archives of a result, with what it says of whether they were there.
fn archives(result: &Value) -> BTreeSet<(String, bool)> {
    let objects = result["objects"].as_array().unwrap().iter();
    let named = objects.map(|object| {
        let path = Path::new(object["path"].as_str().unwrap());
        let shard = path.parent().unwrap().file_name().unwrap().to_str().unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        (format!("{shard}/{name}"), object["present"].as_bool().unwrap())
    });
    named.collect()
}

#[test]
fn components_and_targets_select_objects() {
    let url = servers().url("rclone");
    let room = tempfile::tempdir().unwrap();
    let out = room.path().join("out");
    let select = |words: &[&str]| {
        let mut command = fetch(signed(url), &["s3://private/run-17/"], &out);
        command.args(words);
        command
    };
    let wanted = ["--components", "blas_lib,host-suite-sparse", "--targets", "gfx1151"];
    let planned = fetched(&mut select(&[&wanted[..], &["--dry-run"]].concat()));
    assert!(!out.exists());
    let stems = |result: &Value| -> Vec<String> {
        let names = archives(result).into_iter().map(|(name, _)| name);
        names.map(|name| name.split(".tar.").next().unwrap().to_owned()).collect()
    };
    let sparse = "host-suite-sparse_lib_generic";
    let expected = [
        format!("gfx110X-build/{sparse}"),
        "gfx1151-build/blas_lib_gfx1151".to_owned(),
        format!("gfx1151-build/{sparse}"),
        format!("gfx120X-build/{sparse}"),
    ];
    assert_eq!(stems(&planned), expected);
    assert_eq!(planned["bytes"], planned["new_bytes"]);
    let done = fetched(&mut select(&wanted));
    let name_and_size = |result: &Value| {
        let objects = result["objects"].as_array().unwrap().iter();
        objects
            .map(|it| [&it["path"], &it["bytes"], &it["sha256"]].map(Value::to_string))
            .collect::<Vec<_>>()
    };
    assert_eq!(name_and_size(&done), name_and_size(&planned));
    let written = files(&out);
    // Each with its checksum, ...
    assert_eq!(written.len(), 2 * expected.len(), "{:?}", written.keys());
    for object in done["objects"].as_array().unwrap() {
        let bytes = fs::read(object["path"].as_str().unwrap()).unwrap();
        assert_eq!(object["bytes"], bytes.len());
        assert_eq!(object["sha256"], support::sha256(&bytes));
    }
    // ... and all of them are there now.
    let again = fetched(&mut select(&[&wanted[..], &["--dry-run"]].concat()));
    assert!(
        archives(&again).iter().all(|(_, present)| *present) && again["new_bytes"] == 0,
        "{again}"
    );

    let empty = room.path().join("empty");
    for (option, word) in
        [("--expect", "gfx94X-dcgpu"), ("--components", "absent"), ("--targets", "gfx9999")]
    {
        let mut command = fetch(signed(url), &["s3://private/run-17/"], &empty);
        let said = refused(command.args([option, word]), &empty);
        assert!(said.contains(word), "{said}");
    }
}

/// Whole files are not asked for again. A damaged one is, although its size is right.
#[test]
fn a_repeated_run_asks_for_what_is_missing() {
    let recorder = Recorder::start(&["--to", servers().url("seaweedfs")]);
    let room = tempfile::tempdir().unwrap();
    let out = room.path().join("out");
    let fetch = || fetched(&mut fetch(signed(&recorder.url), &["s3://private/run-17/"], &out));
    let whole = archives(&fetch());
    assert!(whole.iter().all(|(_, present)| !present));
    let asked = recorder.archives().len();
    assert_eq!(asked, whole.len());
    let again = fetch();
    assert!(
        archives(&again).iter().all(|(_, present)| *present) && again["new_bytes"] == 0,
        "{again}"
    );
    assert_eq!(recorder.archives().len(), asked);

    let expected = files(&servers().buckets.join("private/run-17"));
    let damaged = out.join(&whole.first().unwrap().0);
    let mut bytes = fs::read(&damaged).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&damaged, bytes).unwrap();
    fetch();
    assert_eq!(recorder.archives().len(), asked + 1);
    assert!(files(&out) == expected);
}

#[test]
fn an_interrupted_run_goes_on_where_it_ended() {
    for (signal, code) in [("TERM", Some(143)), ("KILL", None)] {
        let store = servers().url("seaweedfs");
        let room = tempfile::tempdir().unwrap();
        let out = room.path().join("out");
        let stalled = Recorder::start(&["--to", store, "--stall", "1000000"]);
        let mut command = fetch(signed(&stalled.url), &["s3://private/large/"], &out);
        let mut process = Process::start(command.stdout(Stdio::null()).stderr(Stdio::null()));
        let folder = out.join("large");
        let part = until("a part of the large object is there, and the small one", || {
            let [_, small] = LARGE;
            partial(&folder).filter(|part| {
                fs::metadata(part).unwrap().len() >= 500_000 && folder.join(small).exists()
            })
        });
        let begin = Instant::now();
        let kill = format!("kill -{signal} {}", process.child().id());
        run(Command::new("sh").args(["-c", &kill]));
        assert_eq!(process.end().code(), code, "{signal}");
        assert!(begin.elapsed() < Duration::from_secs(15), "{signal}");
        let there = fs::metadata(&part).unwrap().len();
        drop(stalled);

        let recorder = Recorder::start(&["--to", store]);
        run(&mut fetch(signed(&recorder.url), &["s3://private/large/"], &out));
        assert!(files(&folder) == files(&servers().buckets.join("private/large")), "{signal}");
        let asked = recorder.archives();
        assert!(asked.iter().all(|(name, _)| name == LARGE[0]), "{signal}: {asked:?}");
        assert_eq!(asked.iter().map(|(_, start)| *start).min(), Some(there), "{signal}: {asked:?}");
    }
}

/// A file that is not whole.
fn partial(folder: &Path) -> Option<PathBuf> {
    let mut entries = fs::read_dir(folder).ok()?.map(|entry| entry.unwrap().path());
    entries.find(|path| path.extension().is_some_and(|ending| ending == "part"))
}
