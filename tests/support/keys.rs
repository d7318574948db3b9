//! Keys that gpg makes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::tools::run;

/// A secret key and its public part, in files and in a home of gpg's.
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

/// Whoever uses a key of a home leaves an agent behind, which ends when it is told to.
pub fn end_agents(home: &Path) {
    let mut gpgconf = Command::new("gpgconf");
    let _ = gpgconf.args(["--kill", "all"]).env("GNUPGHOME", home).output();
}

/// A key of an algorithm as gpg names it, without a passphrase.
pub fn key(folder: &Path, name: &str, algorithm: &str) -> Key {
    let home = folder.join(format!("{name}.gnupg"));
    fs::create_dir(&home).unwrap();
    run(Command::new("chmod").arg("700").arg(&home));
    let gpg = || {
        let mut gpg = Command::new("gpg");
        gpg.env("GNUPGHOME", &home).args(["--batch", "--quiet", "--yes", "--passphrase", ""]);
        // Older than everything that is signed in tests.
        gpg.args(["--faked-system-time", "20230101T000000"]);
        gpg
    };
    run(gpg()
        .args(["--quick-generate-key", &format!("{name} <{name}@example.org>")])
        .args([algorithm, "sign", "never"]));
    let [secret, public] = ["secret", "public"].map(|part| folder.join(format!("{name}.{part}")));
    run(gpg().args(["--armor", "--export-secret-keys", "--output"]).arg(&secret));
    run(gpg().args(["--armor", "--export", "--output"]).arg(&public));
    end_agents(&home);
    Key { secret, public, home }
}
