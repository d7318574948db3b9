//! Fat binaries with fewer bundles, which stay fat.

use rockpack_core::content::Content;
use rockpack_core::error::Result;
use rockpack_elf::DynamicSymbols;

use super::apply::pad_to;
use super::headers::{self, Tail};
use super::layout::{Layout, MovedBundle, Replacement};
use super::references::{self, LoaderTables};
use super::{Analysis, SHIM, symbols};

impl MovedBundle {
    /// All `bundles` in their new places, with zeros between.
    pub fn join(bundles: &[Self]) -> Result<Content> {
        let mut parts = Vec::new();
        for bundle in bundles {
            pad_to(&mut parts, bundle.to)?;
            parts.push(bundle.content.clone());
        }
        Ok(Content::concat(&parts))
    }
}

impl Analysis {
    /// The binary with `bundles`, in the order of their offsets, in the place of its device code. Every wrapper points
    /// to the start of one of them.
    pub fn with_bundles(&self, bundles: Vec<MovedBundle>) -> Result<Content> {
        let joined = MovedBundle::join(&bundles)?;
        let (file, dynamic) = (&self.file, &self.dynamic);
        let layout = Layout::plan(file, self.layout.fatbin, Replacement::Bundles(bundles), None)?;
        let padding = Content::zeros(layout.area.saturating_sub(joined.len()));
        let dynamic_symbols = DynamicSymbols::read(file, dynamic)?;
        LoaderTables::read(file, dynamic, &dynamic_symbols)?.refuse_moved(&layout)?;
        references::refuse_relocations(file, dynamic, &layout)?;
        let thinned = Self {
            program_headers: headers::segments(file, &layout)?,
            tail: Tail::plan(file, &layout)?,
            symbol_edits: symbols::plan(file, &layout)?,
            registration: None,
            layout,
            ..self.clone()
        };
        thinned.write(&Content::concat(&[joined, padding]), SHIM)
    }
}
