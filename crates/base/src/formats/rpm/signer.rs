//! A signature of a header, and what makes it.

use std::fmt;
use std::sync::Arc;

use crate::error::Result;

/// By which algorithm a header is signed: rpm keeps both under different tags.
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
    /// Where it goes.
    pub tag: SignatureTag,
    /// One OpenPGP signature packet.
    pub packet: Vec<u8>,
}

/// What signs a header.
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
