//! OpenPGP signatures, made in this process or by another program.
//!
//! Writers of packages ask a [`Signer`], and writers of receipts and repositories an [`IndexSigner`];
//! [`OpenPgpKey`] is a secret key in a file. Neither key nor passphrase is ever part of a message, an option or an output.
//!
//! Source: RFC 9580 and, for version 4 keys and signatures, RFC 4880, through the `pgp` crate.

mod command;
mod index;
pub mod judge;
mod key;
mod own;
mod trust;

use std::fmt;

pub use command::CommandSigner;
pub use index::{IndexSigner, KeySigner, header_signer, header_signer_of};
pub use key::{OpenPgpKey, PASSPHRASE_VARIABLE, Passphrase, read_key_file};
pub use trust::{PublicKeys, Trust, fingerprints, signer_ids};

use rockpack_core::error::Result;

/// A maker of signatures.
pub trait Signer: fmt::Debug + Send + Sync {
    /// Returns a detached binary signature of `data`: one OpenPGP packet.
    ///
    /// It states `time`, seconds since 1970, or the key's own time if that is later: a signature older than
    /// its key is not valid. The same key, data and time give the same bytes.
    fn sign(&self, data: &[u8], time: u32) -> Result<Vec<u8>>;

    /// Signs like [`Signer::sign`] a text whose lines end in CR and LF: for clear-signed messages.
    fn sign_text(&self, text: &[u8], time: u32) -> Result<Vec<u8>>;

    /// Returns the binary public key for checking signatures.
    fn public_key(&self) -> Result<Vec<u8>>;

    /// The algorithm of its signatures.
    fn algorithm(&self) -> Algorithm;

    /// The fingerprint of the signing key, in hex.
    fn fingerprint(&self) -> String;
}

/// A signature algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// RSA, PKCS #1 version 1.5.
    Rsa,
    /// Ed25519.
    EdDsa,
}
