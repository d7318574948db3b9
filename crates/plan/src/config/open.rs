//! Opens configurations from files and from text, and makes the default one.

use std::path::Path;

use rockpack_core::error::{Error, Faults, Kind, Result};

use super::check;
use super::configuration::{Config, SCHEMA_HINT};
use super::document::{ConfigDocument, Syntax};
use super::keys::Keys;
use super::read::read_text;

impl Config {
    /// The configuration in `file`, or the defaults without a file.
    pub fn of(file: Option<&Path>, faults: &mut Faults) -> Option<Self> {
        match file {
            Some(path) => Self::read(path, faults),
            None => faults.keep(Self::none()),
        }
    }

    /// Reads the configuration at `path`; the extension chooses the syntax. Faulty keys have their defaults.
    /// `None` if the file cannot be read or parsed.
    pub fn read(path: &Path, faults: &mut Faults) -> Option<Self> {
        let document = faults.keep(Self::document(path))?;
        let keys = faults.keep(document.decode(SCHEMA_HINT))?;
        check::checked(keys, document, faults)
    }

    /// Reads the configuration file at `path`, and fails on any fault.
    pub fn open(path: &Path) -> Result<Self> {
        let mut faults = Faults::default();
        let config = Self::read(path, &mut faults);
        faults.settle(config)
    }

    fn document(path: &Path) -> Result<ConfigDocument> {
        // Before the extension is checked, so that a missing file is reported as missing.
        let text = read_text(path, "configuration")?;
        let syntax = match path.extension().and_then(|ending| ending.to_str()) {
            Some("json") => Syntax::Json,
            Some("toml") => Syntax::Toml,
            _ => {
                let message = "the configuration's syntax is unknown, because the name of the file ends \
                               neither in .json nor in .toml";
                let error = Error::new(Kind::Usage, message);
                return Err(error.file(path).hint("give it the ending of what it is written in"));
            }
        };
        Ok(ConfigDocument::new(Some(path.to_path_buf()), text, syntax))
    }

    /// Parses a configuration from text.
    pub fn parse(text: &str, syntax: Syntax) -> Result<Self> {
        let document = ConfigDocument::new(None, text.to_owned(), syntax);
        let mut faults = Faults::default();
        let keys = document.decode(SCHEMA_HINT)?;
        let config = check::checked(keys, document, &mut faults);
        faults.settle(config)
    }

    /// The defaults, which hold without a configuration.
    pub fn none() -> Result<Self> {
        let mut faults = Faults::default();
        let config = check::checked(Keys::default(), ConfigDocument::default(), &mut faults);
        faults.settle(config)
    }
}
