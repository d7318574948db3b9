//! Publications that are killed before each file that they replace or remove.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::repo_fixture::{
    deb, failed_checks, plain_spec, publish, refused, repo_at, rpm, verify,
};
use support::sweep::or_all;
use support::tools::{need, run};
use support::{scratch, strace};

use super::{PAGE, URL, holders};

/// System calls that replace and remove files.
const CALLS: &str = "?rename,?renameat,?renameat2,?unlink,?unlinkat";

/// Kills a run before its call `at`. Tells whether the run ended before by itself.
fn ends_before(at: usize, command: &Command) -> bool {
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={CALLS}")]);
    strace.args(["-e", &format!("inject={CALLS}:signal=KILL:when={at}")]);
    strace::trace(&mut strace, command);
    strace.output().unwrap().status.success()
}

/// Copies a repository to `out`, in place of what is there.
fn copy(base: &Path, out: PathBuf) -> PathBuf {
    let _ = fs::remove_dir_all(&out);
    run(Command::new("cp").arg("-a").arg(base).arg(&out));
    out
}

/// Kills publications of `packages` with `words`, in copies of `base`. The next run finishes or takes them back, and
/// no run takes the page for one of somebody else.
fn page_stays_own(base: &Path, packages: &[&Path], words: &[&str]) {
    let room = scratch::in_memory();
    let copy = |name: &str| copy(base, room.path().join(name));
    let repo = |out: &Path, after| {
        let mut repo = repo_at(packages, out, after);
        repo.args(words);
        repo
    };
    let page = |out: &Path| fs::read(out.join(PAGE)).ok();
    let whole = copy("whole");
    publish(&mut repo(&whole, 10));
    let expected = [page(base), page(&whole)];
    let mut seen = [false; 2];
    for at in (1..).step_by(or_all(2, 1)) {
        let out = copy("out");
        let is_done = ends_before(at, &repo(&out, 10));
        // A refused run finishes the publication, or takes it back.
        refused(&mut repo_at(&[], &out, -1));
        let settled = page(&out);
        let which = expected.iter().position(|page| *page == settled);
        seen[which.unwrap_or_else(|| panic!("{at}: neither the old nor the new page"))] = true;
        let said = verify(&out);
        assert!(failed_checks(&said).is_empty(), "{at}: {said}");
        assert_eq!(holders(&out).is_empty(), settled.is_none(), "{at}");
        let said = publish(&mut repo(&out, 20));
        assert!(!said.contains("R162"), "{at}: {said}");
        assert!(page(&out) == expected[1] && holders(&out) == holders(&whole), "{at}");
        assert!(failed_checks(&verify(&out)).is_empty(), "{at}");
        if is_done {
            break;
        }
    }
    assert_eq!(seen, [true; 2]);
}

#[test]
fn pages_agree_with_their_states_wherever_a_run_ends() {
    need(&["dpkg-deb", "rpmbuild", "strace"]);
    let room = scratch::in_memory();
    let [first, second, base] = ["first", "second", "base"].map(|name| room.path().join(name));
    deb(&first, ("one", "1", "amd64"), "");
    rpm(&first, &plain_spec("one", "1", ""));
    deb(&second, ("one", "2", "amd64"), "");
    publish(repo_at(&[&first], &base, 0).args(URL));
    assert_eq!(holders(&base), ["rpm"]);
    // The digest moves to another channel.
    page_stays_own(&base, &[&second], &[]);
    // The first page of a repository.
    let bare = room.path().join("bare");
    publish(&mut repo_at(&[&first], &bare, 0));
    page_stays_own(&bare, &[&second], &URL);
}

/// The suite, whose state has the digest, may be finished where the rpm repository, which gets the page, is taken back.
#[test]
fn a_channel_that_is_finished_alone_keeps_the_digest_of_the_page() {
    need(&["dpkg-deb", "rpmbuild", "strace"]);
    let room = scratch::in_memory();
    let [first, second, base] = ["first", "second", "base"].map(|name| room.path().join(name));
    deb(&first, ("one", "1", "amd64"), "");
    publish(repo_at(&[&first], &base, 0).args(URL));
    deb(&second, ("one", "2", "amd64"), "");
    rpm(&second, &plain_spec("one", "1", ""));
    page_stays_own(&base, &[&second], &URL);
}

#[test]
fn a_page_whose_removal_was_broken_off_is_not_of_somebody_else() {
    need(&["dpkg-deb", "rpmbuild", "strace"]);
    let room = scratch::in_memory();
    let [first, base] = ["first", "base"].map(|name| room.path().join(name));
    deb(&first, ("one", "1", "amd64"), "");
    rpm(&first, &plain_spec("one", "1", ""));
    publish(repo_at(&[&first], &base, 0).args(URL));
    let page = fs::read(base.join(PAGE)).unwrap();
    for at in 1.. {
        let [out, other] = ["out", "other"].map(|name| room.path().join(name));
        let out = copy(&base, out);
        let mut removal = repo_at(&[], &out, 10);
        let is_done = ends_before(at, removal.arg("--set=index_page=false"));
        refused(&mut repo_at(&[], &out, -1));
        let other = copy(&out, other);
        publish(repo_at(&[], &other, 20).arg("--set=index_page=false"));
        assert!(!other.join(PAGE).exists() && holders(&other).is_empty(), "{at}");
        assert!(!publish(&mut repo_at(&[], &out, 20)).contains("R162"), "{at}");
        assert!(fs::read(out.join(PAGE)).unwrap() == page, "{at}");
        assert!(failed_checks(&verify(&out)).is_empty() && holders(&out).len() == 1, "{at}");
        if is_done {
            break;
        }
    }
}
