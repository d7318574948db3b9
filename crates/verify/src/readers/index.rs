//! The kinds of kernel database files by their names, and the names in an index of kernels.
//!
//! Indexes are MessagePack with the archs in plain strings. The split decodes them; here they are searched as text, as
//! an independent second method. The reader of references to other files is shared with the split.

use std::collections::BTreeSet;
use std::io::Read;
use std::sync::LazyLock;

use rockpack_core::content::Content;
use rockpack_core::error::{Error, Result};
use rockpack_core::gfx::{BaseArch, archs_in, archs_in_windows};
use rockpack_core::tree::TreePath;
use rockpack_split::input::database::{
    DatabaseClaim, DatabaseRole, DatabaseRules, IndexDescription, describe_index, index_bytes,
};

/// The files that an index needs next to it, each with its possible names.
pub(crate) fn referred(index: &IndexDescription) -> impl Iterator<Item = Vec<String>> {
    let libraries = index.libraries.iter();
    let indexes = libraries.map(|name| vec![format!("{name}.dat"), format!("{name}.dat.zlib")]);
    indexes.chain(index.code_object_files.iter().map(|name| vec![name.clone()]))
}

/// The database rules. A test ensures that they are valid.
static RULES: LazyLock<Option<DatabaseRules>> = LazyLock::new(|| DatabaseRules::builtin().ok());

fn claim(path: &str) -> Option<DatabaseClaim<'static>> {
    let path = TreePath::new(path.trim_start_matches('/')).ok()?;
    RULES.as_ref()?.claim(&path)
}

/// Code or an index, by the extension of `path`, and the rule that claims it; `None` if no rule does.
pub(crate) fn kind(path: &str) -> Option<(DatabaseRole, DatabaseClaim<'static>)> {
    let plain = path.strip_suffix(".zlib").unwrap_or(path);
    let kind = match plain.rsplit_once('.') {
        Some((_, "co" | "hsaco")) => DatabaseRole::Code,
        Some((_, "dat")) => DatabaseRole::Index,
        _ => return None,
    };
    let claim = claim(path).filter(|it| [kind, DatabaseRole::Shared].contains(&it.role));
    claim.map(|claim| (kind, claim))
}

/// Whether a rule says that the file at `path` serves all archs of its shard.
pub(crate) fn serves_all(path: &str) -> bool {
    kind(path).is_some_and(|(_, claim)| claim.role == DatabaseRole::Shared)
}

/// The members of the arch family in whose directory `path` is; empty elsewhere.
pub(crate) fn arch_family_at(path: &str) -> Vec<BaseArch> {
    let directory = claim(path).map(|claim| claim.directory).unwrap_or_default();
    if directory.len() > 1 { directory } else { Vec::new() }
}

/// Reads the files that a database index names, and the archs in its text and file name. Fails if it is not an index.
pub(crate) fn read(path: &str, content: &Content) -> Result<IndexDescription> {
    let IndexDescription { libraries, code_object_files, .. } = describe_index(content)?;
    let archs = archs_named(path, index_bytes(content)?)?;
    Ok(IndexDescription { archs, libraries, code_object_files, ..IndexDescription::default() })
}

/// The archs that the file name of `path` and these bytes name.
pub(crate) fn archs_named(path: &str, mut bytes: impl Read) -> Result<BTreeSet<BaseArch>> {
    let mut archs = archs_in_windows(|window| bytes.read(window))
        .map_err(|fault| Error::io_without_path("read the index", fault))?;
    archs.extend(archs_in(path.rsplit('/').next().unwrap_or_default()));
    Ok(archs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compressed_index_names_what_the_plain_one_does() {
        let plain = b"\x92\xa7gfx1100\xa6gfx90a".as_slice();
        let mut zlib = Vec::new();
        let mut encoder = flate2::read::ZlibEncoder::new(plain, flate2::Compression::best());
        encoder.read_to_end(&mut zlib).unwrap();
        let [of_plain, of_zlib] = [plain, &zlib]
            .map(|bytes| read("lib/x.dat.zlib", &Content::of_bytes(bytes)).unwrap().archs);
        assert_eq!(of_plain.len(), 2);
        assert_eq!(of_zlib, of_plain);
    }

    #[test]
    fn the_file_name_counts() {
        let archs = archs_named("lib/T_gfx1151.dat", b"none".as_slice()).unwrap();
        assert_eq!(archs.len(), 1);
    }
}
