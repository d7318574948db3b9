//! Files of public keys, and checks of signatures by the given keys.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use pgp::composed::{
    CleartextSignedMessage, Deserializable, DetachedSignature, PublicOrSecret, SignedPublicKey,
    SignedSecretKey,
};
use pgp::crypto::public_key::PublicKeyAlgorithm;
use pgp::packet::Signature;
use pgp::types::KeyDetails;
use rockpack_archive::armor;
use rockpack_core::content::{KEY_FILE_LIMIT, exists, read_small};
use rockpack_core::error::{Error, Faults, Kind, Result, ResultExt};

use super::judge::{self, CheckTime, KeyValidAt};
use super::key::read_key_file;
use super::{Algorithm, IndexSigner, own};
use rockpack_package::receipt::signature_path;
use rockpack_report::ReceiptDoubt;

/// Maximum number of signatures of one text: each may be checked with each key, over the whole text.
const SIGNATURES_MAX: usize = 16;

/// The hint for a signature that does not match its receipt.
const NOT_ITS_SIGNATURE: &str = "the receipt or its signature was changed, or they are of different builds: get both \
     again from the build that wrote them";

#[derive(Debug, Default, Clone)]
pub struct Trust {
    /// The keys; one of them must have signed. Without keys, signatures are not checked.
    pub keys: PublicKeys,
    /// The time for which signatures, keys and indexes are judged.
    pub at: CheckTime,
    /// Also fails for signatures that only some clients refuse.
    pub strict: bool,
}

#[derive(Debug, Default, Clone)]
pub struct PublicKeys(Vec<SignedPublicKey>);

impl PublicKeys {
    /// Reads the key files of `option`, armoured or not, with one or several keys each.
    pub fn open(paths: &[PathBuf], option: &str) -> Result<Self> {
        let open = |path: &PathBuf| {
            let bytes = read_key_file(path, &format!("public key of {option}"))?;
            Self::read(&bytes).map_err(|error| error.file(path))
        };
        let mut faults = Faults::default();
        let opened = paths.iter().filter_map(|path| faults.keep(open(path)));
        let keys = opened.fold(Self::default(), Self::and);
        faults.finish().map(|()| keys)
    }

    /// Reads keys, armoured or not, and drops invalid self-signatures. Fails if there is no key.
    pub fn read(bytes: &[u8]) -> Result<Self> {
        Ok(Self(public_keys(bytes)?.into_iter().map(judge::checked).collect()))
    }

    pub fn of_signer(signer: &dyn IndexSigner) -> Result<Self> {
        Self::read(signer.public_keys()?.as_bytes())
    }

    pub fn and(mut self, others: Self) -> Self {
        self.0.extend(others.0);
        self
    }

    /// The keys that are not among `others`, each once.
    pub fn without(self, others: &Self) -> Self {
        let mut known = BTreeSet::from_iter(others.fingerprints());
        let new = self.0.into_iter().filter(|key| known.insert(key.fingerprint().to_string()));
        Self(new.collect())
    }

    /// The keys with these fingerprints, in lower case.
    pub fn with_fingerprints(mut self, fingerprints: &BTreeSet<String>) -> Self {
        self.0.retain(|key| fingerprints.contains(&key.fingerprint().to_string().to_lowercase()));
        self
    }

    pub fn fingerprints(&self) -> Vec<String> {
        self.0.iter().map(|key| key.fingerprint().to_string()).collect()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Trust {
    /// Fails unless clients accept one of the armoured signatures of `data` by one of the keys. Without keys, the
    /// signatures need only be readable.
    pub fn check_detached(&self, signatures: &[u8], data: &[u8]) -> Result<()> {
        self.check_accepted(&detached(signatures)?, data, KeyValidAt::Now)
    }

    /// The reason why no signature next to the receipt at `path` proves its `bytes`. Fails on a bad signature.
    pub fn receipt_doubt(&self, path: &Path, bytes: &[u8]) -> Result<Option<ReceiptDoubt>> {
        let signature = signature_path(path);
        if !exists(&signature)? {
            return Ok(Some(ReceiptDoubt::Unsigned));
        }
        let armored = read_small(&signature, KEY_FILE_LIMIT, "OpenPGP signature")?;
        let judged = self.detached_doubt(&armored, bytes).file(&signature);
        judged.map_err(|error| error.hint(NOT_ITS_SIGNATURE))
    }

    /// What detached signatures fail to prove. The key must have been valid when it signed, as for packages.
    fn detached_doubt(&self, armored: &[u8], receipt: &[u8]) -> Result<Option<ReceiptDoubt>> {
        let found = detached(armored)?;
        if found.is_empty() {
            return Err(Error::malformed("is not an OpenPGP signature"));
        }
        if self.keys.is_empty() {
            return Ok(Some(ReceiptDoubt::NoKey));
        }
        let keys = (self.keys.0.as_slice(), self.at);
        let Err(refused) = judge::check_any_accepted(&found, receipt, keys, KeyValidAt::WhenSigned)
        else {
            return Ok(None);
        };
        let is_known = |it: &Signature| self.keys.0.iter().any(|key| judge::names_key(it, key));
        if refused.is_none() && !found.iter().any(is_known) {
            let ids = found.iter().flat_map(Signature::issuer_key_id);
            let ids: BTreeSet<String> = ids.map(|id| id.to_string().to_uppercase()).collect();
            return Ok(Some(ReceiptDoubt::OtherKeys(ids.into_iter().collect())));
        }
        let reason = refused.unwrap_or_else(|| "is of other data".to_owned());
        Err(Error::new(Kind::Verify, format!("has a signature that {reason}")))
    }

    /// Fails unless clients accept one of the signatures of `data` by one of the keys.
    fn check_accepted(&self, found: &[Signature], data: &[u8], alive: KeyValidAt) -> Result<()> {
        check_signature_count(found.len())?;
        if self.keys.is_empty() {
            return Ok(());
        }
        let keys = (self.keys.0.as_slice(), self.at);
        let Err(refused) = judge::check_any_accepted(found, data, keys, alive) else {
            return Ok(());
        };
        let message = match refused {
            Some(fault) => format!(
                "has a signature that {fault}, which apt of Debian 13 and others refuse: sign it \
                 again with a good key (`repo`, `rpmsign --resign`, or gpg 2.1 or later)"
            ),
            None => "is not signed by any of the given keys".to_owned(),
        };
        Err(Error::new(Kind::Verify, message))
    }

    /// Fails unless clients accept one of the binary signatures in `texts` of `data` by one of the keys. Skips bytes
    /// that are not a signature, as rpm does next to a good one.
    pub fn check_packets(&self, texts: &[impl AsRef<[u8]>], data: &[u8]) -> Result<()> {
        check_signature_count(texts.len())?;
        let mut found = Vec::new();
        for text in texts {
            let Ok(packets) = DetachedSignature::from_bytes_many(text.as_ref()) else { continue };
            let packets = packets.take(SIGNATURES_MAX + 1).flatten();
            found.extend(packets.map(|found| found.signature));
        }
        self.check_accepted(&found, data, KeyValidAt::WhenSigned)
    }

    /// The text of a clear-signed message, and whether clients accept it as signed by one of the keys.
    pub fn clear_text(&self, message: &str) -> Result<(String, Result<()>)> {
        armor::blocks(message.as_bytes())?;
        let lines = message.lines().skip(1).map_while(|line| line.strip_prefix("Hash: "));
        let named: Vec<&str> = lines.flat_map(|line| line.split(',')).map(str::trim).collect();
        let (message, _) = CleartextSignedMessage::from_string(message)
            .map_err(|_| Error::malformed("is not an OpenPGP clear-signed text"))?;
        check_signature_count(message.signatures().len())?;
        let text = message.signed_text();
        // gpg computes only the digests that the message names.
        let mut digests = message.signatures().iter().filter_map(Signature::hash_alg);
        if !digests.any(|digest| named.contains(&digest.to_string().as_str())) {
            return Err(Error::malformed("names the digest of none of its signatures in `Hash`"));
        }
        let signed = self.check_accepted(message.signatures(), text.as_bytes(), KeyValidAt::Now);
        Ok((text.replace("\r\n", "\n"), signed))
    }
}

pub(super) fn detached(armoured: &[u8]) -> Result<Vec<Signature>> {
    let mut found = Vec::new();
    for block in armor::blocks(armoured)? {
        let (signatures, _) = DetachedSignature::from_armor_many(block).map_err(no_signature)?;
        for signature in signatures {
            found.push(signature.map_err(no_signature)?.signature);
            check_signature_count(found.len())?;
        }
    }
    Ok(found)
}

fn no_signature(_: pgp::errors::Error) -> Error {
    Error::malformed("is not an OpenPGP signature")
}

/// Refuses more than [`SIGNATURES_MAX`] signatures.
fn check_signature_count(count: usize) -> Result<()> {
    if count > SIGNATURES_MAX {
        let message = format!("has {count} signatures, more than {SIGNATURES_MAX}");
        Err(Error::new(Kind::Limit, message).hint("get it again from its publisher"))
    } else {
        Ok(())
    }
}

/// Reads the public keys of a file. Refuses a file with a secret key, which must not be published.
pub(super) fn public_keys(bytes: &[u8]) -> Result<Vec<SignedPublicKey>> {
    let mut found = Vec::new();
    for block in armor::blocks(bytes)? {
        let (keys, _) = PublicOrSecret::from_reader_many(block).map_err(no_public_key)?;
        for key in keys {
            match key.map_err(no_public_key)? {
                PublicOrSecret::Public(key) => found.push(key),
                PublicOrSecret::Secret(key) => return Err(secret_key_refused(&key)),
            }
        }
    }
    if found.is_empty() {
        Err(Error::new(Kind::Usage, "contains no public key"))
    } else {
        Ok(found)
    }
}

/// Drops the parser's own error: it shows the bytes that were read, which may be a secret.
fn no_public_key(_: pgp::errors::Error) -> Error {
    Error::new(Kind::Usage, "is not an OpenPGP public key")
        .hint("give the output of `gpg --armor --export`")
}

/// The fingerprints of the keys in a file of public keys.
pub fn fingerprints(bytes: &[u8]) -> Result<Vec<String>> {
    let keys = public_keys(bytes)?;
    Ok(keys.iter().map(|key| own::upper_hex(&key.primary_key.fingerprint())).collect())
}

/// The ids of the keys and subkeys that sign in a file of public keys.
pub fn signer_ids(bytes: &[u8]) -> Result<BTreeSet<String>> {
    let mut ids = BTreeSet::new();
    for key in public_keys(bytes)? {
        ids.insert(key_id(&key.primary_key));
        ids.extend(key.public_subkeys.iter().map(|sub| key_id(&sub.key)));
    }
    Ok(ids)
}

fn key_id(part: &dyn KeyDetails) -> String {
    part.legacy_key_id().to_string().to_uppercase()
}

fn secret_key_refused(key: &SignedSecretKey) -> Error {
    let name = own::key_name(&key.primary_key, &key.details);
    let message = format!("contains the secret key {name}, but clients get public keys");
    Error::new(Kind::Usage, message).hint(
        "export the public key with `gpg --armor --export`; anyone who may have read the file has \
         the secret key",
    )
}

/// The algorithm of all `keys`, if it is the same. A key signs with its newest signing subkey, or with itself.
pub(super) fn common_algorithm(keys: &[SignedPublicKey]) -> Option<Algorithm> {
    let mut all = keys.iter().map(|key| {
        let subkeys = key.public_subkeys.iter();
        let signing = subkeys.filter(|sub| sub.signatures.iter().any(|it| it.key_flags().sign()));
        let newest = signing.max_by_key(|sub| sub.key.created_at().as_secs());
        match newest.map_or_else(|| key.primary_key.algorithm(), |sub| sub.key.algorithm()) {
            PublicKeyAlgorithm::RSA => Some(Algorithm::Rsa),
            PublicKeyAlgorithm::EdDSALegacy | PublicKeyAlgorithm::Ed25519 => Some(Algorithm::EdDsa),
            _ => None,
        }
    });
    let first = all.next()??;
    all.all(|other| other == Some(first)).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::secret_key;

    /// The limit is checked before the keys, so it shows without any.
    #[test]
    fn signatures_of_a_text_have_a_limit() {
        // Version 4 by Ed25519, without subpackets, and with numbers of one bit.
        let packet = [0x88, 16, 4, 0, 22, 8, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 1, 1];
        assert!(check_repeated(&packet, 16).is_ok());
        let error = check_repeated(&packet, 17).unwrap_err();
        assert!(error.to_string().contains("has 17 signatures, more than 16"), "{error}");
    }

    fn check_repeated(packet: &[u8], count: usize) -> Result<()> {
        Trust::default().check_packets(&[packet.repeat(count)], b"text")
    }

    /// A file that is no OpenPGP key, or has broken armour, may be a secret: errors show none of it.
    #[test]
    fn errors_show_nothing_of_a_file_that_is_not_a_key() {
        let body = "c2VjcmV0IG9mIHNvbWVib2R5IHRoYXQgbm9ib2R5IG1heSBzZWU";
        for armour in ["RSA PRIVATE KEY", "OPENSSH PRIVATE KEY", "PGP PRIVATE KEY BLOCK", "PGP X"] {
            for text in [
                format!("-----BEGIN {armour}-----\n\n{body}\n-----END {armour}-----\n"),
                format!("----BEGIN {armour}-----\n\n{body}\n-----END {armour}-----\n"),
                format!("-----BEGIN {armour}----- {body} -----END {armour}-----"),
            ] {
                let secret = secret_key(text.as_bytes()).map(drop).unwrap_err();
                for error in [secret, public_keys(text.as_bytes()).unwrap_err()] {
                    let shown = format!("{} {error:?}", error.full_text());
                    let bytes = format!(
                        "{}, {}, {}",
                        body.as_bytes()[0],
                        body.as_bytes()[1],
                        body.as_bytes()[2]
                    );
                    assert!(!shown.contains(&body[..8]) && !shown.contains(&bytes), "{shown}");
                }
            }
        }
    }
}
