//! Whether clients accept a signature or a key: for keys that sign, for signatures of other programs, and for
//! verification.
//!
//! apt refuses expired keys and signatures, revoked or weak keys, and dates ahead of its clock; it accepts a key's
//! self-signatures only with some digests (`own`).

use pgp::composed::{SignedPublicKey, SignedPublicSubKey};
use pgp::crypto::public_key::PublicKeyAlgorithm;
use pgp::packet::{Signature, SignatureType, Subpacket, SubpacketData};
use pgp::ser::Serialize;
use pgp::types::{KeyDetails, KeyVersion, Tag, Timestamp};
use rockpack_archive::apt_index::format_date;
use rockpack_core::error::{Error, Kind};

use super::own;
use rockpack_report::{Finding, found};

/// Fewest bits of an RSA modulus; rpm and apt refuse smaller keys.
const RSA_BITS_MIN: u16 = 2048;

/// Largest accepted difference between clocks, in seconds.
const DAY: i64 = 86_400;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CheckTime {
    /// The time at which they must be valid, in seconds since 1970.
    pub time: i64,
    /// The current time, in seconds since 1970: no date may be more than a day ahead of it.
    pub clock: i64,
}

/// When a key must be valid for its signatures to be accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyValidAt {
    /// The time of the check, as apt, dnf and zypper require for indexes.
    Now,
    /// The time of the signature, as rpm requires for packages.
    WhenSigned,
}

/// Drops the invalid self-signatures of a key. Keeps those that clients refuse, some of which cannot be checked, so
/// that a refusal can name them.
pub fn checked(mut key: SignedPublicKey) -> SignedPublicKey {
    let primary = key.primary_key.clone();
    own::drop_foreign(&mut key.details, &primary);
    let details = &mut key.details;
    for own in [&mut details.direct_signatures, &mut details.revocation_signatures] {
        own.retain(|it| retain_signature(it, it.verify_key(&primary)));
    }
    for user in &mut details.users {
        let id = user.id.clone();
        user.signatures
            .retain(|it| retain_signature(it, it.verify_certification(&primary, Tag::UserId, &id)));
    }
    details.users.retain(|user| !user.signatures.is_empty());
    for sub in &mut key.public_subkeys {
        let part = sub.key.clone();
        let agrees = |binding: &Signature| match binding.embedded_signature() {
            Some(back) => back.verify_primary_key_binding(&part, &primary).is_ok(),
            None => !binding.key_flags().sign(),
        };
        sub.signatures.retain(|it| it.verify_subkey_binding(&primary, &part).is_ok() && agrees(it));
    }
    key.public_subkeys.retain(|sub| !sub.signatures.is_empty());
    key
}

fn retain_signature(signature: &Signature, checked: pgp::errors::Result<()>) -> bool {
    checked.is_ok() || !own::is_strong(signature)
}

/// Fails unless clients accept one of the signatures `found` of `data` by one of the [`checked`] `keys`. The error is
/// why they refuse one, as the rest of a sentence; `None` if all are by other keys, or of other data.
pub(super) fn check_any_accepted(
    found: &[Signature],
    data: &[u8],
    (keys, at): (&[SignedPublicKey], CheckTime),
    alive: KeyValidAt,
) -> Result<(), Option<String>> {
    let mut refused = None;
    for key in keys {
        for signature in found {
            match check_acceptance(signature, data, key, at, alive) {
                None => {}
                Some(Ok(())) => return Ok(()),
                Some(Err(fault)) => refused = Some(fault),
            }
        }
    }
    Err(refused)
}

/// Whether clients accept `signature` of `data` by `key`; the error is why not. `None` if it is by another key, or of
/// other data.
fn check_acceptance(
    signature: &Signature,
    data: &[u8],
    key: &SignedPublicKey,
    at: CheckTime,
    alive: KeyValidAt,
) -> Option<Result<(), String>> {
    let mut subkeys = key.public_subkeys.iter();
    let by = subkeys.find(|sub| signature.verify(&sub.key, data).is_ok());
    if by.is_none() && signature.verify(&key.primary_key, data).is_err() {
        return None;
    }
    let made = signature.created().map_or(0, seconds);
    let lives = match alive {
        KeyValidAt::Now => at,
        KeyValidAt::WhenSigned => CheckTime { time: made, ..at },
    };
    let part = by.map_or_else(|| key.primary_key.created_at(), |sub| sub.created_at());
    let older = "is older than the key that made it";
    let fault = signature_fault(signature, at)
        .or_else(|| (made < seconds(part)).then(|| older.to_owned()))
        .or_else(|| {
            let refusal = key_refusal(key, by, lives)?;
            Some(format!("is by a key that clients refuse ({})", refusal.fault))
        });
    Some(fault.map_or(Ok(()), Err))
}

/// Why clients refuse a signature, whatever its key, as the rest of a sentence.
pub(super) fn signature_fault(signature: &Signature, at: CheckTime) -> Option<String> {
    let kinds = [SignatureType::Binary, SignatureType::Text];
    if !signature.typ().is_some_and(|kind| kinds.contains(&kind)) {
        return Some("is not of a type for files".to_owned());
    }
    if let Some(fault) = own::fault(signature) {
        return Some(fault);
    }
    let Some(made) = signature.created().map(seconds) else {
        return Some("does not state its time".to_owned());
    };
    if is_ahead(made, at) {
        return Some(format!("is dated {}, more than a day ahead of the clock", date(made)));
    }
    let lives = signature.signature_expiration_time().map_or(0, |lives| lives.as_secs());
    let end = made.saturating_add(lives.into());
    if lives > 0 && end <= at.time {
        return Some(format!("expired on {}", date(end)));
    }
    let critical = hashed_subpackets(signature)
        .any(|it| it.is_critical && matches!(it.data, SubpacketData::Notation(_)));
    critical.then(|| "has a critical notation, which no client knows".to_owned())
}

/// Why clients refuse signatures of `key` by its subkey `by`, or by itself.
pub(super) fn key_refusal(
    key: &SignedPublicKey,
    by: Option<&SignedPublicSubKey>,
    at: CheckTime,
) -> Option<Refusal> {
    part_refusal("the key", &key.primary_key, at)
        .or_else(|| {
            let weakness = own::weakness(key, by.map(|sub| sub.fingerprint()).as_ref());
            weakness.map(|[fault, remedy]| Refusal::repairable(fault, &remedy))
        })
        .or_else(|| life_refusal(key, at))
        .or_else(|| by.and_then(|sub| subkey_refusal(sub, at)))
        .or_else(|| (by.is_none() && !may_sign(key)).then(Refusal::may_not_sign))
        .map(|refusal| refusal.of(key))
}

/// Why clients refuse signatures of a public key: by its newest valid signing subkey, or by itself.
pub(super) fn public_refusal(key: &SignedPublicKey, at: CheckTime) -> Option<Refusal> {
    let signing = key
        .public_subkeys
        .iter()
        .filter(|sub| own::newest(&sub.signatures).is_some_and(|newest| newest.key_flags().sign()));
    let alive = signing.clone().filter(|sub| !is_unusable(sub, at));
    let newest = alive.max_by_key(|sub| sub.created_at().as_secs());
    let newest_or_lost = newest.or_else(|| {
        signing.max_by_key(|sub| sub.created_at().as_secs()).filter(|_| !may_sign(key))
    });
    key_refusal(key, newest_or_lost, at)
}

/// Refuses a key or subkey, called `what`, for its kind or its date.
fn part_refusal(what: &str, part: &impl KeyDetails, at: CheckTime) -> Option<Refusal> {
    let made = seconds(part.created_at());
    match part.algorithm() {
        _ if part.version() != KeyVersion::V4 => {
            Some(Refusal::weak(format!("{what} is of version {}", u8::from(part.version()))))
        }
        PublicKeyAlgorithm::RSA if modulus_bits(part) < RSA_BITS_MIN => {
            Some(Refusal::weak(format!("{what} is RSA with fewer than {RSA_BITS_MIN} bits")))
        }
        PublicKeyAlgorithm::DSA | PublicKeyAlgorithm::Elgamal => {
            Some(Refusal::weak(format!("{what} is of {:?}", part.algorithm())))
        }
        _ if is_ahead(made, at) => {
            let (made, clock) = (date(made), date(at.clock));
            let fault =
                format!("{what} was made on {made}, more than a day ahead of the clock ({clock})");
            Some(Refusal::new(fault, "make a new key while the clock is right"))
        }
        _ => None,
    }
}

/// Refuses a key that is revoked, has expired, or has no self-signature.
fn life_refusal(key: &SignedPublicKey, at: CheckTime) -> Option<Refusal> {
    if !key.details.revocation_signatures.is_empty() {
        return Some(Refusal::revoked("the key is revoked".to_owned()));
    }
    let Some(said) = own::self_signature(&key.details, |_| true) else {
        return Some(Refusal::revoked("the key has no user id that it signed".to_owned()));
    };
    let ends =
        [Some(said), own::self_signature(&key.details, own::is_strong)].into_iter().flatten();
    let end = ends.filter_map(|said| own::expiry(key.primary_key.created_at(), said)).min();
    expired("the key", end, at)
}

/// Refuses a subkey for its kind, or because it is revoked, has expired or may not sign.
fn subkey_refusal(sub: &SignedPublicSubKey, at: CheckTime) -> Option<Refusal> {
    let what = format!("its subkey {}", own::upper_hex(&sub.fingerprint()));
    if sub.signatures.iter().any(own::revokes) {
        return Some(Refusal::revoked(format!("{what} is revoked")));
    }
    let signs = own::newest(&sub.signatures).is_some_and(|newest| newest.key_flags().sign());
    part_refusal(&what, &sub.key, at)
        .or_else(|| expired(&what, own::subkey_end(sub.created_at(), &sub.signatures), at))
        .or_else(|| (!signs).then(Refusal::may_not_sign))
}

fn is_unusable(sub: &SignedPublicSubKey, at: CheckTime) -> bool {
    let end = own::subkey_end(sub.created_at(), &sub.signatures);
    sub.signatures.iter().any(own::revokes) || expired("its subkey", end, at).is_some()
}

fn expired(what: &str, end: Option<u64>, at: CheckTime) -> Option<Refusal> {
    let end = i64::try_from(end?).unwrap_or(i64::MAX);
    let remedy = "extend its validity with `gpg --quick-set-expire FINGERPRINT 2y`";
    (end <= at.time)
        .then(|| Refusal::repairable(format!("{what} expired on {}", date(end)), remedy))
}

/// Whether the primary key states that it may sign, or states no purpose.
fn may_sign(key: &SignedPublicKey) -> bool {
    let Some(said) = own::self_signature(&key.details, |_| true) else { return false };
    let mut subpackets = hashed_subpackets(said);
    !subpackets.any(|it| matches!(it.data, SubpacketData::KeyFlags(_))) || said.key_flags().sign()
}

fn hashed_subpackets(signature: &Signature) -> impl Iterator<Item = &Subpacket> {
    signature.config().into_iter().flat_map(|config| &config.hashed_subpackets)
}

fn is_ahead(made: i64, at: CheckTime) -> bool {
    made > at.clock.saturating_add(DAY)
}

fn seconds(time: Timestamp) -> i64 {
    time.as_secs().into()
}

fn date(seconds: i64) -> String {
    format_date(seconds).unwrap_or_else(|_| seconds.to_string())
}

/// The bits of an RSA modulus. The key begins with the modulus, which begins with its bit count (RFC 4880, 5.5.2).
fn modulus_bits(part: &impl KeyDetails) -> u16 {
    let mut numbers = Vec::new();
    let written = part.public_params().to_writer(&mut numbers).is_ok();
    let bits = numbers.first_chunk().filter(|_| written);
    bits.map_or(0, |bits| u16::from_be_bytes(*bits))
}

/// Whether a signature names the key or one of its subkeys as issuer.
pub(super) fn names_key(signature: &Signature, key: &SignedPublicKey) -> bool {
    let mut subkeys = key.public_subkeys.iter();
    names_key_part(signature, &key.primary_key)
        || subkeys.any(|sub| names_key_part(signature, &sub.key))
}

/// Whether a signature names this key or subkey as issuer.
pub(super) fn names_key_part(signature: &Signature, part: &impl KeyDetails) -> bool {
    let (id, fingerprint) = (part.legacy_key_id(), part.fingerprint());
    signature.issuer_key_id().contains(&&id)
        || signature.issuer_fingerprint().contains(&&fingerprint)
}

/// Why clients refuse signatures of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    /// The name of the key in messages.
    key: String,
    /// The fault, as a sentence.
    fault: String,
    remedy: String,
    /// Whether the remedy repairs this key, which must then be exported again.
    is_repairable: bool,
}

impl Refusal {
    fn new(fault: String, remedy: &str) -> Self {
        Self { key: String::new(), fault, remedy: remedy.to_owned(), is_repairable: false }
    }

    fn weak(fault: String) -> Self {
        Self::new(fault, "make a new key: Ed25519, or RSA with at least 3072 bits")
    }

    fn revoked(fault: String) -> Self {
        Self::new(fault, "make a new key")
    }

    /// Refuses a key or subkey that can be repaired.
    fn repairable(fault: String, remedy: &str) -> Self {
        Self { is_repairable: true, ..Self::new(fault, remedy) }
    }

    fn may_not_sign() -> Self {
        let remedy = "add a subkey that signs with `gpg --quick-add-key FINGERPRINT ed25519 sign`";
        Self::repairable("it is not for signing".to_owned(), remedy)
    }

    fn of(self, key: &SignedPublicKey) -> Self {
        let fingerprint = own::upper_hex(&key.primary_key.fingerprint());
        Self {
            key: own::key_name(&key.primary_key, &key.details),
            remedy: self.remedy.replace("FINGERPRINT", &fingerprint),
            ..self
        }
    }

    /// The error for a key that must not sign.
    pub fn error(&self) -> Error {
        let message = format!(
            "{}: apt of Debian 13 and other clients refuse all signatures of the key",
            self.fault
        );
        let after = if self.is_repairable {
            "; then export the key again, and give the new public key to everyone who has the old one"
        } else {
            ""
        };
        Error::new(Kind::Usage, message).hint(format!("{}{after}", self.remedy))
    }

    /// The warning for a further key that clients should trust.
    pub fn finding(&self) -> Finding {
        Finding::from(found::KeyWeak {
            key: self.key.clone(),
            fault: self.fault.clone(),
            remedy: self.remedy.clone(),
        })
    }
}
