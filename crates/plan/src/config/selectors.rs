//! Selectors: the parts of artifacts that go into a package.

use rockpack_core::error::{Error, Faults, Result};
use rockpack_core::once::Ordered;

use super::document::ConfigDocument;
use super::keys::SelectorSchema;
use rockpack_split::input::artifact::ComponentKind;

/// A part of an artifact that goes into a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selector {
    /// Name of the artifact, e.g. `blas`.
    pub artifact: String,
    /// The modules; all if unset.
    pub modules: Option<Vec<String>>,
    /// The component kinds; all if unset.
    pub kinds: Option<Vec<ComponentKind>>,
}

impl TryFrom<SelectorSchema> for Selector {
    type Error = Error;
    fn try_from(schema: SelectorSchema) -> Result<Self> {
        let mut faults = Faults::default();
        let selector = Self::checked(schema, |error| faults.add(error));
        faults.finish().map(|()| selector)
    }
}

impl Selector {
    /// Passes every word that is not a component kind to `tell`, and leaves it out.
    fn checked(schema: SelectorSchema, mut tell: impl FnMut(Error)) -> Self {
        let SelectorSchema { artifact, modules, kinds } = schema;
        let kinds = kinds.map(|kinds| {
            kinds.into_iter().filter_map(|text| text.parse().map_err(&mut tell).ok()).collect()
        });
        Self { artifact, modules, kinds }
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
            let keys = ["selectors", &package, &index.to_string(), "kinds"];
            let selector =
                Selector::checked(schema, |error| faults.add(document.located(&keys, &error)));
            selectors.push(selector);
        }
        packages.push((package, selectors));
    }
    packages
}
