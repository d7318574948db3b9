//! `rockpack thin`: removes the device code of other GPUs from trees, tarballs and files.
//!
//! ```text
//! PATH ─ source ─► tree ─ rockpack_split::thin ─► changed and removed files ─ write ─► DIR/NAME, or PATH itself
//! ```
//!
//! rockpack decides everything and reports all faults before it writes the first byte.

mod owned;
mod source;
mod write;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rockpack_core::content::{BlockStore, Spool};
use rockpack_core::error::{Error, Faults, Kind, Result};
use rockpack_core::gfx::Target;
use rockpack_core::run::Budget;
use rockpack_core::tree::{Node, TreePath};
use rockpack_report::words::few;
use rockpack_report::{Findings, Progress};
use rockpack_split::input::artifact::{ScanOptions, refuse_inside};
use rockpack_split::input::database::DatabaseRules;
use rockpack_split::thin::{ThinOptions, Thinned, serves, thin};
use serde::Serialize;

use owned::owners;
use source::Source;

#[derive(Debug)]
pub struct ThinSettings {
    /// Folders, tarballs and files.
    pub paths: Vec<PathBuf>,
    /// Targets whose code stays; the inputs must have code for each.
    pub targets: Vec<Target>,
    /// Targets of this machine's GPUs; the inputs may lack code for some of them.
    pub own_targets: Vec<Target>,
    /// The folder for the thinned copies; `None` to change the paths themselves.
    pub out: Option<PathBuf>,
    /// Whether nothing is written.
    pub dry_run: bool,
    /// Whether files that a package manager owns may change.
    pub allow_owned: bool,
    /// Whether wrappers may lose all their code.
    pub allow_empty: bool,
    pub budget: Budget,
}

#[derive(Debug, Serialize)]
pub struct ThinReport {
    /// The targets that have code.
    pub targets: Vec<Target>,
    pub inputs: Vec<ThinnedInput>,
    /// The files that keep code of other targets.
    pub findings: Findings,
}

#[derive(Debug, Serialize)]
pub struct ThinnedInput {
    pub path: String,
    /// Total size of its files, in bytes.
    pub bytes_before: u64,
    /// Total size of the remaining files, in bytes.
    pub bytes_after: u64,
    pub files_before: usize,
    pub files: Vec<ThinnedFile>,
}

#[derive(Debug, Serialize)]
pub struct ThinnedFile {
    pub path: TreePath,
    pub before: u64,
    /// The size afterwards, in bytes; absent if the file is removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
}

pub fn run(settings: &ThinSettings, progress: &dyn Progress) -> Result<ThinReport> {
    let ThinSettings { paths, out, budget, .. } = settings;
    if let Some(out) = out {
        refuse_inside(paths, out, "output folder")?;
    }
    let scan = out.as_ref().map(|out| ScanOptions::next_to_output(out, budget));
    let spool_folder = scan.unwrap_or_else(|| ScanOptions::within(budget)).spool_dir;
    let store = BlockStore::create(&spool_folder, budget)?;
    let sources = paths.iter().map(|path| Source::read(path, &store));
    let sources: Vec<Source> = Faults::all(sources)?;
    source::refuse_overlap(&sources)?;
    if let Some(out) = out {
        write::check_names(&sources, out)?;
    }
    let spool = Spool::create(&spool_folder)?;
    let (rules, targets) = (DatabaseRules::builtin()?, settings.targets());
    let options = ThinOptions {
        rules: &rules,
        targets: &targets,
        allows_empty: settings.allow_empty,
        spool: &spool,
    };
    let thinned = sources.iter().map(|source| {
        source.inputs.explain(thin(&source.path.to_string_lossy(), &source.tree, &options))
    });
    let mut thinned: Vec<Thinned> = Faults::all(thinned)?;
    let served = settings.targets_with_code(&thinned, &targets)?;
    let emptied = thinned.iter_mut().flat_map(|one| std::mem::take(&mut one.emptied));
    Error::gather(emptied.collect()).map_or(Ok(()), Err)?;
    Faults::all(sources.iter().zip(&thinned).map(|(source, thinned)| source.check(thinned)))?;
    if out.is_none() {
        settings.refuse_owned(&sources, &thinned, progress)?;
    }
    if !settings.dry_run {
        sources.iter().try_for_each(|source| source.inputs.recheck())?;
        match out {
            Some(out) => write::copies(&sources, &thinned, out)?,
            None => write::in_place(&sources, &thinned)?,
        }
    }
    let mut findings = Findings::of(thinned.iter().map(|one| &one.findings));
    findings.sort();
    let inputs = sources.iter().zip(&thinned).map(|(source, thinned)| summary(source, thinned));
    Ok(ThinReport { targets: served, inputs: inputs.collect(), findings })
}

impl ThinSettings {
    fn targets(&self) -> Vec<Target> {
        let all: BTreeSet<&Target> = self.targets.iter().chain(&self.own_targets).collect();
        all.into_iter().cloned().collect()
    }

    /// The targets that the inputs have code for. Fails if a named target has no code, or no target has any.
    fn targets_with_code(&self, thinned: &[Thinned], targets: &[Target]) -> Result<Vec<Target>> {
        let found: BTreeSet<&Target> = thinned.iter().flat_map(|one| &one.targets).collect();
        let paths = Vec::from_iter(self.paths.iter().map(|path| path.display()));
        if found.is_empty() {
            let message = format!("{} has no device code that rockpack knows", few(&paths, 3));
            return Err(Error::new(Kind::Usage, message));
        }
        let is_served = |kept: &&Target| found.iter().any(|code| serves(code, kept));
        let served: Vec<Target> = targets.iter().filter(is_served).cloned().collect();
        let missing = Vec::from_iter(targets.iter().filter(|it| !served.contains(it)));
        if served.is_empty() || missing.iter().any(|it| self.targets.contains(it)) {
            let (missing, present) = (few(&missing, 5), few(&Vec::from_iter(found), 30));
            let message = format!("{} has no code for {missing}", few(&paths, 3));
            let error = Error::new(Kind::Usage, message);
            return Err(error.hint(format!("it has code for {present}; nothing was changed")));
        }
        Ok(served)
    }

    fn refuse_owned(
        &self,
        sources: &[Source],
        thinned: &[Thinned],
        progress: &dyn Progress,
    ) -> Result<()> {
        let all = sources.iter().zip(thinned);
        let changed = all.flat_map(|(source, thinned)| {
            thinned.changes.keys().map(move |path| source.place(path))
        });
        let owners = owners(&changed.collect())?;
        if owners.is_empty() || self.allow_owned || self.dry_run {
            owners.iter().for_each(|text| progress.note(text));
            return Ok(());
        }
        let error = Error::new(Kind::Usage, format!("would change {}", owners.join("; ")));
        Err(error.hint("make a thinned copy with --out, or change them anyway with --allow-owned"))
    }
}

fn summary(source: &Source, thinned: &Thinned) -> ThinnedInput {
    let len = |path| match source.tree.get(path) {
        Some(Node::File { data, .. }) => data.len(),
        _ => 0,
    };
    let files = thinned.changes.iter().map(|(path, change)| ThinnedFile {
        path: path.clone(),
        before: len(path),
        after: change.as_ref().map(|content| content.len()),
    });
    let files: Vec<_> = files.collect();
    let all = source.tree.values().filter_map(|node| node.data());
    let sizes: Vec<u64> = all.map(|content| content.len()).collect();
    let bytes_before: u64 = sizes.iter().sum();
    let saved = files.iter().map(|file| file.before - file.after.unwrap_or_default());
    ThinnedInput {
        path: source.path.display().to_string(),
        bytes_before,
        bytes_after: bytes_before - saved.sum::<u64>(),
        files_before: sizes.len(),
        files,
    }
}

fn name_of(path: &Path) -> Result<&str> {
    let name = path.file_name().and_then(|name| name.to_str());
    name.ok_or_else(|| Error::new(Kind::Usage, "has no name in UTF-8").file(path))
}
