//! `artifact_manifest.txt`: the folders of an artifact that are stage prefixes.
//!
//! | line | meaning |
//! |---|---|
//! | `math-libs/BLAS/rocBLAS/stage` | a stage prefix, relative to the artifact's folder |
//! | empty | nothing |
//!
//! UTF-8, one prefix per line, LF or CRLF; a trailing slash has no meaning. Source: the artifacts of ROCm's
//! super-project builds. The component before `stage` names the *module* (`rocBLAS`). The parser refuses a
//! manifest without prefixes, a prefix listed twice or inside another (its files would be taken twice), and
//! any line that is not a path below the artifact.

use std::path::Path;

use rockpack_core::content::Content;
use rockpack_core::error::{Error, Faults, Result};
use rockpack_core::tree::TreePath;

pub const MANIFEST_NAME: &str = "artifact_manifest.txt";

/// Longest manifest that is read, in bytes. Real ones have a few lines; a longer file is not a manifest.
pub(super) const MANIFEST_LIMIT: u64 = 1 << 20;

/// The name of the folder that contains a stage prefix's files.
const STAGE: &str = "stage";

/// The stage prefixes of an artifact, in the order of their paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArtifactManifest {
    /// The prefixes relative to the artifact's folder.
    pub prefixes: Vec<TreePath>,
}

impl ArtifactManifest {
    /// Reads the content of the manifest file at `path`.
    pub fn read(content: &Content, path: &Path) -> Result<Self> {
        let bytes = content.read_vec(0..content.len(), MANIFEST_LIMIT, "artifact manifest")?;
        Self::parse(&bytes).map_err(|error| error.file(path))
    }

    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let text = std::str::from_utf8(bytes).map_err(|error| {
            Error::malformed("is not UTF-8")
                .structure("artifact manifest")
                .offset(error.valid_up_to() as u64)
        })?;
        let mut faults = Faults::default();
        let mut prefixes = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim_end_matches('\r').trim_end_matches('/');
            if line.is_empty() {
                continue;
            }
            let prefix = TreePath::new(line).map_err(|e| e.structure(at_line(number)));
            prefixes.extend(faults.keep(prefix).map(|prefix| (prefix, number)));
        }
        refuse_nesting(&mut prefixes, &mut faults);
        faults.finish()?;
        if prefixes.is_empty() {
            return Err(Error::malformed("lists no stage prefix")
                .structure("artifact manifest")
                .hint("each line names a folder, as in math-libs/BLAS/rocBLAS/stage"));
        }
        let prefixes = prefixes.into_iter().map(|(prefix, _)| prefix).collect();
        Ok(Self { prefixes })
    }
}

fn at_line(number: usize) -> String {
    format!("line {}", number + 1)
}

/// Refuses nested prefixes, and leaves them in path order. Sorted by components, a nested prefix directly follows the
/// outer one; in path order, `a-b` sorts between `a` and `a/c`.
fn refuse_nesting(prefixes: &mut [(TreePath, usize)], faults: &mut Faults) {
    prefixes.sort_by(|(one, _), (other, _)| one.components().cmp(other.components()));
    let mut last: Option<&TreePath> = None;
    for (inner, number) in prefixes.iter() {
        let rest =
            last.and_then(|outer| Some((outer, inner.as_str().strip_prefix(outer.as_str())?)));
        match rest {
            Some((outer, rest)) if rest.is_empty() || rest.starts_with('/') => {
                let message = format!("`{inner}` is inside `{outer}`, which is also listed");
                faults.add(Error::malformed(message).structure(at_line(*number)));
            }
            _ => last = Some(inner),
        }
    }
    prefixes.sort();
}

/// The module of a stage prefix: the component before `stage`.
pub(super) fn module_of(prefix: &TreePath) -> Option<String> {
    let mut parts = prefix.components().rev();
    parts.find(|part| *part == STAGE)?;
    parts.next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Vec<String>> {
        let manifest = ArtifactManifest::parse(text.as_bytes())?;
        Ok(manifest.prefixes.iter().map(|p| p.to_string()).collect())
    }

    #[test]
    fn lines_are_prefixes_in_any_order() {
        let text = "b/rocBLAS/stage\r\n\na/hipBLAS/stage/\n";
        assert_eq!(parse(text).unwrap(), ["a/hipBLAS/stage", "b/rocBLAS/stage"]);
    }

    #[test]
    fn every_wrong_line_is_named() {
        let error = parse("a/stage\n../b/stage\n/etc\n").unwrap_err();
        assert_eq!(error.place().structure.as_deref(), Some("line 2"));
        assert_eq!(error.others().len(), 1);
        assert_eq!(error.others()[0].place().structure.as_deref(), Some("line 3"));
    }

    #[test]
    fn nothing_is_listed_twice() {
        for text in ["", "\n\n", "a\na\n", "a\na/b\n", "a\na-b\na/c\n"] {
            assert!(parse(text).is_err(), "{text:?}");
        }
        assert!(parse("a\na-b\nab\n").is_ok());
        assert!(ArtifactManifest::parse(b"a/\xff/stage\n").is_err());
    }

    /// Found by fuzzing: every line was compared with every other.
    #[test]
    fn a_long_list_does_not_take_long() {
        let start = std::time::Instant::now();
        assert_eq!(parse(&stage_lines(60_000)).unwrap().len(), 60_000);
        assert!(start.elapsed().as_secs() < 30, "{:?}", start.elapsed());
        assert_eq!(parse(&stage_lines(50).repeat(2)).unwrap_err().others().len(), 49);
    }

    fn stage_lines(count: usize) -> String {
        (0..count).map(|n| format!("{n}/stage\n")).collect()
    }

    #[test]
    fn the_module_stands_before_stage() {
        for (prefix, module) in [
            ("math-libs/BLAS/rocBLAS/stage", Some("rocBLAS")),
            ("stage", None),
            ("core/files", None),
        ] {
            assert_eq!(module_of(&TreePath::new(prefix).unwrap()).as_deref(), module, "{prefix}");
        }
    }
}
