//! `rockpack distro`: the table of a distribution, for `--distro`.

use std::path::PathBuf;

use clap::Args;
use rockpack_core::content::Content;
use rockpack_core::error::{Result, ResultExt, printable};
use rockpack_distribution::Table;
use rockpack_files::new_file;

use super::progress::Terminal;

/// Make the table of a distribution, for `build --distro FILE.toml`.
///
/// It has the libraries, the programs and the packages of ROCm of the distribution, and answers as dpkg-shlibdeps would on a system with these packages. The same packages give the same bytes;
/// the table names their versions. A library that no package has there is in no table: install it first.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Root of a system with dpkg (`/` is this one), folder of .deb files, or package list of apt with its pool
    ///
    /// A package list is named as in dists/SUITE/main/binary-amd64/Packages.xz, and the files are found from there. A
    /// folder of .deb files may have a list, too: its further packages count by their names alone
    #[arg(value_name = "SOURCE")]
    source: PathBuf,
    /// The table to write; a file that has another content is not replaced
    #[arg(long, value_name = "FILE.toml")]
    out: PathBuf,
}

pub(super) fn run(arguments: &Arguments, terminal: &Terminal) -> Result<()> {
    new_file::check_place(&arguments.out)?;
    let text = Table::make(&arguments.source)?;
    let written = new_file::write_single(&arguments.out, &Content::of_bytes(text));
    written.context(|| "writing the table".to_owned())?;
    terminal.print(&format!("wrote {}\n", printable(&arguments.out.to_string_lossy())))
}
