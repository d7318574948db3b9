//! The SPDX documents beside packages, compared with the packages by their names and SHA-256. A document of another
//! build, and a package of another build, show by that.

use std::collections::{BTreeMap, BTreeSet};
use std::io::BufReader;
use std::path::Path;

use rockpack_base::content::{Sha256Digest, open_file};
use rockpack_base::error::{Error, Result};
use rockpack_base::formats::spdx::{Document, SpdxPackage};

use crate::verify::own::installed::Installed;
use crate::verify::problem::{DocumentFault, Problem, Problems};
use crate::verify::subject::argument::{PackageArgument, part_described};

/// Adds everything that is not as the documents of an argument say; `packages` are those of its
/// packages that can be read.
pub(in crate::verify) fn check(
    argument: &PackageArgument,
    packages: &[&Installed],
    problems: &mut Problems,
) -> Result<()> {
    let packages: BTreeMap<&str, &Installed> =
        packages.iter().map(|package| (package.file.as_str(), *package)).collect();
    let mut described = BTreeSet::new();
    let (mut parts, mut unread) = (BTreeSet::new(), false);
    for path in &argument.documents {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let document = match read(path)? {
            Ok(document) => document,
            Err(fault) => {
                add(&name, fault, problems);
                unread = true;
                continue;
            }
        };
        parts.insert(part_described(path).flatten().map(|part| (part.index, part.of)));
        for element in document.packages.iter().filter(|element| is_installed(element)) {
            let file_name = element.package_file_name.as_deref().unwrap_or_default();
            described.insert(file_name.to_owned());
            let other = packages.get(file_name).filter(|package| !is_of(element, package));
            if let Some(package) = other {
                let (package, sha256) = (package.file.clone(), package.sha256.into());
                add(&name, DocumentFault::OtherDigest { package, sha256 }, problems);
            }
        }
    }
    check_names(&argument.names(), &described, !unread && is_whole(&parts), problems);
    Ok(())
}

/// Adds a fault of the document of that file name.
fn add(name: &str, fault: DocumentFault, problems: &mut Problems) {
    problems.add(Problem::DocumentMismatch { file: name.to_owned(), fault });
}

/// Reads a document, or says why it cannot be parsed. The outer error is one of reading.
fn read(path: &Path) -> Result<Result<Document, DocumentFault>> {
    let file = open_file(path).map_err(|error| Error::io(path, "read", error))?;
    match Document::read(BufReader::new(file)) {
        Err(error) if error.is_io() => Err(Error::io(path, "read", error.into())),
        read => Ok(read.map_err(|error| DocumentFault::Unreadable { reason: error.to_string() })),
    }
}

/// Whether it is a package file, and not what packages were made from.
fn is_installed(element: &SpdxPackage) -> bool {
    element.primary_package_purpose.as_deref() == Some("INSTALL")
}

/// Whether these documents, `None` being that of a set, are to describe every package.
fn is_whole(documents: &BTreeSet<Option<(u32, u32)>>) -> bool {
    let mut parts = documents.iter().flatten();
    documents.contains(&None)
        || parts.any(|(_, of)| (1..=*of).all(|index| documents.contains(&Some((index, *of)))))
}

/// Whether an element has the digest of the package, and no other.
fn is_of(element: &SpdxPackage, package: &Installed) -> bool {
    let digest = Sha256Digest::from(package.sha256).to_string();
    let mut stated = element.checksums.iter().filter(|it| it.algorithm == "SHA256").peekable();
    stated.peek().is_some() && stated.all(|it| it.checksum_value == digest)
}

/// Adds the packages that are not there and, where documents are to describe `all`, those that are
/// there and not described.
fn check_names(
    present: &BTreeSet<String>,
    described: &BTreeSet<String>,
    all: bool,
    problems: &mut Problems,
) {
    let absent = described.difference(present).map(|name| (name, DocumentFault::PackageAbsent));
    let unsaid = present
        .difference(described)
        .filter(|_| all)
        .map(|name| (name, DocumentFault::NotDescribed));
    for (name, fault) in absent.chain(unsaid) {
        problems.add(Problem::DocumentMismatch { file: name.clone(), fault });
    }
}
