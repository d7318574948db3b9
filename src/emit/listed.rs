//! Which package files a receipt lists: all that a commit has to know of one, however large it is.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::BufReader;
use std::marker::PhantomData;
use std::path::Path;

use rockpack_base::content::WINDOW;
use rockpack_base::error::{Error, Kind, Result};
use serde::de::{Deserialize, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};

use crate::package::Format;

/// A field of an object.
trait ListedField {
    const NAME: &'static str;
    /// Fields that are there, too, or it is another object.
    const BESIDE: &'static [&'static str] = &[];
    type Value;
}

struct Packages;

impl ListedField for Packages {
    const NAME: &'static str = "packages";
    type Value = Vec<Object<FileName>>;
}

struct FileName;

impl ListedField for FileName {
    const NAME: &'static str = "file_name";
    const BESIDE: &'static [&'static str] = &["sha256"];
    type Value = String;
}

/// An object of which one field counts. A derived reader would take an array of values for one, too,
/// and a file of somebody else's for a receipt.
struct Object<F: ListedField>(F::Value);

impl<'de, F: ListedField<Value: Deserialize<'de>>> Deserialize<'de> for Object<F> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

struct ObjectVisitor<F>(PhantomData<F>);

impl<'de, F: ListedField<Value: Deserialize<'de>>> Visitor<'de> for ObjectVisitor<F> {
    type Value = Object<F>;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "an object with `{}`", F::NAME)
    }

    fn visit_map<A: MapAccess<'de>>(
        self,
        mut map: A,
    ) -> std::result::Result<Self::Value, A::Error> {
        let (mut found, mut missing) = (None, F::BESIDE.to_vec());
        while let Some(name) = map.next_key::<String>()? {
            if name != F::NAME {
                map.next_value::<IgnoredAny>()?;
            } else if found.is_some() {
                // Of two lists the one that does not count would name what is left behind.
                return Err(A::Error::duplicate_field(F::NAME));
            } else {
                found = Some(map.next_value()?);
            }
            missing.retain(|beside| name != *beside);
        }
        match missing.first() {
            Some(missing) => Err(A::Error::missing_field(missing)),
            None => found.map(Object).ok_or_else(|| A::Error::missing_field(F::NAME)),
        }
    }
}

/// Names of the package files that the receipt in `file` lists.
pub(super) fn packages_of(file: File, path: &Path) -> Result<BTreeSet<String>> {
    // However many files a receipt lists, no more than this of it is kept.
    let receipt: Object<Packages> = parsed(file, path)?;
    names_of(receipt, path)
}

/// The part of a receipt that is about earlier builds.
#[derive(serde::Deserialize)]
struct WithKept {
    #[serde(default)]
    kept: Option<Object<Packages>>,
}

/// Names of the package files of earlier builds that the receipt in `file` keeps.
pub(super) fn kept_of(file: File, path: &Path) -> Result<BTreeSet<String>> {
    let WithKept { kept } = parsed(file, path)?;
    kept.map_or_else(|| Ok(BTreeSet::new()), |kept| names_of(kept, path))
}

fn no_receipt(path: &Path) -> Error {
    let fault = Error::new(Kind::Conflict, "is no receipt of rockpack");
    fault.file(path).hint("write into an empty folder, or move that file away")
}

fn parsed<T: serde::de::DeserializeOwned>(file: File, path: &Path) -> Result<T> {
    let reader = BufReader::with_capacity(WINDOW, file);
    serde_json::from_reader(reader).map_err(|error| {
        if error.is_io() {
            Error::io(path, "read", error.into())
        } else {
            no_receipt(path).cause(error)
        }
    })
}

fn names_of(listed: Object<Packages>, path: &Path) -> Result<BTreeSet<String>> {
    let names = listed.0.into_iter().map(|package| package.0);
    let names = names.map(|name| is_package_name(&name).then_some(name));
    names.collect::<Option<_>>().ok_or_else(|| no_receipt(path))
}

/// A receipt can name nothing but package files beside it.
fn is_package_name(name: &str) -> bool {
    Format::of_file_name(Path::new(name)).is_some()
        && !name.starts_with('.')
        && !name.contains(['/', '\0'])
}
