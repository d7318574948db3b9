//! `rockpack fetch`: artifacts from addresses to a folder.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Args;
use rockpack_core::content::{Content, exists, hex};
use rockpack_core::error::{Error, Faults, Kind, Result, printable};
use rockpack_core::run::{Budget, threads};
use rockpack_core::tree::ArtifactName;
use rockpack_files::{make_folders, new_file, parent_folder, remove_file};
use rockpack_remote::is_complete_copy;
use rockpack_report::words::{counted, few};
use rockpack_report::{Progress, Stage};
use rockpack_split::input::artifact::{RemoteArtifact, ScanOptions, find_objects, refuse_missing};
use rockpack_split::input::tree::InputPath;
use serde::Serialize;

use super::progress::Terminal;
use super::render::bytes;
use crate::settings::{MemoryArguments, input_path, output_path};

/// Fetch packed artifacts from object stores and web servers.
///
/// Each shard becomes a folder in --out, which `build` and other commands read like the address. Archives are checked
/// against their .sha256sum, and appear once they are complete. Existing files are kept, so a repeated run continues an
/// interrupted one.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// s3://BUCKET/PREFIX, https://HOST/PATH/, or a .txt file of addresses
    #[arg(value_name = "ADDRESS", required = true, value_parser = input_path())]
    addresses: Vec<InputPath>,
    /// Folder for the shards; created if missing
    #[arg(long, value_name = "DIR", value_parser = output_path())]
    out: PathBuf,
    /// Only these artifacts (blas) or components (blas_lib)
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    components: Vec<String>,
    /// Only artifacts of these families, and generic ones
    ///
    /// The last part of their names, as gfx1151 or gfx110X-dgpu
    #[arg(long, value_delimiter = ',', value_name = "FAMILY")]
    targets: Vec<String>,
    /// Fail if there are no artifacts of a family
    #[arg(long, value_delimiter = ',', value_name = "FAMILY")]
    expect: Vec<String>,
    /// List the objects and their sizes, and write nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    memory: MemoryArguments,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// The result of a run.
#[derive(Debug, Serialize)]
struct Fetched {
    dry_run: bool,
    objects: Vec<FetchedObject>,
    /// Bytes of all objects.
    bytes: u64,
    /// Bytes of new objects.
    new_bytes: u64,
}

#[derive(Debug, Serialize)]
struct FetchedObject {
    address: String,
    path: PathBuf,
    bytes: u64,
    /// The SHA-256 in its .sha256sum.
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
    /// Whether the file already existed.
    present: bool,
}

/// An object with its place in the output folder.
struct PlannedFetch {
    artifact: RemoteArtifact,
    path: PathBuf,
}

/// Objects that are fetched at the same time, each by several requests.
const CONCURRENT_OBJECTS: usize = 2;

pub(super) fn run(arguments: Arguments, terminal: &Terminal) -> Result<()> {
    let is_local = |input: &&InputPath| {
        input.address.is_none() && input.path.extension().is_none_or(|ending| ending != "txt")
    };
    if let Some(input) = arguments.addresses.iter().find(is_local) {
        let error = Error::new(Kind::Usage, "is neither an address nor a .txt file of addresses");
        return Err(error.file(&input.path).hint("give s3://BUCKET/PREFIX or https://HOST/PATH/"));
    }
    let budget = arguments.memory.budget();
    let options = ScanOptions::within(&budget);
    let found = find_objects(&arguments.addresses, &options)?;
    let findings = found.findings;
    let in_shards = found.shards.into_iter().flat_map(|(shard, artifacts)| {
        let folder = arguments.out.join(shard);
        artifacts
            .into_iter()
            .map(move |it| PlannedFetch { path: folder.join(&it.file_name), artifact: it })
    });
    let all: Vec<PlannedFetch> = in_shards.collect();
    let names: Vec<ArtifactName> = all.iter().filter_map(|it| it.artifact.name()).collect();
    refuse_missing(names.iter(), &arguments.expect)?;
    arguments.refuse_unknown(&names)?;
    let wanted =
        all.into_iter().filter(|it| it.artifact.name().is_some_and(|name| arguments.wants(&name)));
    let tarballs = found.tarballs.into_iter().map(|object| {
        let (file_name, checksum) = (object.name(), None);
        PlannedFetch {
            path: arguments.out.join(&file_name),
            artifact: RemoteArtifact { file_name, object, checksum },
        }
    });
    let wanted: Vec<PlannedFetch> = wanted.chain(tarballs).collect();
    let objects = fetch(&wanted, arguments.dry_run, &budget, terminal)?;
    let bytes_of = |all: bool| {
        objects
            .iter()
            .filter(|it| all || !it.present)
            .map(|it| it.bytes)
            .fold(0, u64::saturating_add)
    };
    let (bytes, new_bytes) = (bytes_of(true), bytes_of(false));
    let fetched = Fetched { dry_run: arguments.dry_run, objects, bytes, new_bytes };
    terminal.print_result(arguments.json, &fetched, || text(&fetched))?;
    terminal.findings(&findings);
    Ok(())
}

impl Arguments {
    fn wants(&self, name: &ArtifactName) -> bool {
        let (component, family) = (name.component(), &name.gpu_family);
        let is_named = self.components.iter().any(|it| *it == name.name || *it == component);
        (self.components.is_empty() || is_named)
            && (self.targets.is_empty() || self.targets.contains(family) || family == "generic")
    }

    /// Refuses names of components and families that no artifact has.
    fn refuse_unknown(&self, names: &[ArtifactName]) -> Result<()> {
        let components: BTreeSet<String> =
            names.iter().flat_map(|name| [name.name.clone(), name.component()]).collect();
        let families: BTreeSet<String> = names.iter().map(|name| name.gpu_family.clone()).collect();
        let mut faults = Faults::default();
        for (option, given, there) in [
            ("--components", &self.components, &components),
            ("--targets", &self.targets, &families),
        ] {
            for word in given.iter().filter(|word| !there.contains(*word)) {
                let message = format!("{option}: no artifact matches `{}`", word.escape_debug());
                let there: Vec<&String> = there.iter().collect();
                let hint = format!("known are {}", few(&there, 40));
                faults.add(Error::new(Kind::Usage, message).hint(hint));
            }
        }
        faults.finish()
    }
}

/// Downloads the objects; in a dry run, only lists them.
fn fetch(
    wanted: &[PlannedFetch],
    is_dry: bool,
    budget: &Budget,
    progress: &Terminal,
) -> Result<Vec<FetchedObject>> {
    let looked = threads::each(wanted, 4 * CONCURRENT_OBJECTS, |one| check_existing(one, is_dry))?;
    let looked = Faults::all(looked)?;
    if !is_dry {
        let jobs: Vec<_> = wanted.iter().zip(&looked).filter(|(_, it)| !it.0.present).collect();
        progress.expect(
            Stage::Fetch,
            jobs.iter().map(|(_, it)| it.0.bytes).fold(0, u64::saturating_add),
        );
        progress.begin(Stage::Fetch);
        let done = threads::each(&jobs, CONCURRENT_OBJECTS, |(one, (_, digest))| {
            let advance = |bytes| progress.advance(Stage::Fetch, bytes);
            one.artifact.object.copy_to(&one.path, *digest, budget, advance)
        })?;
        Faults::all(done)?;
        progress.end(Stage::Fetch);
    }
    Ok(looked.into_iter().map(|(object, _)| object).collect())
}

/// Finds out whether an object is present. Unless the run is dry, writes its checksum file and removes a file with
/// other content. Also returns the expected SHA-256.
fn check_existing(one: &PlannedFetch, is_dry: bool) -> Result<(FetchedObject, Option<[u8; 32]>)> {
    let PlannedFetch { artifact, path } = one;
    let checksum = artifact.read_checksum()?;
    let digest = checksum.as_ref().map(|(_, digest)| *digest);
    let size = artifact.object.size()?;
    let there = exists(path)?;
    let present = there
        && match &digest {
            Some(digest) => is_complete_copy(path, digest)?,
            None => Content::open(path, &Budget::unlimited())?.len() == size,
        };
    if !is_dry {
        make_folders(parent_folder(path))?;
        if let Some((text, _)) = checksum {
            let place = PathBuf::from(format!("{}.sha256sum", path.display()));
            let text = Content::of_bytes(text);
            if new_file::exists(&place, &text).is_err() {
                remove_file(&place)?;
            }
            new_file::write_single(&place, &text)?;
        }
        if there && !present {
            remove_file(path)?;
        }
    }
    let (address, path) = (artifact.object.path().display().to_string(), path.clone());
    let sha256 = digest.map(|digest| hex(&digest));
    Ok((FetchedObject { address, path, bytes: size, sha256, present }, digest))
}

fn text(fetched: &Fetched) -> String {
    let Fetched { dry_run, objects, bytes: all, new_bytes } = fetched;
    let mut text = String::new();
    for object in objects {
        let state = match (object.present, dry_run) {
            (true, _) => "present",
            (false, true) => "would be fetched",
            (false, false) => "fetched",
        };
        let path = printable(&object.path.to_string_lossy()).into_owned();
        text.push_str(&text_line!("{path}: {}, {state}", bytes(object.bytes)));
    }
    let count = counted(objects.len(), "object");
    text.push_str(&text_line!("{count}, {}; {} of them new", bytes(*all), bytes(*new_bytes)));
    text
}
