//! `recombine`: joins all shards into `{component}_generic` and `{component}_{group}`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use rockpack_core::error::{Error, Kind, Result, ResultExt};
use rockpack_core::gfx::BaseArch;
use rockpack_core::run::Budget;
use rockpack_core::tree::{ArtifactName, Node, TreePath};

use super::kernels::{Binary, KernelWriter};
use super::staging::{self, ARTIFACTS, ReplacedComponents};
use super::{DirectoriesReport, GENERIC, OutputArtifact, Outputs, WriteContext, check_ahead};
use rockpack_files::Swap;
use rockpack_plan::config::{Config, HipRuntime, SetScope};
use rockpack_plan::recombine::{self, Component, Group, Recombined};
use rockpack_report::{Findings, Progress, Stage};
use rockpack_split::input::artifact::{self, Artifact, Scan, ScanOptions};
use rockpack_split::input::tree::InputPath;
use rockpack_split::{self as split, HostKind, SplitPolicy};

#[derive(Debug, Clone)]
pub struct RecombineOptions {
    /// Shards, folders of shards, and install trees.
    pub artifacts: Vec<InputPath>,
    pub config: Config,
    /// Output folder of the artifacts; created if missing.
    pub out: PathBuf,
    /// Memory and compressors for the run; the threads are the caller's.
    pub budget: Budget,
}

/// Joins the artifacts of all shards and writes the result, or nothing after an error.
pub fn recombine(options: &RecombineOptions, progress: &dyn Progress) -> Result<DirectoriesReport> {
    check_ahead(&options.artifacts, &options.out)?;
    let prefix = options.config.keys.prefix.as_ref();
    let prefix = prefix.and_then(|text| TreePath::new(text.trim_start_matches('/')).ok());
    let scan_options =
        ScanOptions { prefix, ..ScanOptions::next_to_output(&options.out, &options.budget) };
    let scan = artifact::scan(&options.artifacts, &scan_options);
    options.config.accept_in_error(scan.and_then(|scan| {
        let done = recombine_scanned(&scan, options, progress);
        scan.findings.explain(done)
    }))
}

fn recombine_scanned(
    scan: &Scan,
    options: &RecombineOptions,
    progress: &dyn Progress,
) -> Result<DirectoriesReport> {
    let split_options = SplitPolicy {
        keeps_fat: &|name| options.config.keeps_fat(name),
        any_runtime: options.config.keys.hip_runtime == HipRuntime::Any,
        opens_bundles: true,
        allows_other_machine: &|path| options.config.allows_other_machine(path),
        ..SplitPolicy::strict(&options.config.databases)
    };
    let split = split::split_all(scan, &split_options, progress)?;
    let recombined = recombine::recombine(split, &options.config, &options.config.grouping)?;
    let written = write(scan, &recombined, options, progress);
    let mut report = recombined.findings.explain(written)?;
    report.findings = Findings::of([&scan.findings, &recombined.findings]);
    report.findings.sort();
    options.config.accept(&mut report.findings, SetScope::Artifacts);
    Ok(report)
}

fn write(
    scan: &Scan,
    recombined: &Recombined,
    options: &RecombineOptions,
    progress: &dyn Progress,
) -> Result<DirectoriesReport> {
    let staging = Swap::begin(&ARTIFACTS, &options.out, || Ok(()))?;
    let primary = options.config.grouping.primary_shard.as_deref();
    let inputs: Vec<&Artifact> = scan.shards.iter().flat_map(|shard| &shard.artifacts).collect();
    let mut artifacts = Vec::new();
    let kernels = recombined.components.iter().flat_map(|component| &component.kernels);
    progress.expect(Stage::Pack, kernels.map(|kernel| kernel.content.len()).sum());
    progress.begin(Stage::Pack);
    for component in &recombined.components {
        let writer = ComponentWriter {
            component,
            groups: &recombined.groups,
            stage_prefixes: StagePrefixLookup::of(&inputs, primary, component),
            context: WriteContext { staging: &staging, budget: &options.budget, progress },
        };
        let outputs = writer.outputs();
        artifacts.extend(outputs.context(|| format!("writing {}", component.id))?);
    }
    progress.end(Stage::Pack);
    let replacing = ReplacedComponents {
        components: recombined.components.iter().map(|it| it.id.to_string()).collect(),
        inputs: inputs.iter().map(|artifact| artifact.root.as_path()).collect(),
    };
    staging::commit(&staging, &artifacts, &replacing, || scan.inputs.recheck())
}

pub(super) struct ComponentWriter<'a> {
    pub component: &'a Component,
    pub groups: &'a [Group],
    pub stage_prefixes: StagePrefixLookup<'a>,
    pub context: WriteContext<'a>,
}

impl ComponentWriter<'_> {
    pub fn outputs(&self) -> Result<Vec<OutputArtifact>> {
        let id = &*self.component.id;
        let mut outputs = Outputs::default();
        let binaries = self.host(&format!("{id}_{GENERIC}"), &mut outputs)?;
        let kernels = KernelWriter {
            component: id,
            gpu_family: &|arch| self.gpu_family(arch),
            context: self.context,
        };
        kernels.add(&binaries, &self.component.kernels, &mut outputs)?;
        for file in &self.component.databases {
            let prefix = self.prefix(&file.path, file.module.as_deref())?;
            let gpu_families = file.archs.iter().map(|arch| self.gpu_family(arch));
            for gpu_family in gpu_families.collect::<Result<BTreeSet<String>>>()? {
                let artifact = format!("{id}_{gpu_family}");
                outputs.add_folders(&artifact, prefix, &file.path)?;
                let node = Node::File { data: file.content.clone(), mode: file.mode };
                outputs.add(&artifact, prefix, &file.path, node)?;
            }
        }
        outputs.finish(|_| None)
    }

    /// Adds the host files except binaries with device code, which it returns.
    fn host(&self, generic: &str, outputs: &mut Outputs) -> Result<Vec<Binary<'_>>> {
        let mut binaries = Vec::new();
        for (path, node) in &self.component.host {
            let module = node.data().and_then(|file| file.module.as_deref());
            let prefix = self.prefix(path, module)?;
            let node = match node {
                Node::Directory { mode } => Node::Directory { mode: *mode },
                Node::Link { target } => Node::Link { target: target.clone() },
                Node::File { data, mode } => match &data.kind {
                    HostKind::Plain(content) => Node::File { data: content.clone(), mode: *mode },
                    HostKind::Fat(fat) => {
                        let (prefix, path) = (prefix.to_owned(), path.clone());
                        binaries.push(Binary { prefix, path, mode: *mode, fat });
                        continue;
                    }
                },
            };
            outputs.add(generic, prefix, path, node)?;
        }
        Ok(binaries)
    }

    fn prefix(&self, path: &TreePath, module: Option<&str>) -> Result<&str> {
        let prefix = self.stage_prefixes.prefix(path, module);
        prefix.ok_or_else(|| Error::bug(format!("{path} comes from no stage prefix")))
    }

    /// The GPU family of an arch in artifact names: its group.
    fn gpu_family(&self, arch: &BaseArch) -> Result<String> {
        let found = self.groups.iter().find(|group| group.archs.contains(arch));
        let group = found.ok_or_else(|| Error::bug(format!("{arch} is in no group")))?;
        let name = format!("{}_{}", self.component.id, group.name);
        name.parse::<ArtifactName>().map(|_| group.name.clone()).map_err(|_| {
            let message = format!("the group `{}` cannot be part of an artifact name", group.name);
            let hint = "artifact names have three fields without underscores";
            Error::new(Kind::Config, message).hint(hint)
        })
    }
}

/// The stage prefixes of one component, by install path and by module.
pub(super) struct StagePrefixLookup<'a> {
    prefixes: BTreeMap<&'a TreePath, &'a str>,
    modules: BTreeMap<&'a str, &'a str>,
}

impl<'a> StagePrefixLookup<'a> {
    /// Reads the artifacts in the order of recombination: the primary shard's first, generic ones before others.
    pub fn of(all: &[&'a Artifact], primary: Option<&str>, component: &Component) -> Self {
        let own = all.iter().copied().filter(|artifact| {
            artifact.name.name == component.artifact && artifact.name.kind == component.kind
        });
        let mut artifacts: Vec<&Artifact> = own.collect();
        artifacts.sort_by_key(|artifact| {
            let other = primary.is_some_and(|primary| artifact.shard != primary);
            let generic = artifact.name.gpu_family == GENERIC;
            (other, &artifact.shard, !generic, &artifact.name)
        });
        let mut stage_prefixes = Self { prefixes: BTreeMap::new(), modules: BTreeMap::new() };
        for prefix in artifacts.into_iter().flat_map(|artifact| &artifact.prefixes) {
            if let Some(module) = &prefix.module {
                stage_prefixes.modules.entry(module).or_insert(&prefix.path);
            }
            for (path, _) in &prefix.tree {
                stage_prefixes.prefixes.entry(path).or_insert(&prefix.path);
            }
        }
        stage_prefixes
    }

    /// The stage prefix of `path`. If no artifact has the path, because joining moved the file: that of its module, or
    /// of its nearest known folder.
    fn prefix(&self, path: &TreePath, module: Option<&str>) -> Option<&'a str> {
        if let Some(prefix) = self.prefixes.get(path) {
            return Some(prefix);
        }
        if let Some(prefix) = module.and_then(|module| self.modules.get(module)) {
            return Some(prefix);
        }
        let mut above = std::iter::successors(path.parent(), TreePath::parent);
        above.find_map(|folder| self.prefixes.get(&folder).copied())
    }
}
