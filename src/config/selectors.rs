//! Selectors: which parts of which artifacts go into a package.

use super::document::ConfigDocument;
use super::keys::SelectorSchema;
use crate::error::{Error, Faults, Result};
use crate::input::artifact::ComponentKind;
use crate::once::Ordered;

/// A part of an artifact that goes into a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selector {
    /// E.g. `blas`.
    pub artifact: String,
    /// Its modules; all if unset.
    pub modules: Option<Vec<String>>,
    /// Its kinds; all if unset.
    pub kinds: Option<Vec<ComponentKind>>,
}

impl TryFrom<SelectorSchema> for Selector {
    type Error = Error;
    fn try_from(schema: SelectorSchema) -> Result<Self> {
        let SelectorSchema { artifact, modules, kinds } = schema;
        let kinds = kinds.map(|kinds| kinds.iter().map(|kind| kind.parse()).collect());
        Ok(Self { artifact, modules, kinds: kinds.transpose()? })
    }
}

/// The selectors of all packages.
pub(super) fn selectors(
    schema: Ordered<Vec<SelectorSchema>>,
    document: &ConfigDocument,
    faults: &mut Faults,
) -> Vec<(String, Vec<Selector>)> {
    let mut packages = Vec::new();
    for (package, schemas) in schema.0 {
        let mut selectors = Vec::new();
        for (index, schema) in schemas.into_iter().enumerate() {
            let keys = ["selectors", &package, &index.to_string(), "components"];
            let selector = Selector::try_from(schema);
            let selector = selector.map_err(|error| document.located(&keys, &error));
            selectors.extend(faults.keep(selector));
        }
        packages.push((package, selectors));
    }
    packages
}
