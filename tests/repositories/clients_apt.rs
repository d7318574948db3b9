//! apt in roots of Debian 12 and 13, from file: and http: repositories, signatures checked.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use support::bases;
use support::example::{Set, rockpack};
use support::gpg_keys::{Key, key};
use support::program::rockpack_path;
use support::repo_fixture::{client_file, deb, failed_checks, publish, repo, verify_by};
use support::sweep;
use support::tools::{self, need, need_root, run, succeed, told};
use support::waiting::Process;

use crate::server::Server;

/// A root of a release, with the key of a repository and nothing else to install from.
pub struct Root {
    pub folder: PathBuf,
    _room: tempfile::TempDir,
}

pub fn need_all() {
    need(&["mmdebstrap", "chroot", "gpg", "python3", "dpkg-deb"]);
    need_root();
}

impl Root {
    pub fn of(suite: &str) -> Self {
        let base = if suite == "sid" { bases::sid() } else { bases::debian(suite) };
        let room = tempfile::tempdir().unwrap();
        let folder = room.path().join("root");
        bases::copy(&base, &folder);
        let _ = fs::remove_file(folder.join("etc/apt/sources.list"));
        Self { folder, _room: room }
    }

    /// Takes `.sources` and key of the repository in `out` as an administrator would.
    pub fn trust(&self, out: &Path) {
        let (sources, keyring) =
            (client_file(out, ".sources"), client_file(out, "archive-keyring.asc"));
        let text = fs::read_to_string(&sources).unwrap();
        let installed = self.copy_in(&keyring, "usr/share/keyrings");
        assert!(text.contains(&format!("Signed-By: /{installed}\n")), "{text}");
        assert!(!text.to_lowercase().contains("trusted"));
        self.copy_in(&sources, "etc/apt/sources.list.d");
    }

    /// Copies a file into a folder of the root. Returns its path there.
    pub fn copy_in(&self, from: &Path, folder: &str) -> String {
        let to = format!("{folder}/{}", from.file_name().unwrap().to_str().unwrap());
        fs::create_dir_all(self.folder.join(folder)).unwrap();
        fs::copy(from, self.folder.join(&to)).unwrap();
        to
    }

    /// The version that apt would install.
    fn candidate(&self, package: &str) -> String {
        let mut policy = Command::new("chroot");
        policy.arg(&self.folder).args(["apt-cache", "policy", package]).env("LC_ALL", "C");
        let said = succeed(&mut policy);
        let line = said.lines().find_map(|line| line.trim().strip_prefix("Candidate: "));
        line.unwrap_or_else(|| panic!("{said}")).to_owned()
    }

    pub fn apt(&self, arguments: &[&str]) -> Command {
        let mut apt = Command::new("chroot");
        apt.arg(&self.folder).args(["apt-get", "-y", "-q"]).env_clear();
        apt.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("LC_ALL", "C");
        // Failures of single indexes are warnings otherwise.
        apt.args(["-o", "APT::Update::Error-Mode=any"]);
        apt.args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
        apt
    }

    pub fn installed(&self) -> Vec<String> {
        let mut query = Command::new("chroot");
        query.arg(&self.folder).args(["dpkg-query", "-W", "-f", "${Package}\n"]);
        let names = succeed(&mut query);
        names.lines().filter(|name| name.starts_with("rocm")).map(str::to_owned).collect()
    }

    fn serve(&self, from: &Path) {
        let served = self.folder.join("srv/repository");
        let _ = fs::remove_dir_all(&served);
        run(Command::new("cp").arg("-a").arg(from).arg(&served));
        let _ = fs::remove_dir_all(self.folder.join("var/lib/apt/lists"));
    }

    /// Refused, for one of these reasons.
    pub fn refused(&self, arguments: &[&str], reasons: &[&str]) {
        let said = told(&mut self.apt(arguments));
        assert!(!said.ends_with("exit status: 0\n"), "{said}");
        assert!(reasons.iter().any(|reason| said.contains(reason)), "{said}");
    }
}

/// `build --repo` of the examples.
fn build(out: &Path, key: &Key, more: &[&str]) -> Command {
    let mut build = rockpack();
    build.args(["build", "--artifacts"]).arg(support::example::shards());
    build.arg("--config").arg(tools::repository("examples/packaging-config.json"));
    build.args(["--version", "7.1.0", "--format", "deb", "--sign-key"]).arg(&key.secret);
    build.arg("--out").arg(out.with_extension("packages")).arg("--repo").arg(out).args(more);
    build
}

fn installs(suite: &str, algorithm: &str, over_http: bool) {
    need_all();
    let root = Root::of(suite);
    let room = tempfile::tempdir().unwrap();
    let key = key(room.path(), "publisher", algorithm);
    let inside = root.folder.join("srv/repository");
    let out = if over_http { room.path().join("repository") } else { inside };
    fs::create_dir_all(&out).unwrap();
    let server = over_http.then(|| Server::of(&out));
    let url = server.as_ref().map_or("file:/srv/repository", |server| server.url.as_str());
    let set = ["--repo-set", &format!("url={url}"), "--repo-set", "valid_days=1"];
    publish(&mut build(&out, &key, &set));
    let said = verify_by(&out, &key.public);
    assert!(said.contains("2 good signatures") && failed_checks(&said).is_empty(), "{said}");
    root.trust(&out);
    run(&mut root.apt(&["update"]));
    run(&mut root.apt(&["install", "rocm-blas-gfx110x"]));
    assert_eq!(root.installed(), ["rocm-blas", "rocm-blas-gfx110x", "rocm-common"]);
    run(&mut root.apt(&["install", "rocm"]));
    run(&mut root.apt(&["check"]));
}

#[test]
fn debian_12_installs_from_a_folder() {
    installs("bookworm", "ed25519", false);
}

#[test]
fn debian_12_installs_over_http() {
    installs("bookworm", "rsa4096", true);
}

#[test]
fn debian_13_installs_from_a_folder() {
    installs("trixie", "rsa4096", false);
}

#[test]
fn debian_13_installs_over_http() {
    installs("trixie", "ed25519", true);
}

/// Every way to tamper is refused by apt and named by `verify`.
fn refuses(suite: &str) {
    need_all();
    let root = Root::of(suite);
    let room = tempfile::tempdir().unwrap();
    let (own, other) = (key(room.path(), "own", "ed25519"), key(room.path(), "other", "ed25519"));
    let good = room.path().join("good");
    publish(&mut build(&good, &own, &["--repo-set=url=file:/srv/repository"]));
    root.trust(&good);
    let served = root.folder.join("srv/repository");
    // A package of the same size.
    root.serve(&good);
    run(&mut root.apt(&["update"]));
    let package = served.join("pool/main/r/rocm-blas/rocm-blas_7.1.0-1_amd64.deb");
    flip(&package);
    root.refused(&["install", "rocm-blas"], &["Hash Sum mismatch", "hash sum mismatch"]);
    assert_eq!(failed_checks(&verify_by(&served, &own.public)), ["V073"]);
    assert!(root.installed().is_empty());
    // An index, under the name that apt asks for and under its own.
    root.serve(&good);
    let index = served.join("dists/stable/main/binary-amd64");
    for folder in [index.join("by-hash/SHA256"), index.join("by-hash/SHA512"), index] {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                flip(&path);
            }
        }
    }
    root.refused(&["update"], &["Hash Sum mismatch", "File has unexpected size"]);
    assert!(failed_checks(&verify_by(&served, &own.public)).contains(&"V071".to_owned()));
    // What is signed.
    root.serve(&good);
    let release = served.join("dists/stable/InRelease");
    let text =
        fs::read_to_string(&release).unwrap().replace("Components: main", "Components: main ");
    fs::write(&release, text.replace("Suite: stable", "Suite: stabls")).unwrap();
    root.refused(&["update"], &["BADSIG", "Bad signature", "not signed", "invalid"]);
    let said = verify_by(&served, &own.public);
    assert_eq!(failed_checks(&said), ["V074"], "{said}");
    // Another key.
    let foreign = room.path().join("foreign");
    publish(&mut build(&foreign, &other, &["--repo-set=url=file:/srv/repository"]));
    root.serve(&foreign);
    root.refused(&["update"], &["NO_PUBKEY", "Missing key", "not signed"]);
    assert_eq!(failed_checks(&verify_by(&served, &own.public)), ["V074"]);
    assert!(failed_checks(&verify_by(&served, &other.public)).is_empty());
    // Its time is over.
    let old = room.path().join("old");
    let mut expired =
        build(&old, &own, &["--repo-set=url=file:/srv/repository", "--repo-set=valid_days=1"]);
    publish(expired.env("SOURCE_DATE_EPOCH", "1700000000"));
    root.serve(&old);
    root.refused(&["update"], &["expired"]);
    assert_eq!(failed_checks(&verify_by(&served, &own.public)), ["V075"]);
    // And the good one is taken after all that.
    root.serve(&good);
    run(&mut root.apt(&["update"]));
    run(&mut root.apt(&["install", "rocm-blas-gfx110x"]));
}

fn flip(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(path, bytes).unwrap();
}

#[test]
fn debian_12_refuses_what_was_tampered_with() {
    refuses("bookworm");
}

#[test]
fn debian_13_refuses_what_was_tampered_with() {
    refuses("trixie");
}

/// A client that updates and installs all the time, while another run publishes all the time: until
/// both did so a few times, or for a minute in a sweep of all.
#[test]
fn publishing_never_breaks_a_client() {
    need_all();
    let root = Root::of("bookworm");
    let room = tempfile::tempdir().unwrap();
    let key = key(room.path(), "publisher", "ed25519");
    let (packages, out) = (room.path().join("packages"), room.path().join("repository"));
    fs::create_dir_all(&out).unwrap();
    let server = Server::of(&out);
    let mut version = 0;
    let mut next = || {
        version += 1;
        deb(&packages, ("rocm-moving", &version.to_string(), "amd64"), "");
        let mut repo = rockpack();
        repo.arg("repo").arg(&packages).arg("--out").arg(&out).arg("--sign-key").arg(&key.secret);
        repo.args(["--keep", "2", "--set", "generations=1", "--url", &server.url]);
        repo.stdout(Stdio::null());
        run(&mut repo);
    };
    next();
    root.trust(&out);
    let script = "while [ ! -e /stop ]; do apt-get -q -o APT::Update::Error-Mode=any update && \
                  apt-get -y -q install rocm-moving || exit 1; echo round; done";
    let mut client = Command::new("chroot");
    client.arg(&root.folder).args(["sh", "-c", script]).env_clear();
    client.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("LC_ALL", "C");
    client.env("DEBIAN_FRONTEND", "noninteractive");
    let log = room.path().join("log");
    let file = fs::File::create(&log).unwrap();
    client.stderr(file.try_clone().unwrap()).stdout(file);
    let mut client = Process::start(&mut client);
    let begun = Instant::now();
    let mut published = 0;
    while client.has_ended().is_none() && begun.elapsed() < Duration::from_secs(60) {
        next();
        published += 1;
        if published >= 20 && rounds_in(&log) >= 6 && !sweep::all() {
            break;
        }
    }
    fs::write(root.folder.join("stop"), "").unwrap();
    let status = client.end();
    assert!(status.success(), "{}", fs::read_to_string(&log).unwrap());
    let rounds = rounds_in(&log);
    assert!(published > 5 && rounds > 3, "{published} publications, {rounds} rounds");
}

fn rounds_in(log: &Path) -> usize {
    let said = fs::read_to_string(log).unwrap();
    said.lines().filter(|line| *line == "round").count()
}

/// A distribution has a higher version of the same name. The origin has what pins give a meaning to.
#[test]
fn apt_takes_the_repository_that_is_pinned() {
    need_all();
    let (root, room) = (Root::of("trixie"), tempfile::tempdir().unwrap());
    let key = key(room.path(), "publisher", "ed25519");
    let at = |out: &Path, url: &str, version: &str, more: &[&str]| {
        let package = deb(room.path(), ("rocm-one", version, "amd64"), "");
        let mut repo = repo(&[&package], out);
        repo.args(["--url", url]).args(more).arg("--sign-key").arg(&key.secret);
        publish(&mut repo);
        assert!(failed_checks(&verify_by(out, &key.public)).is_empty());
        root.trust(out);
    };
    let srv = root.folder.join("srv");
    at(
        &srv.join("other"),
        "file:/srv/other",
        "2",
        &["--set", "name=other", "--set", "origin=Other"],
    );
    let (own, served) = (srv.join("own"), room.path().join("served"));
    for (pin, version) in [("pin=500", "2"), ("pin=990", "1")] {
        let named =
            ["--set=name=own", "--set=origin=Own, [Inc]*", "--set=label=GPUs", "--set", pin];
        at(&own, "file:/srv/own", "1", &named);
        let preferences = root.copy_in(&client_file(&own, ".pref"), "etc/apt/preferences.d");
        run(&mut root.apt(&["update"]));
        assert_eq!(root.candidate("rocm-one"), version, "{preferences}");
    }
    // Without an origin, the host has to do.
    for file in ["sources.list.d/own-stable.sources", "preferences.d/own-stable.pref"] {
        fs::remove_file(root.folder.join("etc/apt").join(file)).unwrap();
    }
    let server = Server::of(&served);
    at(&served, &server.url, "1", &["--set", "pin=990"]);
    run(&mut root.apt(&["update"]));
    assert_eq!(root.candidate("rocm-one"), "2");
    root.copy_in(&client_file(&served, ".pref"), "etc/apt/preferences.d");
    assert_eq!(root.candidate("rocm-one"), "1");
}

/// No package is read once the receipt is in place, as strace shows.
#[test]
fn a_build_publishes_without_reading_its_packages() {
    need(&["strace"]);
    let room = tempfile::tempdir().unwrap();
    let (log, out) = (room.path().join("log"), room.path().join("repository"));
    let mut build = Command::new("strace");
    let calls = "trace=/^(read|readv|pread64|preadv|mmap|copy_file_range|rename.*|link.*)$";
    build.args(["-f", "-y", "-e", calls, "-o"]).arg(&log).arg(rockpack_path());
    build.args(["build", "--artifacts"]).arg(support::example::shards());
    build.arg("--config").arg(tools::repository("examples/packaging-config.json"));
    build.args(["--version", "7.1.0", "--out"]).arg(room.path().join("packages"));
    run(build.arg("--repo").arg(&out));
    let log = fs::read_to_string(log).unwrap();
    let calls: Vec<&str> = log.lines().collect();
    let renamed = |line: &&str| line.contains("rename") && line.contains("packages.json\"");
    let receipt = calls.iter().rposition(renamed).unwrap();
    let (before, after) = calls.split_at(receipt);
    assert!(!reads_of_packages(before).is_empty(), "packages are read for their digests");
    assert_eq!(reads_of_packages(after), Vec::<String>::new());
    let links = after.iter().filter(|line| line.contains("link") && line.contains(".deb\""));
    assert!(links.count() > 5, "packages are hard links in the repository");
}

fn reads_of_packages(calls: &[&str]) -> Vec<String> {
    let reads = calls.iter().filter(|line| {
        let moved = line.contains("rename") || line.contains("link");
        !moved && (line.contains(".deb>") || line.contains(".rpm>"))
    });
    reads.map(|line| (*line).to_owned()).collect()
}

/// The set that is built is the one that is published, and nothing of it is read again.
#[test]
fn a_build_publishes_what_a_run_of_its_own_would() {
    let room = tempfile::tempdir().unwrap();
    let (out, again) = (room.path().join("repository"), room.path().join("again"));
    let mut build = rockpack();
    build.args(["build", "--artifacts"]).arg(support::example::shards());
    build.arg("--config").arg(tools::repository("examples/packaging-config.json"));
    build.args(["--version", "7.1.0"]).env("SOURCE_DATE_EPOCH", "1700000000");
    let packages = room.path().join("packages");
    build.arg("--out").arg(&packages).arg("--repo").arg(&out).arg("--json");
    let said: serde_json::Value = serde_json::from_str(&succeed(&mut build)).unwrap();
    for channel in said["published"]["channels"].as_array().unwrap() {
        assert_eq!(channel["read"], 0, "{channel}");
    }
    publish(&mut support::repo_fixture::repo(&[&packages], &again));
    assert_eq!(support::repo_fixture::contents(&out), support::repo_fixture::contents(&again));
    let alone = Set::build();
    assert_eq!(support::example::names(&alone.out()), support::example::names(&packages));
}

/// The message that refuses everything else says what to do.
#[test]
fn apt_goes_on_with_a_repository_whose_memory_was_lost() {
    need_all();
    let root = Root::of("trixie");
    let room = tempfile::tempdir().unwrap();
    let key = key(room.path(), "publisher", "ed25519");
    let out = root.folder.join("srv/repository");
    fs::create_dir_all(&out).unwrap();
    let url = ["--repo-set", "url=file:/srv/repository"];
    publish(&mut build(&out, &key, &url));
    root.trust(&out);
    run(&mut root.apt(&["update"]));
    run(&mut root.apt(&["install", "rocm-blas"]));
    let moved = room.path().join("moved");
    fs::rename(out.join("pool"), &moved).unwrap();
    for lost in [".rockpack", "dists"] {
        fs::remove_dir_all(out.join(lost)).unwrap();
    }
    let mut again = rockpack();
    again.arg("repo").arg(&moved).arg("--out").arg(&out).args(["--url", "file:/srv/repository"]);
    publish(again.arg("--sign-key").arg(&key.secret));
    assert!(failed_checks(&verify_by(&out, &key.public)).is_empty());
    run(&mut root.apt(&["update"]));
    run(&mut root.apt(&["install", "rocm"]));
    run(&mut root.apt(&["check"]));
}
