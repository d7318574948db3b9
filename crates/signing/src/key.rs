//! A secret key in a file, armored or binary, as `gpg --export-secret-keys` writes it.
//!
//! It signs with the newest signing subkey that has its secret part, or with the primary key. It refuses files
//! without a secret part or with several keys, key versions that rpm 4 and gpg 2.2 cannot read (all but 4),
//! algorithms other than RSA and Ed25519, keys that clients refuse (`judge`), and a wrong passphrase. A subkey does
//! not sign after its primary key has expired. Signatures by other keys, which gpg also exports, are dropped.
//!
//! The passphrase comes from a file or an environment variable, never from an option: all users of a machine can
//! read the options of its processes.

use std::path::Path;

use pgp::composed::{PublicOrSecret, SignedPublicKey, SignedSecretKey};
use pgp::crypto::hash::HashAlgorithm;
use pgp::crypto::public_key::PublicKeyAlgorithm;
use pgp::packet::{
    SecretKey, SecretSubkey, Signature, SignatureConfig, SignatureType, SignatureVersion,
    Subpacket, SubpacketData,
};
use pgp::types::{
    KeyDetails, KeyVersion, Password, S2kParams, SecretParams, StringToKey, Timestamp,
};
use rockpack_archive::armor;
use rockpack_core::content::{KEY_FILE_LIMIT, read_user_file};
use rockpack_core::error::{Error, Kind, Result, ResultExt};

use super::Algorithm;
use super::judge::{self, CheckTime};
use super::own;
use rockpack_report::words::list;

const STRUCTURE: &str = "OpenPGP key";

/// Reads the key file at `path`, called `what` in errors.
pub fn read_key_file(path: &Path, what: &str) -> Result<Vec<u8>> {
    read_user_file(path, KEY_FILE_LIMIT, STRUCTURE).context(|| format!("reading the {what}"))
}

enum SigningPart {
    Primary(SecretKey),
    Sub(SecretSubkey),
}

/// A key that signs. Its debug text shows no secrets.
#[derive(derive_more::Debug)]
#[debug("OpenPgpKey({:?}, {})", self.algorithm, self.fingerprint())]
pub struct OpenPgpKey {
    part: SigningPart,
    pub(super) algorithm: Algorithm,
    /// The time from which it may not sign, in seconds since 1970; `None` if it never expires.
    expires: Option<u64>,
    pub(super) public: SignedPublicKey,
}

impl OpenPgpKey {
    /// Reads and unlocks the key in the file at `path`. `clock` is the current time, in seconds since 1970; without
    /// it, the key may have a future date.
    pub fn open(path: &Path, passphrase: &Passphrase, clock: Option<i64>) -> Result<Self> {
        let bytes = read_key_file(path, "signing key")?;
        Self::read(&bytes, passphrase, clock.unwrap_or(i64::MAX))
            .map_err(|error| error.structure(STRUCTURE).file(path))
    }

    fn read(bytes: &[u8], passphrase: &Passphrase, clock: i64) -> Result<Self> {
        let key = secret_key(bytes)?;
        let public = key.to_public_key();
        let (mut part, expires) = signing_part(&key)?;
        let algorithm = part.algorithm()?;
        let own = part.details().fingerprint();
        let by = public.public_subkeys.iter().find(|sub| sub.fingerprint() == own);
        // Each signature checks the expiry for its own time.
        let at = CheckTime { time: 0, clock };
        if let Some(refusal) = judge::key_refusal(&public, by, at) {
            return Err(refusal.error());
        }
        own::verify(&key)
            .map_err(|error| unusable("the key's own signatures are not valid").cause(error))?;
        part.unlock(passphrase)?;
        Ok(Self { part, algorithm, expires, public })
    }

    /// The fingerprint of the signing key, in hex.
    pub fn fingerprint(&self) -> String {
        rockpack_core::content::hex(self.part.details().fingerprint().as_bytes())
    }

    /// Returns a detached signature of `data`, or of a text whose lines end in CR and LF.
    ///
    /// Its time is `time`, in seconds since 1970, or the key's creation time if that is later: a signature older than
    /// its key is invalid. The same key, data and time give the same bytes.
    pub(super) fn sign(&self, kind: SignatureType, data: &[u8], time: u32) -> Result<Signature> {
        let details = self.part.details();
        let time = time.max(details.created_at().as_secs());
        if self.expires.is_some_and(|expires| u64::from(time) >= expires) {
            let message = "the key is expired at the time of the signature";
            let hint = "packages are signed at SOURCE_DATE_EPOCH: extend the key's validity";
            let which = format!("{STRUCTURE} {}", self.fingerprint().to_uppercase());
            return Err(Error::new(Kind::Usage, message).structure(which).hint(hint));
        }
        let mut config = SignatureConfig::v4(kind, details.algorithm(), HashAlgorithm::Sha256);
        let said = [
            SubpacketData::SignatureCreationTime(Timestamp::from_secs(time)),
            SubpacketData::IssuerFingerprint(details.fingerprint()),
            SubpacketData::IssuerKeyId(details.legacy_key_id()),
        ];
        for data in said {
            config.hashed_subpackets.push(Subpacket::regular(data).map_err(failed)?);
        }
        let open = Password::empty();
        let signature = match &self.part {
            SigningPart::Primary(key) => config.sign(key, &open, data),
            SigningPart::Sub(key) => config.sign(key, &open, data),
        };
        signature.map_err(failed)
    }
}

fn failed(error: pgp::errors::Error) -> Error {
    Error::new(Kind::Unsupported, "the key cannot sign").structure(STRUCTURE).cause(error)
}

fn unusable(message: impl Into<String>) -> Error {
    Error::new(Kind::Usage, message)
        .hint("give an RSA or Ed25519 key that `gpg --export-secret-keys` wrote")
}

pub(super) fn secret_key(bytes: &[u8]) -> Result<SignedSecretKey> {
    let mut found = Vec::new();
    for block in armor::blocks(bytes)? {
        let (keys, _) = PublicOrSecret::from_reader_many(block).map_err(unreadable)?;
        for key in keys {
            match key.map_err(unreadable)? {
                PublicOrSecret::Public(_) => {
                    return Err(unusable("has no secret part: it is a public key"));
                }
                PublicOrSecret::Secret(key) => found.push(key),
            }
        }
    }
    if found.len() > 1 {
        let names = list(found.iter().map(|key| own::key_name(&key.primary_key, &key.details)));
        let message = format!("has {} keys, but only one can sign: {names}", found.len());
        return Err(Error::new(Kind::Usage, message).hint(
            "export one of them with `gpg --armor --export-secret-keys FINGERPRINT`; to sign the \
             indexes of a repository with several keys, name a file for each",
        ));
    }
    let mut key = found.pop().ok_or_else(|| unusable("has no key"))?;
    own::drop_foreign(&mut key.details, &key.primary_key);
    Ok(key)
}

/// Drops the parser's own error: it shows the bytes that were read, which are secret.
fn unreadable(_: pgp::errors::Error) -> Error {
    unusable("is not an OpenPGP key")
}

/// The newest subkey that may sign, or else the primary key, with its expiry in seconds since 1970
/// (`None`: never). A subkey expires with the primary key at the latest.
fn signing_part(key: &SignedSecretKey) -> Result<(SigningPart, Option<u64>)> {
    // Clients that refuse the newest self-signature use the previous one.
    let both = [
        own::self_signature(&key.details, |_| true),
        own::self_signature(&key.details, own::is_strong),
    ];
    let said: Vec<&Signature> = both.into_iter().flatten().collect();
    if said.is_empty() {
        return Err(unusable("has no valid user id: the key signed none, or all are revoked"));
    }
    let ends = said.iter().filter_map(|said| own::expiry(key.primary_key.created_at(), said));
    let whole = ends.min();
    let usable = key.secret_subkeys.iter().filter(|sub| {
        let signs = own::newest(&sub.signatures).is_some_and(|it| it.key_flags().sign());
        signs
            && has_secret_part(sub.key.secret_params())
            && !sub.signatures.iter().any(own::revokes)
    });
    if let Some(sub) = usable.max_by_key(|sub| sub.key.created_at().as_secs()) {
        let end = own::subkey_end(sub.key.created_at(), &sub.signatures);
        let expires = [whole, end].into_iter().flatten().min();
        return Ok((SigningPart::Sub(sub.key.clone()), expires));
    }
    // A signature of version 3 states no purpose; it is refused for its version later.
    let mut purposes = said.iter().filter(|it| it.version() == SignatureVersion::V4);
    if !purposes.all(|signature| signature.key_flags().sign()) {
        return Err(unusable("no part of the key in the file may sign"));
    }
    if !has_secret_part(key.primary_key.secret_params()) {
        return Err(unusable("has no secret part that signs: it was left out of the file"));
    }
    Ok((SigningPart::Primary(key.primary_key.clone()), whole))
}

/// Whether a secret part is present. gpg omits secret parts (`--export-secret-subkeys`) and marks this by an S2K type
/// from the range for private use.
fn has_secret_part(params: &SecretParams) -> bool {
    let SecretParams::Encrypted(encrypted) = params else {
        return true;
    };
    !matches!(
        encrypted.string_to_key_params(),
        S2kParams::Cfb { s2k: StringToKey::Private { .. }, .. }
            | S2kParams::MalleableCfb { s2k: StringToKey::Private { .. }, .. }
    )
}

impl SigningPart {
    fn details(&self) -> &dyn KeyDetails {
        match self {
            Self::Primary(key) => key,
            Self::Sub(key) => key,
        }
    }

    fn algorithm(&self) -> Result<Algorithm> {
        let details = self.details();
        if details.version() != KeyVersion::V4 {
            return Err(unusable(format!("is a key of {:?}", details.version())));
        }
        match details.algorithm() {
            PublicKeyAlgorithm::RSA => Ok(Algorithm::Rsa),
            PublicKeyAlgorithm::EdDSALegacy | PublicKeyAlgorithm::Ed25519 => Ok(Algorithm::EdDsa),
            other => Err(unusable(format!("is a key of {other:?}"))),
        }
    }

    /// Removes the passphrase, in memory.
    fn unlock(&mut self, passphrase: &Passphrase) -> Result<()> {
        let password = Password::from(passphrase.0.as_slice());
        let opened = match self {
            Self::Primary(key) => key.remove_password(&password),
            Self::Sub(key) => key.remove_password(&password),
        };
        opened.map_err(|_| {
            let message = if passphrase.0.is_empty() {
                "needs a passphrase"
            } else {
                "does not open with the passphrase"
            };
            Error::new(Kind::Usage, message).hint(
                "give it with --sign-passphrase-file, or in the environment variable \
                 ROCKPACK_SIGN_PASSPHRASE",
            )
        })
    }
}

/// The environment variable with the passphrase of the signing key, which no other program gets.
pub const PASSPHRASE_VARIABLE: &str = "ROCKPACK_SIGN_PASSPHRASE";

/// Longest file of a passphrase in bytes.
const PASSPHRASE_LIMIT: u64 = 4096;

#[derive(Clone, Default, derive_more::Debug)]
#[debug("Passphrase(…)")]
pub struct Passphrase(Vec<u8>);

impl Passphrase {
    /// A passphrase without a line break.
    pub fn new(text: impl Into<Vec<u8>>) -> Self {
        Self(text.into())
    }

    pub fn read(path: &Path) -> Result<Self> {
        let bytes = read_user_file(path, PASSPHRASE_LIMIT, "passphrase")
            .context(|| "reading the passphrase".to_owned())?;
        let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
        Ok(Self(line.strip_suffix(b"\r").unwrap_or(line).to_vec()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_gives_its_first_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("passphrase");
        for (text, expected) in [("a b\n", "a b"), ("a b", "a b"), ("x\r\ny\n", "x"), ("", "")] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(Passphrase::read(&path).unwrap().0, expected.as_bytes());
        }
        std::fs::write(&path, "x".repeat(5000)).unwrap();
        assert!(Passphrase::read(&path).is_err());
        assert!(!format!("{:?}", Passphrase::new("secret")).contains("secret"));
    }
}
