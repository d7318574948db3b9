//! Writes the code objects of a file into separate files.
//!
//! It reads kernel archives, fat binaries, offload bundles (plain or CCOB), offload binaries, packages with kernel
//! archives inside, and wheels with any of these or with code objects. It refuses binaries whose device code is in
//! archives already, single code objects, files without device code, and a selection that matches nothing.
//!
//! Code is written as it is found, so that compressed bundles are decoded once, into hidden files
//! ([`NewFiles`]). They appear when all sources were read and are unchanged, and no file is in the way. No
//! existing file is overwritten.

mod source;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rockpack_core::content::{Content, Inputs, NAME_MAX, Sha256Digest, StampedFile};
use rockpack_core::error::{Error, Faults, Kind, Result, ResultExt};
use rockpack_core::gfx::{SPIRV, Target};
use rockpack_core::run::Budget;
use rockpack_elf::code_object;
use rockpack_files::check_folder;
use rockpack_files::new_file::{self, NewFiles, WriteOutcome};
use serde::Serialize;

use super::named_by_user;

/// A code object that was written, or was there already.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Extracted {
    /// The file that it came from.
    pub source: String,
    /// The member of the package or wheel, if the source is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub member: Option<String>,
    /// The binary that it belongs to: the name in the key of an archive, else the file name.
    pub binary: String,
    /// The index of its wrapper in that binary, or of its bundle in a file of bundles. Absent for
    /// bundles that no wrapper points to, and archives whose keys have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<u32>,
    pub target: String,
    /// The written file.
    pub file: PathBuf,
    pub size: u64,
    pub sha256: Sha256Digest,
    /// Whether it was written, or was there already.
    pub outcome: WriteOutcome,
}

const CONTENT_NAME: &str = "code objects";

#[derive(Debug)]
struct SelectedCode {
    member: Option<String>,
    binary: String,
    part: BinaryPart,
    target: String,
    content: Content,
}

/// Writes the selected code objects of `files` into the folder `out`, which is made if missing.
pub fn extract(
    files: &[PathBuf],
    out: &Path,
    selection: &Selection,
    budget: &Budget,
) -> Result<Vec<Extracted>> {
    let mut inputs = Inputs::within(budget);
    let written = extract_from(files, out, selection, &mut inputs);
    inputs.explain(written)
}

fn extract_from(
    files: &[PathBuf],
    out: &Path,
    selection: &Selection,
    inputs: &mut Inputs,
) -> Result<Vec<Extracted>> {
    if check_folder(out, CONTENT_NAME)? {
        new_file::remove_stale(out);
    }
    let mut extracted_files =
        ExtractedFiles { out, files: None, known: BTreeMap::new(), faults: Faults::default() };
    for file in files {
        let input = inputs
            .open(file)
            .map_err(|e| e.named_by_user().context("opening a file to extract from"));
        let Some(input) = extracted_files.faults.keep(input) else { continue };
        let content = Content::of_file(input.clone(), inputs.budget());
        let found =
            source::open(file, &content, selection, &mut |code| extracted_files.add(&input, code));
        let found = found.file(file).map_err(|error| named_by_user(error, file));
        extracted_files.faults.keep(found);
    }
    extracted_files.publish(inputs)
}

/// The code objects extracted so far.
struct ExtractedFiles<'a> {
    out: &'a Path,
    /// Their files; none before the first is written.
    files: Option<NewFiles>,
    /// Each by the name of its file, with the input that it is from.
    known: BTreeMap<String, (Arc<StampedFile>, Extracted)>,
    faults: Faults,
}

impl ExtractedFiles<'_> {
    /// Writes a code object whose bytes are in memory, unless its file is there. Faults are kept for the end.
    fn add(&mut self, input: &Arc<StampedFile>, code: &SelectedCode) {
        let added = self.try_add(input, code);
        self.faults.keep(added);
    }

    fn try_add(&mut self, input: &Arc<StampedFile>, code: &SelectedCode) -> Result<()> {
        let _open = code.content.pin()?;
        let sha256 = code.content.digest()?;
        let Some(name) = self.free_name(input, code, sha256)? else { return Ok(()) };
        if name.len() > NAME_MAX {
            return Err(too_long(&name, input.path()));
        }
        let file = self.out.join(&name);
        let outcome = if new_file::exists(&file, &code.content)? {
            WriteOutcome::Identical
        } else {
            WriteOutcome::Written
        };
        if outcome == WriteOutcome::Written && self.faults.is_empty() {
            let files = match &self.files {
                Some(files) => files,
                None => self.files.insert(NewFiles::begin(self.out, CONTENT_NAME)?),
            };
            files.write(&name, &code.content)?;
        }
        let extracted = Extracted {
            source: input.path().display().to_string(),
            member: code.member.clone(),
            binary: code.binary.clone(),
            index: match code.part {
                BinaryPart::Index(index) => Some(index),
                BinaryPart::Unreferenced(_) | BinaryPart::Whole => None,
            },
            target: code.target.clone(),
            file,
            size: code.content.len(),
            sha256,
            outcome,
        };
        self.known.insert(name, (Arc::clone(input), extracted));
        Ok(())
    }

    /// The name of the file for a code object; `None` if that file has the same bytes already.
    fn free_name(
        &self,
        input: &Arc<StampedFile>,
        code: &SelectedCode,
        sha256: Sha256Digest,
    ) -> Result<Option<String>> {
        let name = |binary: &str| file_name(binary, &code.part, &code.target);
        let path = code.member.as_deref().unwrap_or_default().trim_start_matches('/');
        let mut clashing = None;
        for name in [name(&code.binary), name(&format!("{path}:{}", code.binary))] {
            let Some((other, known)) = self.known.get(&name) else { return Ok(Some(name)) };
            if known.sha256 == sha256 {
                return Ok(None);
            }
            clashing = Some(clash(&name, input.path(), other.path()));
            // Archives that components ship in one package may have the same keys.
            if !Arc::ptr_eq(other, input) || known.member == code.member {
                break;
            }
        }
        clashing.map_or(Ok(None), Err)
    }

    /// Makes all files visible, if there were no faults and the inputs are unchanged.
    fn publish(self, inputs: &Inputs) -> Result<Vec<Extracted>> {
        self.faults.finish()?;
        inputs.recheck()?;
        let mut all = Vec::new();
        for (name, (_, mut one)) in self.known {
            if let (WriteOutcome::Written, Some(files)) = (one.outcome, &self.files) {
                one.outcome = files.publish(&name)?;
            }
            all.push(one);
        }
        Ok(all)
    }
}

fn clash(name: &str, file: &Path, other: &Path) -> Error {
    let message = format!("{name} would hold this code and that of {}", other.display());
    Error::new(Kind::Conflict, message).file(file).hint("extract the two into different folders")
}

fn too_long(name: &str, file: &Path) -> Error {
    let message = format!("{name} is longer than the {NAME_MAX} bytes that a name may have");
    let hint = "choose what to extract with --target or --kernel";
    Error::new(Kind::Limit, message).file(file).hint(hint)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BinaryPart {
    /// The wrapper, or the bundle, with this index.
    Index(u32),
    /// A bundle at this offset that no wrapper points to.
    Unreferenced(u64),
    /// The binary as a whole.
    Whole,
}

/// The name of the file that gets the code object:
///
/// ```text
/// <binary>-<index>-<target>.hsaco        a code object
/// <binary>-bundle<offset>-<target>.hsaco of a bundle that no wrapper points to; offset in hex
/// <binary>-<target>.hsaco                of an archive whose key has no index
/// ```
///
/// The binary is the name in an archive's key (`lib/librocblas.so.5`), else its path in site-packages, if
/// it is in a wheel, else the name of the file.
/// Its characters are letters, digits and `.`, `_`, `-`, `+`; every other byte is written as `%` and
/// two hexadecimal digits (`lib%2Flibrocblas.so.5`), as in URLs, so that two binaries never share
/// a name. The target is spelled as Tensile does, with `-` before each feature
/// (`gfx90a-sramecc+-xnack-`). SPIR-V ends in `.spv` instead.
fn file_name(binary: &str, part: &BinaryPart, target: &str) -> String {
    let binary = escaped(binary);
    let part = match part {
        BinaryPart::Index(index) => format!("-{index}"),
        BinaryPart::Unreferenced(offset) => format!("-bundle{offset:x}"),
        BinaryPart::Whole => String::new(),
    };
    let ending = if target.ends_with(SPIRV) { "spv" } else { "hsaco" };
    format!("{binary}{part}-{}.{ending}", escaped(&target.replace(':', "-")))
}

fn escaped(text: &str) -> String {
    let mut name = String::new();
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            // A leading dot would hide the file.
            b'.' if at == 0 => name.push_str("%2E"),
            b'.' | b'_' | b'-' | b'+' => name.push(char::from(byte)),
            byte if byte.is_ascii_alphanumeric() => name.push(char::from(byte)),
            byte => name.push_str(&format!("%{byte:02X}")),
        }
    }
    name
}

/// A selection of code objects; all by default.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Targets: code for any of them is selected. An arch without features selects all of its feature variants;
    /// features select every target that fixes them.
    pub targets: Vec<Target>,
    /// Names of kernels: code with any of them is selected.
    pub kernels: Vec<String>,
}

impl Selection {
    /// Whether code for `target` is wanted, as far as its target decides.
    fn has_target(&self, target: Option<&Target>) -> bool {
        self.targets.is_empty()
            || target.is_some_and(|target| self.targets.iter().any(|it| satisfies(target, it)))
    }

    /// Whether the code is wanted, as far as its kernels decide.
    fn has_kernel(&self, content: &Content) -> Result<bool> {
        if self.kernels.is_empty() {
            return Ok(true);
        }
        if !code_object::is_code_object(content)? {
            return Ok(false);
        }
        let defined = code_object::kernel_names(content)?;
        Ok(self.kernels.iter().any(|kernel| defined.contains(kernel.as_str())))
    }
}

/// Whether `target` has the arch of `wanted`, and fixes every feature that `wanted` fixes.
fn satisfies(target: &Target, wanted: &Target) -> bool {
    let fixed = target.features();
    wanted.base() == target.base() && wanted.features().iter().all(|it| fixed.contains(it))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_safe_and_tell_binaries_apart() {
        for (binary, part, target, expected) in [
            ("lib/libx.so.1", BinaryPart::Index(2), "gfx1100", "lib%2Flibx.so.1-2-gfx1100.hsaco"),
            (
                "x",
                BinaryPart::Index(0),
                "gfx90a:sramecc+:xnack-",
                "x-0-gfx90a-sramecc+-xnack-.hsaco",
            ),
            ("x.so", BinaryPart::Unreferenced(0x9000), "gfx906", "x.so-bundle9000-gfx906.hsaco"),
            ("x", BinaryPart::Whole, "gfx906", "x-gfx906.hsaco"),
            ("../x\n", BinaryPart::Index(0), "amdgcnspirv", "%2E.%2Fx%0A-0-amdgcnspirv.spv"),
            ("a%2Fb", BinaryPart::Index(0), "../x", "a%252Fb-0-%2E.%2Fx.hsaco"),
        ] {
            assert_eq!(file_name(binary, &part, target), expected);
        }
    }

    #[test]
    fn an_arch_stands_for_its_variants_and_features_for_what_fixes_them() {
        assert!(selects("gfx90a", "gfx90a:sramecc+:xnack-"));
        assert!(selects("gfx90a:xnack-", "gfx90a:sramecc+:xnack-"));
        assert!(!selects("gfx90a:xnack+", "gfx90a:sramecc+:xnack-"));
        assert!(!selects("gfx90a:xnack+", "gfx90a"));
        assert!(!selects("gfx1100", "gfx1101"));
        assert!(
            !Selection { targets: vec!["gfx906".parse().unwrap()], ..Selection::default() }
                .has_target(None)
        );
        assert!(Selection::default().has_target(None));
    }

    fn selects(wanted: &str, target: &str) -> bool {
        let targets = vec![wanted.parse().unwrap()];
        let selection = Selection { targets, kernels: Vec::new() };
        selection.has_target(Some(&target.parse().unwrap()))
    }
}
