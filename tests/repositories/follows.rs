//! Publications that clients of the last one would refuse, and how to publish them all the same.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use support::example::rockpack;
use support::gpg_keys::{Key, key};
use support::repo_fixture::{
    contents, deb, failed_checks, plain_spec, publish, refused, repo, repo_at, rpm, verify,
};
use support::tools::{need, run};

use crate::clients_apt::{Root, need_all};

const DAY: i64 = 86_400;

/// `rockpack repo` at a time that is `ahead` seconds from now.
fn repo_ahead(packages: &[&Path], out: &Path, ahead: i64) -> Command {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let at = i64::try_from(now.as_secs()).unwrap() + ahead;
    let mut command = repo(packages, out);
    command.env("SOURCE_DATE_EPOCH", at.to_string());
    command
}

#[track_caller]
fn is_refused(command: &mut Command, out: &Path, parts: &[&str]) {
    let before = contents(out);
    let (said, code) = refused(command);
    assert_eq!(code, 64, "{said}");
    parts.iter().for_each(|part| assert!(said.contains(part), "{part}: {said}"));
    assert!(contents(out) == before, "{said}");
}

#[test]
fn a_publication_of_the_future_is_refused() {
    need(&["dpkg-deb", "rpmbuild"]);
    let room = tempfile::tempdir().unwrap();
    let (packages, out) = (room.path().join("packages"), room.path().join("repo"));
    deb(&packages, ("one", "1", "amd64"), "");
    rpm(&packages, &plain_spec("plain", "1", ""));
    // Clocks of two machines differ.
    publish(&mut repo_ahead(&[&packages], &out, -60));
    publish(&mut repo_ahead(&[], &out, DAY / 2));
    assert_eq!(failed_checks(&verify(&out)), [""; 0]);
    let parts = ["SOURCE_DATE_EPOCH", "more than a day ahead of the clock", "--allow=any-date"];
    for ahead in [2 * DAY, 4000 * DAY] {
        is_refused(&mut repo_ahead(&[], &out, ahead), &out, &parts);
    }
    // Before the packages are built.
    let mut build = rockpack();
    build.args(["build", "--artifacts"]).arg(support::example::shards()).arg("--repo").arg(&out);
    build.args(["--version", "7.1.0", "--out"]).arg(room.path().join("built"));
    build.env("SOURCE_DATE_EPOCH", "4000000000");
    is_refused(&mut build, &out, &parts);
    assert!(!room.path().join("built").exists());
    // By mistake, and back.
    publish(repo_ahead(&[], &out, 4000 * DAY).arg("--allow=any-date"));
    let said = verify(&out);
    assert_eq!(failed_checks(&said), ["V084"], "{said}");
    for file in ["dists/stable/Release", "repodata/repomd.xml"] {
        assert!(said.contains(&format!("{file}: is dated ")), "{said}");
    }
    let parts = ["clients refuse indexes older", "--allow=any-date"];
    is_refused(&mut repo_ahead(&[], &out, 0), &out, &parts);
    publish(repo_ahead(&[], &out, DAY / 2 + 60).arg("--allow=any-date"));
    assert_eq!(failed_checks(&verify(&out)), [""; 0]);
    is_refused(&mut repo_ahead(&[], &out, 0), &out, &parts);
}

/// Files that a publication of the future stops using are removed an hour after that is taken back.
#[test]
fn what_went_out_of_use_in_the_future_is_removed() {
    need(&["dpkg-deb"]);
    let room = tempfile::tempdir().unwrap();
    let (packages, out) = (room.path().join("packages"), room.path().join("repo"));
    deb(&packages, ("one", "1", "amd64"), "");
    deb(&packages, ("two", "1", "amd64"), "");
    let any = ["--allow=any-date", "--set", "generations=1"];
    publish(&mut repo_at(&[&packages], &out, 0));
    publish(repo_ahead(&[], &out, 4000 * DAY).args(any).args(["--remove", "one"]));
    let pooled = out.join("pool/main/o/one/one_1_amd64.deb");
    publish(repo_at(&[], &out, 1).args(any));
    assert!(pooled.exists());
    publish(repo_at(&[], &out, 3602).args(any));
    assert!(!pooled.exists());
}

/// A repository that a root knows, with one package.
struct Known {
    root: Root,
    room: tempfile::TempDir,
    key: Key,
    out: PathBuf,
}

impl Known {
    fn of(suite: &str, options: &[&str]) -> Self {
        need_all();
        let root = Root::of(suite);
        let room = tempfile::tempdir().unwrap();
        let key = key(room.path(), "publisher", "ed25519");
        let out = root.folder.join("srv/repository");
        let known = Self { root, room, key, out };
        fs::create_dir_all(&known.out).unwrap();
        publish(known.at("1", -7200).args(options));
        known.root.trust(&known.out);
        run(&mut known.root.apt(&["update"]));
        known
    }

    /// Publishes a version of the package.
    fn at(&self, version: &str, ahead: i64) -> Command {
        let one = deb(self.room.path(), ("rocm-one", version, "amd64"), "");
        let mut repo = repo_ahead(&[&one], &self.out, ahead);
        repo.arg("--sign-key").arg(&self.key.secret).args(["--url", "file:/srv/repository"]);
        repo
    }

    fn installs(&self, version: &str) {
        run(&mut self.root.apt(&["update"]));
        run(&mut self.root.apt(&["install", &format!("rocm-one={version}")]));
    }
}

fn comes_back_from_the_future(suite: &str) {
    let known = Known::of(suite, &[]);
    publish(known.at("2", 4000 * DAY).arg("--allow=any-date"));
    known.root.refused(&["update"], &["not valid yet", "Not live until"]);
    publish(known.at("3", -60).arg("--allow=any-date"));
    known.installs("3");
}

#[test]
fn debian_12_goes_on_after_a_publication_of_the_future() {
    comes_back_from_the_future("bookworm");
}

#[test]
fn debian_13_goes_on_after_a_publication_of_the_future() {
    comes_back_from_the_future("trixie");
}

/// Every change of what apt knows a suite by is refused by rockpack, and by apt where it is confirmed.
fn suite_changes(suite: &str) {
    let known = Known::of(suite, &["--set", "origin=AMD", "--set", "codename=seven"]);
    let changes: [(&[&str], &str); 4] = [
        (&["--set", "origin=Other"], "its Origin from `AMD` to `Other`"),
        (&["--set", "label=ROCm"], "its Label from nothing to `ROCm`"),
        (&["--set", "codename=eight"], "its Codename from `seven` to `eight`"),
        (
            &["--set", "codename=stable", "--set", "label=x"],
            "its Label from nothing to `x` and its Codename from `seven` to `stable`",
        ),
    ];
    for (words, said) in changes {
        let hint = "--allow=releaseinfo-change";
        is_refused(known.at("2", -3600).args(words), &known.out, &[said, hint]);
        let lists = known.root.folder.join("var/lib/apt/lists");
        let kept = [known.out.clone(), lists].map(|folder| {
            let kept = tempfile::tempdir_in(known.room.path()).unwrap();
            run(Command::new("cp").arg("-aT").arg(&folder).arg(kept.path()));
            (folder, kept)
        });
        publish(known.at("2", -3600).args(words).arg(hint));
        known.root.refused(&["update"], &["changed its"]);
        run(&mut known.root.apt(&["update", "--allow-releaseinfo-change"]));
        for (folder, kept) in kept {
            fs::remove_dir_all(&folder).unwrap();
            run(Command::new("cp").arg("-aT").arg(kept.path()).arg(&folder));
        }
    }
    // The same again, and left out.
    publish(known.at("2", -3600).args(["--set", "origin=AMD"]));
    known.installs("2");
    publish(known.at("3", -1800).args(["--set", "description=Another text"]));
    known.installs("3");
    let release = fs::read_to_string(known.out.join("dists/stable/Release")).unwrap();
    assert!(release.contains("Origin: AMD\n") && release.contains("Codename: seven\n"));
    // Another suite is new to everybody, and the rpm repository has no such fields.
    publish(known.at("3", -1800).args(["--suite", "other", "--set", "origin=Other"]));
    if support::tools::have(&["rpmbuild"]) {
        let plain = rpm(known.room.path(), &plain_spec("plain", "1", ""));
        for (ahead, options) in [(-1700, &[][..]), (-1600, &["--set", "origin=Other"])] {
            let mut repo = repo_ahead(&[&plain], &known.out, ahead);
            publish(repo.arg("--sign-key").arg(&known.key.secret).args(options));
        }
    }
}

#[test]
fn debian_12_is_told_of_no_other_suite() {
    suite_changes("bookworm");
}

#[test]
fn debian_13_is_told_of_no_other_suite() {
    suite_changes("trixie");
}
