//! Fallback archs: archs that have code only because the compiler fell back to them.
//!
//! A translation unit that is compiled without naming an arch, or in a project that is switched off for all archs of
//! its build job, gets code for the default arch of the compiler, gfx906 for clang. Such code is in every shard by
//! accident.
//!
//! An arch is called a fallback in a shard if all of this holds:
//!
//! 1. It is a processor: generic targets and SPIR-V are only compiled on purpose.
//! 2. No GPU family of an artifact with device code in the shard covers it. A label that names
//!    no processors (`all`) covers everything.
//! 3. No file of a kernel database is for it: tuned kernels exist only for intended archs.
//! 4. Of the wrappers of the shard's fat binaries, some have code for covered archs and not for
//!    it, or some have code for it and none for covered archs; or it is clang's default arch.
//!
//! The fourth point excludes an arch that a job builds on purpose in addition to those of its label: it is in every
//! wrapper that has theirs. Artifacts that are already split have no fallbacks: their labels describe their content,
//! not the intent of the build.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_core::gfx::{self, BaseArch, GpuFamily};

use super::ArtifactContents;

/// The fallback archs of a shard, with the reason, by its artifacts and the archs of each of its
/// wrappers.
pub(super) fn fallbacks(
    artifacts: &[ArtifactContents],
    wrappers: &[Vec<BaseArch>],
) -> BTreeMap<BaseArch, String> {
    let mut labels: Vec<&str> = artifacts
        .iter()
        .filter(|artifact| artifact.has_device_code())
        .map(|artifact| artifact.gpu_family.as_str())
        .collect();
    let families: Vec<GpuFamily> = labels.iter().map(|label| GpuFamily::of_label(label)).collect();
    let databases: BTreeSet<&BaseArch> =
        artifacts.iter().flat_map(|artifact| artifact.databases.keys()).collect();
    labels.dedup();
    let archs: BTreeSet<&BaseArch> = wrappers.iter().flatten().collect();
    let unintended = archs
        .into_iter()
        .filter(|arch| is_processor(arch) && !is_covered(arch, &families))
        .filter(|arch| !databases.contains(arch));
    unintended
        .filter_map(|arch| {
            let evidence = evidence(arch, wrappers, &families)?;
            let labels = labels.join(", ");
            Some((arch.clone(), format!("not covered by {labels}, no database files, {evidence}")))
        })
        .collect()
}

/// Whether an arch is neither a generic target nor SPIR-V.
pub(super) fn is_processor(arch: &BaseArch) -> bool {
    !arch.is_generic() && !arch.is_spirv()
}

fn evidence(arch: &BaseArch, wrappers: &[Vec<BaseArch>], families: &[GpuFamily]) -> Option<String> {
    let with = wrappers.iter().filter(|wrapper| wrapper.contains(arch));
    let without = wrappers.iter().filter(|wrapper| !wrapper.contains(arch));
    let alone = with.clone().filter(|wrapper| !has_covered_arch(wrapper, families)).count();
    let missing = without.filter(|wrapper| has_covered_arch(wrapper, families)).count();
    let default = gfx::processor_row(arch).is_some_and(|row| row.compiler_default);
    let is_fallback = alone > 0 || missing > 0 || default;
    is_fallback.then(|| format!("in {} of {} wrappers", with.count(), wrappers.len()))
}

/// Whether a wrapper has code for an arch that one of `families` covers.
fn has_covered_arch(wrapper: &[BaseArch], families: &[GpuFamily]) -> bool {
    wrapper.iter().any(|arch| is_covered(arch, families))
}

fn is_covered(arch: &BaseArch, families: &[GpuFamily]) -> bool {
    families.iter().any(|family| family.covers(arch))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inspect::discover::Amount;

    fn artifact(family: &str, archs: &[&str], databases: &[&str]) -> ArtifactContents {
        let amount = Amount { count: 1, bytes: 1 };
        ArtifactContents {
            name: format!("blas_lib_{family}"),
            gpu_family: family.to_owned(),
            host_files: Amount::default(),
            binaries: 1,
            code_objects: parsed(archs).into_iter().map(|arch| (arch.into(), amount)).collect(),
            databases: parsed(databases).into_iter().map(|arch| (arch, amount)).collect(),
        }
    }

    fn parsed(archs: &[&str]) -> Vec<BaseArch> {
        archs.iter().map(|arch| arch.parse().unwrap()).collect()
    }

    fn named(family: &str, wrappers: &[&[&str]], databases: &[&str]) -> Vec<String> {
        let archs: Vec<&str> = wrappers.concat();
        let wrappers: Vec<Vec<BaseArch>> = wrappers
            .iter()
            .map(|wrapper| wrapper.iter().map(|arch| arch.parse().unwrap()).collect())
            .collect();
        let artifacts = [artifact(family, &archs, databases)];
        fallbacks(&artifacts, &wrappers).into_keys().map(String::from).collect()
    }

    #[test]
    fn an_arch_that_only_some_wrappers_have_is_a_fallback() {
        assert_eq!(named("gfx110X-dgpu", &[&["gfx1100", "gfx803"], &["gfx1100"]], &[]), ["gfx803"]);
        assert_eq!(named("gfx110X-dgpu", &[&["gfx1100"], &["gfx803"]], &[]), ["gfx803"]);
    }

    #[test]
    fn the_default_of_the_compiler_is_one_even_in_every_wrapper() {
        assert_eq!(named("gfx1151", &[&["gfx1151", "gfx906"]], &[]), ["gfx906"]);
        assert!(named("gfx1151", &[&["gfx1151", "gfx1150"]], &[]).is_empty());
    }

    #[test]
    fn what_is_meant_is_none() {
        for (family, wrappers, databases) in [
            ("gfx90X-dcgpu", &[&["gfx906", "gfx90a"][..], &["gfx90a"]][..], &[][..]),
            ("all", &[&["gfx906", "gfx1100"], &["gfx1100"]], &[]),
            ("gfx1100", &[&["gfx906", "gfx1100"], &["gfx1100"]], &["gfx906"]),
            ("gfx1100", &[&["amdgcnspirv", "gfx1100"], &["gfx1100"]], &[]),
            ("gfx1100", &[&["gfx11-generic", "gfx1100"], &["gfx1100"]], &[]),
        ] {
            assert!(named(family, wrappers, databases).is_empty(), "{family}");
        }
    }
}
