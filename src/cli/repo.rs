//! `rockpack repo`: packages in, a repository out.

use std::path::Path;

use rockpack_core::content::Content;
use rockpack_core::error::Result;
use rockpack_package::Package;
use rockpack_repo::{
    ChannelReport, ClientDownload, Download, GpuDownload, MirrorDownload, Published, publish,
};
use rockpack_report::words::counted;
use rockpack_report::{PackageLeftOut, Progress, found};

use super::progress::Terminal;
use super::render::{bytes, shell_word};
use super::{Outcome, default_budget};
use crate::pipeline::write_key_package;
use crate::settings::{Environment, RepoArguments};

pub(super) fn run(arguments: RepoArguments, progress: &Terminal) -> Result<Outcome> {
    let (json, readable_secrets) = (arguments.json, arguments.signing.readable_secrets());
    let settings = arguments.resolve(&Environment::of_process())?;
    readable_secrets.iter().for_each(|finding| progress.warn(finding));
    let budget = default_budget();
    let write = |package: &Package<Content>, folder: &Path| {
        write_key_package(package, folder, settings.signer.as_ref(), &budget)
    };
    let options = settings.options(&write);
    let published = publish(&options, &budget, progress)?;
    progress.print_result(json, &published, || published_text(&published))?;
    progress.note(&closing_line(&published, &options.out));
    progress.findings(&published.findings);
    let skips_bad = published.findings.iter().any(|finding| {
        let left_out = finding.found::<found::PackageFileLeftOut>();
        left_out.is_some_and(|it| matches!(it.reason, PackageLeftOut::Bad(_)))
    });
    Ok(if skips_bad { Outcome::ChecksFailed } else { Outcome::Done })
}

/// Maximum number of paths shown of each list; the JSON has all.
const MAX_LISTED: usize = 20;

/// Every channel with what was added and removed.
pub(super) fn published_text(published: &Published) -> String {
    published.channels.iter().map(channel).collect()
}

/// One line at the end of a run: the place of the repository, and the next step.
fn closing_line(published: &Published, folder: &Path) -> String {
    let packages: usize = published.channels.iter().map(|channel| channel.packages).sum();
    let (shown, command) = (folder.display(), verify_command(published, folder));
    let packages = counted(packages, "package");
    if published.dry_run {
        return format!("{packages} would be in {shown}; this dry run changed nothing");
    }
    format!("{packages} in {shown}; check it with `{command}`, and serve it")
}

/// The command that checks the repository in `folder`, with its signing keys.
pub(super) fn verify_command(published: &Published, folder: &Path) -> String {
    let mut keyrings = published.channels.iter().filter_map(|channel| channel.keyring.as_ref());
    let keys = keyrings.next().map(|file| format!(" --key {}", shell_word(&folder.join(file))));
    format!("rockpack verify {}{}", shell_word(folder), keys.unwrap_or_default())
}

fn channel(report: &ChannelReport) -> String {
    let ChannelReport { channel, generation, packages, bytes: size, added, removed, .. } = report;
    let ChannelReport { replaced, indexes, .. } = report;
    let packages = counted(*packages, "package");
    let signed = if report.signed { ", signed" } else { "" };
    let mut text = text_line!(
        "{channel}: {packages}, {}; publication {generation}{signed}: {} added, {} removed, {} read",
        bytes(*size),
        added.len(),
        removed.len(),
        report.read,
    );
    for (sign, paths) in [("+", added), ("-", removed), ("*", indexes)] {
        for path in paths.iter().take(MAX_LISTED) {
            let by = replaced.get(path).map(|new| format!(", replaced by {new}"));
            text.push_str(&text_line!("  {sign} {path}{}", by.unwrap_or_default()));
        }
        if paths.len() > MAX_LISTED {
            text.push_str(&text_line!("  {sign} and {} more", paths.len() - MAX_LISTED));
        }
    }
    if let Some(url) = &report.index_url {
        text.push_str(&text_line!("  for pip and uv: --index-url {}", shell_word(Path::new(url))));
    }
    if let Some(script) = &report.gpu_script {
        text.push_str(&text_line!("  prints the packages for the GPUs of a machine: {script}"));
    }
    if !report.yanked.is_empty() {
        text.push_str(&text_line!("  yanked: {}", counted(report.yanked.len(), "wheel")));
    }
    text.push_str(&mirror_text(&report.mirror));
    report.clients.iter().for_each(|client| text.push_str(&client_text(client)));
    text
}

/// The line about mirrors, if there is a package to copy.
fn mirror_text(download: &MirrorDownload) -> String {
    let MirrorDownload { new, index_bytes } = download;
    if new.packages == 0 {
        return String::new();
    }
    text_line!("  new for mirrors: {}; indexes, {}", download_text(new), bytes(*index_bytes))
}

/// The line about an update of clients, if there is anything to download.
fn client_text(download: &ClientDownload) -> String {
    let ClientDownload { architecture, all, without_gpu_code: without, largest_gpu } = download;
    if all.packages == 0 {
        return String::new();
    }
    let mut text = format!("  an update for {architecture}: {}", download_text(all));
    if let Some(GpuDownload { arch, own }) = largest_gpu {
        text.push_str(&format!(
            "; {} without GPU code, {}; {} for {arch}, the largest, {}",
            without.packages,
            bytes(without.bytes),
            own.packages,
            bytes(own.bytes)
        ));
    }
    text_line!("{text}")
}

fn download_text(download: &Download) -> String {
    format!("{}, {}", counted(download.packages, "package"), bytes(download.bytes))
}
