//! Who may read a repository, whatever the umask of the run is.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use support::example::{Entry, tree};
use support::keys::key;
use support::repo_fixture::{deb, plain_spec, repo, rpm};
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
