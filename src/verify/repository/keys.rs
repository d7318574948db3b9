//! Signatures against the keys that are given.

use std::path::{Path, PathBuf};

use pgp::composed::{
    CleartextSignedMessage, Deserializable, DetachedSignature, SignedPublicKey, SignedPublicSubKey,
};
use pgp::packet::Signature;

use super::digests;
use crate::content::{KEY_FILE_LIMIT, read_given};
use crate::error::{Error, Faults, Kind, Result, ResultExt};
use crate::formats::armor;

/// Most signatures of one text: each may be looked at with each of the keys, over the whole of it.
const SIGNATURES_MAX: usize = 16;

const NO_KEY: &str = "is signed by none of the keys given";

/// What repositories are trusted by.
#[derive(Debug, Default)]
pub struct Trust {
    /// Keys of which one must have signed; without any, signatures are not looked at.
    pub keys: PublicKeys,
    /// The time at which expiry is judged, in seconds since 1970.
    pub now: i64,
    /// What the clock shows, in seconds since 1970.
    pub clock: i64,
}

/// Public keys.
#[derive(Debug, Default)]
pub struct PublicKeys(Vec<SignedPublicKey>);

impl PublicKeys {
    /// Reads key files, armoured or not, with one or several keys each.
    pub fn open(paths: &[PathBuf]) -> Result<Self> {
        let mut faults = Faults::default();
        let keys = paths.iter().filter_map(|path| faults.keep(read(path))).flatten().collect();
        faults.finish().map(|()| Self(keys))
    }

    /// Whether there is no key.
    pub(in crate::verify) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether any key, or subkey, made the signature.
    fn any(&self, verify: impl Fn(&dyn Verifying) -> bool) -> bool {
        self.0.iter().any(|key| {
            let subkeys = key.public_subkeys.iter();
            verify(&key.primary_key)
                || subkeys
                    .filter(|subkey| subkey.verify_bindings(&key.primary_key).is_ok())
                    .any(|subkey| verify(&subkey.key))
        })
    }

    /// Fails unless one of the armoured signatures is of `data` and one of the keys', and clients take it.
    pub fn check_detached(&self, signatures: &[u8], data: &[u8]) -> Result<()> {
        let fault = |e: pgp::errors::Error| Error::malformed("is no signature").cause(e);
        let mut found = Vec::new();
        for block in armor::blocks(signatures) {
            let (signatures, _) = DetachedSignature::from_armor_many(block).map_err(fault)?;
            for signature in signatures {
                found.push(signature.map_err(fault)?.signature);
                refuse_many(found.len())?;
            }
        }
        self.check_taken(&found, data)
    }

    /// Fails unless clients take one of the signatures, of `data`, by one of the keys.
    fn check_taken(&self, found: &[Signature], data: &[u8]) -> Result<()> {
        let mut refused = None;
        for key in &self.0 {
            let bound = |sub: &&SignedPublicSubKey| sub.verify_bindings(&key.primary_key).is_ok();
            let subkeys: Vec<_> = key.public_subkeys.iter().filter(bound).collect();
            for signature in found {
                let by = subkeys.iter().find(|sub| signature.verify(&sub.key, data).is_ok());
                if by.is_none() && signature.verify(&key.primary_key, data).is_err() {
                    continue;
                }
                match digests::fault(signature, key, by.copied()) {
                    None => return Ok(()),
                    fault => refused = fault,
                }
            }
        }
        let message = match refused {
            Some(fault) => format!("{fault}, which apt of Debian 13 and others refuse"),
            None => NO_KEY.to_owned(),
        };
        Err(Error::new(Kind::Verify, message))
    }

    /// Fails unless one of the binary signatures, of which each text has some, is of `data` and one of
    /// the keys'. What is no signature is passed over, as rpm does where another one is good.
    pub(super) fn check_packets(&self, texts: &[impl AsRef<[u8]>], data: &[u8]) -> Result<()> {
        refuse_many(texts.len())?;
        let mut found = Vec::new();
        for text in texts {
            let Ok(packets) = DetachedSignature::from_bytes_many(text.as_ref()) else { continue };
            found.extend(packets.take(SIGNATURES_MAX + 1).flatten());
        }
        self.check_raw(&found, data)
    }

    fn check_raw(&self, found: &[DetachedSignature], data: &[u8]) -> Result<()> {
        refuse_many(found.len())?;
        if found.iter().any(|one| self.any(|key| key.verifies(one, data))) {
            Ok(())
        } else {
            Err(Error::new(Kind::Verify, NO_KEY))
        }
    }

    /// The text of a clear-signed message; whether clients take it as signed by one of the keys.
    pub fn clear_text(&self, message: &str) -> Result<(String, Result<()>)> {
        let fault = |e: pgp::errors::Error| Error::malformed("is no clear-signed text").cause(e);
        let (message, _) = CleartextSignedMessage::from_string(message).map_err(fault)?;
        refuse_many(message.signatures().len())?;
        let signed = self.check_taken(message.signatures(), message.signed_text().as_bytes());
        Ok((message.signed_text().replace("\r\n", "\n"), signed))
    }
}

/// Refuses more signatures than anybody makes.
pub(super) fn refuse_many(count: usize) -> Result<()> {
    if count > SIGNATURES_MAX {
        let message = format!("has {count} signatures, more than {SIGNATURES_MAX}");
        Err(Error::new(Kind::Limit, message).hint("get it anew from who published it"))
    } else {
        Ok(())
    }
}

/// A key or subkey that signatures are held against.
trait Verifying {
    fn verifies(&self, signature: &DetachedSignature, data: &[u8]) -> bool;
}

impl<K: pgp::types::VerifyingKey> Verifying for K {
    fn verifies(&self, signature: &DetachedSignature, data: &[u8]) -> bool {
        signature.verify(self, data).is_ok()
    }
}

fn read(path: &Path) -> Result<Vec<SignedPublicKey>> {
    let bytes = read_given(path, KEY_FILE_LIMIT, "OpenPGP key");
    let bytes = bytes.context(|| "reading the public key of --key".to_owned())?;
    let fault = |e: pgp::errors::Error| {
        Error::new(Kind::Usage, "is no public key of OpenPGP").file(path).cause(e)
    };
    let mut keys = Vec::new();
    for block in armor::blocks(&bytes) {
        let (found, _) = SignedPublicKey::from_reader_many(block).map_err(fault)?;
        for key in found {
            keys.push(key.map_err(fault)?);
        }
    }
    if keys.is_empty() {
        Err(Error::new(Kind::Usage, "holds no public key").file(path))
    } else {
        Ok(keys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever the keys are: they are not asked.
    #[test]
    fn signatures_of_a_text_have_a_limit() {
        // Version 4 by Ed25519, without subpackets, and with numbers of one bit.
        let packet = [0x88, 16, 4, 0, 22, 8, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 1, 1];
        let check =
            |count: usize| PublicKeys::default().check_packets(&[packet.repeat(count)], b"text");
        assert_eq!(check(16).unwrap_err().kind(), Kind::Verify);
        let error = check(17).unwrap_err();
        assert!(error.to_string().contains("has 17 signatures, more than 16"), "{error}");
    }
}
