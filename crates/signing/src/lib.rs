//! OpenPGP signatures, made in this process or by another program.
//!
//! An [`OpenPgpKey`], a secret key in a file, signs packages; an [`IndexSigner`] signs receipts and repositories.
//! Messages, options and outputs never contain keys or passphrases.
//!
//! Source: RFC 9580 and, for version 4 keys and signatures, RFC 4880, through the `pgp` crate.

mod command;
mod index;
pub mod judge;
mod key;
mod own;
mod trust;

pub use command::CommandSigner;
pub use index::{IndexSigner, KeySigner, header_signer, header_signer_of};
pub use key::{OpenPgpKey, PASSPHRASE_VARIABLE, Passphrase, read_key_file};
pub use trust::{PublicKeys, Trust, fingerprints, signer_ids};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// RSA, PKCS #1 version 1.5.
    Rsa,
    EdDsa,
}
