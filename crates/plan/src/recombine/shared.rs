//! Files of kernel databases that serve all archs of their shard, and differ between shards.
//!
//! Neither file has the other shard's kernels, so packing one of them for all archs would break the rest:
//!
//! 1. A cache, which the library does not require, comes from the first shard, with a warning.
//! 2. Bundles and maps without contradictions become their union.
//! 3. If the library first searches a directory of its arch, all files of each arch move there, with copies of
//!    the shared files of the same shard.
//! 4. Otherwise the stage fails with an error that names both shards.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_core::content::Content;
use rockpack_core::error::{Error, Kind, Result};
use rockpack_core::gfx::BaseArch;
use rockpack_core::tree::{Node, TreePath};

use super::Join;
use super::host::label;
use super::left_out::plain_content;
use rockpack_report::{ComponentFile, MergeObstacle, MergedPart, found};
use rockpack_split::input::database::union;
use rockpack_split::{DatabaseFile, HostKind, SharedFile, SplitArtifact};

struct FileDifference {
    path: TreePath,
    /// The indexes of the parts that have the path, in order.
    holders: Vec<usize>,
    contents: Vec<Content>,
}

impl Join<'_> {
    /// Makes the shared files of all parts equal, or moves them into directories of their archs.
    pub(super) fn resolve_shared(&mut self, parts: &mut [SplitArtifact]) {
        // Folders whose files move, each with a file that differs and the reason why it cannot be merged.
        let mut moved: BTreeMap<TreePath, (String, MergeObstacle)> = BTreeMap::new();
        let differences = differences(parts);
        for difference in self.faults.keep(differences).unwrap_or_default() {
            if self.resolve_cache(&difference, parts) {
                continue;
            }
            let merged = self.resolve_union(&difference, parts);
            let Some(Some(reason)) = self.faults.keep(merged) else { continue };
            let path = &difference.path;
            match path.parent() {
                Some(folder) if difference.all(parts, |shared| shared.moves) => {
                    moved.entry(folder).or_insert((path.name().to_owned(), reason));
                }
                _ => {
                    let holders = difference.holders.iter();
                    let shards: Vec<String> =
                        holders.map(|holder| label(&parts[*holder]).to_string()).collect();
                    let message = format!(
                        "serves all archs of its shard, and differs between {} ({reason})",
                        shards.join(" and ")
                    );
                    let structure = format!("{}/{path}", self.component);
                    let error = Error::new(Kind::Conflict, message).structure(structure);
                    self.faults.add(error.hint(
                        "neither file lists the other shard's kernels, so neither can be packed for \
                         all; build these archs in one shard, or package the shards separately",
                    ));
                }
            }
        }
        for (folder, why) in moved {
            let result = self.move_folder(&folder, why, parts);
            self.faults.keep(result);
        }
    }

    /// Replaces caches by the first one and returns true; returns false for other files.
    fn resolve_cache(&mut self, difference: &FileDifference, parts: &mut [SplitArtifact]) -> bool {
        if !difference.all(parts, |shared| shared.cache) {
            return false;
        }
        let (Some(first), Some(content)) =
            (difference.holders.first(), difference.contents.first().cloned())
        else {
            return false;
        };
        let kept = label(&parts[*first]);
        for holder in difference.holders.iter().skip(1) {
            self.findings.add(found::DatabaseCacheDropped {
                file: ComponentFile::new(&self.component, &difference.path),
                kept: kept.clone(),
                dropped: label(&parts[*holder]),
            });
        }
        difference.replace(parts, &content);
        true
    }

    /// Replaces the files by their union, or returns the reason why they cannot be merged.
    fn resolve_union(
        &mut self,
        difference: &FileDifference,
        parts: &mut [SplitArtifact],
    ) -> Result<Option<MergeObstacle>> {
        if !difference.all(parts, |_| true) {
            return Ok(Some(MergeObstacle::NoRule));
        }
        let merged = match union(&difference.contents)? {
            Err(why) => return Ok(Some(why)),
            Ok(content) => content,
        };
        let mut merged_parts = Vec::new();
        for (holder, content) in difference.holders.iter().zip(&difference.contents) {
            let artifact = label(&parts[*holder]);
            merged_parts.push(MergedPart { artifact, sha256: content.digest()? });
        }
        let file = ComponentFile::new(&self.component, &difference.path);
        self.findings.add(found::DatabaseMerged { file, parts: merged_parts });
        difference.replace(parts, &merged);
        Ok(None)
    }

    /// Refuses to move files into the directory of an arch without a master index there: the library would ignore the
    /// directory.
    fn check_master_index(&self, folder: &TreePath, parts: &[SplitArtifact]) -> Result<()> {
        let databases = parts.iter().flat_map(|part| &part.databases);
        let mut opened: BTreeMap<(&str, &BaseArch), bool> = BTreeMap::new();
        for file in databases.filter(|file| moves_from(folder, file)) {
            for arch in &file.archs {
                *opened.entry((&file.shard, arch)).or_default() |= file.opens_dir;
            }
        }
        let Some(((shard, arch), _)) = opened.iter().find(|(_, opened)| !**opened) else {
            return Ok(());
        };
        let message = format!(
            "has files that differ between shards, and those for {arch} of {shard} cannot move to \
             {folder}/{arch}: without a master index there, the library ignores that directory"
        );
        Err(Error::new(Kind::Conflict, message)
            .structure(format!("{}/{folder}", self.component))
            .hint("build these archs in one shard, or with lazily loaded libraries"))
    }

    /// Refuses to move shared files of a shard without archs, because it has no directory for them, unless another
    /// shard has the same file.
    fn check_archs(
        &self,
        folder: &TreePath,
        archs: &BTreeMap<String, BTreeSet<BaseArch>>,
        parts: &[SplitArtifact],
    ) -> Result<()> {
        for part in parts.iter().filter(|part| !has_archs(part, archs)) {
            for (path, _) in part
                .shared
                .iter()
                .filter(|(path, shared)| shared.moves && path.parent().as_ref() == Some(folder))
            {
                let Some(content) = part.host.get(path).and_then(plain_content) else { continue };
                let peers = parts.iter().filter(|part| has_archs(part, archs));
                let mut others = peers.filter_map(|it| it.host.get(path).and_then(plain_content));
                let is_kept = others
                    .try_fold(false, |found, other| Ok(found || content.same_bytes(other)?))?;
                if !is_kept {
                    let message = format!(
                        "serves all archs of its shard, but {} has no files of single archs next to it, so \
                         it has no directory of an arch to move to, unlike the files of other shards",
                        label(part)
                    );
                    let hint = "build it in the shard of its archs, or remove it";
                    let structure = format!("{}/{path}", self.component);
                    let error = Error::new(Kind::Conflict, message).structure(structure);
                    return Err(error.hint(hint));
                }
            }
        }
        Ok(())
    }

    /// Moves all files of `folder` that its library first looks up in the directory of an arch.
    fn move_folder(
        &mut self,
        folder: &TreePath,
        (differs, reason): (String, MergeObstacle),
        parts: &mut [SplitArtifact],
    ) -> Result<()> {
        // A shard may have shared files and those of single archs in separate artifacts.
        let mut archs: BTreeMap<String, BTreeSet<BaseArch>> = BTreeMap::new();
        for part in &*parts {
            let inside = part.databases.iter().filter(|file| moves_from(folder, file));
            let shard_archs = archs.entry(part.shard.clone()).or_default();
            shard_archs.extend(inside.flat_map(|file| file.archs.iter().cloned()));
        }
        self.check_master_index(folder, parts)?;
        self.check_archs(folder, &archs, parts)?;
        let mut files: usize = 0;
        for part in parts {
            let archs = archs.get(&part.shard).cloned().unwrap_or_default();
            files += move_databases(folder, &self.component, part)?;
            files += move_shared(folder, &archs, part)?;
        }
        let folder = ComponentFile::new(&self.component, folder);
        self.findings.add(found::DatabaseMoved { folder, files, differs, reason });
        Ok(())
    }
}

impl FileDifference {
    /// Whether the file is shared in all parts that have it, and `predicate` holds for each.
    fn all(&self, parts: &[SplitArtifact], predicate: fn(&SharedFile) -> bool) -> bool {
        let mut holders = self.holders.iter();
        holders.all(|holder| parts[*holder].shared.get(&self.path).is_some_and(predicate))
    }

    fn replace(&self, parts: &mut [SplitArtifact], content: &Content) {
        for holder in &self.holders {
            let host = &mut parts[*holder].host;
            if let Some(Node::File { data, .. }) = host.get_mut(&self.path) {
                data.kind = HostKind::Plain(content.clone());
            }
        }
    }
}

fn has_archs(part: &SplitArtifact, archs: &BTreeMap<String, BTreeSet<BaseArch>>) -> bool {
    archs.get(&part.shard).is_some_and(|archs| !archs.is_empty())
}

/// The files that must be equal in all parts but differ: those that a rule claims, and those in a folder with files
/// of single archs.
fn differences(parts: &[SplitArtifact]) -> Result<Vec<FileDifference>> {
    let databases = parts.iter().flat_map(|part| &part.databases);
    // Rules that claim single files of a common folder (`lib`) do not apply to their neighbours.
    let movable = databases.filter(|file| file.moves);
    let folders: BTreeSet<TreePath> = movable.filter_map(|file| file.path.parent()).collect();
    let claimed: BTreeSet<&TreePath> = parts.iter().flat_map(|part| part.shared.keys()).collect();
    let host = parts.iter().flat_map(|part| &part.host).map(|(path, _)| path);
    let paths = host.filter(|path| {
        let is_neighbour = path.folder().is_some_and(|folder| folders.contains(folder));
        is_neighbour || claimed.contains(*path)
    });
    let paths: BTreeSet<&TreePath> = paths.collect();
    paths.into_iter().filter_map(|path| difference(path, parts).transpose()).collect()
}

fn difference(path: &TreePath, parts: &[SplitArtifact]) -> Result<Option<FileDifference>> {
    let (mut holders, mut contents): (Vec<usize>, Vec<Content>) = (Vec::new(), Vec::new());
    let mut differs = false;
    for (index, part) in parts.iter().enumerate() {
        let Some(content) = part.host.get(path).and_then(plain_content) else { continue };
        if let Some(first) = contents.first() {
            differs |= !first.same_bytes(content)?;
        }
        holders.push(index);
        contents.push(content.clone());
    }
    Ok(differs.then(|| FileDifference { path: path.clone(), holders, contents }))
}

/// Whether the file is in `folder` and its library first looks it up in the directory of its arch.
fn moves_from(folder: &TreePath, file: &DatabaseFile) -> bool {
    file.moves && file.path.parent().as_ref() == Some(folder)
}

fn move_databases(folder: &TreePath, component: &str, part: &mut SplitArtifact) -> Result<usize> {
    let mut count = 0;
    let shard = label(part);
    for file in part.databases.iter_mut().filter(|file| moves_from(folder, file)) {
        let [arch] = file.archs.as_slice() else {
            let message =
                format!("covers several archs in {shard}; cannot be moved to the directory of one");
            return Err(Error::new(Kind::Conflict, message)
                .structure(format!("{component}/{}", file.path))
                .hint("build these archs in one shard, or package the shards separately"));
        };
        file.path = folder.join(&format!("{arch}/{}", file.path.name()))?;
        file.moves = false;
        count += 1;
    }
    part.databases.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(count)
}

/// Copies the shared files into the directory of each of `archs`. Returns the number of shared files.
fn move_shared(
    folder: &TreePath,
    archs: &BTreeSet<BaseArch>,
    part: &mut SplitArtifact,
) -> Result<usize> {
    let mut moved = Vec::new();
    for (path, shared) in &part.shared {
        if path.parent().as_ref() == Some(folder) && shared.moves {
            moved.push((path.clone(), shared.rule.clone()));
        }
    }
    for (path, rule) in &moved {
        let Some(Node::File { data, mode }) = part.host.remove(path) else {
            return Err(Error::bug(format!("{path} is shared but not a host file")));
        };
        let HostKind::Plain(content) = data.kind else {
            return Err(Error::bug(format!("{path} is shared and has wrappers")));
        };
        for arch in archs {
            part.databases.push(DatabaseFile {
                path: folder.join(&format!("{arch}/{}", path.name()))?,
                archs: vec![arch.clone()],
                for_arch_family: false,
                of_whole_family: false,
                module: data.module.clone(),
                shard: part.shard.clone(),
                rule: rule.clone(),
                moves: false,
                opens_dir: false,
                content: content.clone(),
                mode,
            });
        }
        part.shared.remove(path);
        // The file is no longer a host file.
        let host_file = label(part).file(path);
        part.findings.retain(
            |finding| !matches!(finding.found(), Some(found::DatabaseShared { file, .. }) if *file == host_file),
        );
    }
    part.databases.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(moved.len())
}

#[cfg(test)]
#[path = "shared_tests.rs"]
mod tests;
