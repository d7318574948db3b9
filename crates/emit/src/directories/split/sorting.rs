//! Assigns every file of a component to an artifact.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rockpack_core::error::{Error, Faults, Kind, Result};
use rockpack_core::gfx::{BaseArch, Group, Target, target_error};
use rockpack_core::tree::{Node, TreePath};

use crate::directories::kernels::{Binary, KernelWriter, kernels_of};
use crate::directories::recombine::{ComponentWriter, StagePrefixLookup};
use crate::directories::{GENERIC, OutputArtifact, Outputs, WriteContext};
use rockpack_plan::config::{Config, Grouping, UnassignedArchitectures};
use rockpack_plan::recombine;
use rockpack_report::words::list;
use rockpack_report::{Code, Findings, Stage, found};
use rockpack_split::input::artifact::Artifact;
use rockpack_split::{DatabaseFile, FatBinary, HostBinary, SplitArtifact};

/// All artifacts of a shard with one name and kind.
pub(super) struct ShardComponent<'a> {
    /// `{name}_{kind}` of the outputs.
    pub id: &'a str,
    pub sources: Vec<(&'a Artifact, &'a SplitArtifact)>,
    /// Archs to keep; all if empty.
    pub targets: &'a BTreeSet<BaseArch>,
}

struct ClassifiedArtifact<'a> {
    artifact: &'a Artifact,
    split: &'a SplitArtifact,
    /// Path → archs of the files that are device code or index it.
    device: BTreeMap<&'a TreePath, Vec<BaseArch>>,
    /// The artifact that its device files stay in: its own, if archives stay unchanged and it has no host files.
    keeps: Option<String>,
}

impl<'a> ShardComponent<'a> {
    pub fn outputs(&self, context: WriteContext<'_>) -> Result<Vec<OutputArtifact>> {
        // Archives and binaries stay unchanged if no binary is fat, and no listed archive is left out.
        let fat = self.sources.iter().any(|(_, split)| has_fat(split));
        let mut archives = self.sources.iter().flat_map(|(_, split)| &split.archives);
        let all = archives.all(|archive| {
            let arch = Target::parse_spelling(&archive.reader.toc().gfx_arch_family);
            arch.is_ok_and(|arch| is_wanted(arch.base(), self.targets))
        });
        let whole = !fat && (self.targets.is_empty() || all);
        let mut outputs = Outputs::default();
        let mut binaries = Vec::new();
        // Host files need an artifact even if every file is device code.
        let generic = self.generic();
        let built = self.sources.iter().flat_map(|(_, split)| split.built_archs());
        let built: BTreeSet<&BaseArch> = built.collect();
        for &(artifact, split) in &self.sources {
            let source = ClassifiedArtifact::new(artifact, split, whole, &built)?;
            self.sort(&source, whole, &mut outputs, &mut binaries)?;
        }
        if !whole {
            self.regenerate(&binaries, &mut outputs, context)?;
        }
        let mut finished = outputs.finish(|name| self.earlier(name, whole))?;
        // Other artifacts with folders only are left out.
        finished.retain(|artifact| {
            let mut nodes = artifact.prefixes.values().flat_map(|tree| tree.iter());
            artifact.name == generic
                || nodes.any(|(_, node)| !matches!(node, Node::Directory { .. }))
        });
        Ok(finished)
    }

    fn generic(&self) -> String {
        format!("{}_{GENERIC}", self.id)
    }

    /// The folder of the input artifact called `name`, if bytes stay unchanged.
    fn earlier(&self, name: &str, whole: bool) -> Option<&'a Path> {
        let mut sources = self.sources.iter().filter(|_| whole);
        let (artifact, _) = sources
            .find(|(artifact, _)| format!("{}_{}", self.id, artifact.name.gpu_family) == name)?;
        Some(artifact.root.as_path())
    }

    fn sort(
        &self,
        source: &ClassifiedArtifact<'a>,
        whole: bool,
        outputs: &mut Outputs,
        binaries: &mut Vec<Binary<'a>>,
    ) -> Result<()> {
        let mut seen = BTreeSet::new();
        for prefix in &source.artifact.prefixes {
            let folders_to = source.keeps.clone().unwrap_or_else(|| self.generic());
            outputs.prefix(&folders_to, &prefix.path);
            for (path, node) in &prefix.tree {
                let folder = matches!(node, Node::Directory { .. });
                // Merged prefixes have a path once; unchanged ones keep duplicates.
                if !whole && !folder && !seen.insert(path) {
                    continue;
                }
                match (node, source.device.get(path)) {
                    (Node::File { .. }, Some(archs)) => {
                        for to in self.device_artifacts(source, archs) {
                            if source.keeps.is_none() {
                                outputs.add_folders(&to, &prefix.path, path)?;
                            }
                            outputs.add(&to, &prefix.path, path, node.clone())?;
                        }
                    }
                    _ if !whole && is_archive(source.split, path) => {}
                    (Node::Directory { .. }, _) if !source.keeps_folder(path, whole) => {}
                    (Node::File { mode, .. }, None) => match source.fat(path) {
                        Some(fat) if !whole => {
                            let (prefix, path) = (prefix.path.clone(), path.clone());
                            binaries.push(Binary { prefix, path, mode: *mode, fat });
                        }
                        _ => outputs.add(&folders_to, &prefix.path, path, node.clone())?,
                    },
                    _ => outputs.add(&folders_to, &prefix.path, path, node.clone())?,
                }
            }
        }
        Ok(())
    }

    /// The artifacts that get a device file of `archs`: one per wanted arch, so that each can be installed alone.
    fn device_artifacts(&self, source: &ClassifiedArtifact<'_>, archs: &[BaseArch]) -> Vec<String> {
        let mut wanted = archs.iter().filter(|arch| is_wanted(arch, self.targets));
        match &source.keeps {
            Some(own) => wanted.next().map(|_| own.clone()).into_iter().collect(),
            None => wanted.map(|arch| format!("{}_{arch}", self.id)).collect(),
        }
    }

    fn regenerate(
        &self,
        binaries: &[Binary<'a>],
        outputs: &mut Outputs,
        context: WriteContext<'_>,
    ) -> Result<()> {
        let shard = self.sources.first().map_or("", |(artifact, _)| artifact.shard.as_str());
        let mut kernels = kernels_of(binaries, shard)?;
        kernels.retain(|kernel| is_wanted(kernel.target.base(), self.targets));
        context
            .progress
            .expect(Stage::Pack, kernels.iter().map(|kernel| kernel.content.len()).sum());
        context.progress.begin(Stage::Pack);
        let writer =
            KernelWriter { component: self.id, gpu_family: &|arch| Ok(arch.to_string()), context };
        writer.add(binaries, &kernels, outputs)?;
        context.progress.end(Stage::Pack);
        Ok(())
    }

    /// Refuses a binary without code for any wanted target: it would find no kernels at run time.
    pub fn refuse_unmatched(&self) -> Result<()> {
        let mut faults = Faults::default();
        for (path, fat) in self.sources.iter().flat_map(|(_, split)| split.binaries()) {
            let archs: BTreeSet<&BaseArch> = archs_of(fat).collect();
            if !archs.is_empty() && !archs.iter().any(|arch| is_wanted(arch, self.targets)) {
                let message = format!(
                    "--gpu-targets selects none of the archs that it has device code for ({})",
                    list(archs)
                );
                faults.add(Error::new(Kind::Conflict, message).structure(path.to_string()));
            }
        }
        faults.finish()
    }
}

fn archs_of(fat: &FatBinary) -> impl Iterator<Item = &BaseArch> {
    fat.code_objects().map(|code| code.target.base())
}

pub(super) fn archs(split: &[SplitArtifact]) -> BTreeSet<BaseArch> {
    let code = split.iter().flat_map(SplitArtifact::binaries).flat_map(|(_, fat)| archs_of(fat));
    let databases = split.iter().flat_map(|part| &part.databases).flat_map(|file| &file.archs);
    code.chain(databases).cloned().collect()
}

/// The archs of a file. For an arch family: the built ones, or all if none is built.
fn members(file: &DatabaseFile, built: &BTreeSet<&BaseArch>) -> Vec<BaseArch> {
    let members: Vec<BaseArch> =
        file.archs.iter().filter(|arch| built.contains(arch)).cloned().collect();
    if file.of_whole_family && !members.is_empty() { members } else { file.archs.clone() }
}

impl<'a> ClassifiedArtifact<'a> {
    fn new(
        artifact: &'a Artifact,
        split: &'a SplitArtifact,
        whole: bool,
        built: &BTreeSet<&BaseArch>,
    ) -> Result<Self> {
        let databases = split.databases.iter().map(|file| (&file.path, members(file, built)));
        let mut device: BTreeMap<_, _> = databases.collect();
        let mut only_device =
            !split.host.iter().any(|(_, node)| !matches!(node, Node::Directory { .. }));
        only_device &= !(device.is_empty() && split.archives.is_empty());
        if whole {
            for archive in &split.archives {
                let arch_family = &archive.reader.toc().gfx_arch_family;
                let target = Target::parse_spelling(arch_family).map_err(target_error)?;
                device.insert(&archive.path, vec![target.base().clone()]);
            }
        }
        let keeps = (whole && only_device).then(|| artifact.name.to_string());
        Ok(Self { artifact, split, device, keeps })
    }

    fn fat(&self, path: &TreePath) -> Option<&'a FatBinary> {
        self.split.host.get(path)?.data()?.fat().map(|fat| &**fat)
    }

    /// Whether a folder stays: folders that held only device code are dropped with it.
    fn keeps_folder(&self, path: &TreePath, whole: bool) -> bool {
        let mut manifests = self.split.archive_manifests.iter();
        self.keeps.is_some()
            || self.split.host.get(path).is_some()
            || (whole && manifests.any(|manifest| manifest.path.is_below(path)))
    }
}

fn is_archive(split: &SplitArtifact, path: &TreePath) -> bool {
    split.archives.iter().any(|archive| archive.path == *path)
        || split.archive_manifests.iter().any(|manifest| manifest.path == *path)
}

fn has_fat(split: &SplitArtifact) -> bool {
    split.binaries().any(|(_, fat)| matches!(fat.binary, HostBinary::Fat(_)))
}

/// Whether two artifacts have a build of the same binary, and any binary of the component is fat.
pub(super) fn has_two_builds(split: &[SplitArtifact]) -> bool {
    let mut seen: BTreeSet<&TreePath> = BTreeSet::new();
    let mut binaries = split.iter().flat_map(SplitArtifact::binaries);
    split.iter().any(has_fat) && binaries.any(|(path, _)| !seen.insert(path))
}

/// Findings about the code objects and database files that `targets` leaves out of a component, by arch.
pub(super) fn left_out(
    split: &[SplitArtifact],
    targets: &BTreeSet<BaseArch>,
    shard: &str,
    component: &str,
) -> Findings {
    let built: BTreeSet<&BaseArch> = split.iter().flat_map(SplitArtifact::built_archs).collect();
    let code = split.iter().flat_map(SplitArtifact::binaries).flat_map(|(_, fat)| archs_of(fat));
    let databases = split.iter().flat_map(|part| &part.databases);
    let unwanted = databases
        .map(|file| members(file, &built))
        .filter(|archs| !archs.iter().any(|arch| is_wanted(arch, targets)));
    let mut left: BTreeMap<BaseArch, usize> = BTreeMap::new();
    for arch in code.filter(|arch| !is_wanted(arch, targets)).cloned().chain(unwanted.flatten()) {
        *left.entry(arch).or_default() += 1;
    }
    let mut findings = Findings::default();
    for (arch, count) in left {
        let (shard, component) = (shard.to_owned(), component.into());
        findings.add(found::TargetNotSelected { shard, component, arch, count });
    }
    findings
}

/// The artifacts of a component with several builds in one shard, e.g. one for each GPU family of a multi-arch run,
/// and the findings from splitting and joining `split`.
///
/// Two builds of a binary have their wrappers in different orders, so recombination joins them like shards, with each
/// arch as its own group, and refuses contradictions.
pub(super) fn joined_outputs(
    artifacts: &[&Artifact],
    split: Vec<SplitArtifact>,
    targets: &BTreeSet<BaseArch>,
    context: WriteContext<'_>,
) -> Result<(Vec<OutputArtifact>, Findings)> {
    let mut config = Config::defaults()?;
    config.keys.validation.unassigned_architectures = UnassignedArchitectures::Drop;
    // Each of `targets` is a group, or each arch of the input.
    let groups = targets.iter().map(|arch| Group {
        name: arch.to_string(),
        display_name: arch.to_string(),
        archs: vec![arch.clone()],
    });
    let grouping = Grouping { groups: groups.collect(), primary_shard: None };
    let mut recombined = recombine::recombine(split, &config, &grouping)?;
    // The caller reports unrequested targets and targets without code. It checks links across all components.
    recombined.findings.retain(|finding| {
        let code = finding.code();
        !matches!(code, Some(Code::ArchDropped | Code::ArchMissing | Code::LinkDangling))
    });
    let mut outputs = Vec::new();
    for component in &mut recombined.components {
        // SPIR-V and generic targets are always a group.
        component.kernels.retain(|kernel| is_wanted(kernel.target.base(), targets));
        component.databases.retain_mut(|file| {
            file.archs.retain(|arch| is_wanted(arch, targets));
            !file.archs.is_empty()
        });
        let bytes = component.kernels.iter().map(|kernel| kernel.content.len()).sum();
        context.progress.expect(Stage::Pack, bytes);
        context.progress.begin(Stage::Pack);
        let stage_prefixes = StagePrefixLookup::of(artifacts, None, component);
        let writer =
            ComponentWriter { component, groups: &recombined.groups, stage_prefixes, context };
        outputs.extend(writer.outputs()?);
        context.progress.end(Stage::Pack);
    }
    Ok((outputs, recombined.findings))
}

fn is_wanted(arch: &BaseArch, targets: &BTreeSet<BaseArch>) -> bool {
    targets.is_empty() || targets.contains(arch)
}
