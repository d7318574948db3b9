//! What was published, for people.

use std::path::Path;

use super::command::shell_word;
use super::units::bytes;
use crate::repo::{ChannelReport, Published};
use crate::report::words::counted;

/// Paths shown of each list; all are in the JSON.
const SHOWN: usize = 20;

/// Every channel with what was added and removed.
pub fn published_text(published: &Published) -> String {
    published.channels.iter().map(channel).collect()
}

/// One line at the end of a run: where the repository is, and what comes next.
pub fn published_end(published: &Published, folder: &Path) -> String {
    let packages: usize = published.channels.iter().map(|channel| channel.packages).sum();
    let (shown, command) = (folder.display(), verify_command(published, folder));
    let packages = counted(packages, "package");
    format!("{packages} in {shown}; check it by `{command}`, and serve it")
}

/// The command that checks the repository in `folder`, with the keys that it is signed by.
pub(super) fn verify_command(published: &Published, folder: &Path) -> String {
    let mut keyrings = published.channels.iter().filter_map(|channel| channel.keyring.as_ref());
    let keys = keyrings.next().map(|file| format!(" --key {}", shell_word(&folder.join(file))));
    format!("rockpack verify {}{}", shell_word(folder), keys.unwrap_or_default())
}

fn channel(report: &ChannelReport) -> String {
    let ChannelReport { channel, generation, packages, bytes: size, added, removed, .. } = report;
    let packages = counted(*packages, "package");
    let signed = if report.signed { ", signed" } else { "" };
    let mut text = text_line!(
        "{channel}: {packages}, {}; publication {generation}{signed}: {} added, {} removed, {} read",
        bytes(*size),
        added.len(),
        removed.len(),
        report.read,
    );
    for (sign, paths) in [("+", added), ("-", removed)] {
        for path in paths.iter().take(SHOWN) {
            text.push_str(&text_line!("  {sign} {path}"));
        }
        if paths.len() > SHOWN {
            text.push_str(&text_line!("  {sign} and {} more", paths.len() - SHOWN));
        }
    }
    text
}
