//! The signature of a header, and the function that makes it.

use std::fmt;
use std::sync::Arc;

use rockpack_core::error::Result;

/// The tag of a header's signature: rpm has one for each algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignatureTag {
    /// RSAHEADER.
    Rsa,
    /// DSAHEADER, for DSA and Ed25519.
    Dsa,
}

/// A signature of a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderSignature {
    /// The tag of the signature.
    pub tag: SignatureTag,
    /// One OpenPGP signature packet.
    pub packet: Vec<u8>,
}

/// A signer of headers.
#[derive(Clone)]
pub struct HeaderSigner {
    /// Signs the header's bytes, magic included.
    pub sign: Arc<SignFunction>,
}

type SignFunction = dyn Fn(&[u8]) -> Result<HeaderSignature> + Send + Sync;

impl fmt::Debug for HeaderSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HeaderSigner")
    }
}
