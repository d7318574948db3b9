//! `split`: splits each component of a shard into `{component}_generic` and `{component}_{arch}`.
//!
//! A component is all artifacts of a shard with one name and kind. If one of its binaries is still fat, or
//! one of its archives is left out, all of its archives are made again. Otherwise all bytes stay unchanged,
//! and only files in the wrong artifact move: host files to `generic`, device files to their arch. Several
//! builds of a binary, for several GPU families, are joined.

mod sorting;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rockpack_core::error::{Error, Faults, Kind, Result, ResultExt};
use rockpack_core::gfx::{self, BaseArch};
use rockpack_core::run::Budget;
use rockpack_core::tree::{ArtifactName, DanglingLink, LinkSet, TreePath};

use super::staging::{self, ARTIFACTS, ReplacedComponents, refuse_link};
use super::{DirectoriesReport, OutputArtifact, WriteContext, WrittenArtifact, check_ahead};
use rockpack_files::Swap;
use rockpack_plan::config::{matches_any, nearest_arch};
use rockpack_report::{Findings, Progress, found};
use rockpack_split::input::artifact::{self, Artifact, Scan, ScanOptions};
use rockpack_split::input::database::DatabaseRules;
use rockpack_split::input::tree::InputPath;
use rockpack_split::{self as split, SplitArtifact, SplitPolicy};
use sorting::ShardComponent;

#[derive(Debug, Clone)]
pub enum SplitInput {
    /// One artifact; its `{name}_{kind}` may be given.
    Artifact {
        folder: PathBuf,
        /// Component of the artifact, e.g. `blas_lib`; `None` to read it from the folder's name.
        component: Option<String>,
    },
    Shard(PathBuf),
    /// Shards, folders of shards and install trees: each shard gets a folder of its own in the output.
    Shards(Vec<InputPath>),
}

impl SplitInput {
    /// Refuses an unusable output folder and invalid names of artifacts, before any content is read.
    pub fn check_ahead(&self, out: &Path) -> Result<()> {
        let mut faults = Faults::default();
        let roots: Vec<&Path> = match self {
            Self::Artifact { folder, component } => {
                let named = artifact::name_artifact(folder, component.as_deref());
                faults.keep(named.context(|| "looking for the artifact to split".to_owned()));
                vec![folder]
            }
            Self::Shard(folder) => vec![folder],
            Self::Shards(roots) => roots.iter().map(AsRef::as_ref).collect(),
        };
        faults.keep(check_ahead(&roots, out));
        faults.finish()
    }
}

#[derive(Debug, Clone)]
pub struct SplitOptions {
    pub input: SplitInput,
    /// Output folder of the artifacts; created if missing.
    pub out: PathBuf,
    /// Archs to keep; all if empty.
    pub targets: BTreeSet<BaseArch>,
    /// Globs of files for machines other than x86-64, which stay unchanged.
    pub other_machines: Vec<String>,
    /// The install prefix to use if an input has several, without the leading `/`.
    pub prefix: Option<TreePath>,
    /// Memory and compressors for the run; the threads are the caller's.
    pub budget: Budget,
}

/// Splits artifacts and writes each component, even if other components fail.
pub fn split(options: &SplitOptions, progress: &dyn Progress) -> Result<DirectoriesReport> {
    let (jobs, findings) = jobs(options)?;
    let rules = DatabaseRules::builtin()?;
    let mut report = DirectoriesReport { findings, ..DirectoriesReport::default() };
    let is_per_shard = matches!(options.input, SplitInput::Shards(_));
    let mut found = BTreeSet::new();
    let mut outs: BTreeMap<&Path, Swap> = BTreeMap::new();
    let mut links = LinkSet::default();
    for job in &jobs {
        let staging = match outs.entry(&job.out) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(Swap::begin(&ARTIFACTS, &job.out, || Ok(()))?),
        };
        match job.run(options, &rules, &mut links, staging, progress) {
            Ok((done, archs)) => {
                found.extend(archs);
                report.add(is_per_shard.then_some(&job.shard), done);
            }
            Err(error) => report.failures.push((job.label(), job.named(error))),
        }
    }
    // The user may have asked for the failed component.
    if report.failures.is_empty() {
        for target in options.targets.difference(&found) {
            let meant = if gfx::is_known(target) { None } else { nearest_arch(target.as_str()) };
            report.findings.add(found::TargetAbsent { arch: target.clone(), meant });
        }
    }
    // A link may point into a component that this run does not see.
    let is_whole = !matches!(options.input, SplitInput::Artifact { .. });
    if is_whole && report.failures.is_empty() {
        for DanglingLink { owner, path, target } in links.dangling() {
            report.findings.add(found::LinkDangling { owner, path, target });
        }
    }
    report.findings.sort();
    Ok(report)
}

impl DirectoriesReport {
    /// Adds the result of a component. `shard` is its subfolder of the output folder, if each shard has one.
    fn add(&mut self, shard: Option<&String>, done: Self) {
        let written = done.artifacts.into_iter();
        self.artifacts
            .extend(written.map(|written| WrittenArtifact { shard: shard.cloned(), ..written }));
        self.removed.extend(done.removed.into_iter().map(|name| match shard {
            Some(shard) => format!("{shard}/{name}"),
            None => name,
        }));
        self.findings.extend(done.findings);
    }
}

struct SplitJob {
    shard: String,
    /// `{name}_{kind}` of its outputs.
    component: String,
    /// Folders of its artifacts; none of an install tree.
    folders: Vec<PathBuf>,
    /// The scan of its install trees, if it comes from one.
    trees: Option<Rc<Scan>>,
    /// The name that the user asked for.
    renamed: Option<String>,
    out: PathBuf,
}

fn jobs(options: &SplitOptions) -> Result<(Vec<SplitJob>, Findings)> {
    let out = &options.out;
    options.input.check_ahead(out)?;
    match &options.input {
        SplitInput::Artifact { folder, component } => {
            let (shard, name) = artifact::name_artifact(folder, component.as_deref())?;
            let job = SplitJob {
                shard,
                component: name.component(),
                folders: vec![folder.clone()],
                trees: None,
                renamed: component.clone(),
                out: out.clone(),
            };
            Ok((vec![job], Findings::default()))
        }
        SplitInput::Shard(folder) => {
            let found = artifact::find_shard(folder, &options.budget)?;
            let shards = found.shards.into_iter();
            let jobs = shards.flat_map(|(shard, folders)| by_component(&shard, folders, out));
            Ok((jobs.collect(), found.findings))
        }
        SplitInput::Shards(roots) => {
            let prefix = options.prefix.clone();
            let scan_options =
                ScanOptions { prefix, ..ScanOptions::next_to_output(out, &options.budget) };
            let (found, trees) = artifact::find_all(roots, &scan_options)?;
            let shards = found.shards.into_iter();
            let of_shards = shards
                .flat_map(|(shard, folders)| by_component(&shard, folders, &out.join(&shard)));
            let trees = Rc::new(trees);
            let artifacts = trees.shards.iter().flat_map(|shard| &shard.artifacts);
            let of_trees = artifacts.map(|artifact| SplitJob {
                shard: artifact.shard.clone(),
                component: artifact.name.component(),
                folders: Vec::new(),
                trees: Some(Rc::clone(&trees)),
                renamed: None,
                out: out.join(&artifact.shard),
            });
            let jobs: Vec<SplitJob> = of_shards.chain(of_trees).collect();
            // The folder of a shard may be the input folder itself.
            for job in &jobs {
                artifact::refuse_inside(roots, &job.out, "output folder")?;
                refuse_link(&job.out)?;
            }
            Ok((jobs, found.findings))
        }
    }
}

/// The jobs of a shard. A folder whose name is not an artifact name becomes its own job, which fails.
fn by_component(shard: &str, folders: Vec<PathBuf>, out: &Path) -> Vec<SplitJob> {
    let mut components: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for folder in folders {
        let name =
            folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let component = match name.parse::<ArtifactName>() {
            Ok(parsed) => parsed.component(),
            Err(_) => name,
        };
        components.entry(component).or_default().push(folder);
    }
    let jobs = components.into_iter().map(|(component, folders)| SplitJob {
        shard: shard.to_owned(),
        component,
        folders,
        trees: None,
        renamed: None,
        out: out.to_path_buf(),
    });
    jobs.collect()
}

impl SplitJob {
    fn label(&self) -> String {
        format!("{}/{}", self.shard, self.component)
    }

    /// Adds the name of the component to `error`, unless it has it.
    fn named(&self, error: Error) -> Error {
        let doing = format!("splitting {}", self.label());
        if error.frames().iter().any(|frame| frame.starts_with(&doing)) {
            error
        } else {
            error.context(doing)
        }
    }

    /// The result, and the archs of all device code in the component.
    fn run(
        &self,
        options: &SplitOptions,
        rules: &DatabaseRules,
        links: &mut LinkSet,
        staging: &Swap,
        progress: &dyn Progress,
    ) -> Result<(DirectoriesReport, BTreeSet<BaseArch>)> {
        // The scope frees the memory of a component at its end.
        let budget = options.budget.scope();
        let scans = self.scan(&budget)?;
        let noticed = Findings::of(scans.iter().map(|scan| &scan.findings));
        let context = WriteContext { staging, budget: &budget, progress };
        let done = self.split(&scans, options, rules, links, context);
        noticed.explain(done)
    }

    fn split(
        &self,
        scans: &[Rc<Scan>],
        options: &SplitOptions,
        rules: &DatabaseRules,
        links: &mut LinkSet,
        context: WriteContext<'_>,
    ) -> Result<(DirectoriesReport, BTreeSet<BaseArch>)> {
        let WriteContext { staging, progress, .. } = context;
        let artifacts = scans.iter().flat_map(|scan| &scan.shards).flat_map(|it| &it.artifacts);
        let artifacts: Vec<&Artifact> = artifacts
            .filter(|it| it.shard == self.shard && it.name.component() == self.component)
            .collect();
        let policy = SplitPolicy {
            allows_other_machine: &|path| matches_any(&options.other_machines, path),
            ..SplitPolicy::strict(rules)
        };
        let split = split::split_artifacts(&artifacts, &policy, progress);
        let split = scans.iter().fold(split, |split, scan| scan.inputs.explain(split))?;
        let archs = sorting::archs(&split);
        let mut own = LinkSet::default();
        for artifact in &split {
            own.add_tree(&artifact.host, &artifact.name.to_string());
            links.add_tree(&artifact.host, &format!("{}/{}", self.shard, artifact.name));
            artifact.databases.iter().for_each(|file| links.add(&file.path));
        }
        let noticed = Findings::of(split.iter().map(|artifact| &artifact.findings));
        noticed.explain(own.refuse_outside_links())?;
        let outputs = self.outputs(&artifacts, split, &options.targets, context);
        let (outputs, mut findings) = noticed.explain(outputs)?;
        let replacing = ReplacedComponents {
            components: vec![self.component.clone()],
            inputs: self.folders.iter().map(PathBuf::as_path).collect(),
        };
        let committed = staging::commit(staging, &outputs, &replacing, || {
            scans.iter().try_for_each(|scan| scan.inputs.recheck())
        });
        let mut report = findings.explain(committed)?;
        for scan in scans {
            findings.extend(scan.findings.clone());
        }
        report.findings = findings;
        Ok((report, archs))
    }

    fn outputs(
        &self,
        artifacts: &[&Artifact],
        split: Vec<SplitArtifact>,
        targets: &BTreeSet<BaseArch>,
        context: WriteContext<'_>,
    ) -> Result<(Vec<OutputArtifact>, Findings)> {
        let pairs = artifacts.iter().map(|&artifact| {
            let own = split.iter().find(|split| split.name == artifact.name);
            own.map(|own| (artifact, own)).ok_or_else(|| {
                Error::new(Kind::Bug, format!("{} was not taken apart", artifact.name))
            })
        });
        let sources = pairs.collect::<Result<_>>()?;
        let component = ShardComponent { id: &self.component, sources, targets };
        component.refuse_unmatched()?;
        let mut findings = sorting::left_out(&split, targets, &self.shard, &self.component);
        if sorting::has_two_builds(&split) {
            let (outputs, joined) = sorting::joined_outputs(artifacts, split, targets, context)?;
            findings.extend(joined);
            return Ok((outputs, findings));
        }
        let outputs = component.outputs(context)?;
        for artifact in split {
            findings.extend(artifact.findings);
        }
        Ok((outputs, findings))
    }

    fn scan(&self, budget: &Budget) -> Result<Vec<Rc<Scan>>> {
        if let Some(trees) = &self.trees {
            return Ok(vec![Rc::clone(trees)]);
        }
        let renamed = self.renamed.as_deref();
        let options = ScanOptions::next_to_output(&self.out, budget);
        let folders = self.folders.iter();
        Faults::all(
            folders.map(|folder| artifact::scan_artifact(folder, renamed, &options).map(Rc::new)),
        )
    }
}
