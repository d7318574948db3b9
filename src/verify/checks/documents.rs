//! The SPDX documents beside packages, compared with the packages: the list of packages, and every
//! file in them with its SHA-256.

use std::collections::{BTreeMap, BTreeSet};
use std::io::BufReader;
use std::path::Path;

use rockpack_base::content::{Sha256Digest, hex, open_file};
use rockpack_base::error::{Error, Result};
use rockpack_base::formats::spdx::{self, Document, SpdxChecksum};

use crate::verify::own::installed::Installed;
use crate::verify::problem::{DocumentFault, Problem, Problems};
use crate::verify::subject::argument::{PackageArgument, part_described};

/// Path in a package, as SPDX writes it, and SHA-256 in hex.
type PathDigests<'a> = BTreeSet<(&'a str, &'a str)>;

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
        for id in ids_twice(&document) {
            add(&name, DocumentFault::IdTwice { id: id.to_owned() }, problems);
        }
        let files = files(&document, &name, problems);
        for element in document.packages.iter().filter(|element| is_installed(element)) {
            let file_name = element.package_file_name.as_deref().unwrap_or_default();
            if !described.insert(file_name.to_owned()) {
                let package = file_name.to_owned();
                add(&name, DocumentFault::PackageTwice { package }, problems);
            }
            let package = packages.get(file_name);
            if let Some(fault) = package.and_then(|package| differs(element, &files, package)) {
                add(&name, fault, problems);
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
fn is_installed(element: &spdx::SpdxPackage) -> bool {
    element.primary_package_purpose.as_deref() == Some("INSTALL")
}

/// Whether these documents, `None` being that of a set, are to describe every package.
fn is_whole(documents: &BTreeSet<Option<(u32, u32)>>) -> bool {
    let mut parts = documents.iter().flatten();
    documents.contains(&None)
        || parts.any(|(_, of)| (1..=*of).all(|index| documents.contains(&Some((index, *of)))))
}

/// The files of the packages of a document of that file name, by the id of the package.
fn files<'a>(
    document: &'a Document,
    name: &str,
    problems: &mut Problems,
) -> BTreeMap<&'a str, PathDigests<'a>> {
    let files: BTreeMap<&str, (&str, &str)> = document
        .files
        .iter()
        .map(|file| {
            let sha256 = sha256(&file.checksums).unwrap_or_default();
            (file.id.as_str(), (file.file_name.as_str(), sha256))
        })
        .collect();
    let mut contained: BTreeMap<&str, PathDigests<'_>> = BTreeMap::new();
    for relationship in &document.relationships {
        if relationship.relationship_type != "CONTAINS" {
            continue;
        }
        let id = relationship.related_spdx_element.as_str();
        match files.get(id) {
            Some(file) => {
                contained.entry(&relationship.spdx_element_id).or_default().insert(*file);
            }
            None => add(name, DocumentFault::ElementAbsent { id: id.to_owned() }, problems),
        }
    }
    contained
}

/// The SHA-256, if it is stated, and all statements are the same.
fn sha256(checksums: &[SpdxChecksum]) -> Option<&str> {
    let all = checksums.iter().filter(|checksum| checksum.algorithm == "SHA256");
    let values: BTreeSet<&str> = all.map(|checksum| checksum.checksum_value.as_str()).collect();
    values.first().copied().filter(|_| values.len() == 1)
}

/// Ids that two elements have: what is said of one could be said of either.
fn ids_twice(document: &Document) -> BTreeSet<&str> {
    let packages = document.packages.iter().map(|package| package.id.as_str());
    let files = document.files.iter().map(|file| file.id.as_str());
    let mut ids = BTreeSet::new();
    packages.chain(files).filter(|id| !ids.insert(*id)).collect()
}

/// Why a package is not the one that is described.
fn differs(
    element: &spdx::SpdxPackage,
    files: &BTreeMap<&str, PathDigests<'_>>,
    package: &Installed,
) -> Option<DocumentFault> {
    let (digest, file) = (Sha256Digest::from(package.sha256), package.file.clone());
    match sha256(&element.checksums) {
        Some(described) if described == digest.to_string() => {}
        Some(_) => {
            return Some(DocumentFault::OtherDigest { package: file, sha256: digest });
        }
        None => return Some(DocumentFault::NoDigest { package: file }),
    }
    let hashed: BTreeSet<(String, String)> =
        package.files().map(|(path, facts)| (format!(".{path}"), hex(&facts.sha256))).collect();
    let own: PathDigests<'_> = hashed.iter().map(|(path, sha256)| (&**path, &**sha256)).collect();
    let nothing = BTreeSet::new();
    let described = files.get(element.id.as_str()).unwrap_or(&nothing);
    let (path, _) = described.symmetric_difference(&own).next()?;
    Some(DocumentFault::OtherFile { package: file, path: (*path).to_owned() })
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
