//! Python wheels: their file names, and the files of their `dist-info` folder.
//!
//! | file in `{distribution}-{version}.dist-info/` | form | module |
//! |---|---|---|
//! | METADATA | header fields, a blank line, a description | `headers`, [`Metadata`] |
//! | WHEEL | header fields | `headers`, [`WheelFile`] |
//! | RECORD | CSV: path, `sha256=` and a digest in url-safe base64 without padding, size | `record` |
//!
//! [`WheelArchive`] reads them from a file, and judges its members.
//!
//! Source: the binary distribution format, the core metadata and the recording of installed projects as
//! the Python Packaging User Guide specifies them (PEP 376, 427, 440, 503, 566, 639, 685).

mod archive;
mod faults;
mod headers;
mod marker;
mod metadata;
mod name;
mod record;
mod requirement;
mod tag;
mod wheel_file;

pub use archive::{Place, WINDOWS_HEAD, WheelArchive, is_windows, place};
pub use faults::{InfoFault, ListingFault};
pub use metadata::Metadata;
pub use name::{Version, WheelIdentity, WheelName, escaped, normalized};
pub use record::{HashName, Record, RecordDigest, RecordHasher, RecordRow};
pub use requirement::{Condition, Requirement};
pub use tag::Tag;
pub use wheel_file::WheelFile;
