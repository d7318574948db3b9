//! Keys made by gpg.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::example::{names, plant, tree};
use crate::program;
use crate::tools::run;

/// A secret key and its public part, as files and in a GnuPG home.
pub struct Key {
    pub secret: PathBuf,
    pub public: PathBuf,
    pub home: PathBuf,
}

impl Drop for Key {
    fn drop(&mut self) {
        end_agents(&self.home);
    }
}

/// Ends the agent of a home: any use of a key starts one, which does not end by itself.
pub fn end_agents(home: &Path) {
    let mut gpgconf = Command::new("gpgconf");
    let _ = gpgconf.args(["--kill", "gpg-agent"]).env("GNUPGHOME", home).output();
}

/// Makes the agent of a home stretch passphrases as little as it can. Otherwise it first measures for seconds how
/// much this machine can do, and every use of a key then takes a good part of a second.
pub fn stretch_little(home: &Path) {
    fs::write(home.join("gpg-agent.conf"), "s2k-count 65536\n").unwrap();
}

/// Fills the folder `home` with the GnuPG home that `make` makes. Keys take seconds, so the home is made once
/// and kept between runs under `name`.
pub fn fill_home(home: &Path, name: &str, make: impl FnOnce(&Path)) {
    let kept = program::kept(&format!("gnupg-{name}"), |kept| {
        let made = tempfile::tempdir().unwrap();
        make(made.path());
        end_agents(made.path());
        // Copies no sockets of agents, which may have ended.
        let sockets = names(made.path()).into_iter().filter(|name| name.starts_with("S."));
        sockets.for_each(|name| drop(fs::remove_file(made.path().join(name))));
        plant(&tree(made.path()), kept, false);
    });
    plant(&tree(&kept), home, false);
    fs::set_permissions(home, Permissions::from_mode(0o700)).unwrap();
}

/// A key without a passphrase, with an algorithm in gpg's spelling. Every call with this name returns the
/// same key.
pub fn key(folder: &Path, name: &str, algorithm: &str) -> Key {
    let home = folder.join(format!("{name}.gnupg"));
    fs::create_dir(&home).unwrap();
    fill_home(&home, &format!("{name}-{algorithm}"), |home| make(home, name, algorithm));
    let [secret, public] = ["secret", "public"].map(|part| {
        let file = folder.join(format!("{name}.{part}"));
        fs::rename(home.join(part), &file).unwrap();
        file
    });
    Key { secret, public, home }
}

fn make(home: &Path, name: &str, algorithm: &str) {
    let gpg = || {
        let mut gpg = Command::new("gpg");
        gpg.env("GNUPGHOME", home).args(["--batch", "--quiet", "--yes", "--passphrase", ""]);
        // The key must be older than everything that tests sign.
        gpg.args(["--faked-system-time", "20230101T000000"]);
        gpg
    };
    run(gpg()
        .args(["--quick-generate-key", &format!("{name} <{name}@example.org>")])
        .args([algorithm, "sign", "never"]));
    for (how, part) in [("--export-secret-keys", "secret"), ("--export", "public")] {
        run(gpg().args(["--armor", how, "--output"]).arg(home.join(part)));
    }
}
