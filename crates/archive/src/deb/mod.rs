//! Debian's binary package format 2.0.
//!
//! ```text
//! ar archive of three members, in this order (packages of others may have more: `framing`):
//!   debian-binary       "2.0\n"
//!   control.tar.gz      ./control ./md5sums ./conffiles ./triggers and maintainer scripts
//!   data.tar.<zst|xz>   the files, as GNU tar
//! ```
//!
//! Source: deb(5), deb-control(5), deb-triggers(5), deb-conffiles(5), and dpkg 1.21's refusals. The file is
//! written in one pass: the control archive is gzip without compression, so that its length is known before
//! its MD5 sums are. It is filled in when the data archive is complete. Where the sums of many small files
//! are a good part of the package, the control archive is compressed then, and the data archive is moved up
//! to its end.

mod control;
mod fields;
mod framing;
mod lists;
mod owned;
mod reader;
mod relations;
mod tar;
mod tar_paths;
mod tar_reader;
mod values;
mod writer;

pub use control::{Control, ControlField, is_compressed as is_control_compressed};
pub use fields::{ControlFields, FieldName, parse as parse_fields, parse_control, parse_stanza};
pub(super) use fields::{excerpt, fault};
pub use owned::{each_owned_path, why_unread};
pub(super) use reader::FIELDS_MAX;
pub use reader::{DebFront, DebReader};
pub use relations::{DebRelation, relations};
pub use rockpack_core::package_format::deb_version::compare as compare_versions;
pub use values::check_relations;
pub use writer::{DebSpecification, DebWriter, around};

use crate::payload::{PayloadEntry, PayloadEntryKind};

/// Content of the member `debian-binary`.
const FORMAT_VERSION: &[u8; 4] = b"2.0\n";

/// Bytes per unit of `Installed-Size`.
pub const INSTALLED_UNIT: u64 = 1024;

/// `Installed-Size` in KiB by dpkg-gencontrol's estimate: files and links rounded up to a KiB each, a KiB per
/// directory, and one for the root directory.
pub fn installed_kib(entries: &[PayloadEntry]) -> u64 {
    let kib = entries.iter().map(|entry| match entry.kind {
        PayloadEntryKind::Directory => 1,
        PayloadEntryKind::File | PayloadEntryKind::Link { .. } | PayloadEntryKind::Special(_) => {
            entry.stored_size().div_ceil(INSTALLED_UNIT)
        }
    });
    kib.sum::<u64>() + 1
}
