//! Packages in the terms of the formats' writers.

use rockpack_archive::package_file::PackageSpecification;
use rockpack_archive::payload::{Marking, PayloadEntry, PayloadEntryKind};
use rockpack_core::content::Content;
use rockpack_core::error::{Error, Faults, Kind, Result};
use rockpack_core::tree::Node;

use rockpack_package::{Format, Package, PackageEntry, Treatment};

/// A package file, decided except for the content of its files.
pub(super) struct Prepared {
    pub format: Format,
    pub file_name: String,
    pub installed_size: u64,
    pub specification: PackageSpecification,
}

/// Permission bits of every symbolic link; Linux has no others.
pub(super) const LINK_MODE: u32 = 0o777;

/// The entries of the package that are in `format`, in the terms of the payload writers.
pub(super) fn payload_entries(
    package: &Package<Content>,
    format: Format,
) -> Result<Vec<PayloadEntry>> {
    let inside = package.entries.iter().filter(|entry| entry.formats.has(format));
    Faults::all(inside.map(|entry| payload_entry(entry, format)))
}

fn payload_entry(entry: &PackageEntry<Content>, format: Format) -> Result<PayloadEntry> {
    let (kind, mode, size) = match &entry.node {
        Node::Directory { mode } => (PayloadEntryKind::Directory, *mode, 0),
        Node::File { data, mode } => {
            (PayloadEntryKind::File, entry.treatment.mode(*mode, format), data.len())
        }
        Node::Link { target } => (PayloadEntryKind::Link { target: target.clone() }, LINK_MODE, 0),
    };
    let path = entry.path.as_str().to_owned();
    if mode > 0o7777 {
        let message = format!("mode {mode:o} of /{path} has more than permission bits");
        return Err(Error::bug(message));
    }
    if entry.treatment != Treatment::Plain && kind == PayloadEntryKind::Directory {
        return Err(Error::bug(format!("directory /{path} is treated as a file")));
    }
    let marking = match entry.treatment {
        Treatment::Plain | Treatment::Library => Marking::Plain,
        Treatment::Config => Marking::Config,
        Treatment::Doc => Marking::Doc,
        Treatment::License => Marking::License,
    };
    Ok(PayloadEntry { path, kind, mode, size, marking })
}

/// Checks that both formats can hold a time: rpm has the smaller range, 32 bits from 1970 on.
pub(super) fn time(what: &str, seconds: i64) -> Result<u32> {
    u32::try_from(seconds).map_err(|_| {
        let message = format!("{what} {seconds} is not from 0 to {}", u32::MAX);
        Error::new(Kind::Limit, message).hint("times are seconds since 1970; rpm has 32 bits")
    })
}

/// Refuses a package file name with anything but a plain name.
pub(super) fn check_file_name(name: String) -> Result<String> {
    let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "+-._~^".contains(c));
    if name.starts_with('.') || !is_plain || name.len() > 255 {
        let message = format!("`{}` is no name of a package file", name.escape_debug());
        return Err(Error::new(Kind::Config, message)
            .hint("names and versions consist of letters, digits and + - . ~ ^"));
    }
    Ok(name)
}
