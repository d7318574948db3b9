//! Reads the names of the package files from a receipt, which may be large: a commit needs nothing else.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::File;
use std::io::BufReader;
use std::marker::PhantomData;
use std::path::Path;

use rockpack_archive::wheel::WheelName;
use rockpack_core::content::WINDOW;
use rockpack_core::error::{Error, Kind, Result};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};

use rockpack_package::Format;

/// A value that must be written as a JSON object. A derived reader would also take an array of the fields,
/// and so take a foreign file for a receipt. Both refuse duplicate fields.
struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = Object<T>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> std::result::Result<Object<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Object)
    }
}

/// A receipt, reduced to names of files, however many it lists.
#[derive(Deserialize)]
struct ReceiptFiles {
    #[serde(alias = "wheels")]
    packages: Vec<Object<PackageFile>>,
    kept: Option<Object<KeptFiles>>,
}

#[derive(Deserialize)]
struct KeptFiles {
    packages: Vec<Object<PackageFile>>,
}

#[derive(Deserialize)]
struct PackageFile {
    file_name: String,
    /// A field that must be present; otherwise the object is not a file's record.
    #[serde(rename = "sha256")]
    _sha256: IgnoredAny,
}

/// Names of package files.
#[derive(Default)]
pub(super) struct ListedFiles {
    /// The files of the set itself.
    pub own: BTreeSet<String>,
    /// The files of earlier builds that the set keeps.
    pub kept: BTreeSet<String>,
}

impl ListedFiles {
    /// Reads the receipt in `file`, which is at `path`.
    pub fn read(file: File, path: &Path) -> Result<Self> {
        let reader = BufReader::with_capacity(WINDOW, file);
        let receipt: Object<ReceiptFiles> = serde_json::from_reader(reader).map_err(|error| {
            if error.is_io() {
                Error::io(path, "read", error.into())
            } else {
                no_receipt(path).cause(error)
            }
        })?;
        let ReceiptFiles { packages, kept } = receipt.0;
        let kept = kept.map(|kept| kept.0.packages).unwrap_or_default();
        Ok(Self { own: names(packages, path)?, kept: names(kept, path)? })
    }
}

fn no_receipt(path: &Path) -> Error {
    let fault = Error::new(Kind::Conflict, "is no receipt of rockpack");
    fault.file(path).hint("write into an empty folder, or move that file away")
}

fn names(packages: Vec<Object<PackageFile>>, path: &Path) -> Result<BTreeSet<String>> {
    let names = packages
        .into_iter()
        .map(|package| package.0.file_name)
        .map(|name| is_package_name(&name).then_some(name));
    names.collect::<Option<_>>().ok_or_else(|| no_receipt(path))
}

/// Whether a receipt may list `name`: only package files beside it.
fn is_package_name(name: &str) -> bool {
    is_package(Path::new(name)) && !name.starts_with('.') && !name.contains(['/', '\0'])
}

/// Whether a file has the name of a package or a wheel.
pub(super) fn is_package(name: &Path) -> bool {
    Format::of_file_name(name).is_some() || WheelName::is_one(name)
}
