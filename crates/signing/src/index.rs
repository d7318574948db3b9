//! Signatures of repository indexes and receipts: detached ones, and texts with a signature around them; and
//! signatures of rpm headers.

use std::collections::BTreeSet;
use std::fmt;
use std::io::Write;
use std::sync::Arc;

use pgp::armor::{self, BlockType};
use pgp::composed::{
    ArmorOptions, CleartextSignedMessage, Deserializable, DetachedSignature, SignedPublicKey,
};
use pgp::crypto::public_key::PublicKeyAlgorithm;
use pgp::ser::Serialize;
use pgp::types::KeyDetails;
use rockpack_archive::rpm::{HeaderSignature, HeaderSigner, SignatureTag};
use rockpack_core::error::{Error, Kind, Result};

use super::judge::{self, Moment};
use super::trust::public_keys;
use super::{Algorithm, Signer};
use rockpack_report::Finding;

/// A signer of receipts and of a repository's indexes.
pub trait IndexSigner: fmt::Debug + Send + Sync {
    /// Returns an armoured signature of `data`.
    fn sign_detached(&self, data: &[u8]) -> Result<String>;

    /// Returns `text` with a signature around it.
    fn sign_clear(&self, text: &str) -> Result<String>;

    /// Returns the armoured public keys for checking signatures.
    fn public_keys(&self) -> Result<String>;

    /// The algorithm with which it would sign a package, if it is known.
    fn algorithm(&self) -> Option<Algorithm>;

    /// The findings about those keys.
    fn findings(&self) -> Vec<Finding> {
        Vec::new()
    }
}

/// A signer with several keys, each with its own signature, for a given time.
#[derive(Debug)]
pub struct KeySigner {
    signers: Vec<Arc<dyn Signer>>,
    /// The time of signatures, in seconds since 1970.
    time: u32,
    /// The time for which the keys are judged.
    at: Moment,
    /// Further keys that clients should trust.
    others: Vec<SignedPublicKey>,
}

impl KeySigner {
    /// Signs by each of `signers` at the time of `at`. `others` are the contents of files of further public
    /// keys that clients should trust: the next key, or the previous one.
    pub fn new(signers: Vec<Arc<dyn Signer>>, at: Moment, others: &[Vec<u8>]) -> Result<Self> {
        let time = stated_time(at.time)?;
        let (mut known, mut keys) = (BTreeSet::new(), Vec::new());
        for signer in &signers {
            known.extend(public_keys(&signer.public_key()?)?.iter().map(fingerprint));
        }
        for bytes in others {
            keys.extend(
                public_keys(bytes)?.into_iter().filter(|key| known.insert(fingerprint(key))),
            );
        }
        Ok(Self { signers, time, at, others: keys })
    }

    /// The keys in the order of their signatures. zypper reads only the last signature, so the last is that
    /// of the first key, which also signs packages.
    fn in_order(&self) -> impl Iterator<Item = &Arc<dyn Signer>> {
        self.signers.iter().rev()
    }
}

impl IndexSigner for KeySigner {
    fn sign_detached(&self, data: &[u8]) -> Result<String> {
        let mut all = Vec::new();
        for signer in self.in_order() {
            all.extend(signer.sign(data, self.time)?);
        }
        armored(&all, BlockType::Signature)
    }

    fn sign_clear(&self, text: &str) -> Result<String> {
        // The last line break belongs to the frame around the text.
        let text = text.strip_suffix('\n').unwrap_or(text);
        let mut fault = None;
        let message = CleartextSignedMessage::new_many(text, |canonical| {
            let sign = |signer: &Arc<dyn Signer>| {
                let signature = signer.sign_text(canonical.as_bytes(), self.time);
                let bytes = signature.unwrap_or_else(|error| {
                    fault = Some(error);
                    Vec::new()
                });
                DetachedSignature::from_bytes(&bytes[..]).map(|made| made.signature)
            };
            self.in_order().map(sign).collect()
        });
        if let Some(fault) = fault {
            return Err(fault);
        }
        let written = message.and_then(|m| m.to_armored_string(ArmorOptions::default()));
        written.map_err(failed)
    }

    fn public_keys(&self) -> Result<String> {
        let mut all = Vec::new();
        for signer in &self.signers {
            all.extend(signer.public_key()?);
        }
        for key in &self.others {
            key.to_writer(&mut all).map_err(failed)?;
        }
        armored(&all, BlockType::PublicKey)
    }

    fn algorithm(&self) -> Option<Algorithm> {
        self.signers.first().map(|signer| signer.algorithm())
    }

    fn findings(&self) -> Vec<Finding> {
        let others = self.others.iter().map(|key| judge::checked(key.clone()));
        let refusals = others.filter_map(|key| judge::public_refusal(&key, self.at));
        refusals.map(|refusal| refusal.finding()).collect()
    }
}

fn fingerprint(key: &SignedPublicKey) -> Vec<u8> {
    key.primary_key.fingerprint().as_bytes().to_vec()
}

/// Bytes that are already encoded.
struct RawBytes<'a>(&'a [u8]);

impl Serialize for RawBytes<'_> {
    fn to_writer<W: Write>(&self, writer: &mut W) -> pgp::errors::Result<()> {
        writer.write_all(self.0)?;
        Ok(())
    }

    fn write_len(&self) -> usize {
        self.0.len()
    }
}

/// Packets in armour.
pub(super) fn armored(bytes: &[u8], kind: BlockType) -> Result<String> {
    let mut text = Vec::new();
    armor::write(&RawBytes(bytes), kind, &mut text, None, true).map_err(failed)?;
    String::from_utf8(text).map_err(|error| Error::bug("armour is no text").cause(error))
}

pub(super) fn failed(error: pgp::errors::Error) -> Error {
    Error::new(Kind::Unsupported, "nothing can be signed").cause(error)
}

/// The time of a signature, in seconds since 1970.
fn stated_time(time: i64) -> Result<u32> {
    u32::try_from(time)
        .map_err(|_| Error::new(Kind::Limit, format!("no signature can state time {time}")))
}

/// Signs rpm headers at `time`, seconds since 1970.
pub fn header_signer(signer: &Arc<dyn Signer>, time: i64) -> Result<HeaderSigner> {
    let time = stated_time(time)?;
    let tag = match signer.algorithm() {
        Algorithm::Rsa => SignatureTag::Rsa,
        Algorithm::EdDsa => SignatureTag::Dsa,
    };
    let signer = Arc::clone(signer);
    Ok(HeaderSigner {
        sign: Arc::new(move |header| {
            Ok(HeaderSignature { tag, packet: signer.sign(header, time)? })
        }),
    })
}

/// Signs rpm headers with a signer of indexes, which may be another program, and removes the armour. The
/// signatures state the program's time.
pub fn header_signer_of(signer: Arc<dyn IndexSigner>) -> HeaderSigner {
    HeaderSigner { sign: Arc::new(move |header| header_signature(&signer.sign_detached(header)?)) }
}

/// The one signature in `armored`, in the form of an rpm header.
fn header_signature(armored: &str) -> Result<HeaderSignature> {
    let (found, _) =
        DetachedSignature::from_armor_many(armored.as_bytes()).map_err(no_signature)?;
    let all: Vec<DetachedSignature> = found.collect::<Result<_, _>>().map_err(no_signature)?;
    let [one] = all.as_slice() else {
        return Err(unusable(format!("has {} signatures, and rpm takes one", all.len())));
    };
    let algorithm = one.signature.config().map(|config| config.pub_alg);
    let tag = match algorithm {
        Some(PublicKeyAlgorithm::RSA) => SignatureTag::Rsa,
        Some(
            PublicKeyAlgorithm::EdDSALegacy | PublicKeyAlgorithm::Ed25519 | PublicKeyAlgorithm::DSA,
        ) => SignatureTag::Dsa,
        other => return Err(unusable(format!("is by {other:?}, which rpm does not take"))),
    };
    let packet = one.to_bytes().map_err(no_signature)?;
    Ok(HeaderSignature { tag, packet })
}

fn no_signature(error: pgp::errors::Error) -> Error {
    unusable("is no signature of OpenPGP").cause(error)
}

fn unusable(message: impl Into<String>) -> Error {
    Error::new(Kind::Usage, message)
        .structure("signature of an rpm header")
        .hint("packages are signed by one key of RSA or Ed25519")
}
