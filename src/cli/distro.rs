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
/// The table has the libraries, the programs and the ROCm packages of a distribution. With it, `build` finds the
/// dependencies that dpkg-shlibdeps finds on a system with these packages. The same packages give the same table, which
/// has their versions. Only libraries of installed packages are in it.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Root of a system with dpkg (`/` is this one), folder of .deb files, or package list of apt with its pool
    ///
    /// A package list is a file such as dists/SUITE/main/binary-amd64/Packages.xz; its .deb files are found relative to
    /// it. A folder of .deb files may have a list, too: packages that are only in the list count by their names
    #[arg(value_name = "SOURCE")]
    source: PathBuf,
    /// File for the table; an existing file with other content is not replaced
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
