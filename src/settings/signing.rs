//! The keys to sign with, and those that check receipts.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use rockpack_core::error::{Error, Faults, Kind, Result};
use rockpack_report::{Finding, found};
use rockpack_signing::judge::CheckTime;
use rockpack_signing::{
    CommandSigner, IndexSigner, KeySigner, OpenPgpKey, Passphrase, PublicKeys, read_key_file,
};

use super::Environment;

/// The permission bits that let the group and others read a file.
const READ_BY_OTHERS: u32 = 0o044;

/// The options for signing keys.
#[derive(Debug, Args)]
pub struct SigningArguments {
    /// OpenPGP secret key for receipts, .rpm headers and indexes
    ///
    /// Armored or binary, RSA or Ed25519; its passphrase comes from --sign-passphrase-file or the environment variable
    /// ROCKPACK_SIGN_PASSPHRASE. If given several times, each key signs the receipt and the indexes of a repository,
    /// and the first key the headers of packages. rpm before 4.16 (Enterprise Linux 7 and 8) refuses packages with
    /// Ed25519 signatures
    #[arg(long, value_name = "FILE")]
    sign_key: Vec<PathBuf>,
    /// File whose first line is the passphrase of --sign-key
    ///
    /// Give one file for all keys, or one for each --sign-key, in the same order
    #[arg(long, value_name = "FILE", requires = "sign_key")]
    sign_passphrase_file: Vec<PathBuf>,
    /// Sign receipts and indexes with this key of gpg's agent instead
    #[arg(long, value_name = "ID", conflicts_with = "sign_key")]
    gpg_key_id: Option<String>,
    /// Sign receipts and indexes with this program instead
    ///
    /// The program reads the data on standard input and writes the armored signature. {mode} becomes
    /// detach-sign or clear-sign. There is no shell; blanks separate words
    #[arg(long, hide_short_help = true, value_name = "COMMAND", conflicts_with_all = ["sign_key", "gpg_key_id"], requires = "public_key")]
    sign_command: Option<String>,
    /// Further public key for clients, such as the next one; may be given several times
    ///
    /// With --sign-command, the first is the key that the program signs with; it checks each signature
    #[arg(long, hide_short_help = true, value_name = "FILE")]
    public_key: Vec<PathBuf>,
}

/// The keys for receipts, in addition to those of the run.
#[derive(Debug, Args)]
pub struct ReceiptKeyArguments {
    /// Public key for receipts, in addition to the keys that this run signs with
    ///
    /// May be given several times
    #[arg(long, hide_short_help = true, value_name = "FILE")]
    receipt_key: Vec<PathBuf>,
}

impl ReceiptKeyArguments {
    pub fn keys(&self) -> Result<PublicKeys> {
        PublicKeys::open(&self.receipt_key, "--receipt-key")
    }
}

/// The signers that the options name.
#[derive(Debug, Default)]
pub struct Signers {
    /// The keys in files, in the given order. The first signs packages.
    pub keys: Vec<Arc<OpenPgpKey>>,
    /// The program that signs receipts and indexes in their place.
    program: Option<Arc<dyn IndexSigner>>,
}

impl Signers {
    /// The signer of receipts and indexes at that time, with further public keys for clients; `None` if
    /// nothing is signed.
    pub fn text_signer(
        &self,
        at: CheckTime,
        others: &[Vec<u8>],
    ) -> Result<Option<Arc<dyn IndexSigner>>> {
        match &self.program {
            Some(program) => Ok(Some(Arc::clone(program))),
            None if self.keys.is_empty() => Ok(None),
            None => Ok(Some(Arc::new(KeySigner::new(self.keys.clone(), at, others)?))),
        }
    }

    /// The signer of a receipt at `time`, checked by a trial signature.
    pub(super) fn receipt_signer(
        &self,
        time: i64,
        now: Option<CheckTime>,
        faults: &mut Faults,
    ) -> Option<Arc<dyn IndexSigner>> {
        let at = CheckTime { time, clock: now?.clock };
        let signer = faults.keep(self.text_signer(at, &[]))??;
        faults.keep(signer.sign_detached(&[]))?;
        Some(signer)
    }
}

impl SigningArguments {
    /// Unlocks the keys, in the given order. Without `now`, which another error explains, the creation time of keys is
    /// not checked, and no program is run.
    pub fn signers(&self, environment: &Environment, now: Option<CheckTime>) -> Result<Signers> {
        let mut keys: Vec<Arc<OpenPgpKey>> = Vec::new();
        let mut faults = Faults::default();
        for (key, passphrase) in self.sign_key.iter().zip(self.passphrases(environment)?) {
            let opened = OpenPgpKey::open(key, &passphrase, now.map(|now| now.clock));
            let Some(signer) = faults.keep(opened) else { continue };
            if keys.iter().any(|other| other.fingerprint() == signer.fingerprint()) {
                let error = Error::new(Kind::Usage, "is given twice");
                faults.add(
                    error.file(key).hint("a second --sign-key is for the next key of a key change"),
                );
            }
            keys.push(Arc::new(signer));
        }
        faults.finish()?;
        let program = now.map(|now| self.program(now)).transpose()?.flatten();
        Ok(Signers { keys, program })
    }

    /// The program that signs, at that time.
    fn program(&self, at: CheckTime) -> Result<Option<Arc<dyn IndexSigner>>> {
        let signer = match (&self.gpg_key_id, &self.sign_command, self.public_key.first()) {
            (Some(id), ..) => CommandSigner::gpg(id, at)?,
            (None, Some(command), Some(key)) => {
                let key = read_key_file(key, "public key of --sign-command")?;
                CommandSigner::new(command, &key, at)?
            }
            _ => return Ok(None),
        };
        Ok(Some(Arc::new(signer)))
    }

    /// The public keys that clients trust besides those that sign.
    pub fn further_keys(&self) -> Result<Vec<Vec<u8>>> {
        let files = self.public_key.iter().skip(usize::from(self.sign_command.is_some()));
        if self.sign_key.is_empty() && files.len() > 0 {
            let message = "--public-key adds keys only to those of --sign-key";
            return Err(Error::new(Kind::Usage, message));
        }
        files.map(|key| read_key_file(key, "--public-key")).collect()
    }

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

    /// Warnings about files of keys and passphrases that other users can read. Reading a file reports its other faults.
    pub fn readable_secrets(&self) -> Vec<Finding> {
        let files = self.sign_key.iter().chain(&self.sign_passphrase_file);
        let found = files.filter_map(|file| {
            let mode = std::fs::metadata(file).ok()?.mode() & 0o777;
            let file = file.display().to_string();
            let mode_text = format!("{mode:o}");
            (mode & READ_BY_OTHERS != 0)
                .then(|| Finding::from(found::SecretReadable { file, mode: mode_text }))
        });
        found.collect()
    }

    pub fn has_key(&self) -> bool {
        !self.sign_key.is_empty()
    }

    pub fn is_given(&self) -> bool {
        self.has_key() || self.gpg_key_id.is_some() || self.sign_command.is_some()
    }
}
