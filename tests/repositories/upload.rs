//! Plans of uploads: what they say, and what clients find while one is carried out, or after it was broken off.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use support::gpg_keys::{Key, key};
use support::published::served;
use support::repo_fixture::{contents, deb, plain_spec, publish, refused, repo_at, rpm};
use support::tools::{need, run, said, succeed, told};
use support::{scratch, sha256, sweep};

use crate::clients_apt::{self, Root};
use crate::clients_rpm;
use crate::python::clients::Environment;
use crate::python::order::whole;
use crate::python::wheels::family_of;
use crate::server::Server;

/// A repository that is published with plans.
struct Room {
    folder: tempfile::TempDir,
    out: PathBuf,
    /// Arguments of every publication.
    arguments: Vec<OsString>,
}

impl Room {
    fn new(arguments: &[&str]) -> Self {
        let folder = scratch::in_memory();
        let out = folder.path().join("repository");
        fs::create_dir(&out).unwrap();
        Self { folder, out, arguments: arguments.iter().map(OsString::from).collect() }
    }

    fn signed_by(mut self, key: &Key) -> Self {
        let signer = [OsString::from("--sign-key"), key.secret.clone().into_os_string()];
        self.arguments.extend(signer);
        self
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Publishes a version of a package of every kind in place of the earlier one.
    fn repo(&self, version: &str, after: i64) -> Command {
        let packages = self.path(version);
        deb(&packages, ("one", version, "amd64"), "");
        rpm(&packages, &plain_spec("one", version, ""));
        let archs = if version == "1" { ["gfx906", "gfx942"] } else { ["gfx942", "gfx1100"] };
        family_of(&packages, version, &archs);
        let mut repo = repo_at(&[&packages], &self.out, after);
        repo.args(["--keep", "1", "--set", "generations=1"]).args(&self.arguments);
        repo
    }

    /// The plan of such a publication.
    fn plan(&self, version: &str, after: i64) -> Value {
        planned(&mut self.repo(version, after), &self.path("plan.json"))
    }

    /// The steps of that plan.
    fn steps(&self, version: &str, after: i64) -> Vec<Step> {
        let plan = self.plan(version, after);
        let step = |entry: &Value| Step {
            path: entry["path"].as_str().or(entry.as_str()).unwrap().to_owned(),
            text: entry["text"].as_str().map(str::to_owned),
            removes: entry.is_string(),
        };
        let files = plan["phases"].as_array().unwrap().iter().map(|phase| &phase["files"]);
        files.flat_map(|files| files.as_array().unwrap()).map(step).collect()
    }
}

fn planned(repo: &mut Command, plan: &Path) -> Value {
    publish(repo.arg("--upload-plan").arg(plan));
    serde_json::from_slice(&fs::read(plan).unwrap()).unwrap()
}

/// A file that is uploaded or removed.
struct Step {
    path: String,
    text: Option<String>,
    removes: bool,
}

impl Step {
    /// Carries the step out on a server with the files of `served`.
    fn carry_out(&self, out: &Path, served: &Path) {
        let to = served.join(&self.path);
        if self.removes {
            // A server that missed a plan may not have the file.
            let _ = fs::remove_file(to);
            return;
        }
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        match &self.text {
            Some(text) => fs::write(to, text).unwrap(),
            None => drop(fs::copy(out.join(&self.path), to).unwrap()),
        }
    }
}

fn files(phase: &Value) -> &Vec<Value> {
    phase["files"].as_array().unwrap()
}

fn path(entry: &Value) -> &str {
    entry["path"].as_str().unwrap()
}

type Files = BTreeMap<String, Vec<u8>>;

const IMMUTABLE: &str = "public, max-age=31536000, immutable";

const TYPES: [(&str, &str); 10] = [
    (".deb", "application/vnd.debian.binary-package"),
    (".rpm", "application/x-rpm"),
    (".whl", "application/zip"),
    (".xml.gz", "application/gzip"),
    ("keyring.asc", "application/pgp-keys"),
    ("repomd.xml.asc", "application/pgp-signature"),
    ("Release", "text/plain; charset=utf-8"),
    ("-stable.sources", "text/plain; charset=utf-8"),
    ("/index.html", "text/html; charset=utf-8"),
    ("/index.json", "application/vnd.pypi.simple.v1+json"),
];

/// Phase and cache header by the path alone.
fn expected(path: &str) -> [&'static str; 2] {
    let says_content = path.contains("/by-hash/")
        || path.ends_with(".metadata")
        || path.starts_with("repodata/") && !path.contains("/repomd.xml");
    match path.rsplit('.').next().unwrap() {
        "whl" => ["packages", IMMUTABLE],
        "deb" | "rpm" => ["packages", "public, max-age=3600"],
        _ if says_content => ["indexes", IMMUTABLE],
        _ => ["visible", "no-cache"],
    }
}

/// The plan has every file once, and removes those that the publication removed.
fn check_files(plan: &Value, before: &Files, after: &Files) {
    let [uploads @ .., deletions] = &plan["phases"].as_array().unwrap()[..] else { panic!() };
    let mut left: BTreeSet<&str> = after.keys().map(String::as_str).collect();
    for phase in uploads {
        for entry in files(phase) {
            let path = path(entry);
            assert_eq!([&phase["name"], &entry["cache_control"]], expected(path), "{path}");
            let types = TYPES.iter().filter(|(end, _)| path.ends_with(end));
            types.for_each(|(_, it)| assert_eq!(entry["content_type"], *it, "{path}"));
            let bytes = match entry["text"].as_str() {
                Some(text) => text.as_bytes(),
                None => {
                    assert!(left.remove(path), "{path} is not there, or named twice");
                    &after[path][..]
                }
            };
            assert_eq!(entry["size"], bytes.len(), "{path}");
            assert_eq!(entry["sha256"], sha256(bytes), "{path}");
        }
    }
    assert!(left.is_empty(), "{left:?}");
    assert_eq!(deletions["name"], "deletions");
    assert_eq!(deletions["after_seconds"], 3600);
    let removed: BTreeSet<&str> =
        files(deletions).iter().map(|path| path.as_str().unwrap()).collect();
    let gone: BTreeSet<&str> =
        before.keys().filter(|path| !after.contains_key(*path)).map(String::as_str).collect();
    assert_eq!(removed, gone);
}

/// Visible files are in the order in which a publication replaces those of each channel: what a dry run says.
fn check_order(plan: &Value, dry: &Value) {
    let visible: Vec<&str> = files(&plan["phases"][2]).iter().map(path).collect();
    for channel in dry["channels"].as_array().unwrap() {
        let replaced = channel["indexes"].as_array().unwrap().iter();
        let replaced = replaced.map(|path| path.as_str().unwrap());
        let mut turns = visible.iter();
        // The keyring belongs to several channels.
        for path in replaced.filter(|path| !path.ends_with("keyring.asc")) {
            assert!(turns.any(|turn| *turn == path), "{path}: {visible:#?}");
        }
    }
    let at = |end: &str| visible.iter().position(|path| path.ends_with(end));
    assert!(at("keyring.asc") < at("/Release") && at(".repo") < at("/repomd.xml"));
}

#[test]
fn a_plan_has_each_file_once_in_the_order_of_a_publication() {
    need(&["dpkg-deb", "rpmbuild", "gpg", "python3"]);
    let keys = tempfile::tempdir().unwrap();
    let key = key(keys.path(), "own", "ed25519");
    let url = ["--url", "https://example.org/rocm"];
    for room in [Room::new(&url), Room::new(&url).signed_by(&key)] {
        let mut replaced_twice = BTreeSet::new();
        for (version, after) in [("1", 0), ("2", 10), ("3", 5000)] {
            let dry = succeed(room.repo(version, after).args(["--dry-run", "--json"]));
            let before = contents(&room.out);
            let plan = room.plan(version, after);
            check_files(&plan, &before, &contents(&room.out));
            check_order(&plan, &serde_json::from_str(&dry).unwrap());
            let twice = files(&plan["phases"][2]).iter().filter(|entry| entry["text"].is_string());
            replaced_twice.extend(twice.map(|entry| format!("{version} {}", path(entry))));
        }
        assert!(replaced_twice.contains("2 simple/demo/index.html"), "{replaced_twice:?}");
        assert!(!replaced_twice.iter().any(|it| it.starts_with('1')), "{replaced_twice:?}");
    }
}

#[test]
fn a_plan_covers_other_suites_and_files_and_lies_outside() {
    need(&["dpkg-deb"]);
    let room = Room::new(&[]);
    let (out, plan) = (room.out.as_path(), room.path("plan.json"));
    let package = deb(&room.path("in"), ("one", "1", "amd64"), "");
    publish(repo_at(&[&package], out, 0).args(["--suite", "Release"]));
    fs::write(out.join("README"), "of somebody else").unwrap();
    let mut repo = repo_at(&[&package], out, 0);
    let visible = planned(&mut repo, &plan)["phases"][2].take();
    let visible: Vec<&str> = files(&visible).iter().map(path).collect();
    let names = ["Packages", "Packages.gz", "Packages.zst"];
    let indexes = ["Release", "stable"]
        .map(|suite| names.map(|it| format!("dists/{suite}/main/binary-amd64/{it}")));
    let begin = ["Release", "stable"].map(|suite| format!("dists/{suite}/Release"));
    let wanted = ["README".to_owned()].into_iter().chain(indexes.concat()).chain(begin);
    assert_eq!(visible, wanted.collect::<Vec<_>>());
    // Nothing is published without a place for the plan. An earlier plan stays if nothing is published.
    let (before, earlier) = (contents(out), fs::read(&plan).unwrap());
    let inside = out.join("plan.json");
    let again = |plan: &Path, after| {
        let mut again = repo_at(&[], out, after);
        again.arg("--upload-plan").arg(plan);
        again
    };
    let cases = [
        (again(&inside, 9), "the upload plan is inside the repository"),
        (again(&room.path("missing/plan.json"), 9), "No such file or directory"),
        (again(out, 9), "is inside the repository"),
        (again(&room.path("in"), 9), "already exists, and is not a file"),
        (again(&plan, -9), "clients refuse indexes older"),
    ];
    for (mut command, reason) in cases {
        let (said, code) = refused(&mut command);
        assert!(code == 64 && said.contains(reason), "{said}");
    }
    let (said, code) = refused(again(&plan, 9).arg("--dry-run"));
    assert!(code == 64 && said.contains("--dry-run"), "{said}");
    assert_eq!((contents(out), fs::read(&plan).unwrap()), (before, earlier));
}

/// The versions that apt and dnf find on a server.
fn packages_of(server: &Path) -> [String; 2] {
    served(&fs::read_to_string(server.join("dists/stable/InRelease")).unwrap(), server)
}

#[test]
fn servers_are_whole_wherever_an_upload_ends() {
    need(&["dpkg-deb", "rpmbuild", "gpg", "gzip", "python3"]);
    let room = Room::new(&[]);
    let key = key(&room.path(""), "own", "ed25519");
    let room = room.signed_by(&key);
    let [server, late, again] = ["server", "late", "again"].map(|name| room.path(name));
    let mut seen = BTreeSet::new();
    for (version, after) in [("1", 0), ("2", 10), ("3", 5000)] {
        let steps = room.steps(version, after);
        for (at, step) in steps.iter().enumerate() {
            step.carry_out(&room.out, &server);
            if version == "1" {
                continue;
            }
            let [apt, rpm] = packages_of(&server);
            seen.insert(format!("{apt} {rpm} {}", whole(&server).join("+")));
            if at % sweep::or_all(20, 1) == 0 {
                // The upload ended here, and is repeated.
                run(Command::new("cp").arg("-a").arg(&server).arg(&again));
                for step in &steps {
                    step.carry_out(&room.out, &again);
                    whole(&again);
                }
                assert!(contents(&again) == contents(&room.out), "{version} {at}");
                fs::remove_dir_all(&again).unwrap();
            }
        }
        assert!(contents(&server) == contents(&room.out), "{version}");
        // This server misses the second plan.
        for step in steps.iter().filter(|_| version != "2") {
            step.carry_out(&room.out, &late);
            if version == "3" {
                packages_of(&late);
            }
        }
    }
    let late = contents(&late);
    assert!(contents(&room.out).iter().all(|(path, bytes)| late.get(path) == Some(bytes)));
    let of_second = ["1 1 1", "2 1 1", "2 2 1", "2 2 1+2", "2 2 2"];
    let of_third = ["3 2 2", "3 3 2", "3 3 2+3", "3 3 3"];
    assert_eq!(Vec::from_iter(seen), [&of_second[..], &of_third].concat());
}

#[test]
fn apt_finds_a_whole_publication_during_an_upload() {
    clients_apt::need_all();
    let root = Root::of("bookworm");
    let served = scratch::in_memory();
    let (server, http) = (served.path(), Server::of(served.path()));
    let room = Room::new(&["--deb", "--url", &http.url]);
    let key = key(&room.path(""), "own", "ed25519");
    let room = room.signed_by(&key);
    room.steps("1", 0).iter().for_each(|step| step.carry_out(&room.out, server));
    root.trust(server);
    let (mut version, mut rounds) = ("1", 0);
    for step in room.steps("2", 10) {
        step.carry_out(&room.out, server);
        let path = &step.path;
        if path.ends_with("/InRelease") {
            version = "2";
        }
        // The first is the state after the hidden phases.
        let ends = ["keyring.asc", "Packages.zst", "Release.gpg", "Release"];
        if !sweep::all() && !ends.iter().any(|end| path.ends_with(end)) {
            continue;
        }
        run(&mut root.apt(&["update"]));
        run(&mut root.apt(&["download", "one"]));
        fs::remove_file(root.folder.join(format!("one_{version}_amd64.deb"))).unwrap();
        rounds += 1;
    }
    assert!(version == "2" && rounds >= 5, "{rounds}");
}

/// `repomd.xml` and its signature are two files. Between them, dnf does without the repository if it checks the
/// signature; it never installs from a mixture.
#[test]
fn dnf_finds_a_whole_publication_during_an_upload() {
    let client = clients_rpm::ready("dnf");
    let server = Server::of(&client.out);
    let room =
        Room::new(&["--rpm", "--sign-packages", "--url", &server.url]).signed_by(&client.key);
    room.steps("1", 0).iter().for_each(|step| step.carry_out(&room.out, &client.out));
    let mut rounds = 0;
    for step in room.steps("2", 10) {
        step.carry_out(&room.out, &client.out);
        let ends = [".repo", "repomd.xml.asc", "repomd.xml"];
        if !sweep::all() && !ends.iter().any(|end| step.path.ends_with(end)) {
            continue;
        }
        if step.path.ends_with("repomd.xml.asc") {
            let told = told(&mut client.dnf(&["install", "one", "--best"]));
            assert!(told.contains("GPG signature verification"), "{told}");
        }
        let unchecked = "--setopt=*.repo_gpgcheck=0";
        run(&mut client.dnf(&[unchecked, "install", "one", "--best"]));
        let version = if step.path.ends_with("repomd.xml") { "2" } else { "1" };
        assert_eq!(client.installed_version("one"), version, "{}", step.path);
        rounds += 1;
    }
    assert!(rounds >= 3, "{rounds}");
    run(&mut client.dnf(&["install", "one", "--best"]));
}

#[test]
fn pip_and_uv_find_whole_publications_during_an_upload() {
    need(&["python3", "pip", "uv"]);
    let served = scratch::in_memory();
    let (server, http) = (served.path(), Server::of(served.path()));
    let room = Room::new(&["--wheel"]);
    room.steps("1", 0).iter().for_each(|step| step.carry_out(&room.out, server));
    let environment = Environment::new(&room.path("environment"), &http.url);
    let mut seen = Vec::new();
    for step in room.steps("2", 10) {
        step.carry_out(&room.out, server);
        let is_page = step.path.starts_with("simple/");
        if !is_page && !sweep::all() {
            continue;
        }
        let words = ["--dry-run", "demo[device-gfx942]"];
        let told = said(&mut environment.installs("uv", &words));
        let has = |version: &str| {
            let [host, device] =
                ["demo", "demo-device-gfx942"].map(|it| format!("+ {it}=={version}"));
            [told.contains(&host), told.contains(&device)]
        };
        let version = if has("1") == [true; 2] { "1" } else { "2" };
        assert_eq!(has(version), [true; 2], "{}: {told}", step.path);
        seen.push(version);
        if step.path == "simple/demo/index.html" && step.text.is_some() {
            let told = said(&mut environment.installs("pip", &words));
            assert!(told.contains("demo-2 demo-device-gfx942-2"), "{told}");
        }
    }
    assert!(
        seen.is_sorted() && seen.first() == Some(&"1") && seen.last() == Some(&"2"),
        "{seen:?}"
    );
}
