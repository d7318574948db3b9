//! GPU targets: their names, the table of known targets, and their groups.
//!
//! [`rockpack_kpack::target`] defines target IDs. This module owns the tables of processors and groups, and
//! the spellings in names of files and ids of bundle entries. It opens no file.

mod spelling;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub use rockpack_kpack::target::{BaseArch, FEATURES, SPIRV, Target, TargetFault, compatible};
pub use spelling::{
    arch_at_start, arch_family_label, arch_of_sanitized, archs_in_windows, archs_of_label,
    entry_target_text, is_processor, members_of_arch_family, split_entry_id,
};

use crate::error::Error;

/// Makes an error for a text that is not a valid target ID.
pub fn target_error(fault: TargetFault) -> Error {
    Error::malformed(fault.to_string()).hint(fault.hint())
}

/// A row of the table of known targets, `config/architectures.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Processor {
    pub name: BaseArch,
    /// EF_AMDGPU_MACH of the code objects.
    pub mach: u8,
    /// The generic target whose code runs on this one; `None` if no generic target does.
    pub generic: Option<BaseArch>,
    /// Whether clang compiles HIP code for this target when no arch is named.
    #[serde(default)]
    pub compiler_default: bool,
    /// Marketing name of the generation, e.g. `RDNA 3`; empty if unknown.
    #[serde(default)]
    pub generation: String,
}

/// The text of the table. The archs that [`archs_in`] finds in a text depend on it and on this program.
pub const KNOWN_ARCHS: &str = include_str!("../../../config/architectures.toml");

static PROCESSORS: LazyLock<Vec<Processor>> = LazyLock::new(|| compiled_rows(KNOWN_ARCHS));

/// The rows of a TOML table that is compiled in. A test parses each table, so this cannot fail at run time.
pub fn compiled_rows<T: DeserializeOwned>(text: &str) -> Vec<T> {
    let table: BTreeMap<String, Vec<T>> = toml::from_str(text).unwrap_or_default();
    table.into_values().flatten().collect()
}

/// All known processors and generic targets, sorted by name.
pub fn processors() -> &'static [Processor] {
    &PROCESSORS
}

/// The base arch whose code objects carry `mach` in the low byte of their flags.
pub fn processor(mach: u8) -> Option<&'static BaseArch> {
    let row = processors().iter().find(|row| row.mach == mach)?;
    Some(&row.name)
}

/// The row of `arch`; `None` if the table lacks it.
pub fn processor_row(arch: &BaseArch) -> Option<&'static Processor> {
    row(arch.as_str())
}

fn row(name: &str) -> Option<&'static Processor> {
    let index = processors().binary_search_by(|row| row.name.as_str().cmp(name)).ok()?;
    processors().get(index)
}

/// The generic target whose code runs on `arch`, qualified or not.
pub fn generic_of(arch: &BaseArch) -> Option<&'static BaseArch> {
    row(unqualified(arch))?.generic.as_ref()
}

/// `arch` without its qualifier: `gfx1250` of `gfx1250-strict`.
pub fn plain(arch: &BaseArch) -> Option<BaseArch> {
    unqualified(arch).parse().ok()
}

/// The qualifier of archs that have no row of their own.
const STRICT: &str = "-strict";

const GENERIC: &str = "-generic";

/// Whether `arch` is SPIR-V, or the table has it, or the processor of a qualified arch (`gfx1250-strict`).
pub fn is_known(arch: &BaseArch) -> bool {
    arch.is_spirv() || row(unqualified(arch)).is_some()
}

/// The processor name of `arch`. The whole name of a generic target, which takes no qualifier.
fn unqualified(arch: &BaseArch) -> &str {
    let name = arch.as_str();
    name.strip_suffix(STRICT).filter(|stem| !stem.ends_with(GENERIC)).unwrap_or(name)
}

pub fn known_archs() -> impl Iterator<Item = BaseArch> {
    let rows = processors().iter().map(|row| row.name.to_string());
    let strict = processors()
        .iter()
        .filter(|row| !row.name.is_generic())
        .map(|row| format!("{}{STRICT}", row.name));
    rows.chain(strict).chain([SPIRV.to_owned()]).filter_map(|name| name.parse().ok())
}

/// Whether `arch` is known, or has the shape of a processor or generic target, so that archs newer than this
/// table pass.
pub fn is_plausible(arch: &BaseArch) -> bool {
    is_known(arch) || has_shape(unqualified(arch)) || has_generic_shape(arch.as_str())
}

fn has_generic_shape(name: &str) -> bool {
    let numbers = name.strip_suffix(GENERIC).and_then(|stem| stem.strip_prefix("gfx"));
    let Some(numbers) = numbers else { return false };
    numbers.split('-').all(|part| part.len() <= 2 && part.bytes().all(|c| c.is_ascii_digit()))
}

/// EF_AMDGPU_MACH of the code objects of `arch`. A qualified arch without a value of its own has that of its
/// processor: the code objects of `gfx1250-strict` carry the value of `gfx1250`.
pub fn mach_of(arch: &BaseArch) -> Option<u8> {
    let of_processor = || row(arch.as_str().split_once('-')?.0);
    Some(processor_row(arch).or_else(of_processor)?.mach)
}

/// The archs that `text` (a file name, a string of a kernel index) names as separate words: known ones, and
/// unknown ones of the same shape, in order of appearance.
///
/// `Kernels.so-000-gfx90a-xnack+.hsaco` names gfx90a and `extop_gfx1100.co` gfx1100;
/// `gfx90a6e.kdb` and `gfx000` (a placeholder for "any") name none.
pub fn archs_in(text: &str) -> Vec<BaseArch> {
    let mut found = Vec::new();
    // Texts of an index are many and short: the search for a letter needs no preparation.
    for (at, _) in text.match_indices('g').filter(|(at, _)| text[*at..].starts_with("gfx")) {
        let starts_word = !text[..at].ends_with(|c: char| c.is_ascii_alphanumeric());
        if let Some(arch) = starts_word.then(|| arch_at(&text[at..])).flatten() {
            found.push(arch);
        }
    }
    found
}

/// The longest arch that `text` starts with.
fn arch_at(text: &str) -> Option<BaseArch> {
    let known = processors().iter().filter(|row| starts_with_word(text, row.name.as_str()));
    let longest = known.max_by_key(|row| row.name.as_str().len());
    let word_end = text.find(|c: char| !c.is_ascii_alphanumeric());
    let word = &text[..word_end.unwrap_or(text.len())];
    let strict = format!("{word}-strict");
    if starts_with_word(text, &strict) {
        return strict.parse().ok();
    }
    match longest {
        Some(row) => Some(row.name.clone()),
        None => has_shape(word).then(|| word.parse().ok()).flatten(),
    }
}

fn starts_with_word(text: &str, word: &str) -> bool {
    let rest = text.strip_prefix(word);
    rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric()))
}

/// Whether `word` has the shape of a processor: major (no leading zero), minor and hex stepping.
fn has_shape(word: &str) -> bool {
    let digits = word.strip_prefix("gfx").unwrap_or_default();
    let Some((stepping, version)) = digits.as_bytes().split_last() else {
        return false;
    };
    (2..=3).contains(&version.len())
        && matches!(*stepping, b'0'..=b'9' | b'a'..=b'f')
        && version[0] != b'0'
        && version.iter().all(u8::is_ascii_digit)
}

/// Archs that share a kernel package. `config/groups.toml` groups them by product.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// The name, e.g. `gfx110X`.
    pub name: String,
    /// The name for people, e.g. `ROCm gfx110X (RDNA3)`.
    pub display_name: String,
    #[serde(rename = "architectures")]
    pub archs: Vec<BaseArch>,
}

const GROUPS: &str = include_str!("../../../config/groups.toml");

/// All groups of products, oldest generation first.
pub static PRODUCT_GROUPS: LazyLock<Vec<Group>> = LazyLock::new(|| compiled_rows(GROUPS));

/// Suffixes of labels for a kind of GPU.
const KINDS: [&str; 4] = ["-all", "-dcgpu", "-dgpu", "-igpu"];

/// The archs that the GPU family of an artifact covers.
///
/// A GPU family is the label of a build job: a target (`gfx1151`, `gfx942:xnack+`), a build family whose `X`
/// is the rest of the processor's number (`gfx110X-dgpu`, `gfx94X-dcgpu`), or a word that names no processor
/// (`generic`, `all`, `dcgpu-all`). The label only says what its job was meant to build; the archs of an artifact
/// are read from its content.
///
/// Source: the build families of ROCm's TheRock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GpuFamily {
    Arch(BaseArch),
    /// All processors whose name is longer than this and begins with it.
    Processors(String),
    /// No archs can be derived from the label.
    Unspecific,
}

impl GpuFamily {
    pub fn of_label(label: &str) -> Self {
        let stem = KINDS.iter().find_map(|kind| label.strip_suffix(kind)).unwrap_or(label);
        let start = stem.trim_end_matches('X');
        if start != stem && is_processor(start) {
            return Self::Processors(start.to_owned());
        }
        match Target::parse_spelling(stem) {
            Ok(target) => Self::Arch(target.base().clone()),
            Err(_) => Self::Unspecific,
        }
    }

    /// Whether the job meant to build for `arch`. An unspecific label covers everything.
    pub fn covers(&self, arch: &BaseArch) -> bool {
        match self {
            Self::Arch(own) => own == arch,
            Self::Processors(start) => {
                let rest = arch.as_str().strip_prefix(start.as_str());
                rest.is_some_and(|rest| !rest.is_empty() && !rest.contains('-'))
            }
            Self::Unspecific => true,
        }
    }
}

/// The processor part of a target ID, e.g. `gfx90a`, `gfx1250-strict`, `gfx11-generic`,
/// or `amdgcnspirv` for arch-neutral device code.
///
/// A hyphenated qualifier belongs to the base arch: `gfx1250-strict` is not `gfx1250`.
#[derive(JsonSchema)]
#[schemars(
    rename = "BaseArch",
    extend("pattern" = "^(gfx[0-9][0-9a-z]*(-[0-9a-z]+)*|amdgcnspirv)$")
)]
#[expect(dead_code, reason = "only its shape is used")]
pub struct BaseArchSchema(String);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gfx;
    use std::collections::BTreeSet;

    #[test]
    fn generic_targets_are_in_the_table() {
        let named = processors().iter().filter_map(|row| row.generic.as_ref());
        assert!(named.clone().all(|generic| generic.is_generic() && is_known(generic)));
        assert_eq!(generic_name("gfx950"), Some("gfx9-4-generic"));
        assert_eq!(generic_name("gfx1250-strict"), Some("gfx12-5-generic"));
        assert_eq!(generic_name("gfx90a"), None);
    }

    fn generic_name(arch: &str) -> Option<&'static str> {
        generic_of(&arch.parse().unwrap()).map(BaseArch::as_str)
    }

    #[test]
    fn the_table_is_whole_sorted_and_unambiguous() {
        let table: BTreeMap<String, Vec<Processor>> = toml::from_str(KNOWN_ARCHS).unwrap();
        let target = &table["target"];
        assert!(target.len() > 50);
        assert!(target.windows(2).all(|pair| pair[0].name < pair[1].name));
        let mut values: Vec<u8> = target.iter().map(|row| row.mach).collect();
        values.sort_unstable();
        values.dedup();
        assert_eq!(values.len(), target.len());
    }

    #[test]
    fn values_name_processors_and_back() {
        for (name, mach) in
            [("gfx803", 0x2a), ("gfx90a", 0x3f), ("gfx1102", 0x47), ("gfx11-generic", 0x54)]
        {
            assert_eq!(processor(mach).unwrap().as_str(), name);
            assert_eq!(mach_of(&name.parse().unwrap()), Some(mach));
        }
        assert_eq!(processor(0), None);
        assert_eq!(mach_of(&"gfx1250-strict".parse().unwrap()), Some(0x49));
        assert_eq!(mach_of(&"gfx1999".parse().unwrap()), None);
    }

    #[test]
    fn an_arch_is_known_or_could_be_one_of_tomorrow() {
        for known in ["gfx1030", "gfx1250-strict", "gfx9-4-generic", "amdgcnspirv"] {
            assert!(is_known(&arch(known)) && is_plausible(&arch(known)), "{known}");
        }
        for tomorrow in ["gfx1400", "gfx1130", "gfx1400-strict", "gfx14-generic"] {
            assert!(!is_known(&arch(tomorrow)) && is_plausible(&arch(tomorrow)), "{tomorrow}");
        }
        for neither in [
            "gfx10300x",
            "gfx110x",
            "gfx1030-strct",
            "gfx9",
            "gfx11-generics",
            "gfx9-4-generic-strict",
        ] {
            assert!(!is_plausible(&arch(neither)), "{neither}");
        }
        assert!(known_archs().all(|arch| is_known(&arch)));
    }

    fn arch(name: &str) -> BaseArch {
        name.parse().unwrap()
    }

    #[test]
    fn archs_are_words_of_their_own() {
        assert_eq!(names_in("Kernels.so-000-gfx90a-xnack+.hsaco"), ["gfx90a"]);
        assert_eq!(names_in("TensileLibrary_lazy_gfx1100.dat"), ["gfx1100"]);
        assert_eq!(names_in("x_gfx9-4-generic.co"), ["gfx9-4-generic"]);
        assert_eq!(names_in("x_gfx1250-strict.co"), ["gfx1250-strict"]);
        assert_eq!(names_in("x_gfx1400.co"), ["gfx1400"]);
        assert_eq!(names_in("gfx906:xnack-,gfx908"), ["gfx906", "gfx908"]);
        for text in ["gfx90a6e.kdb", "gfx000", "gfx110X", "agfx906", "gfx", "gfx9"] {
            assert!(names_in(text).is_empty(), "{text}");
        }
    }

    fn names_in(text: &str) -> Vec<String> {
        archs_in(text).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn every_product_is_in_one_group_and_every_member_is_known() {
        let table: BTreeMap<String, Vec<Group>> = toml::from_str(GROUPS).unwrap();
        let members: Vec<&BaseArch> =
            table["group"].iter().flat_map(|group| &group.archs).collect();
        let distinct: BTreeSet<_> = members.iter().collect();
        assert_eq!(distinct.len(), members.len());
        assert!(members.iter().all(|arch| gfx::processor_row(arch).is_some()));
        let released = gfx::processors().iter().filter(|row| !row.generation.is_empty());
        for row in released {
            assert!(members.contains(&&row.name), "{} is in no group", row.name);
        }
    }

    #[test]
    fn a_label_covers_what_its_job_means_to_build() {
        assert_eq!(covered("gfx110X-dgpu"), ["gfx1100", "gfx1103"]);
        assert_eq!(covered("gfx90X-dcgpu"), ["gfx906", "gfx90a"]);
        assert_eq!(covered("gfx94X"), ["gfx942"]);
        assert_eq!(covered("gfx950-dcgpu"), ["gfx950"]);
        assert_eq!(covered("gfx1151"), ["gfx1151"]);
        assert_eq!(covered("gfx942:xnack+"), ["gfx942"]);
        for unspecific in ["generic", "all", "dcgpu-all", "X", "gfxX"] {
            assert_eq!(covered(unspecific).len(), 7, "{unspecific}");
        }
    }

    fn covered(label: &str) -> Vec<&'static str> {
        let archs = ["gfx906", "gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1103", "gfx1151"];
        let family = GpuFamily::of_label(label);
        archs.into_iter().filter(|arch| family.covers(&arch.parse().unwrap())).collect()
    }
}
