//! Packages published over earlier ones.

use std::path::Path;
use std::process::Command;

use support::gpg_keys::key;
use support::published::{between, served};
use support::repo_fixture::{deb, plain_spec, repo_at, rpm};
use support::tools;

use crate::scenarios::{Promise, Scenario};

/// The tools that make packages and keys, and read lists.
pub const TOOLS: [&str; 5] = ["gcc", "dpkg-deb", "rpmbuild", "gpg", "gzip"];

/// Each file is the earlier or the new one, and clients find everything that indexes name. The next run
/// finishes or undoes a started publication.
const REPOSITORY: Promise = Promise {
    unit: |path| path,
    adds: true,
    aside: None,
    left_to_the_next: true,
    // rockpack writes its record of a publication before all other parts.
    begins: |(kind, path)| {
        let name = path.file_name().unwrap().to_str().unwrap();
        kind == "rename" && name.starts_with("shown-")
    },
    also: clients_are_served,
};

fn publish_at(room: &Path, version: &str, out: &Path, after: i64) -> Command {
    let mut repo = repo_at(&[&room.join(version)], out, after);
    repo.args(["--keep", "1", "--set", "generations=1", "--url", "https://example.org/rocm"]);
    repo.arg("--sign-key").arg(room.join("own.secret"));
    repo
}

/// Publishes an hour after the earlier publications, so that files superseded by the second are removed.
fn publish(room: &Path, out: &Path) -> Command {
    publish_at(room, "3", out, 5000)
}

/// Publishes the third version of a package in both formats over the second, with remains of the first.
pub fn scenario() -> Scenario {
    let make = |room: &Path| {
        key(room, "own", "ed25519");
        for (version, after) in [("1", Some(0)), ("2", Some(10)), ("3", None)] {
            let packages = room.join(version);
            deb(&packages, ("one", version, "amd64"), "");
            rpm(&packages, &plain_spec("one", version, ""));
            if let Some(after) = after {
                tools::run(&mut publish_at(room, version, &room.join("earlier"), after));
            }
        }
    };
    Scenario::over_earlier("repo", make, (publish, REPOSITORY))
}

/// A client gets the second or the third version, with all files on the way whole. `InRelease` is already
/// known to be one of two whole files, byte for byte.
fn clients_are_served(out: &Path) {
    let signed = std::fs::read_to_string(out.join("dists/stable/InRelease")).unwrap();
    let text = between(&signed, "\n\n", "\n-----BEGIN PGP SIGNATURE-----");
    let versions = served(&format!("{}\n", text[0]), out);
    assert!(versions.iter().all(|version| ["2", "3"].contains(&version.as_str())), "{versions:?}");
}
