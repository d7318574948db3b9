//! Publications that end at every point: a store that fails at the n-th file put in place or
//! removed, for every n; in a sample for every second or third.

use std::collections::BTreeMap;
use std::fs;
use std::iter;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use rockpack_core::compression::Method;
use rockpack_core::content::Content;
use rockpack_core::error::{Error, Kind, Result};
use rockpack_core::run::Budget;
use rockpack_repo::{
    ChannelSettings, ConfirmedChanges, FileBody, LocalStore, PackageChanges, Published,
    RepoOptions, Stat, Store, WhenLocked, publish_to,
};
use rockpack_report::Silent;
use rockpack_signing::judge::CheckTime;
use rockpack_signing::{KeySigner, OpenPgpKey, Passphrase, Trust};
use support::gpg_keys::{Key, key};
use support::published::{self, between, is, rows};
use support::repo_fixture::{EPOCH, deb, plain_spec, publish, refused, repo_at, rpm};
use support::scratch;
use support::sweep::or_all;
use support::tools::{need, run, succeed, told};

/// A folder that fails after a number of writes.
pub struct Failing {
    inner: LocalStore,
    left: AtomicUsize,
    /// How often a file was opened to be read as a whole.
    pub opened: AtomicUsize,
}

impl Failing {
    /// Waits, as [`Room::run`] does.
    pub fn open(out: &Path, left: usize) -> Self {
        Self::within(&Budget::unlimited(), out, left)
    }

    /// Opens the folder; packages are read within `budget`.
    pub fn within(budget: &Budget, out: &Path, left: usize) -> Self {
        let inner = LocalStore::open(out, WhenLocked::Wait, budget).unwrap();
        Self { inner, left: AtomicUsize::new(left), opened: AtomicUsize::new(0) }
    }

    /// How many of `wanted` steps there are yet.
    fn take(&self, wanted: usize) -> usize {
        let left = self.left.load(Ordering::SeqCst);
        self.left.store(left.saturating_sub(wanted), Ordering::SeqCst);
        left.min(wanted)
    }
}

fn fault() -> Error {
    Error::new(Kind::Io, "the disk is gone")
}

impl Store for Failing {
    fn read(&self, path: &str) -> Result<Option<Vec<u8>>> {
        self.inner.read(path)
    }

    fn budget(&self) -> &Budget {
        self.inner.budget()
    }

    fn open(&self, path: &str) -> Result<Content> {
        self.opened.fetch_add(1, Ordering::SeqCst);
        self.inner.open(path)
    }

    fn stat(&self, path: &str) -> Result<Option<Stat>> {
        self.inner.stat(path)
    }

    fn list(&self, folder: &str) -> Result<Vec<String>> {
        self.inner.list(folder)
    }

    fn check(&self, paths: &[&str]) -> Result<()> {
        self.inner.check(paths)
    }

    fn put(&self, mut files: Vec<(String, FileBody)>) -> Result<()> {
        let wanted = files.len();
        let done = self.take(wanted);
        files.truncate(done);
        self.inner.put(files)?;
        if done == wanted { Ok(()) } else { Err(fault()) }
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        if self.take(1) == 1 { self.inner.rename(from, to) } else { Err(fault()) }
    }

    fn remove(&self, paths: &[String]) -> Result<()> {
        let done = self.take(paths.len());
        self.inner.remove(&paths[..done])?;
        if done == paths.len() { Ok(()) } else { Err(fault()) }
    }
}

/// A published repository, with its keys.
pub struct Room {
    folder: tempfile::TempDir,
    key: Key,
    /// What gpg said of files, by their bytes.
    said: Mutex<BTreeMap<Vec<Vec<u8>>, String>>,
}

impl Room {
    pub fn new() -> Self {
        let folder = scratch::in_memory();
        let key = key(folder.path(), "own", "ed25519");
        Self { folder, key, said: Mutex::default() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Makes the package of both formats in a version.
    pub fn packages(&self, version: &str) -> PathBuf {
        let folder = self.path(version);
        deb(&folder, ("one", version, "amd64"), "");
        rpm(&folder, &plain_spec("one", version, ""));
        folder
    }

    /// A run of the program with the key. It waits: the lock of a run in this process lives on in
    /// processes that other tests start at that moment.
    pub fn run(&self, packages: &[&Path], out: &Path, after: i64) -> Command {
        let mut repo = self.run_and_keep_all(packages, out, after);
        repo.args(["--keep", "1"]);
        repo
    }

    pub fn run_and_keep_all(&self, packages: &[&Path], out: &Path, after: i64) -> Command {
        let mut repo = repo_at(packages, out, after);
        repo.args(["--wait", "--set", "generations=1", "--sign-key"]).arg(&self.key.secret);
        repo
    }

    /// Publishes in this process, to a store that fails; tells whether it ended well.
    pub fn fails_after(&self, steps: usize, packages: &Path, out: &Path, after: i64) -> bool {
        self.publish_to(&Failing::open(out, steps), (&[packages], out), after, "stable").is_ok()
    }

    /// Publishes in this process, to such a store.
    pub fn publish_to(
        &self,
        store: &Failing,
        (packages, out): (&[&Path], &Path),
        after: i64,
        suite: &str,
    ) -> Result<Published> {
        let at = CheckTime { time: EPOCH + after, clock: EPOCH + after };
        let key = OpenPgpKey::open(&self.key.secret, &Passphrase::default(), None).unwrap();
        let signer = KeySigner::new(vec![Arc::new(key)], at, &[]).unwrap();
        let options = RepoOptions {
            strict: false,
            packages: packages.iter().map(|path| path.to_path_buf()).collect(),
            out: out.to_owned(),
            kinds: Vec::new(),
            suite: suite.into(),
            component: "main".into(),
            settings: ChannelSettings::default(),
            changes: PackageChanges { keep: Some(1), ..PackageChanges::default() },
            check: false,
            dry_run: false,
            upload_plan: None,
            receipts: Trust::default(),
            index_page: true,
            when_locked: WhenLocked::Fail,
            generations: 1,
            date: EPOCH + after,
            confirmed: ConfirmedChanges::default(),
            list_method: Method::Gzip,
            signer: Some(Arc::new(signer)),
            package_signer: None,
            built: BTreeMap::new(),
            key_package: None,
        };
        publish_to(store, &options, &Silent)
    }

    /// What gpg says of signed files, which it has to accept. It is asked once about the same bytes.
    fn accepted(&self, how: &str, files: &[PathBuf]) -> String {
        let bytes = files.iter().map(|file| fs::read(file).unwrap());
        let asked = iter::once(how.into()).chain(bytes).collect();
        let ask = || {
            let mut gpg = Command::new("gpg");
            gpg.env("GNUPGHOME", &self.key.home).args(["--batch", "--quiet", how]);
            succeed(gpg.args(files))
        };
        self.said.lock().unwrap().entry(asked).or_insert_with(ask).clone()
    }
}

/// The files that clients get from a repository whose `InRelease` gpg accepts.
fn served(room: &Room, out: &Path) -> [String; 2] {
    let release = room.accepted("--decrypt", &[out.join("dists/stable/InRelease")]);
    published::served(&release, out)
}

/// Every package that the indexes name is in the pool as they say, how many there are.
fn all_packages(out: &Path) -> usize {
    let index = fs::read_to_string(out.join("dists/stable/main/binary-amd64/Packages")).unwrap();
    let paths = between(&index, "\nFilename: ", "\n");
    let digests = between(&index, "\nSHA256: ", "\n");
    assert_eq!(paths.len(), digests.len());
    paths.iter().zip(digests).for_each(|(path, digest)| is(&out.join(path), digest));
    paths.len()
}

/// All forms say the same, nothing is left over, and gpg takes every signature.
fn all_forms(room: &Room, out: &Path) {
    let suite = out.join("dists/stable");
    let release = fs::read_to_string(suite.join("Release")).unwrap();
    for [digest, path] in rows(&release, "SHA256:") {
        is(&suite.join(path), digest);
    }
    let clear = room.accepted("--decrypt", &[suite.join("InRelease")]);
    assert_eq!(clear.trim_end(), release.trim_end());
    let signed =
        [(suite.join("Release.gpg"), suite.join("Release")), repodata("repomd.xml.asc", out)];
    for (signature, file) in signed {
        room.accepted("--verify", &[signature, file]);
    }
    let mut verify = support::example::rockpack();
    let said = told(verify.arg("verify").arg(out).arg("--key").arg(&room.key.public));
    assert!(said.contains("all checks passed"), "{said}");
    let names = fs::read_dir(out.join(".rockpack"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let begun: Vec<String> =
        names.filter(|name| name.starts_with("next-") || name.starts_with("shown-")).collect();
    assert_eq!(begun, [""; 0]);
}

fn repodata(signature: &str, out: &Path) -> (PathBuf, PathBuf) {
    let folder = out.join("repodata");
    (folder.join(signature), folder.join("repomd.xml"))
}

#[test]
fn a_publication_that_ends_anywhere_is_finished_or_taken_back() {
    need(&["dpkg-deb", "rpmbuild", "gpg", "gzip"]);
    let room = Room::new();
    let [first, second, third] = ["1", "2", "3"].map(|version| room.packages(version));
    // With an architecture that is new to the suite.
    deb(&third, ("two", "3", "arm64"), "");
    let base = room.path("base");
    publish(&mut room.run(&[&first], &base, 0));
    publish(&mut room.run(&[&second], &base, 10));
    assert_eq!(served(&room, &base), ["2", "2"]);
    let out = room.path("out");
    let (mut ends, mut seen) = (0, BTreeMap::new());
    loop {
        run(Command::new("cp").arg("-a").arg(&base).arg(&out));
        // The first version went out of use long enough ago and is removed, too.
        let done = room.fails_after(ends, &third, &out, 5000);
        let at_once = served(&room, &out);
        // The run that finishes it may end early itself, or may be refused.
        room.fails_after(ends % 5, &third, &out, 1);
        let versions = served(&room, &out);
        let (said, _) = refused(&mut room.run(&[], &out, 1));
        assert!(said.contains("clients refuse indexes older"), "{said}");
        all_forms(&room, &out);
        let settled = served(&room, &out);
        assert!(is_possible(&versions, &at_once) && is_possible(&settled, &versions), "{ends}");
        // Whether or not the first version is in the pool yet, it can be published again.
        if at_once == ["3", "3"] {
            let again = room.path("again");
            run(Command::new("cp").arg("-a").arg(&out).arg(&again));
            let given: [&Path; 2] = [&first, &third];
            publish(&mut room.run_and_keep_all(&given, &again, 10_000));
            assert_eq!(all_packages(&again), 2);
            fs::remove_dir_all(&again).unwrap();
        }
        *seen.entry((at_once, settled.clone())).or_insert(0) += 1;
        // Then everything goes on.
        publish(&mut room.run(&[&third], &out, 10_000));
        all_forms(&room, &out);
        assert_eq!(served(&room, &out), ["3", "3"]);
        fs::remove_dir_all(&out).unwrap();
        if done {
            assert_eq!(settled, ["3", "3"]);
            break;
        }
        ends += or_all(3, 1);
    }
    // Before anything of it is visible, while it becomes visible, and after.
    assert!(ends > 30 && seen.contains_key(&(both_at("2"), both_at("2"))), "{seen:?}");
    assert!(seen.contains_key(&(both_at("2"), both_at("3"))), "{seen:?}");
    assert!(seen.contains_key(&(both_at("3"), both_at("3"))), "{seen:?}");
}

fn is_possible(now: &[String; 2], before: &[String; 2]) -> bool {
    now.iter().zip(before).all(|(now, before)| now == before || now == "3")
}

fn both_at(version: &str) -> [String; 2] {
    [version.to_owned(), version.to_owned()]
}

#[test]
fn a_first_publication_that_ends_anywhere_is_finished_or_leaves_nothing() {
    need(&["dpkg-deb", "rpmbuild", "gpg", "gzip"]);
    let room = Room::new();
    let first = room.packages("1");
    let mut seen = [0, 0];
    let step = or_all(2, 1);
    for ends in (0..).step_by(step) {
        let out = room.path(&format!("out{ends}"));
        let done = room.fails_after(ends, &first, &out, 0);
        refused(&mut room.run(&[], &out, -1));
        let files = support::repo_fixture::contents(&out);
        let there = ["dists/stable/InRelease", "repodata/repomd.xml"];
        let there = there.map(|path| files.contains_key(path));
        match there {
            [false, false] => assert!(files.is_empty(), "{:?}", files.keys()),
            [true, true] => all_forms(&room, &out),
            // Each channel is whole for itself; the next run publishes both.
            _ => {}
        }
        seen[usize::from(there == [true, true])] += step;
        publish(&mut room.run(&[&first], &out, 10));
        all_forms(&room, &out);
        assert_eq!(served(&room, &out), ["1", "1"]);
        if done {
            break;
        }
    }
    assert!(seen[0] > 5 && seen[1] > 5, "{seen:?}");
}
