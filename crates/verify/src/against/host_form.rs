//! Compares host binaries with the builds that they were made from: their forms, and search paths that findings
//! rewrite.

use object::read::elf::ProgramHeader as _;
use object::{LittleEndian as LE, elf, pod};
use rockpack_core::content::Content;
use rockpack_core::error::{Result, ResultExt, abridged};
use rockpack_core::tree::TreePath;
use rockpack_elf::marker::Marker;

use crate::against::SetComparison;
use crate::against::inputs::BinaryBuild;
use crate::checks::excuses::Excuses;
use crate::checks::newest;
use crate::problem::{FileLoss, Problem, Problems};
use crate::readers::elf_file::Segment;
use crate::readers::facts::FileFacts;
use crate::readers::host_elf::{self, HostElf};
use crate::readers::host_form::{HostForm, end_of};
use crate::readers::installed::{InstalledNode, PackageContents};

const PAGE: u64 = 4096;

/// Maximum number of parts of a file that a message names.
const MOST_NAMED: usize = 16;

/// Maximum size in bytes of the options of clang in `rocm.cfg`.
const MOST_OPTIONS: u64 = 1 << 20;

impl<'a> SetComparison<'a> {
    /// A transformed binary has the machine code, the wrappers and the form of one of the builds.
    pub(super) fn check_host(
        &self,
        path: &TreePath,
        builds: &[BinaryBuild],
        problems: &mut Problems,
    ) -> Result<()> {
        let installed = self.binaries(path);
        if installed.is_empty() {
            self.add_loss(path, FileLoss::BinaryAbsent, problems);
        }
        for (facts, elf) in installed {
            let own: Vec<&BinaryBuild> = builds.iter().filter(|build| build.is_of(elf)).collect();
            if own.is_empty() {
                self.add_loss(path, FileLoss::OtherBinary, problems);
            } else if let Some(loss) = self.byte_difference(path, facts, &own)? {
                self.add_loss(path, loss, problems);
            }
        }
        Ok(())
    }

    fn add_loss(&self, path: &TreePath, loss: FileLoss, problems: &mut Problems) {
        let path = format!("{}/{path}", self.prefix);
        problems.add(Problem::FileLost { path, loss });
    }

    /// The parts of the installed file that differ from all builds. Among several builds, the closest one counts.
    fn byte_difference(
        &self,
        path: &TreePath,
        facts: &FileFacts,
        builds: &[&BinaryBuild],
    ) -> Result<Option<FileLoss>> {
        let mut least: Option<(&BinaryBuild, Vec<String>)> = None;
        for build in builds {
            let parts = differing_parts(build, facts, path, self.excuses)?;
            if parts.is_empty() {
                return Ok(None);
            }
            if least.as_ref().is_none_or(|(_, known)| parts.len() < known.len()) {
                least = Some((build, parts));
            }
        }
        let shard = |build: &BinaryBuild| build.file.shard.clone();
        Ok(least.map(|(build, parts)| FileLoss::OtherBytes { shard: shard(build), parts }))
    }

    /// The host binaries at `path` in the newest version of each package.
    fn binaries(&self, path: &TreePath) -> Vec<(&'a FileFacts, &'a HostElf)> {
        let absolute = format!("{}/{path}", self.prefix);
        let packages = newest(self.packages).into_iter();
        let nodes =
            packages.filter_map(|package: &'a PackageContents| package.paths.get(&absolute));
        let facts = nodes.filter_map(InstalledNode::facts);
        facts.filter_map(|facts| Some((facts, &facts.host()?.elf))).collect()
    }
}

/// The parts of the file installed at `path` that differ from `build` without its device code.
pub(super) fn differing_parts(
    build: &BinaryBuild,
    facts: &FileFacts,
    path: &TreePath,
    excuses: &Excuses,
) -> Result<Vec<String>> {
    let found = with_search_paths(&build.file.content, facts, path, excuses)
        .and_then(|content| parts(&content, facts, path));
    match found {
        Err(error) if !error.is_read_failure() => Ok(vec![error.message().to_owned()]),
        found => found,
    }
}

fn parts(content: &Content, facts: &FileFacts, path: &TreePath) -> Result<Vec<String>> {
    if content.len() == facts.size && content.sha256()? == facts.sha256 {
        return Ok(Vec::new());
    }
    let _open = content.pin()?;
    let host = facts.host().and_then(|host| Some((host, host.form.as_deref()?)));
    let Some((host, found)) = host else { return Ok(vec!["all of it".to_owned()]) };
    let mut parts = differing(&HostForm::read(content, Some(found))?, found);
    // The marker must name this binary and lead only to folders below the prefix.
    let is_other = |marker: &Marker| {
        let mut ways = marker.kpack_search_paths.iter();
        marker.kernel_name != path.as_str() || ways.any(|way| path.resolve_link(way).is_none())
    };
    if host.marker.as_ref().is_some_and(is_other) {
        parts.push("the marker".to_owned());
    }
    Ok(parts)
}

fn differing(expected: &HostForm, found: &HostForm) -> Vec<String> {
    let loads = (!has_loads(expected, found)).then(|| "the load segments".to_owned());
    let (own, other) = (found.parts.len(), expected.parts.len());
    let count = (own != other).then(|| format!("the number of sections, {own} and not {other}"));
    let parts = expected.parts.iter().zip(&found.parts);
    let parts = parts.filter(|(one, other)| one != other).map(|((name, _), _)| name.clone());
    let gaps = (expected.gaps != found.gaps).then(|| "bytes of no section".to_owned());
    loads.into_iter().chain(count).chain(gaps).chain(parts).take(MOST_NAMED).collect()
}

/// Whether the load segments are equal, except that the one with the device code may be shorter or split in two. Zeros
/// may follow the bytes of a part only up to the end of the original segment.
fn has_loads(expected: &HostForm, found: &HostForm) -> bool {
    let holds = |it: &Segment| it.p_vaddr(LE) <= expected.code && expected.code < end_of(it);
    let Some(at) = expected.loads.iter().position(holds) else { return false };
    let (whole, behind) = (&expected.loads[at], expected.loads.len() - at - 1);
    let end = found.loads.len().checked_sub(behind);
    let Some(end) = end.filter(|end| (at + 1..=at + 2).contains(end)) else { return false };
    let (before, rest) = found.loads.split_at(at);
    let (parts, after) = rest.split_at(end - at);
    let others = expected.loads[..at].iter().chain(&expected.loads[at + 1..]);
    let mut pairs = others.zip(before.iter().chain(after));
    let is_filled = |part: &Segment| part.p_filesz(LE) == part.p_memsz(LE);
    let is_zeroed =
        |part: &Segment| part.p_filesz(LE) < part.p_memsz(LE) && end_of(part) == end_of(whole);
    pairs.all(|(one, other)| is_same(one, other))
        && parts[0].p_vaddr(LE) == whole.p_vaddr(LE)
        && parts.windows(2).all(|it| end_of(&it[0]) <= it[1].p_vaddr(LE) / PAGE * PAGE)
        && parts.iter().all(|part| end_of(part) <= end_of(whole) && is_part(whole, part))
        && parts.iter().all(|part| is_filled(part) || is_zeroed(part))
}

/// Whether two load segments are equal, apart from a smaller alignment of `other`.
fn is_same(one: &Segment, other: &Segment) -> bool {
    let (before, after) = (one.p_align(LE), other.p_align(LE));
    let is_smaller = (PAGE..before).contains(&after) && after.is_power_of_two();
    let mut row = *other;
    row.p_align.set(LE, before);
    pod::bytes_of(&row) == pod::bytes_of(one) && (before == after || is_smaller)
}

/// Whether `part` can be a part of `whole`: only addresses and sizes differ, and the executable flag may be absent.
fn is_part(whole: &Segment, part: &Segment) -> bool {
    let mut row = *part;
    row.p_vaddr = whole.p_vaddr;
    row.p_filesz = whole.p_filesz;
    row.p_memsz = whole.p_memsz;
    let without = whole.p_flags(LE).0 & !elf::PF_X.0;
    if part.p_flags(LE).0 == without {
        row.p_flags = whole.p_flags;
    }
    is_same(whole, &row)
}

/// Whether the file installed at `path` is `content` with the search paths of the findings.
pub(super) fn is_rewritten(
    content: &Content,
    facts: &FileFacts,
    path: &TreePath,
    excuses: &Excuses,
) -> Result<bool> {
    let written = with_search_paths(content, facts, path, excuses);
    let sha256 = written.and_then(|written| written.sha256()).if_readable()?;
    Ok(sha256.is_some_and(|sha256| sha256 == facts.sha256))
}

/// `content` with the search paths that findings state for the file at `path`. Each part must be below the prefix, or one
/// of the original parts.
fn with_search_paths(
    content: &Content,
    facts: &FileFacts,
    path: &TreePath,
    excuses: &Excuses,
) -> Result<Content> {
    if excuses.rpath_files.contains(path) {
        return with_rpath(content, path);
    }
    let mut written = content.clone();
    let Some(findings) = excuses.rewritten.get(path) else { return Ok(written) };
    let installed = facts.host().and_then(|host| host.elf.linked.search_paths.first());
    let installed = installed.map_or("", |path| path.text.as_str());
    let elf = host_elf::read(content)?.unwrap_or_default();
    for before in elf.linked.search_paths {
        let Some(after) = findings.get(&*abridged(&before.text)) else { continue };
        // Findings abridge long search paths.
        let after = if abridged(installed) == *after { installed } else { after.as_str() };
        let is_known = |part: &str| before.text.split(':').any(|own| own == part);
        let mut parts = after.split(':').filter(|_| !after.is_empty());
        if after.len() <= before.text.len()
            && parts.all(|part| is_known(part) || is_inside(part, path))
        {
            let mut bytes = after.as_bytes().to_vec();
            bytes.resize(before.text.len(), 0);
            written = written.patched(before.offset, bytes)?;
        }
    }
    Ok(written)
}

/// `content`, installed at `path`, as `runpath = "rpath"` changes it.
fn with_rpath(content: &Content, path: &TreePath) -> Result<Content> {
    if path.name() != "rocm.cfg" {
        return host_elf::with_rpath(content);
    }
    let text = content.read_vec(0..content.len(), MOST_OPTIONS, "rocm.cfg")?;
    let text = String::from_utf8_lossy(&text);
    Ok(Content::of_bytes(text.replace("enable-new-dtags", "disable-new-dtags")))
}

/// Whether a part of a search path of the file at `path` is the prefix or a folder below it.
fn is_inside(part: &str, path: &TreePath) -> bool {
    let way = part.strip_prefix("$ORIGIN").filter(|way| way.is_empty() || way.starts_with('/'));
    // The prefix itself has no path relative to it, but a file in it does.
    way.is_some_and(|way| path.resolve_link(&format!(".{way}/file")).is_some())
}
