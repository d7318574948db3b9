//! The code objects of a component, from all shards, under the primary's wrapper numbers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rockpack_core::content::Content;
use rockpack_core::error::{Error, Kind, Result};
use rockpack_core::gfx::{BaseArch, Target};
use rockpack_core::tree::{Tree, TreePath};
use rockpack_elf::code_object::loaded_digest;

use super::host::label;
use super::left_out::{WrapperTargets, note_lost_fallbacks};
use super::wrappers::{WrapperIdentity, match_wrappers};
use super::{Join, Kernel, KernelNames};
use rockpack_report::words::list;
use rockpack_report::{ComponentFile, DifferentCode, InputArtifact, RepeatedCode, found};
use rockpack_split::{CodeObject, FatBinary, HostFile, SplitArtifact};

#[derive(Clone, Copy)]
struct Build<'a> {
    part: &'a SplitArtifact,
    fat: &'a Arc<FatBinary>,
}

/// The code objects of one binary by key, each with the build it came from.
type CodeByKey<'a> = BTreeMap<(u32, Target), (&'a SplitArtifact, &'a CodeObject)>;

#[derive(Default)]
struct RepeatedObjects {
    same: usize,
    /// Keys with different bytes, and the code object that is dropped.
    different: Vec<(u32, Target, Content)>,
}

/// The arch of a repeated code object, the artifact that had it first, and the other one.
type Pair = (BaseArch, InputArtifact, InputArtifact);

#[derive(Default)]
struct Collected<'a> {
    rows: CodeByKey<'a>,
    left_out: BTreeSet<(u32, &'a Target)>,
    repeated: BTreeMap<Pair, RepeatedObjects>,
}

impl<'a> Collected<'a> {
    fn add(&mut self, index: u32, code: &'a CodeObject, part: &'a SplitArtifact) -> Result<()> {
        let key = (index, code.target.clone());
        let Some((first, known)) = self.rows.get(&key) else {
            self.rows.insert(key, (part, code));
            return Ok(());
        };
        let pair = (code.target.base().clone(), label(first), label(part));
        let found = self.repeated.entry(pair).or_default();
        if known.content.same_bytes(&code.content)? {
            found.same += 1;
        } else {
            let target = code.target.clone();
            found.different.push((index, target, code.content.clone()));
        }
        Ok(())
    }
}

impl Join<'_> {
    /// All code objects of grouped archs, sorted by (binary, co_index, target).
    pub(super) fn kernels(
        &mut self,
        host: &Tree<HostFile>,
        parts: &[SplitArtifact],
    ) -> Vec<Kernel> {
        let mut kernels = Vec::new();
        for (path, node) in host {
            if let Some(first) = node.data().and_then(HostFile::fat) {
                let rows = self.binary(path, first, parts);
                kernels.extend(rows.into_iter().map(|((co_index, target), (part, code))| Kernel {
                    binary: path.clone(),
                    co_index,
                    target,
                    content: code.content.clone(),
                    stored_size: code.stored_size,
                    shard: part.shard.clone(),
                }));
            }
        }
        kernels
    }

    fn binary<'a>(
        &mut self,
        path: &TreePath,
        first: &Arc<FatBinary>,
        parts: &'a [SplitArtifact],
    ) -> CodeByKey<'a> {
        let builds: Vec<Build<'a>> = parts
            .iter()
            .filter_map(|part| Some(Build { part, fat: part.host.get(path)?.data()?.fat()? }))
            .collect();
        let Some(primary) = builds.iter().copied().find(|b| Arc::ptr_eq(b.fat, first)) else {
            self.faults.add(Error::bug(format!("{path} has no first build")));
            return CodeByKey::new();
        };
        let mut collected = Collected::default();
        for build in &builds {
            let order = if Arc::ptr_eq(build.fat, first) {
                Ok((0..first.wrappers.len()).map(Some).collect())
            } else {
                self.match_builds(path, primary, *build)
            };
            if let Some(order) = self.faults.keep(order) {
                self.collect(path, *build, &order, &mut collected);
            }
        }
        let Collected { rows, left_out, repeated } = collected;
        self.report_repeated(path, repeated);
        self.note_lost_fallbacks(path, &rows, &left_out);
        let wrappers = builds.iter().flat_map(|build| &build.fat.wrappers);
        let code = wrappers.flat_map(|wrapper| wrapper.code_objects.iter());
        let archs: BTreeSet<&BaseArch> = code.map(|code| code.target.base()).collect();
        if rows.is_empty() && !archs.is_empty() {
            // The binary would look for archives that no package installs.
            let message =
                format!("none of its device code is for a grouped arch ({})", list(&archs));
            let error = Error::new(Kind::Config, message).structure(path.to_string());
            let hint = "add at least one of these archs to a group, and do not exclude it";
            self.faults.add(error.hint(hint));
        }
        rows
    }

    fn note_lost_fallbacks(
        &mut self,
        path: &TreePath,
        rows: &CodeByKey<'_>,
        left_out: &BTreeSet<(u32, &Target)>,
    ) {
        let (mut kept, mut left) = (WrapperTargets::new(), WrapperTargets::new());
        for (index, target) in rows.keys() {
            kept.entry((path, *index)).or_default().insert(target);
        }
        for (index, target) in left_out {
            left.entry((path, *index)).or_default().insert(target);
        }
        let archs = self.grouping.groups.iter().flat_map(|group| &group.archs);
        let archs: Vec<&BaseArch> = archs.filter(|arch| self.grouping.has(arch)).collect();
        let component = |_: &TreePath| self.component.as_str().into();
        note_lost_fallbacks(&kept, &left, &archs, component, self.findings);
    }

    /// Matches wrappers: the index in the primary build for each wrapper of the other; `None` for one without code.
    fn match_builds(
        &mut self,
        path: &TreePath,
        primary: Build<'_>,
        other: Build<'_>,
    ) -> Result<Vec<Option<usize>>> {
        let ours = identities(primary.fat, self.kernel_names)?;
        let theirs = identities(other.fat, self.kernel_names)?;
        let of_primary = |indices: &[usize]| interchangeable(primary.fat, indices);
        let of_other = |indices: &[usize]| interchangeable(other.fat, indices);
        let matching = match_wrappers(&ours, &theirs, [&of_primary, &of_other])?;
        let (one, another) = (label(primary.part), label(other.part));
        if !matching.primary_left.is_empty() || !matching.other_left.is_empty() {
            let message = format!(
                "the wrappers of {one} and {another} cannot be matched: {} of the first, {} of the second",
                described(&matching.primary_left, &ours),
                described(&matching.other_left, &theirs),
            );
            let hint = "wrappers are matched by their kernels, and each must have exactly one partner; \
                        build the shards from one source tree";
            let error = Error::new(Kind::Conflict, message).structure(path.to_string());
            return Err(error.hint(hint));
        }
        for (there, here) in &matching.overlaps {
            self.findings.add(found::WrapperOverlap {
                file: ComponentFile::new(&self.component, path),
                first: one.clone(),
                wrapper: *here,
                other: another.clone(),
                other_wrapper: *there,
            });
        }
        let indices = 0..theirs.len();
        Ok(indices.map(|there| matching.pairs.get(&there).copied()).collect())
    }

    fn collect<'a>(
        &mut self,
        path: &TreePath,
        build: Build<'a>,
        order: &[Option<usize>],
        collected: &mut Collected<'a>,
    ) {
        for (wrapper, index) in build.fat.wrappers.iter().zip(order) {
            for code in wrapper.code_objects.iter() {
                let arch = code.target.base();
                let index = index.and_then(|index| u32::try_from(index).ok());
                if !self.grouping.has(arch) {
                    self.grouping.leave_out(arch, &self.component, path, &code.content);
                    collected.left_out.extend(index.map(|index| (index, &code.target)));
                    continue;
                }
                let Some(index) = index else {
                    let message = format!("{path} has code in a wrapper without a number");
                    self.faults.add(Error::bug(message));
                    continue;
                };
                let added = collected.add(index, code, build.part);
                self.faults.keep(added);
            }
        }
    }

    fn report_repeated(&mut self, path: &TreePath, repeated: BTreeMap<Pair, RepeatedObjects>) {
        for ((arch, first, other), found) in repeated {
            let file = ComponentFile::new(&self.component, path);
            if found.same > 0 {
                let (file, arch, count) = (file.clone(), arch.clone(), found.same);
                let (first, other) = (first.clone(), other.clone());
                let repeated = RepeatedCode::Binary { file, arch, count, first, other };
                self.findings.add(found::DuplicateCode { repeated });
            }
            let Some((wrapper, target, _)) = found.different.first() else { continue };
            let (wrapper, target, count) = (*wrapper, target.clone(), found.different.len());
            let different = DifferentCode { arch, count, first, other, wrapper, target };
            if self.validation.error_on_duplicate_device_code {
                let DifferentCode { arch, first, .. } = &different;
                let hint = if self.has_groups {
                    format!(
                        "remove {arch} from one shard or from the groups, or set \
                         validation.error_on_duplicate_device_code to false to pack the code of \
                         {first}"
                    )
                } else {
                    format!(
                        "without groups, every arch is packed: if a compiler only adds {arch} as a \
                         fallback, give --config with groups without it, and `split` --gpu-targets \
                         without it"
                    )
                };
                let error = Error::new(Kind::Conflict, different.to_string());
                self.faults.add(error.structure(file.to_string()).hint(hint));
            } else {
                let digests = found.different.iter().map(|(_, _, code)| code.digest());
                let digests = self.faults.keep(digests.collect::<Result<BTreeSet<_>>>());
                let code_objects = digests.into_iter().flatten().collect();
                self.findings.add(found::DuplicateDropped { file, different, code_objects });
            }
        }
    }
}

fn identities(fat: &FatBinary, names: KernelNames<'_>) -> Result<Vec<WrapperIdentity>> {
    let mut found = Vec::new();
    for wrapper in &fat.wrappers {
        let mut kernels = BTreeSet::new();
        for code in wrapper.code_objects.iter() {
            // SPIR-V is not ELF; its kernels are those of the other code objects of the unit.
            if !code.target.base().is_spirv() {
                kernels.extend(names(&code.content)?);
            }
        }
        let (symbol, has_code) = (wrapper.symbol.clone(), !wrapper.code_objects.is_empty());
        found.push(WrapperIdentity { symbol, kernels, has_code });
    }
    Ok(found)
}

/// Whether the wrappers at `indices` load the same code for the same targets.
fn interchangeable(fat: &FatBinary, indices: &[usize]) -> Result<bool> {
    let mut first: Option<BTreeMap<&Target, [u8; 32]>> = None;
    for wrapper in indices.iter().filter_map(|index| fat.wrappers.get(*index)) {
        let code: BTreeMap<_, _> = wrapper
            .code_objects
            .iter()
            .map(|code| Ok((&code.target, loaded_digest(&code.content)?)))
            .collect::<Result<_>>()?;
        match &first {
            None => first = Some(code),
            Some(first) if *first != code => return Ok(false),
            Some(_) => {}
        }
    }
    Ok(true)
}

const NAMED_WRAPPERS: usize = 4;

fn described(left: &[usize], identities: &[WrapperIdentity]) -> String {
    let first = left.iter().take(NAMED_WRAPPERS);
    let named = first.map(|index| {
        match identities.get(*index).and_then(|identity| identity.kernels.first()) {
            Some(kernel) => format!("{index} (kernel {kernel}, …)"),
            None => format!("{index} (no kernels)"),
        }
    });
    let named: Vec<String> = named.collect();
    match (left.len(), left.len() > NAMED_WRAPPERS) {
        (0, _) => "none".to_owned(),
        (_, false) => format!("wrappers {}", named.join(", ")),
        (count, true) => format!("{count} wrappers: {}, …", named.join(", ")),
    }
}
