//! The keys to sign with.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use rockpack_base::error::{Error, Faults, Kind, Result};

use super::environment::{Environment, Now};
use super::origin::{Gathered, Origin};
use crate::report::Finding;
use crate::signing::{OpenPgpKey, PASSPHRASE_VARIABLE, Passphrase, Signer};

/// The permission bits that let the group and everybody else read a file.
const READ_BY_OTHERS: u32 = 0o044;

/// The options for signing keys.
#[derive(Debug, Args)]
pub struct SigningArguments {
    /// OpenPGP secret key that signs .rpm headers and indexes
    ///
    /// Armored or binary, RSA or Ed25519; its passphrase comes from --sign-passphrase-file or the
    /// environment variable ROCKPACK_SIGN_PASSPHRASE. Given several times, each key signs the
    /// indexes of a repository, and the first one the headers of packages. rpm before 4.16
    /// (Enterprise Linux 7 and 8) refuses packages that are signed by Ed25519
    #[arg(long, value_name = "FILE")]
    sign_key: Vec<PathBuf>,
    /// File whose first line is the passphrase of --sign-key
    ///
    /// Give one file for all keys, or one for each --sign-key, in the same order
    #[arg(long, value_name = "FILE", requires = "sign_key")]
    sign_passphrase_file: Vec<PathBuf>,
}

impl SigningArguments {
    /// Unlocks the keys, in the given order. Without `now`, whose fault is reported elsewhere, the creation
    /// time of keys is not checked.
    pub fn signers(
        &self,
        environment: &Environment,
        now: Option<Now>,
    ) -> Result<Vec<Arc<dyn Signer>>> {
        let mut signers: Vec<Arc<dyn Signer>> = Vec::new();
        let mut faults = Faults::default();
        for (key, passphrase) in self.sign_key.iter().zip(self.passphrases(environment)?) {
            let opened = OpenPgpKey::open(key, &passphrase, now.map(|now| now.clock));
            let Some(signer) = faults.keep(opened) else { continue };
            if signers.iter().any(|other| other.fingerprint() == signer.fingerprint()) {
                let error = Error::new(Kind::Usage, "is a key that was given before");
                faults.add(error.file(key).hint("a second --sign-key is the key that follows"));
            }
            signers.push(Arc::new(signer));
        }
        faults.finish().map(|()| signers)
    }

    /// The passphrase of each key.
    fn passphrases(&self, environment: &Environment) -> Result<Vec<Passphrase>> {
        let (keys, files) = (self.sign_key.len(), &self.sign_passphrase_file);
        match files.as_slice() {
            [] => Ok(vec![environment.passphrase.clone().unwrap_or_default(); keys]),
            [file] if keys > 0 => Ok(vec![Passphrase::read(file)?; keys]),
            _ if files.len() == keys => files.iter().map(|file| Passphrase::read(file)).collect(),
            _ => {
                let message = format!("{} passphrases are given for {keys} keys", files.len());
                Err(Error::new(Kind::Usage, message).hint(
                    "give --sign-passphrase-file once, or as often as --sign-key, in the same order",
                ))
            }
        }
    }

    /// Warnings about files of keys and passphrases that others may read. Files that cannot be examined are
    /// left to the code that reads them.
    pub fn exposed(&self) -> Vec<Finding> {
        let files = self.sign_key.iter().chain(&self.sign_passphrase_file);
        let found = files.filter_map(|file| {
            let mode = std::fs::metadata(file).ok()?.mode() & 0o777;
            let file = file.display().to_string();
            let mode_text = format!("{mode:o}");
            (mode & READ_BY_OTHERS != 0)
                .then_some(Finding::SecretReadable { file, mode: mode_text })
        });
        found.collect()
    }

    /// Whether a key is named.
    pub fn has_key(&self) -> bool {
        !self.sign_key.is_empty()
    }

    /// The keys of a build, checked by a trial signature at `time`. A key with nothing to sign is a fault.
    pub(super) fn resolve(
        &self,
        signs: Signs,
        time: u32,
        (environment, now): (&Environment, Option<Now>),
        gathered: &mut Gathered,
    ) -> Vec<Arc<dyn Signer>> {
        if environment.passphrase.is_some() && self.has_key() {
            let variable = PASSPHRASE_VARIABLE;
            gathered.note(variable, "set", Origin::Environment { variable });
        }
        let signers = gathered.faults.keep(self.signers(environment, now)).unwrap_or_default();
        let idle = match (signs, signers.len()) {
            (Signs::Nothing, 1..) => {
                let hint = "leave --sign-key out, or make .rpm packages, too";
                Some(("a signing key was given, but only .rpm packages are signed", hint))
            }
            (Signs::Packages, 2..) => {
                let hint = "give one --sign-key, or --repo, whose indexes are signed by each";
                Some(("several signing keys were given, and packages are signed by one", hint))
            }
            _ => None,
        };
        if let Some((message, hint)) = idle {
            gathered.faults.add(Error::new(Kind::Usage, message).hint(hint));
        }
        for signer in &signers {
            gathered.faults.keep(signer.sign(&[], time));
        }
        signers
    }
}

/// The things that a build has to sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signs {
    /// Indexes of a repository, and the headers of any `.rpm` packages.
    Indexes,
    /// Headers of `.rpm` packages.
    Packages,
    /// Nothing: `.deb` packages have no signature.
    Nothing,
}
