//! Digests of signatures that clients refuse, though the signatures are good.
//!
//! Of a key, clients look at the signatures by which it speaks of itself. apt of Debian 13 takes none of them
//! by SHA-1, SHA-224, RIPEMD-160 or MD5, and none of another version than 4.

use pgp::composed::{SignedPublicKey, SignedPublicSubKey};
use pgp::crypto::hash::HashAlgorithm;
use pgp::packet::{Signature, SignatureType, SignatureVersion};
use pgp::types::{KeyDetails, Timestamp};

/// Why clients refuse a good signature by `key`, or by its subkey `by`.
pub(super) fn fault(
    signature: &Signature,
    key: &SignedPublicKey,
    by: Option<&SignedPublicSubKey>,
) -> Option<String> {
    let own = weak(signature).map(|digest| format!("uses {digest}"));
    let of_subkey = || {
        let digest = all_weak(by?.signatures.iter().filter(|it| !is_revocation(it)))?;
        Some(format!("is by a subkey that is bound to its key by {digest}"))
    };
    let of_key = || {
        let digest = all_weak(said(key).into_iter())?;
        Some(format!("is by a key that has its own user id signed by {digest}"))
    };
    own.or_else(of_key).or_else(of_subkey)
}

/// The digest of the newest of `signatures`, where clients take none of them.
fn all_weak<'a>(signatures: impl Iterator<Item = &'a Signature> + Clone) -> Option<String> {
    if signatures.clone().any(|signature| weak(signature).is_none()) {
        return None;
    }
    weak(signatures.max_by_key(|signature| made(signature))?)
}

/// The digest that clients refuse, of a signature or of the one in it by which a subkey agrees.
fn weak(signature: &Signature) -> Option<String> {
    match (signature.version(), signature.hash_alg()) {
        (SignatureVersion::V4, Some(digest)) => match digest {
            HashAlgorithm::Sha256 | HashAlgorithm::Sha384 | HashAlgorithm::Sha512 => {
                signature.embedded_signature().and_then(weak)
            }
            other => Some(other.to_string()),
        },
        (version, _) => Some(format!("a signature of version {}", u8::from(version))),
    }
}

/// What the key says of itself, of user ids that it did not take back.
fn said(key: &SignedPublicKey) -> Vec<&Signature> {
    let own = key.primary_key.legacy_key_id();
    let is_own = |it: &&Signature| it.issuer_key_id().into_iter().all(|issuer| *issuer == own);
    let of_user = |signatures| -> Vec<&Signature> {
        let said: Vec<&Signature> =
            <&Vec<Signature>>::into_iter(signatures).filter(is_own).collect();
        let newest = said.iter().max_by_key(|it| made(it));
        if newest.is_some_and(|it| is_revocation(it)) { Vec::new() } else { said }
    };
    let users = key.details.users.iter().flat_map(|user| of_user(&user.signatures));
    let direct = key.details.direct_signatures.iter().filter(is_own);
    users.filter(|it| !is_revocation(it)).chain(direct).collect()
}

fn is_revocation(signature: &Signature) -> bool {
    let kinds = [SignatureType::CertRevocation, SignatureType::SubkeyRevocation];
    signature.typ().is_some_and(|kind| kinds.contains(&kind))
}

fn made(signature: &Signature) -> Option<u32> {
    signature.created().map(Timestamp::as_secs)
}
