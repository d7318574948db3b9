//! `rockpack man`: a manual page of each command.

use std::path::PathBuf;

use clap::{Args, Command, CommandFactory};
use clap_mangen::Man;
use rockpack_core::content::Content;
use rockpack_core::error::{Error, Result};

use super::Outcome;
use super::progress::Terminal;
use crate::settings::output_path;
use rockpack_files::{make_folder, new_file};
use rockpack_report::Progress;
use rockpack_report::words::counted;

/// The content of the folder, for messages.
const HOLDS: &str = "manual pages";

/// Write the manual pages of all commands (rockpack.1, rockpack-build.1, …) into a folder.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Folder for the pages; created if missing. Nothing in it is overwritten
    #[arg(value_name = "DIR", value_parser = output_path())]
    out: PathBuf,
}

pub(super) fn run(arguments: &Arguments, terminal: &Terminal) -> Result<Outcome> {
    let mut command = super::Arguments::command().disable_help_subcommand(true);
    // Gives each command its full name.
    command.build();
    let pages = pages(command)?;
    let _made = make_folder(&arguments.out, HOLDS)?;
    for (name, page) in &pages {
        new_file::write_single(&arguments.out.join(name), &Content::of_bytes(page.clone()))?;
    }
    let (count, out) = (counted(pages.len(), "manual page"), arguments.out.display());
    terminal.note(&format!("{count} in {out}; read one by `man {out}/rockpack.1`"));
    Ok(Outcome::Done)
}

/// A page in ASCII: troff alone cannot know the encoding of a page.
fn plain(page: &str) -> Vec<u8> {
    let escaped = page.chars().map(|c| match c {
        _ if c.is_ascii() => c.to_string(),
        _ => format!("\\[u{:04X}]", u32::from(c)),
    });
    escaped.collect::<String>().into_bytes()
}

/// The pages of a command and of the commands below it, by the names of their files.
fn pages(command: Command) -> Result<Vec<(String, Vec<u8>)>> {
    let mut all = Vec::new();
    let below: Vec<Command> = command.get_subcommands().cloned().collect();
    let man = Man::new(command);
    let mut page = Vec::new();
    man.render(&mut page).map_err(|e| Error::bug("a manual page is not written").cause(e))?;
    all.push((man.get_filename(), plain(&String::from_utf8_lossy(&page))));
    for command in below {
        all.extend(pages(command)?);
    }
    Ok(all)
}
