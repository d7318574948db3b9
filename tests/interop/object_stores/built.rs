//! Commands that read addresses do the same as for folders.

use std::collections::BTreeSet;

use support::example::{configuration, files, names};
use support::tools::succeed;

use super::*;

const SHARDS: [&str; 3] = ["gfx110X-build", "gfx1151-build", "gfx120X-build"];

/// The folder of shards on disk, and the files of a build of it.
fn on_disk() -> &'static (String, BTreeMap<String, Vec<u8>>) {
    static BUILT: OnceLock<(String, BTreeMap<String, Vec<u8>>)> = OnceLock::new();
    let shards = || servers().buckets.join("private/run-17").to_str().unwrap().to_owned();
    BUILT.get_or_init(|| (shards(), built(client(), &[&shards()])))
}

#[test]
fn both_stores_give_the_packages_of_folders() {
    let expected = &on_disk().1;
    assert!(expected.contains_key("packages.json") && expected.len() > 20);
    for store in STORES {
        let found = built(signed(servers().url(store)), &["s3://private/run-17/"]);
        assert_same(&found, expected, store);
    }
}

#[test]
fn web_servers_give_the_packages_of_folders() {
    let servers = servers();
    for server in WEB {
        let found = built(client(), &[&servers.web(server, "public/run-17")]);
        assert_same(&found, &on_disk().1, server);
    }
    let found = built(client(), &[&servers.listing("public", "run-17")]);
    assert_same(&found, &on_disk().1, "listing");
}

/// One shard is a folder, one a bucket, and two are lists of addresses: a file, and a text on a web server.
#[test]
fn addresses_mix_with_folders_and_lists() {
    let servers = servers();
    let [local, stored, listed] = SHARDS;
    let (shards, expected) = on_disk();
    let [local, stored] = [format!("{shards}/{local}"), format!("s3://private/run-17/{stored}")];
    let list = |folder: &Path, start: &str| {
        let objects = names(&Path::new(shards).join(listed));
        let lines = objects.iter().map(|name| format!("{start}/run-17/{listed}/{name}\n"));
        fs::create_dir_all(folder).unwrap();
        let file = folder.join(format!("{listed}.txt"));
        fs::write(&file, format!("# {listed}\n\n{}", lines.collect::<String>())).unwrap();
        file
    };
    let room = tempfile::tempdir().unwrap();
    let file = list(room.path(), "s3://private");
    list(&servers.buckets.join("public/lists"), &format!("{}/public", servers.url("ranges")));
    let text = format!("{}/public/lists/{listed}.txt", servers.url("whole"));
    for last in [file.to_str().unwrap(), text.as_str()] {
        let found = built(signed(servers.url("seaweedfs")), &[&local, &stored, last]);
        assert_same(&found, expected, last);
    }
}

#[test]
fn other_commands_read_addresses_like_folders() {
    let url = servers().url("seaweedfs");
    let room = tempfile::tempdir().unwrap();
    let said = |words: &[&str]| succeed(signed(url).args(words));
    let (address, folder) = ("s3://private/run-17/", on_disk().0.as_str());
    let [one, other] = [("address", address), ("folder", folder)].map(|(name, input)| {
        let out = room.path().join(name);
        let mut command = signed(url);
        command.args(["recombine", "--artifacts", input, "--output-dir"]).arg(&out);
        run(command.arg("--config").arg(configuration()));
        files(&out)
    });
    assert!(one == other && one.len() > 10, "{:?}", one.keys());
    // These read files several times, or look for what is beside them.
    for words in [["split", address, "--output-dir", "x"].as_slice(), &["inspect", address]] {
        let said = String::from_utf8(signed(url).args(words).output().unwrap().stderr).unwrap();
        assert!(said.contains("rockpack fetch ADDRESS"), "{words:?}: {said}");
    }
    for words in [&["discover"][..], &["plan", "--version", VERSION, "--json"]] {
        let [one, other] = [address, folder].map(|input| said(&[words, &[input]].concat()));
        assert_eq!(one, other, "{words:?}");
    }
    let out = room.path().join("out");
    run(&mut build(client(), &[folder], &out));
    said(&["verify", out.to_str().unwrap(), "--against", address]);
}

/// What a cache has is not asked for again, and no secret is in it or in what a run says.
#[test]
fn a_second_build_takes_archives_from_the_cache() {
    let recorder = Recorder::start(&["--to", servers().url("seaweedfs")]);
    let room = tempfile::tempdir().unwrap();
    let cache = room.path().join("cache");
    let mut before = 0;
    for out in ["first", "second"] {
        let out = room.path().join(out);
        let mut command = build(signed(&recorder.url), &["s3://private/run-17/"], &out);
        let Output { stdout, stderr, .. } = run(command.arg("-v").arg("--fetch-cache").arg(&cache));
        assert_same(&contents(&out), &on_disk().1, "cache");
        let asked = recorder.archives().len();
        assert_eq!(asked > before, before == 0, "{:?}", recorder.archives());
        before = asked;
        for bytes in [stdout, stderr] {
            assert_hides(&bytes, "output");
        }
    }
    let archives = files(Path::new(&on_disk().0))
        .into_iter()
        .filter(|(name, _)| !name.ends_with(".sha256sum"));
    let digests: BTreeSet<String> = archives.map(|(_, bytes)| support::sha256(&bytes)).collect();
    let written = files(room.path());
    let kept = written.keys().filter(|name| name.starts_with("cache/")).count();
    assert!(kept >= digests.len(), "{:?}", written.keys());
    for (name, bytes) in written {
        assert_hides(&bytes, &name);
    }
}

#[test]
fn families_that_are_not_there_end_a_build() {
    let url = servers().url("seaweedfs");
    let room = tempfile::tempdir().unwrap();
    let out = room.path().join("out");
    for command in ["build", "plan"] {
        let mut run = signed(url);
        run.args([command, "s3://private/run-17/", "--version", VERSION]);
        run.args(["--expect", "gfx1151,gfx94X-dcgpu"]);
        if command == "build" {
            run.arg("--out").arg(&out);
        }
        let said = refused(&mut run, &out);
        assert!(said.contains("no artifact is for gfx94X-dcgpu"), "{said}");
    }
    let mut command = build(signed(url), &["s3://private/run-17/"], &out);
    run(command.args(["--expect", "gfx1151,gfx110X-dgpu,generic"]));
}
