//! Files of public keys.

use std::collections::BTreeSet;

use pgp::armor::BlockType;
use pgp::composed::{PublicOrSecret, SignedPublicKey, SignedSecretKey};
use pgp::crypto::public_key::PublicKeyAlgorithm;
use pgp::ser::Serialize;
use pgp::types::KeyDetails;
use rockpack_archive::armor;
use rockpack_core::error::{Error, Kind, Result};

use super::Algorithm;
use super::armored::{armored, failed};
use super::own;

/// Reads the public keys of a file. Refuses a file with a secret key in it, which was not meant for others.
pub(super) fn public_keys(bytes: &[u8]) -> Result<Vec<SignedPublicKey>> {
    let mut found = Vec::new();
    for block in armor::blocks(bytes)? {
        let (keys, _) = PublicOrSecret::from_reader_many(block).map_err(no_public_key)?;
        for key in keys {
            match key.map_err(no_public_key)? {
                PublicOrSecret::Public(key) => found.push(key),
                PublicOrSecret::Secret(key) => return Err(is_secret(&key)),
            }
        }
    }
    if found.is_empty() { Err(Error::new(Kind::Usage, "holds no public key")) } else { Ok(found) }
}

/// Drops the parser's own error: it shows the bytes that were read, which may be a secret.
fn no_public_key(_: pgp::errors::Error) -> Error {
    Error::new(Kind::Usage, "is no public key of OpenPGP")
        .hint("give what `gpg --armor --export` wrote")
}

/// The fingerprints of the keys in a file of public keys.
pub fn fingerprints(bytes: &[u8]) -> Result<Vec<String>> {
    let keys = public_keys(bytes)?;
    Ok(keys.iter().map(|key| own::upper(&key.primary_key.fingerprint())).collect())
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

fn is_secret(key: &SignedSecretKey) -> Error {
    let name = own::named(&key.primary_key, &key.details);
    let message = format!("holds the secret key {name}, and public keys are given to everybody");
    Error::new(Kind::Usage, message).hint(
        "write the public key by `gpg --armor --export`; whoever may have read the file has the \
         secret key",
    )
}

/// Armours public keys, without anything else.
pub(super) fn armored_keys(keys: &[SignedPublicKey]) -> Result<String> {
    let mut all = Vec::new();
    for key in keys {
        key.to_writer(&mut all).map_err(failed)?;
    }
    armored(&all, BlockType::PublicKey)
}

/// The algorithm of all `keys`, if they have the same. A key signs by its newest subkey that may, or by
/// itself.
pub(super) fn common_algorithm(keys: &[SignedPublicKey]) -> Option<Algorithm> {
    let mut all = keys.iter().map(|key| match signing_algorithm(key) {
        PublicKeyAlgorithm::RSA => Some(Algorithm::Rsa),
        PublicKeyAlgorithm::EdDSALegacy | PublicKeyAlgorithm::Ed25519 => Some(Algorithm::EdDsa),
        _ => None,
    });
    let first = all.next()??;
    all.all(|other| other == Some(first)).then_some(first)
}

fn signing_algorithm(key: &SignedPublicKey) -> PublicKeyAlgorithm {
    let newest = key
        .public_subkeys
        .iter()
        .filter(|sub| sub.signatures.iter().any(|it| it.key_flags().sign()))
        .max_by_key(|sub| sub.key.created_at().as_secs());
    newest.map_or_else(|| key.primary_key.algorithm(), |sub| sub.key.algorithm())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::secret_key;

    /// A file that is no OpenPGP key, or has broken armour, may be a secret: errors show none of it.
    #[test]
    fn errors_show_nothing_of_a_file_that_is_no_key() {
        let body = "c2VjcmV0IG9mIHNvbWVib2R5IHRoYXQgbm9ib2R5IG1heSBzZWU";
        for armour in ["RSA PRIVATE KEY", "OPENSSH PRIVATE KEY", "PGP PRIVATE KEY BLOCK", "PGP X"] {
            for text in [
                format!("-----BEGIN {armour}-----\n\n{body}\n-----END {armour}-----\n"),
                format!("----BEGIN {armour}-----\n\n{body}\n-----END {armour}-----\n"),
                format!("-----BEGIN {armour}----- {body} -----END {armour}-----"),
            ] {
                let secret = secret_key(text.as_bytes()).map(drop).unwrap_err();
                for error in [secret, public_keys(text.as_bytes()).unwrap_err()] {
                    let shown = format!("{} {error:?}", error.in_full());
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
