//! Compares a new set with the earlier set in the output folder, and decides which files a commit adds and
//! which it removes.
//!
//! A commit replaces the set that the receipt in the folder lists. It removes the packages of that set that
//! the new set does not have, the SPDX document that rockpack wrote for it, and the signature of its receipt;
//! everything else stays. It refuses to overwrite files that rockpack did not write, and to put the receipt of
//! a part next to that of a whole set or of another division.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::File;
use std::io::{BufReader, Read};
use std::marker::PhantomData;
use std::path::Path;

use derive_more::Display;
use rockpack_archive::spdx;
use rockpack_archive::wheel::WheelName;
use rockpack_core::content::{WINDOW, exists, if_exists, list, open_file};
use rockpack_core::error::{Error, Kind, Result};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};

use rockpack_files::{CommitChange, kind_of};
use rockpack_package::Format;
use rockpack_package::receipt::{self, wheels};

/// The creator that rockpack's own documents name.
const PROGRAM: &str = env!("CARGO_PKG_NAME");

const SIGNATURE_HEAD: &[u8] = b"-----BEGIN PGP SIGNATURE-----";

/// The package files that `receipt` in `directory` lists; empty if there is no receipt.
pub(super) fn listed(directory: &Path, receipt: &str) -> Result<ListedFiles> {
    let path = directory.join(receipt);
    let file = if_exists(&path, "open", open_file(&path))?;
    file.map_or_else(|| Ok(ListedFiles::default()), |file| ListedFiles::read(file, &path))
}

/// The names of all packages that the receipt lists. A package that it keeps from an earlier build is included only if
/// its file is in `directory`.
fn all_packages(directory: &Path, receipt: &str) -> Result<BTreeSet<String>> {
    let ListedFiles { own: mut names, kept } = listed(directory, receipt)?;
    for name in kept {
        if exists(&directory.join(&name))? {
            names.insert(name);
        }
    }
    Ok(names)
}

/// A file that appears and disappears with its receipt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display)]
pub(super) enum Companion {
    #[display("SPDX document of rockpack")]
    SpdxDocument,
    #[display("armored OpenPGP signature")]
    Signature,
}

impl Companion {
    pub(super) const ALL: [Self; 2] = [Self::SpdxDocument, Self::Signature];

    pub(super) fn name(self, receipt: &str) -> String {
        match self {
            Self::SpdxDocument => receipt::sbom_name(receipt),
            Self::Signature => receipt::signature_name(receipt),
        }
    }

    /// Whether the file at `path` is an SPDX document of rockpack, or a signature by any program; `None` if
    /// there is no file.
    fn is_own(self, path: &Path) -> Result<Option<bool>> {
        let Some(kind) = kind_of(path)? else { return Ok(None) };
        if !kind.is_file() {
            return Ok(Some(false));
        }
        let read = open_file(path).and_then(|file| match self {
            Self::SpdxDocument => spdx::is_made_by(PROGRAM, BufReader::new(file)),
            Self::Signature => {
                let mut head = Vec::new();
                file.take(SIGNATURE_HEAD.len() as u64).read_to_end(&mut head)?;
                Ok(head == SIGNATURE_HEAD)
            }
        });
        read.map(Some).map_err(|e| Error::io(path, "read", e))
    }
}

/// Fails if a foreign file has the name of a companion, or if the receipt of a companion is missing. Documents of other
/// programs are accepted next to a set without an SPDX document; foreign signatures never are.
pub(super) fn refuse_companions(out: &Path, receipt: &str, has_document: bool) -> Result<()> {
    for companion in Companion::ALL {
        let path = out.join(companion.name(receipt));
        let message = match companion.is_own(&path)? {
            Some(false) if has_document || companion == Companion::Signature => {
                format!("is not an {companion}")
            }
            Some(true) if !exists(&out.join(receipt))? => {
                format!("is an {companion}, but its {receipt} is missing")
            }
            Some(_) | None => continue,
        };
        let hint = "rockpack does not overwrite it: move it away, or write into an empty folder";
        return Err(Error::new(Kind::Conflict, message).file(path).hint(hint));
    }
    Ok(())
}

fn receipts(directory: &Path) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for entry in list(directory)? {
        names.extend(entry?.file_name().into_string().ok().filter(|name| is_receipt(name)));
    }
    Ok(names)
}

fn is_receipt(name: &str) -> bool {
    name == receipt::FILE_NAME || receipt::part_of_file(name).is_some()
}

/// Refuses to write a whole set next to parts, a part next to a whole set, or parts of different divisions into one
/// folder: their packages would look like one set.
pub(super) fn refuse_mixed(out: &Path, receipt: &str) -> Result<()> {
    let mut others = receipts(out)?.into_iter();
    let Some(other) = others.find(|other| number_of_parts(other) != number_of_parts(receipt))
    else {
        return Ok(());
    };
    let (theirs, own) = (extent(&other), extent(receipt));
    let message = format!("is the receipt of {theirs}, but this run writes {own}");
    let hint = "write into another folder, or remove that receipt and its packages";
    Err(Error::new(Kind::Conflict, message).file(out.join(other)).hint(hint))
}

/// The number of parts of the division that a receipt belongs to; `None` if it is that of a whole set.
fn number_of_parts(receipt: &str) -> Option<u32> {
    receipt::part_of_file(receipt).map(|part| part.of)
}

/// What a receipt describes, for messages.
fn extent(receipt: &str) -> String {
    match number_of_parts(receipt) {
        None => "a whole set".to_owned(),
        Some(of) => format!("one of {of} parts"),
    }
}

/// The rank of a file in a commit: packages first, then documents and signatures, then receipts. A receipt describes
/// all packages in its folder, and a document those of its set; a receipt never appears before its signature.
pub(super) fn rank(name: &str) -> u8 {
    let is_last = |name: &str| is_receipt(name) || name == wheels::FILE_NAME;
    let is_signature = name.strip_suffix(receipt::SIGNATURE_ENDING).is_some_and(is_last);
    let is_companion = is_signature || receipt::part_of_sbom(name).is_some();
    if is_last(name) { 2 } else { u8::from(is_companion) }
}

/// The files that a commit of the packages `names` adds to `out` and removes from it. Fails if the
/// commit would overwrite files that rockpack did not write. Packages that the receipt of another part
/// lists stay: a package may have moved there.
pub(super) fn commit_change(
    out: &Path,
    receipt: &str,
    names: BTreeSet<String>,
    companions: &[Companion],
) -> Result<CommitChange> {
    refuse_mixed(out, receipt)?;
    let earlier = all_packages(out, receipt)?;
    let mut elsewhere = BTreeSet::new();
    for other in receipts(out)?.iter().filter(|other| *other != receipt) {
        elsewhere.extend(all_packages(out, other)?);
    }
    refuse_foreign(out, &(&earlier | &elsewhere), &names)?;
    refuse_companions(out, receipt, companions.contains(&Companion::SpdxDocument))?;
    let mut removed = &earlier - &elsewhere;
    for companion in Companion::ALL {
        let name = companion.name(receipt);
        if companion.is_own(&out.join(&name))? == Some(true) {
            removed.insert(name);
        }
    }
    let beside = companions.iter().map(|companion| companion.name(receipt));
    let added = names.into_iter().chain(beside).chain([receipt.to_owned()]);
    Ok(CommitChange { added: added.collect(), removed })
}

/// Fails if a folder, or a file that no receipt in `out` lists, has the name of a package file.
fn refuse_foreign(out: &Path, earlier: &BTreeSet<String>, names: &BTreeSet<String>) -> Result<()> {
    for name in earlier | names {
        let path = out.join(&name);
        match kind_of(&path)? {
            None => {}
            Some(_) if !earlier.contains(&name) => {
                return Err(Error::new(Kind::Conflict, "has the name of a package of this set")
                    .file(path)
                    .hint("no earlier receipt lists it, so rockpack does not overwrite it: move it away"));
            }
            Some(kind) if kind.is_dir() => {
                let message = "is a directory where a package file belongs";
                return Err(Error::new(Kind::Conflict, message).file(path));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// A value that must be a JSON object. A derived reader would also accept an array of the fields, and so a foreign file
/// as a receipt. Both refuse duplicate fields.
struct JsonObject<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for JsonObject<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_map(JsonObjectVisitor(PhantomData))
    }
}

struct JsonObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for JsonObjectVisitor<T> {
    type Value = JsonObject<T>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> std::result::Result<JsonObject<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(JsonObject)
    }
}

/// The package file names of a receipt, which are all that a commit needs.
#[derive(Deserialize)]
struct ReceiptFiles {
    #[serde(alias = "wheels")]
    packages: Vec<JsonObject<PackageFile>>,
    kept: Option<JsonObject<KeptFiles>>,
}

#[derive(Deserialize)]
struct KeptFiles {
    packages: Vec<JsonObject<PackageFile>>,
}

#[derive(Deserialize)]
struct PackageFile {
    file_name: String,
    /// A field that must be present; otherwise the object is not a file's record.
    #[serde(rename = "sha256")]
    _sha256: IgnoredAny,
}

#[derive(Default)]
pub(super) struct ListedFiles {
    pub own: BTreeSet<String>,
    /// The files of earlier builds that the set keeps.
    pub kept: BTreeSet<String>,
}

impl ListedFiles {
    fn read(file: File, path: &Path) -> Result<Self> {
        let reader = BufReader::with_capacity(WINDOW, file);
        let receipt: JsonObject<ReceiptFiles> =
            serde_json::from_reader(reader).map_err(|error| {
                if error.is_io() {
                    Error::io(path, "read", error.into())
                } else {
                    no_receipt(path).cause(error)
                }
            })?;
        let ReceiptFiles { packages, kept } = receipt.0;
        let kept = kept.map(|kept| kept.0.packages).unwrap_or_default();
        Ok(Self { own: package_names(packages, path)?, kept: package_names(kept, path)? })
    }
}

fn no_receipt(path: &Path) -> Error {
    let fault = Error::new(Kind::Conflict, "is not a receipt of rockpack");
    fault.file(path).hint("write into an empty folder, or move that file away")
}

fn package_names(packages: Vec<JsonObject<PackageFile>>, path: &Path) -> Result<BTreeSet<String>> {
    // A receipt may list only package files in its folder.
    let is_beside = |name: &String| {
        is_package(Path::new(name)) && !name.starts_with('.') && !name.contains(['/', '\0'])
    };
    let names = packages.into_iter().map(|package| Some(package.0.file_name).filter(is_beside));
    names.collect::<Option<_>>().ok_or_else(|| no_receipt(path))
}

/// Whether a file has the name of a package or a wheel.
pub(super) fn is_package(name: &Path) -> bool {
    Format::of_file_name(name).is_some() || WheelName::is_one(name)
}
