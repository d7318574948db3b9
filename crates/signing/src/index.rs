//! Signatures of repository indexes and receipts: detached ones, and texts with a signature around them.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use pgp::armor::BlockType;
use pgp::composed::{
    ArmorOptions, CleartextSignedMessage, Deserializable, DetachedSignature, SignedPublicKey,
};
use pgp::ser::Serialize;
use pgp::types::KeyDetails;
use rockpack_core::error::{Error, Kind, Result};

use super::armored::{armored, failed};
use super::judge::{self, Moment};
use super::public::public_keys;
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
        let time = u32::try_from(at.time).map_err(|_| {
            Error::new(Kind::Limit, format!("no signature can state time {}", at.time))
        })?;
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
