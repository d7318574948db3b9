//! The reference to kernel archives inside a transformed host binary; [`rockpack_kpack::marker`] reads and
//! writes it.

pub use rockpack_kpack::marker::{ARCH_PLACEHOLDER, AnyMarker, LIMIT, Marker};

use rockpack_kpack::marker::MarkerFault;

use rockpack_core::error::{Error, Kind, Result};

/// Reads a marker of any form from the bytes of its section, with the strict rules for tools.
pub fn parse(bytes: &[u8]) -> Result<AnyMarker> {
    rockpack_kpack::marker::parse(bytes).map_err(refused)
}

/// The bytes of the section.
pub fn to_bytes(marker: &Marker) -> Result<Vec<u8>> {
    marker.to_bytes().map_err(refused)
}

fn refused(fault: MarkerFault) -> Error {
    let kind = match fault {
        MarkerFault::Empty => Kind::Truncated,
        MarkerFault::TooLong(_) => Kind::Limit,
        MarkerFault::NoMap | MarkerFault::Followed | MarkerFault::NoList => Kind::Malformed,
    };
    Error::new(kind, fault.to_string()).structure("marker")
}
