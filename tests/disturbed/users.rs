//! Users who share a cache or an output folder.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::Command;

use support::example::{contents, rockpack, shards};
use support::tools::{self, need, need_root};

use crate::terminal::{build_of, by_nobody, open_folder};

fn said(command: &mut Command, code: i32) -> String {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{command:?}: {said}");
    said
}

fn with_cache(out: &Path, cache: &Path) -> Command {
    let mut build = build_of(&shards().join("gfx1151-build"), out);
    build.arg("--cache").arg(cache);
    build
}

/// A build uses the entries in another user's cache, and stores none. It does without a cache that it cannot
/// read or lock.
#[test]
fn a_cache_of_another_user_fails_no_build() {
    need_root();
    need(&["setpriv"]);
    let room = open_folder();
    let [cache, first] = ["cache", "first"].map(|name| room.path().join(name));
    assert!(!said(&mut with_cache(&first, &cache), 0).contains("R097"));
    let kept = tools::succeed(Command::new("find").arg(&cache).args(["-printf", "%p %s %T@\n"]));
    for (mode, lock) in [(0o755, 0o644), (0o755, 0o600), (0o700, 0o644)] {
        fs::set_permissions(&cache, Permissions::from_mode(mode)).unwrap();
        fs::set_permissions(cache.join("lock"), Permissions::from_mode(lock)).unwrap();
        let out = room.path().join(format!("out-{mode:o}-{lock:o}"));
        let said = said(&mut by_nobody(&with_cache(&out, &cache)), 0);
        assert_eq!(said.matches("R097 cache-unusable").count(), 1, "{said}");
        assert!(said.contains("Permission denied"), "{said}");
        assert!(contents(&out) == contents(&first), "{said}");
        let now = tools::succeed(Command::new("find").arg(&cache).args(["-printf", "%p %s %T@\n"]));
        assert_eq!(now, kept);
    }
    // A place where no cache can be made is an error.
    let nowhere = cache.join("below");
    let said = said(&mut by_nobody(&with_cache(&room.path().join("none"), &nowhere)), 2);
    assert!(said.contains(nowhere.to_str().unwrap()), "{said}");
}

/// The message names the owner of another user's leftovers; leftovers without a record are in nobody's way.
#[test]
fn leftovers_of_another_user_are_named_or_passed_over() {
    need_root();
    need(&["setpriv"]);
    let room = open_folder();
    let out = room.path().join("out");
    let left = out.join(".rockpack-staging-1");
    fs::create_dir_all(&left).unwrap();
    fs::set_permissions(&out, Permissions::from_mode(0o777)).unwrap();
    let mut build = by_nobody(&build_of(&shards().join("gfx1151-build"), &out));
    fs::set_permissions(&left, Permissions::from_mode(0o700)).unwrap();
    let closed = said(&mut build, 2);
    let told = format!(
        "{}: cannot open: Permission denied (os error 13): it belongs to another user (uid 0)",
        left.display()
    );
    assert!(closed.contains(&told) && closed.contains("or remove it"), "{closed}");
    fs::set_permissions(&left, Permissions::from_mode(0o755)).unwrap();
    fs::write(left.join("x.deb"), "").unwrap();
    said(&mut build, 0);
    assert!(left.join("x.deb").exists());
    fs::write(left.join("committing"), "x.deb").unwrap();
    assert!(said(&mut build, 2).contains("was left by another user (uid 0)"));
    fs::remove_dir_all(&left).unwrap();
    // An empty folder is removed if that is allowed.
    fs::create_dir(&left).unwrap();
    chown(&left, Some(12345), None).unwrap();
    said(&mut build, 0);
    assert!(!left.exists());
    // A repository whose lock belongs to another user gives the same message.
    let repository = room.path().join("repository");
    let mut publish = rockpack();
    publish.arg("repo").arg(&out).arg("--out").arg(&repository);
    said(&mut publish, 0);
    let refused = said(&mut by_nobody(&publish), 2);
    let lock = repository.join(".rockpack/lock");
    assert!(refused.contains(&format!("{}: cannot open", lock.display())), "{refused}");
    assert!(refused.contains("it belongs to another user (uid 0)"), "{refused}");
}
