//! The key to sign with.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;

use super::environment::{Environment, PASSPHRASE};
use super::origin::{Gathered, Origin};
use crate::error::{Error, Kind, Result};
use crate::signing::{OpenPgpKey, Passphrase, Signer};

/// The options that give it.
#[derive(Debug, Args)]
pub struct SigningArguments {
    /// OpenPGP secret key (armored or binary, RSA or Ed25519) that signs the headers of .rpm
    /// packages and the indexes of a repository; its passphrase comes from --sign-passphrase-file
    /// or the environment variable ROCKPACK_SIGN_PASSPHRASE
    #[arg(long, value_name = "FILE")]
    sign_key: Option<PathBuf>,
    /// File whose first line is the passphrase of --sign-key
    #[arg(long, value_name = "FILE", requires = "sign_key")]
    sign_passphrase_file: Option<PathBuf>,
}

impl SigningArguments {
    /// The key, unlocked.
    pub fn signer(&self, environment: &Environment) -> Result<Option<Arc<dyn Signer>>> {
        let Some(key) = &self.sign_key else {
            return Ok(None);
        };
        let passphrase = match &self.sign_passphrase_file {
            Some(file) => Passphrase::read(file)?,
            None => environment.passphrase.clone().unwrap_or_default(),
        };
        let signer: Arc<dyn Signer> = Arc::new(OpenPgpKey::open(key, &passphrase)?);
        Ok(Some(signer))
    }

    /// Whether there is to be a key.
    pub fn has_key(&self) -> bool {
        self.sign_key.is_some()
    }

    /// The key of a build, if it can sign at `time`. A key with nothing to sign is a fault.
    pub(super) fn resolve(
        &self,
        signs: Signs,
        time: u32,
        environment: &Environment,
        gathered: &mut Gathered,
    ) -> Option<Arc<dyn Signer>> {
        if environment.passphrase.is_some() && self.sign_key.is_some() {
            gathered.note(PASSPHRASE, "set", Origin::Environment { variable: PASSPHRASE });
        }
        let signer = gathered.faults.keep(self.signer(environment))??;
        if signs == Signs::Nothing {
            let message = "a signing key was given, but only .rpm packages are signed";
            let hint = "leave --sign-key out, or make .rpm packages, too";
            gathered.faults.add(Error::new(Kind::Usage, message).hint(hint));
        }
        gathered.faults.keep(signer.sign(&[], time))?;
        Some(signer)
    }
}

/// Whether a build has something to sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signs {
    /// Headers of `.rpm` packages, or indexes of a repository.
    Something,
    /// `.deb` packages have no signature.
    Nothing,
}
