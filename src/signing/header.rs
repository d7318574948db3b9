//! Signatures of rpm headers.

use std::sync::Arc;

use super::{Algorithm, Signer};
use crate::error::{Error, Kind, Result};
use crate::formats::rpm::{HeaderSigner, SignatureTag};

/// Signs headers at `time`, seconds since 1970.
pub fn header_signer(signer: &Arc<dyn Signer>, time: i64) -> Result<HeaderSigner> {
    let time = u32::try_from(time)
        .map_err(|_| Error::new(Kind::Limit, format!("no signature can state time {time}")))?;
    let tag = match signer.algorithm() {
        Algorithm::Rsa => SignatureTag::Rsa,
        Algorithm::EdDsa => SignatureTag::Dsa,
    };
    let signer = Arc::clone(signer);
    let sign = move |header: &[u8]| signer.sign(header, time);
    Ok(HeaderSigner { tag, sign: Arc::new(sign) })
}
