//! The options that give a key to sign with.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;

use crate::error::{Error, Result};
use crate::signing::{CommandSigner, IndexSigner, KeySigner, OpenPgpKey, Passphrase, Signer};

/// The environment variable with the passphrase of the signing key.
const PASSPHRASE: &str = "ROCKPACK_SIGN_PASSPHRASE";

#[derive(Debug, Args)]
pub(super) struct SigningArguments {
    /// OpenPGP secret key (armored or binary, RSA or Ed25519) that signs the headers of .rpm
    /// packages and the indexes of a repository; its passphrase comes from --sign-passphrase-file
    /// or the environment variable ROCKPACK_SIGN_PASSPHRASE
    #[arg(long, value_name = "FILE")]
    sign_key: Option<PathBuf>,
    /// File whose first line is the passphrase of --sign-key
    #[arg(long, value_name = "FILE", requires = "sign_key")]
    sign_passphrase_file: Option<PathBuf>,
}

/// Other ways to sign indexes, and keys beside the one that signs.
#[derive(Debug, Clone, PartialEq, Args)]
pub(super) struct TrustArguments {
    /// Sign the indexes by this key of gpg's own keyring and agent instead
    #[arg(long, value_name = "ID", conflicts_with = "sign_key")]
    gpg_key_id: Option<String>,
    /// Sign the indexes by this program instead: it gets them on its standard input and writes
    /// the armored signature, with {mode} detach-sign or clear-sign. No shell; words are
    /// separated by blanks
    #[arg(long, value_name = "COMMAND", conflicts_with_all = ["sign_key", "gpg_key_id"], requires = "public_key")]
    sign_command: Option<String>,
    /// The armored public key of --sign-command
    #[arg(long, value_name = "FILE", requires = "sign_command")]
    public_key: Option<PathBuf>,
    /// Public keys that clients are to trust beside --sign-key: the next key, or the one before;
    /// may be given several times
    #[arg(long, value_name = "FILE", requires = "sign_key")]
    also_key: Vec<PathBuf>,
}

impl TrustArguments {
    /// What signs the indexes of a repository at `time`, seconds since 1970.
    pub(super) fn index_signer(
        &self,
        signer: Option<&Arc<dyn Signer>>,
        time: i64,
    ) -> Result<Option<Arc<dyn IndexSigner>>> {
        let read = |path: &PathBuf| std::fs::read(path).map_err(|e| Error::io(path, "read", e));
        if let Some(id) = &self.gpg_key_id {
            return Ok(Some(Arc::new(CommandSigner::gpg(id)?)));
        }
        if let (Some(command), Some(key)) = (&self.sign_command, &self.public_key) {
            let key = String::from_utf8_lossy(&read(key)?).into_owned();
            return Ok(Some(Arc::new(CommandSigner::new(command, key)?)));
        }
        let Some(signer) = signer else {
            return Ok(None);
        };
        let others: Vec<Vec<u8>> = self.also_key.iter().map(read).collect::<Result<_>>()?;
        Ok(Some(Arc::new(KeySigner::new(Arc::clone(signer), time, &others)?)))
    }
}

impl SigningArguments {
    /// The key, unlocked.
    pub(super) fn signer(&self) -> Result<Option<Arc<dyn Signer>>> {
        let Some(key) = &self.sign_key else {
            return Ok(None);
        };
        let passphrase = match &self.sign_passphrase_file {
            Some(file) => Passphrase::read(file)?,
            None => std::env::var_os(PASSPHRASE)
                .map(|text| Passphrase::new(text.into_encoded_bytes()))
                .unwrap_or_default(),
        };
        let signer: Arc<dyn Signer> = Arc::new(OpenPgpKey::open(key, &passphrase)?);
        Ok(Some(signer))
    }
}
