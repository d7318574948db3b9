//! The settings of `discover`.

use std::path::{Path, PathBuf};

use clap::Args;
use rockpack_core::error::{Error, Faults, Kind, Result};

use super::output_path::output_path;
use rockpack_files::new_file;
use rockpack_plan::config::Syntax;

/// The options of `discover`.
#[derive(Debug, Args)]
pub struct DiscoverArguments {
    /// A shard (folder of artifacts) or a folder of shards
    #[arg(value_name = "DIR", required_unless_present = "artifacts")]
    folders: Vec<PathBuf>,
    /// Alternative to DIR; may be given several times
    #[arg(long, num_args = 1.., value_name = "DIR")]
    artifacts: Vec<PathBuf>,
    /// Propose a packaging configuration
    ///
    /// Writes it to FILE (.json or .toml), which must not exist with other content, or to stdout as TOML in
    /// place of the table
    #[arg(long, num_args = 0..=1, value_name = "FILE", value_parser = output_path())]
    propose: Option<Option<PathBuf>>,
}

/// The artifacts to look into, and the place of a proposal.
#[derive(Debug)]
pub struct DiscoverSettings {
    /// Shards, or folders of shards.
    pub artifacts: Vec<PathBuf>,
    /// The place of a proposed configuration; unset if none is wanted.
    pub propose: Option<ProposalPlace>,
}

/// The place of a proposed configuration.
#[derive(Debug)]
pub enum ProposalPlace {
    /// Standard output.
    Output,
    /// A file.
    File {
        /// The path.
        path: PathBuf,
        /// The syntax that the extension means.
        syntax: Syntax,
    },
}

impl DiscoverArguments {
    /// Resolves the settings without reading artifacts. Reports the faults of all settings together.
    pub fn resolve(self) -> Result<DiscoverSettings> {
        let mut faults = Faults::default();
        let propose = match self.propose {
            None => None,
            Some(None) => Some(ProposalPlace::Output),
            Some(Some(path)) => {
                let syntax = faults.keep(syntax_of(&path));
                faults.keep(new_file::check_place(&path));
                syntax.map(|syntax| ProposalPlace::File { path, syntax })
            }
        };
        let artifacts = [self.folders, self.artifacts].concat();
        faults.of_settings().settle(Some(DiscoverSettings { artifacts, propose }))
    }
}

fn syntax_of(file: &Path) -> Result<Syntax> {
    match file.extension().and_then(|ending| ending.to_str()) {
        Some("json") => Ok(Syntax::Json),
        Some("toml") => Ok(Syntax::Toml),
        _ => {
            let error = Error::new(Kind::Usage, "names neither a .json nor a .toml file");
            let hint = "--propose takes the file to write; give the folders before it";
            Err(error.file(file).hint(hint))
        }
    }
}
