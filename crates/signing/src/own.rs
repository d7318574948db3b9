//! The self-signatures of a key, of its user ids and its subkeys.
//!
//! Clients judge them before signatures of data. Since 2026-02-01 apt of Debian 13 refuses those with SHA-1,
//! SHA-224 or RIPEMD-160, and those of version 3 (its policy is default-sequoia.config); other clients refuse
//! other old digests. All of them accept SHA-256, SHA-384 and SHA-512.

use jiff::Timestamp as Time;
use pgp::composed::{SignedKeyDetails, SignedPublicKey, SignedSecretKey};
use pgp::crypto::hash::HashAlgorithm;
use pgp::crypto::public_key::PublicKeyAlgorithm;
use pgp::packet::{Signature, SignatureType, SignatureVersion};
use pgp::types::{Fingerprint, KeyDetails, Timestamp};
use rockpack_core::content::hex;

/// Drops the signatures of other keys from `details` of `key`: they cannot be checked without those keys.
pub(super) fn drop_foreign(details: &mut SignedKeyDetails, key: &impl KeyDetails) {
    let (id, fingerprint) = (key.legacy_key_id(), key.fingerprint());
    retain(details, |signature| match signature.issuer_fingerprint().as_slice() {
        [] => signature.issuer_key_id().into_iter().all(|issuer| *issuer == id),
        issuers => issuers.iter().all(|issuer| **issuer == fingerprint),
    });
}

/// Drops other signatures, and then user ids and attributes without signatures.
fn retain(details: &mut SignedKeyDetails, is_retained: impl Fn(&Signature) -> bool) {
    details.direct_signatures.retain(&is_retained);
    details.users.iter_mut().for_each(|user| user.signatures.retain(&is_retained));
    details.users.retain(|user| !user.signatures.is_empty());
    details.user_attributes.iter_mut().for_each(|user| user.signatures.retain(&is_retained));
    details.user_attributes.retain(|user| !user.signatures.is_empty());
}

/// The newest self-signature of a key that `counts` accepts, ignoring revoked user ids.
pub(super) fn self_signature(
    details: &SignedKeyDetails,
    counts: impl Fn(&Signature) -> bool,
) -> Option<&Signature> {
    let users = details.users.iter().map(|user| &user.signatures);
    let users = users.filter(|said| newest(*said).is_some_and(|newest| !revokes_user(newest)));
    let said = users.flatten().filter(|signature| !revokes_user(signature));
    newest(said.chain(&details.direct_signatures).filter(|signature| counts(signature)))
}

fn revokes_user(signature: &Signature) -> bool {
    signature.typ() == Some(SignatureType::CertRevocation)
}

pub(super) fn newest<'a>(
    signatures: impl IntoIterator<Item = &'a Signature>,
) -> Option<&'a Signature> {
    signatures.into_iter().max_by_key(|signature| signature.created().map(Timestamp::as_secs))
}

/// The expiry of a key by a self-signature, in seconds since 1970. `made` is the key's creation time.
pub(super) fn expiry(made: Timestamp, said: &Signature) -> Option<u64> {
    let lives = u64::from(said.key_expiration_time()?.as_secs());
    // Zero means no expiry.
    (lives > 0).then(|| u64::from(made.as_secs()).saturating_add(lives))
}

/// The expiry of a subkey by its binding `signatures`. Clients that refuse the newest one for its digest use the
/// previous one, so the earlier expiry counts.
pub(super) fn subkey_end(made: Timestamp, signatures: &[Signature]) -> Option<u64> {
    let strong = newest(signatures.iter().filter(|it| is_strong(it)));
    let said = [newest(signatures), strong].into_iter().flatten();
    said.filter_map(|said| expiry(made, said)).min()
}

pub(super) fn revokes(signature: &Signature) -> bool {
    signature.typ() == Some(SignatureType::SubkeyRevocation)
}

/// Whether every client accepts a signature and the signature embedded in it.
pub(super) fn is_strong(signature: &Signature) -> bool {
    fault(signature).is_none()
}

/// Checks the self-signatures of a key, except those that clients refuse, some of which cannot be checked.
pub(super) fn verify(key: &SignedSecretKey) -> pgp::errors::Result<()> {
    let mut key = key.clone();
    retain(&mut key.details, is_strong);
    key.public_subkeys.iter_mut().for_each(|sub| sub.signatures.retain(is_strong));
    key.public_subkeys.retain(|sub| !sub.signatures.is_empty());
    key.secret_subkeys.iter_mut().for_each(|sub| sub.signatures.retain(is_strong));
    key.secret_subkeys.retain(|sub| !sub.signatures.is_empty());
    key.verify_bindings()
}

/// Why clients refuse a signature, or the one embedded in it, as the rest of a sentence.
pub(super) fn fault(signature: &Signature) -> Option<String> {
    let digest = match (signature.version(), signature.hash_alg()) {
        (SignatureVersion::V4, Some(digest)) => digest,
        (version, _) => return Some(format!("is of version {}", u8::from(version))),
    };
    let name = match digest {
        HashAlgorithm::Sha256 | HashAlgorithm::Sha384 | HashAlgorithm::Sha512 => {
            return signature.embedded_signature().and_then(fault);
        }
        HashAlgorithm::Sha1 => "SHA-1".to_owned(),
        HashAlgorithm::Sha224 => "SHA-224".to_owned(),
        HashAlgorithm::Ripemd160 => "RIPEMD-160".to_owned(),
        other => other.to_string(),
    };
    Some(format!("uses {name}"))
}

/// The name of a key in messages: its fingerprint, and the first of its user ids.
pub(super) fn key_name(key: &impl KeyDetails, details: &SignedKeyDetails) -> String {
    let fingerprint = upper_hex(&key.fingerprint());
    let Some(user) = details.users.first() else { return fingerprint };
    let name = String::from_utf8_lossy(user.id.id());
    format!("{fingerprint} ({})", name.escape_debug())
}

pub(super) fn upper_hex(fingerprint: &Fingerprint) -> String {
    hex(fingerprint.as_bytes()).to_uppercase()
}

/// The weak self-signature that makes clients refuse `key`, which signs with the subkey `by` or itself: the fault and
/// the remedy.
pub(super) fn weakness(key: &SignedPublicKey, by: Option<&Fingerprint>) -> Option<[String; 2]> {
    let newest_said = self_signature(&key.details, |_| true)?;
    let is_weak = self_signature(&key.details, is_strong).is_none();
    if let Some(fault) = fault(newest_said).filter(|_| is_weak) {
        let remedy = renewal(key, newest_said, &fault);
        return Some([format!("the key's signature of its own user id {fault}"), remedy]);
    }
    let sub = key.public_subkeys.iter().find(|sub| Some(&sub.fingerprint()) == by)?;
    let is_weak = !sub.signatures.iter().any(|it| !revokes(it) && is_strong(it));
    let fault = newest(&sub.signatures).filter(|_| is_weak).and_then(fault)?;
    let own = upper_hex(&sub.fingerprint());
    let is_rsa = key.primary_key.algorithm() == PublicKeyAlgorithm::RSA;
    let algorithm = if is_rsa { "rsa4096" } else { "ed25519" };
    let primary = upper_hex(&key.primary_key.fingerprint());
    let remedy = format!(
        "make a new subkey to sign with: `gpg --cert-digest-algo SHA256 --quick-add-key {primary} \
         {algorithm} sign`"
    );
    Some([format!("the signature that binds its subkey {own} {fault}"), remedy])
}

/// The command of gpg that replaces the weak signature `said` of the user ids of `key`.
fn renewal(key: &SignedPublicKey, said: &Signature, fault: &str) -> String {
    let primary = upper_hex(&key.primary_key.fingerprint());
    if said.version() != SignatureVersion::V4 {
        return format!(
            "give it one more user id, as gpg cannot renew such a signature: `gpg \
             --cert-digest-algo SHA256 --quick-add-uid {primary} 'NAME <ADDRESS>'`"
        );
    }
    let until = expiry(key.primary_key.created_at(), said)
        .and_then(|seconds| Time::from_second(i64::try_from(seconds).ok()?).ok())
        .map_or("never".to_owned(), |it| it.strftime("%Y%m%dT%H%M%S").to_string());
    // Without the option gpg ignores a signature with MD5, and so does not replace it.
    let allow = if fault.ends_with("MD5") { " --allow-weak-digest-algos" } else { "" };
    format!(
        "renew it: `gpg --cert-digest-algo SHA256{allow} --quick-set-expire {primary} \
         {until}`"
    )
}
