//! The judgement whether clients accept a signature of another program, by their public keys.

use std::slice::from_ref;

use derive_more::Display;
use pgp::composed::SignedPublicKey;
use pgp::packet::{Signature, SignatureType};
use pgp::types::KeyDetails;

use super::judge::{self, Alive, Moment};

/// A reason for which clients refuse a signature, as the rest of a sentence.
#[derive(Debug, Clone, PartialEq, Eq, Display)]
pub(super) enum Distrust {
    /// The signature is by the key with this id, which clients do not have.
    #[display("is by the key {_0}, which clients do not get")]
    OtherKey(String),
    /// The signature is of other bytes, or of another kind than requested.
    #[display("is not one of what it was given to sign")]
    OtherContent,
    /// The signature is by one of their keys, and refused for this reason.
    Refused(String),
}

impl Distrust {
    /// The hint for the user.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::OtherKey(_) => {
                "give the public key of the key that signs by --public-key: clients get no other"
            }
            Self::OtherContent => {
                "it has to sign its standard input, byte for byte, as {mode} says: detach-sign or \
                 clear-sign"
            }
            Self::Refused(_) => {
                "extend the life of the key, or sign by another, and export the public key again"
            }
        }
    }
}

/// Fails unless clients accept `signature` of `data` at that time by one of the `keys`, which are
/// [`judge::checked`]. `is_text` tells whether it must be a signature of a text.
pub(super) fn check(
    signature: &Signature,
    data: &[u8],
    (keys, at): (&[SignedPublicKey], Moment),
    is_text: bool,
) -> Result<(), Distrust> {
    let wanted = if is_text { SignatureType::Text } else { SignatureType::Binary };
    if signature.typ() != Some(wanted) {
        return Err(unknown(signature, keys));
    }
    let taken = judge::one_is_taken(from_ref(signature), data, (keys, at), Alive::Now);
    taken.map_err(|refused| refused.map_or_else(|| unknown(signature, keys), Distrust::Refused))
}

/// Whether a signature names one of the keys, or a subkey of one, as its maker.
pub(super) fn names_a_key(signature: &Signature, keys: &[SignedPublicKey]) -> bool {
    keys.iter().any(|key| is_by(signature, key))
}

/// Whether a signature names the key or a subkey of it as its maker.
pub(super) fn is_by(signature: &Signature, key: &SignedPublicKey) -> bool {
    let mut subkeys = key.public_subkeys.iter();
    is_of(signature, &key.primary_key) || subkeys.any(|sub| is_of(signature, &sub.key))
}

/// Whether a signature names the key or subkey as its maker.
pub(super) fn is_of(signature: &Signature, part: &impl KeyDetails) -> bool {
    let (id, fingerprint) = (part.legacy_key_id(), part.fingerprint());
    signature.issuer_key_id().contains(&&id)
        || signature.issuer_fingerprint().contains(&&fingerprint)
}

fn unknown(signature: &Signature, keys: &[SignedPublicKey]) -> Distrust {
    let is_known = names_a_key(signature, keys);
    match signature.issuer_key_id().first() {
        Some(id) if !is_known => Distrust::OtherKey(id.to_string().to_uppercase()),
        _ => Distrust::OtherContent,
    }
}
