//! Records of wheels in the receipt.

use rockpack_core::content::hex;

use super::WrittenWheel;
use crate::plan::WheelRole;
use rockpack_package::receipt::wheels::{WheelKind, WheelRecord};
use rockpack_split::input::wheel::Wheel;

/// The record of a wheel that was made of `of`, for `role`, and is the distribution `name`.
pub fn record(written: WrittenWheel, of: &Wheel, role: &WheelRole, name: &str) -> WheelRecord {
    let (kind, groups, archs) = match role {
        WheelRole::Host => (WheelKind::Host, Vec::new(), Vec::new()),
        WheelRole::Device { groups, archs } => {
            let archs = archs.iter().map(ToString::to_string).collect();
            (WheelKind::Device, groups.clone(), archs)
        }
    };
    let copy = copy_record(written, of);
    WheelRecord { role: kind, groups, archs, distribution: name.to_owned(), ..copy }
}

/// The record of a wheel of the input that was copied.
pub fn copy_record(written: WrittenWheel, of: &Wheel) -> WheelRecord {
    let WrittenWheel { file_name, size, sha256, installed_size } = written;
    WheelRecord {
        file_name,
        made_of: of.name.to_string(),
        role: WheelKind::Copy,
        distribution: of.metadata.name().to_owned(),
        version: of.metadata.version().to_owned(),
        groups: Vec::new(),
        archs: Vec::new(),
        size,
        installed_size,
        sha256: hex(&sha256),
    }
}
