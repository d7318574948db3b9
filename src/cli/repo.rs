//! `rockpack repo`: packages in, a repository out.

use std::path::Path;

use clap::Args;
use rockpack_core::content::Content;
use rockpack_core::error::Result;

use super::progress::Terminal;
use super::{Outcome, memory};
use crate::cli::render;
use crate::settings::{Environment, RepoArguments};
use rockpack_package::Package;
use rockpack_repo::publish;
use rockpack_report::{Finding, PackageLeftOut, Progress};

/// Publish packages in a repository that apt, dnf, zypper, pip and uv use as it is.
///
/// REPO gets pool/ and dists/ for apt, packages/ and repodata/ for dnf and zypper, wheels/ and simple/ for
/// pip and uv. It can be served while it is written: the file that makes a publication visible is put in
/// place last, and files no longer in use stay for a while. Packages are added to the existing ones; files
/// that were published before, by name, size and time, are not read again. Packages next to a receipt, such as
/// packages.json, have to be those that it names. SOURCE_DATE_EPOCH sets the time of the publication.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    repo: RepoArguments,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: Arguments, progress: &Terminal) -> Result<Outcome> {
    let exposed = arguments.repo.signing.exposed();
    let settings = arguments.repo.resolve(&Environment::of_process())?;
    exposed.iter().for_each(|finding| progress.warn(finding));
    let budget = memory::by_default();
    let write = |package: &Package<Content>, folder: &Path| {
        crate::pipeline::write_key_package(package, folder, settings.signer.as_ref(), &budget)
    };
    let options = settings.options(&write);
    let published = publish(&options, &budget, progress)?;
    progress.findings(&published.findings);
    progress.print_result(arguments.json, &published, || render::published_text(&published))?;
    progress.note(&render::published_end(&published, &options.out));
    let skips_bad = published.findings.iter().any(|finding| {
        matches!(finding, Finding::PackageFileLeftOut { reason: PackageLeftOut::Bad(_), .. })
    });
    Ok(if skips_bad { Outcome::ChecksFailed } else { Outcome::Done })
}
