//! Why clients refuse what a key signs, and what is to be done.

use pgp::composed::SignedPublicKey;
use rockpack_base::error::{Error, Kind};

use super::own::{self, Weakness};
use crate::report::Finding;

/// Why clients refuse what a key signs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    /// The key, as it is told from others.
    key: String,
    /// The fault, as a sentence.
    pub fault: String,
    /// The way to mend it.
    remedy: String,
    /// Whether it is the same key when it is mended, which then has to be exported again.
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

    /// Refuses a key or subkey that does not count any more.
    pub fn revoked(fault: String) -> Self {
        Self::new(fault, "make a new key")
    }

    /// Refuses a key or subkey that has expired.
    pub fn expired(fault: String) -> Self {
        let remedy = "extend its life by `gpg --quick-set-expire FINGERPRINT 2y`";
        Self { is_mended: true, ..Self::new(fault, remedy) }
    }

    /// Refuses a key that is for something else.
    pub fn may_not_sign() -> Self {
        let remedy = "add a subkey that signs by `gpg --quick-add-key FINGERPRINT ed25519 sign`";
        let fault = "it is not for signing".to_owned();
        Self { is_mended: true, ..Self::new(fault, remedy) }
    }

    /// The same, of `key`.
    pub fn of(self, key: &SignedPublicKey) -> Self {
        let fingerprint = own::upper(&pgp::types::KeyDetails::fingerprint(&key.primary_key));
        Self {
            key: own::named(&key.primary_key, &key.details),
            remedy: self.remedy.replace("FINGERPRINT", &fingerprint),
            ..self
        }
    }

    /// The error that the key is not used, and how to mend it.
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

    /// The warning about a key that clients are to trust beside another one.
    pub fn finding(&self) -> Finding {
        Finding::KeyWeak {
            key: self.key.clone(),
            fault: self.fault.clone(),
            remedy: self.remedy.clone(),
        }
    }
}
