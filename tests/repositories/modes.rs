//! Everybody may read a repository, with any umask of the run.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::Command;

use support::example::{Entry, tree};
use support::gpg_keys::key;
use support::repo_fixture::{deb, plain_spec, publish, repo, repo_at, rpm};
use support::tools::{need, run};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn everybody_may_read_a_repository_made_under_a_strict_umask() {
    need(&["dpkg-deb", "rpmbuild", "gpg"]);
    let room = tempfile::tempdir().unwrap();
    let packages = room.path().join("packages");
    deb(&packages, ("one", "1", "amd64"), "");
    rpm(&packages, &plain_spec("plain", "1", ""));
    let own = key(room.path(), "own", "ed25519");
    let out = room.path().join("www/repository");
    let mut publish = repo(&[&packages], &out);
    publish.args(["--url", "https://example.org/rocm", "--key-package", "1", "--sign-key"]);
    publish.arg(&own.secret);
    let mut strict = Command::new("sh");
    strict.args(["-c", "umask 077; exec \"$@\"", "sh"]).arg(publish.get_program());
    strict.args(publish.get_args()).env("SOURCE_DATE_EPOCH", "1700000000");
    run(&mut strict);
    assert_eq!([mode(&out), mode(out.parent().unwrap())], [0o755, 0o755]);
    let mut count = 0;
    for (path, entry) in tree(&out) {
        if path.starts_with(".rockpack") {
            continue;
        }
        let expected = if matches!(entry, Entry::Folder { .. }) { 0o755 } else { 0o644 };
        assert_eq!(mode(&out.join(&path)), expected, "{path}");
        count += 1;
    }
    assert!(count > 20, "{count}");
    // What only rockpack reads stays its own, and a folder that was there as it was.
    assert_eq!(mode(&out.join(".rockpack")), 0o700);
    let closed = room.path().join("closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o750)).unwrap();
    run(&mut repo(&[&packages], &closed));
    assert_eq!([mode(&closed), mode(&closed.join("dists/stable"))], [0o750, 0o755]);
}

/// Sets the mode of `folder` and all folders below it, except rockpack's own.
fn close(folder: &Path, mode: u32) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() && entry.file_name() != ".rockpack" {
            close(&entry.path(), mode);
        }
    }
    fs::set_permissions(folder, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn folders_that_an_earlier_run_closed_are_opened_or_named() {
    need(&["dpkg-deb"]);
    let room = tempfile::tempdir().unwrap();
    let [one, two] = ["one", "two"].map(|name| room.path().join(name));
    deb(&one, ("one", "1", "amd64"), "");
    deb(&two, ("two", "1", "amd64"), "");
    let (out, pool) = (room.path().join("repository"), room.path().join("repository/pool"));
    assert!(!publish(&mut repo(&[&one], &out)).contains("R110"));
    let all = count_of_open(&out);
    close(&out, 0o700);
    // The folder itself may be closed on purpose, and is only named.
    let said = publish(&mut repo_at(&[&two], &out, 1));
    assert!(said.contains(&finding_of_closed(&out)) && said.contains("chmod a+rx"), "{said}");
    assert_eq!(count_of_open(&out), all + 2, "those of `one`, and two of `two`");
    assert_eq!(mode(&out), 0o700);
    assert_eq!(mode(&out.join(".rockpack")), 0o755, "as the umask had it");
    // So is the folder of another user, which only root can make.
    close(&out, 0o755);
    close(&pool, 0o2700);
    let stranger = out.join("pool/main/o");
    fs::set_permissions(&stranger, fs::Permissions::from_mode(0o700)).unwrap();
    let is_stranger = chown(&stranger, Some(12345), None).is_ok();
    let said = publish(&mut repo_at(&[], &out, 2));
    assert_eq!(said.contains(&finding_of_closed(&stranger)), is_stranger, "{said}");
    assert_eq!(fs::metadata(&pool).unwrap().permissions().mode() & 0o7777, 0o2755);
}

fn count_of_open(out: &Path) -> usize {
    let folders = tree(out).into_iter().filter(|(path, entry)| {
        matches!(entry, Entry::Folder { .. }) && !path.starts_with(".rockpack")
    });
    folders.filter(|(path, _)| mode(&out.join(path)) == 0o755).count()
}

fn finding_of_closed(folder: &Path) -> String {
    let folder = folder.display();
    format!("R110 folder-closed: {folder}: not all users may list it (mode 0700), so other")
}
