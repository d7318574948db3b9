//! The reasons for which clients refuse signatures of a key, with their remedies.

use pgp::composed::SignedPublicKey;
use rockpack_core::error::{Error, Kind};

use super::own::{self, Weakness};
use rockpack_report::Finding;

/// A reason for which clients refuse signatures of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    /// The name of the key in messages.
    key: String,
    /// The fault, as a sentence.
    pub fault: String,
    /// The remedy.
    remedy: String,
    /// Tells whether the remedy keeps the key, which must then be exported again.
    is_mended: bool,
}

impl From<Weakness> for Refusal {
    fn from(weakness: Weakness) -> Self {
        let (fault, remedy) = (weakness.to_string(), weakness.remedy());
        Self { is_mended: true, ..Self::new(fault, &remedy) }
    }
}

impl Refusal {
    fn new(fault: String, remedy: &str) -> Self {
        Self { key: String::new(), fault, remedy: remedy.to_owned(), is_mended: false }
    }

    /// Refuses a key or subkey whose algorithm clients refuse.
    pub fn weak(fault: String) -> Self {
        Self::new(fault, "make a new key, of Ed25519, or of RSA with 3072 bits or more")
    }

    /// Refuses a key or subkey that was made in the future.
    pub fn future(fault: String) -> Self {
        Self::new(fault, "make a new key while the clock is right")
    }

    /// Refuses a revoked key or subkey.
    pub fn revoked(fault: String) -> Self {
        Self::new(fault, "make a new key")
    }

    /// Refuses a key or subkey that has expired.
    pub fn expired(fault: String) -> Self {
        let remedy = "extend its life by `gpg --quick-set-expire FINGERPRINT 2y`";
        Self { is_mended: true, ..Self::new(fault, remedy) }
    }

    /// Refuses a key with another purpose.
    pub fn may_not_sign() -> Self {
        let remedy = "add a subkey that signs by `gpg --quick-add-key FINGERPRINT ed25519 sign`";
        let fault = "it is not for signing".to_owned();
        Self { is_mended: true, ..Self::new(fault, remedy) }
    }

    /// Returns the refusal for `key`.
    pub fn of(self, key: &SignedPublicKey) -> Self {
        let fingerprint = own::upper(&pgp::types::KeyDetails::fingerprint(&key.primary_key));
        Self {
            key: own::named(&key.primary_key, &key.details),
            remedy: self.remedy.replace("FINGERPRINT", &fingerprint),
            ..self
        }
    }

    /// The error that the key is not used, with the remedy.
    pub fn error(&self) -> Error {
        let message =
            format!("{}: apt of Debian 13 and others refuse all that the key signs", self.fault);
        let after = if self.is_mended {
            "; then export the key again, and give the new public key to those who have the old one"
        } else {
            ""
        };
        Error::new(Kind::Usage, message).hint(format!("{}{after}", self.remedy))
    }

    /// The warning about a further key for clients to trust.
    pub fn finding(&self) -> Finding {
        Finding::KeyWeak {
            key: self.key.clone(),
            fault: self.fault.clone(),
            remedy: self.remedy.clone(),
        }
    }
}
