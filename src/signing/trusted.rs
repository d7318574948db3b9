//! The judgement whether clients accept a signature of another program, by their public keys.

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
    let judged = keys.iter().filter_map(|key| judge::taken(signature, data, key, at, Alive::Now));
    let mut refused = None;
    for taken in judged {
        match taken {
            Ok(()) => return Ok(()),
            Err(reason) => refused = Some(Distrust::Refused(reason)),
        }
    }
    Err(refused.unwrap_or_else(|| unknown(signature, keys)))
}

/// Whether a signature names one of the keys, or a subkey of one, as its maker.
pub(super) fn names_a_key(signature: &Signature, keys: &[SignedPublicKey]) -> bool {
    let issuers = signature.issuer_key_id();
    keys.iter().any(|key| {
        let subkeys = key.public_subkeys.iter().map(KeyDetails::legacy_key_id);
        subkeys.chain([key.primary_key.legacy_key_id()]).any(|id| issuers.contains(&&id))
    })
}

fn unknown(signature: &Signature, keys: &[SignedPublicKey]) -> Distrust {
    let is_known = names_a_key(signature, keys);
    match signature.issuer_key_id().first() {
        Some(id) if !is_known => Distrust::OtherKey(id.to_string().to_uppercase()),
        _ => Distrust::OtherContent,
    }
}
