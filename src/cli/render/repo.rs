//! What was published, for people.

use super::findings_text;
use super::units::bytes;
use crate::repo::{ChannelReport, Published};
use crate::report::words::counted;

/// Paths shown of each list; all are in the JSON.
const SHOWN: usize = 20;

/// Every channel with what was added and removed, then every finding.
pub fn published_text(published: &Published) -> String {
    let channels: String = published.channels.iter().map(channel).collect();
    channels + &findings_text(&published.findings)
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
