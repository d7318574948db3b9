//! Whether clients take a signature that another program made: by the public keys that they get.

use std::fmt;

use pgp::composed::{SignedPublicKey, SignedPublicSubKey};
use pgp::packet::{Signature, SignatureType};
use pgp::types::KeyDetails;

use super::own;

/// Why clients refuse a signature, as the rest of a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Distrust {
    /// By the key of this id, which none of theirs is.
    OtherKey(String),
    /// Of other bytes, or of another kind than was asked for.
    OtherContent,
    /// By a key that was revoked, or had expired.
    Ended(String),
}

impl Distrust {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::OtherKey(_) => {
                "give the public key of the key that signs by --public-key: clients get no other"
            }
            Self::OtherContent => {
                "it has to sign its standard input, byte for byte, as {mode} says: detach-sign or \
                 clear-sign"
            }
            Self::Ended(_) => {
                "extend the life of the key, or sign by another, and export the public key again"
            }
        }
    }
}

impl fmt::Display for Distrust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherKey(id) => write!(f, "is by the key {id}, which clients do not get"),
            Self::OtherContent => write!(f, "is not one of what it was given to sign"),
            Self::Ended(how) => write!(f, "is by a key that {how}, as the public key says"),
        }
    }
}

/// Fails unless one of `keys`, or a subkey that is bound to it to sign, made `signature` of `data`,
/// and may have. `is_text` says whether the signature is to be of a text.
pub(super) fn check(
    signature: &Signature,
    data: &[u8],
    keys: &[SignedPublicKey],
    is_text: bool,
) -> Result<(), Distrust> {
    let wanted = if is_text { SignatureType::Text } else { SignatureType::Binary };
    let is_wanted = signature.typ() == Some(wanted);
    let mut fault = None;
    for key in keys.iter().filter(|key| is_wanted && proves(key, signature, data)) {
        match ended(key, signature) {
            None => return Ok(()),
            Some(how) => fault = Some(Distrust::Ended(how)),
        }
    }
    Err(fault.unwrap_or_else(|| unknown(signature, keys)))
}

fn unknown(signature: &Signature, keys: &[SignedPublicKey]) -> Distrust {
    let issuers = signature.issuer_key_id();
    let is_known = keys.iter().any(|key| {
        let subkeys = key.public_subkeys.iter().filter(|sub| signs_for(sub, key));
        let ids = subkeys.map(|sub| sub.legacy_key_id()).chain([key.primary_key.legacy_key_id()]);
        ids.into_iter().any(|id| issuers.contains(&&id))
    });
    match issuers.first() {
        Some(id) if !is_known => Distrust::OtherKey(id.to_string().to_uppercase()),
        _ => Distrust::OtherContent,
    }
}

fn proves(key: &SignedPublicKey, signature: &Signature, data: &[u8]) -> bool {
    let by_subkey =
        |sub: &SignedPublicSubKey| signature.verify(&sub.key, data).is_ok() && signs_for(sub, key);
    signature.verify(&key.primary_key, data).is_ok() || key.public_subkeys.iter().any(by_subkey)
}

/// Whether a subkey is bound to `key` to sign, by signatures of both.
fn signs_for(sub: &SignedPublicSubKey, key: &SignedPublicKey) -> bool {
    let binds = |binding: &Signature| {
        let back = binding.embedded_signature();
        own::is_strong(binding)
            && binding.key_flags().sign()
            && binding.verify_subkey_binding(&key.primary_key, &sub.key).is_ok()
            && back.is_some_and(|back| {
                back.verify_primary_key_binding(&sub.key, &key.primary_key).is_ok()
            })
    };
    sub.signatures.iter().any(binds)
}

/// How `key`, or the subkey of it that made `signature`, ended before it was made, if it did.
fn ended(key: &SignedPublicKey, signature: &Signature) -> Option<String> {
    let by = key.public_subkeys.iter().find(|sub| {
        let id = sub.legacy_key_id();
        signature.issuer_key_id().contains(&&id)
    });
    let is_revoked = !key.details.revocation_signatures.is_empty()
        || by.is_some_and(|sub| sub.signatures.iter().any(own::revokes));
    if is_revoked {
        return Some("is revoked".to_owned());
    }
    let mut own_key = key.clone();
    own::drop_foreign(&mut own_key.details, &own_key.primary_key);
    let whole = own::said_of(&own_key.details, |_| true)
        .and_then(|said| own::end(key.primary_key.created_at(), said));
    let of_subkey =
        by.and_then(|sub| own::end(sub.key.created_at(), own::newest(sub.signatures.iter())?));
    let end = [whole, of_subkey].into_iter().flatten().min()?;
    let made = u64::from(signature.created()?.as_secs());
    (made >= end).then(|| "had expired when it was made".to_owned())
}
