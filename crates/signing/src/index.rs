//! Signatures of repository indexes and receipts, detached or around their text, and of rpm headers.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use pgp::armor::{self, BlockType};
use pgp::composed::{ArmorOptions, CleartextSignedMessage, DetachedSignature, SignedPublicKey};
use pgp::crypto::public_key::PublicKeyAlgorithm;
use pgp::packet::{PacketTrait, Signature, SignatureType};
use pgp::ser::Serialize;
use pgp::types::KeyDetails;
use rockpack_archive::rpm::{HeaderSignature, HeaderSigner, SignatureTag};
use rockpack_core::error::{Error, Kind, Result};

use super::judge::{self, CheckTime};
use super::trust::{detached, public_keys};
use super::{Algorithm, OpenPgpKey};
use rockpack_report::Finding;

pub trait IndexSigner: fmt::Debug + Send + Sync {
    fn sign_detached(&self, data: &[u8]) -> Result<String>;

    /// Returns `text` with a signature around it.
    fn sign_clear(&self, text: &str) -> Result<String>;

    fn public_keys(&self) -> Result<String>;

    /// The algorithm with which it would sign a package, if it is known.
    fn algorithm(&self) -> Option<Algorithm>;

    fn findings(&self) -> Vec<Finding>;
}

/// A signer with several keys, each with its own signature, for a given time.
#[derive(Debug)]
pub struct KeySigner {
    signers: Vec<Arc<OpenPgpKey>>,
    /// The time of signatures, in seconds since 1970.
    time: u32,
    at: CheckTime,
    /// Further keys that clients should trust.
    others: Vec<SignedPublicKey>,
}

impl KeySigner {
    /// Signs with each of `signers` at the time of `at`. `others` are the contents of files with further public keys
    /// that clients should trust: the next key, or the previous one.
    pub fn new(signers: Vec<Arc<OpenPgpKey>>, at: CheckTime, others: &[Vec<u8>]) -> Result<Self> {
        let time = stated_time(at.time)?;
        let fingerprint = |key: &SignedPublicKey| key.fingerprint().to_string();
        let mut known: BTreeSet<_> = signers.iter().map(|it| fingerprint(&it.public)).collect();
        let mut keys = Vec::new();
        for bytes in others {
            let new = public_keys(bytes)?.into_iter().filter(|key| known.insert(fingerprint(key)));
            keys.extend(new);
        }
        Ok(Self { signers, time, at, others: keys })
    }

    /// Signs with each key, in reverse order. zypper reads only the last signature, so the last is that
    /// of the first key, which also signs packages.
    fn sign(&self, kind: SignatureType, data: &[u8]) -> Result<Vec<Signature>> {
        self.signers.iter().rev().map(|signer| signer.sign(kind, data, self.time)).collect()
    }
}

impl IndexSigner for KeySigner {
    fn sign_detached(&self, data: &[u8]) -> Result<String> {
        armored_signatures(self.sign(SignatureType::Binary, data)?)
    }

    fn sign_clear(&self, text: &str) -> Result<String> {
        // The last line break belongs to the frame around the text.
        let text = text.strip_suffix('\n').unwrap_or(text);
        let mut fault = None;
        let message = CleartextSignedMessage::new_many(text, |canonical| {
            let signatures = self.sign(SignatureType::Text, canonical.as_bytes());
            Ok(signatures.unwrap_or_else(|error| {
                fault = Some(error);
                Vec::new()
            }))
        });
        if let Some(fault) = fault {
            return Err(fault);
        }
        let written = message.and_then(|m| m.to_armored_string(ArmorOptions::default()));
        written.map_err(failed)
    }

    fn public_keys(&self) -> Result<String> {
        let own = self.signers.iter().map(|signer| &signer.public);
        armored(&own.chain(&self.others).collect::<Vec<_>>(), BlockType::PublicKey)
    }

    fn algorithm(&self) -> Option<Algorithm> {
        self.signers.first().map(|signer| signer.algorithm)
    }

    fn findings(&self) -> Vec<Finding> {
        let others = self.others.iter().map(|key| judge::checked(key.clone()));
        let refusals = others.filter_map(|key| judge::public_refusal(&key, self.at));
        refusals.map(|refusal| refusal.finding()).collect()
    }
}

pub(super) fn armored_signatures(signatures: Vec<Signature>) -> Result<String> {
    let detached: Vec<_> = signatures.into_iter().map(DetachedSignature::new).collect();
    armored(&detached, BlockType::Signature)
}

pub(super) fn armored(packets: &impl Serialize, kind: BlockType) -> Result<String> {
    let mut text = Vec::new();
    armor::write(packets, kind, &mut text, None, true).map_err(failed)?;
    String::from_utf8(text).map_err(|error| Error::bug("armour is no text").cause(error))
}

pub(super) fn failed(error: pgp::errors::Error) -> Error {
    Error::new(Kind::Unsupported, "signing failed").cause(error)
}

/// The time of a signature, in seconds since 1970.
fn stated_time(time: i64) -> Result<u32> {
    u32::try_from(time)
        .map_err(|_| Error::new(Kind::Limit, format!("a signature cannot state the time {time}")))
}

/// Signs rpm headers at `time`, seconds since 1970.
pub fn header_signer(signer: &Arc<OpenPgpKey>, time: i64) -> Result<HeaderSigner> {
    let (time, signer) = (stated_time(time)?, Arc::clone(signer));
    Ok(HeaderSigner {
        sign: Arc::new(move |header| {
            header_signature(&signer.sign(SignatureType::Binary, header, time)?)
        }),
    })
}

/// Signs rpm headers with a signer of indexes, which may be another program, and removes the armour. The
/// signatures state the program's time.
pub fn header_signer_of(signer: Arc<dyn IndexSigner>) -> HeaderSigner {
    HeaderSigner {
        sign: Arc::new(move |header| {
            match detached(signer.sign_detached(header)?.as_bytes())?.as_slice() {
                [one] => header_signature(one),
                all => Err(unusable(format!("has {} signatures, but rpm accepts one", all.len()))),
            }
        }),
    }
}

fn header_signature(signature: &Signature) -> Result<HeaderSignature> {
    let tag = match signature.config().map(|config| config.pub_alg) {
        Some(PublicKeyAlgorithm::RSA) => SignatureTag::Rsa,
        Some(
            PublicKeyAlgorithm::EdDSALegacy | PublicKeyAlgorithm::Ed25519 | PublicKeyAlgorithm::DSA,
        ) => SignatureTag::Dsa,
        other => return Err(unusable(format!("uses {other:?}, which rpm does not accept"))),
    };
    let mut packet = Vec::new();
    signature.to_writer_with_header(&mut packet).map_err(failed)?;
    Ok(HeaderSignature { tag, packet })
}

fn unusable(message: String) -> Error {
    Error::new(Kind::Usage, message)
        .structure("signature of an rpm header")
        .hint("packages are signed by one RSA or Ed25519 key")
}
