//! Signatures of rpm headers.

use std::sync::Arc;

use pgp::composed::{Deserializable, DetachedSignature};
use pgp::crypto::public_key::PublicKeyAlgorithm;
use pgp::ser::Serialize;
use rockpack_archive::rpm::{HeaderSignature, HeaderSigner, SignatureTag};
use rockpack_core::error::{Error, Kind, Result};

use super::{Algorithm, IndexSigner, Signer};

/// Signs headers at `time`, seconds since 1970.
pub fn header_signer(signer: &Arc<dyn Signer>, time: i64) -> Result<HeaderSigner> {
    let time = u32::try_from(time)
        .map_err(|_| Error::new(Kind::Limit, format!("no signature can state time {time}")))?;
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

/// Signs headers with a signer of indexes, which may be another program, and removes the armour. The
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
