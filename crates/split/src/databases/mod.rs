//! Kernel database files and the archs that they belong to.
//!
//! The archs of a file are read from its content: the flags of a code object, the entries of a bundle, the
//! strings of an index, the device code of a library. Its name and directory decide only if the content
//! cannot. Standalone device code that no rule claims is treated in the same way.
//!
//! | file | becomes |
//! |---|---|
//! | code, data or index of some archs | a database file of these archs |
//! | code that is an offload bundle, offload binary or kernel archive of several archs | a database file of all of these, whole, reported |
//! | `shared` by rule, an index of several archs that names none, or an index that lacks the arch of its name or directory | a host file, reported |
//! | `cache` by rule | a host file, reported |
//! | `leftovers` by rule, and no device code | a host file, reported |
//! | library or archive of one arch, all of whose device code is that arch's | a database file, reported |
//! | the same with device code of several archs | as without the rule, reported |

mod evidence;
mod kept;
mod partners;

use std::collections::{BTreeMap, BTreeSet};

use rockpack_core::content::Sha256Digest;
use rockpack_core::error::Result;
use rockpack_core::gfx::{self, BaseArch};
use rockpack_core::tree::{Node, Tree, TreePath};

use super::alone::StagedFile;
use super::development::Sniffed;
use super::parts::{
    CodeObject, DatabaseFile, HostFile, HostKind, KernelArchive, Notes, SharedFile, SplitPolicy,
};
use crate::host_binary;
use crate::input::database::{DatabaseClaim, DatabaseRole, DatabaseRules, IndexDescription, Rule};
use evidence::SniffedFile;
pub(super) use partners::pair;
use rockpack_report::{ArchMismatch, MismatchOutcome, found};

/// Ending of the names of files that compilers write code objects to.
const CODE_ENDING: &str = ".hsaco";

/// The rule name for device code that no rule of the table claims.
const LONE_CODE: &str = "code-object";

/// The rule name for kernel archives that no rule of the table claims.
const LONE_ARCHIVE: &str = "kernel-archive";

pub(super) struct DatabaseCandidate {
    /// The file, without archs if it serves all of its shard.
    file: DatabaseFile,
    role: DatabaseRole,
    standalone: bool,
    /// SHA-256 of the code objects inside, if it serves all archs or also has host code.
    code_objects: Vec<Sha256Digest>,
    /// The content of an index; `None` for other files.
    description: Option<IndexDescription>,
}

/// The properties of a file that its path and rule give, before its content is read.
struct DeclaredFile {
    rule: String,
    role: DatabaseRole,
    code: bool,
    standalone: bool,
    moves: bool,
    opens_dir: bool,
    /// Sorted; empty if neither name nor directory has an arch, or both serve all archs.
    archs: Vec<BaseArch>,
    /// Whether the archs are those of the family in whose folder it lies.
    for_arch_family: bool,
}

impl DeclaredFile {
    /// Whether its rule alone makes it serve all archs.
    fn serves_all(&self) -> bool {
        matches!(self.role, DatabaseRole::Shared | DatabaseRole::Cache) && self.archs.is_empty()
    }
}

#[derive(Default)]
struct Evidence {
    archs: BTreeSet<BaseArch>,
    code: Vec<CodeObject>,
    description: Option<IndexDescription>,
}

/// The file as a database file, if a rule or its content makes it one.
pub(super) fn claim(
    path: &TreePath,
    file: &StagedFile,
    sniffed: Sniffed,
    options: &SplitPolicy<'_>,
    notes: &mut Notes,
) -> Result<Option<DatabaseCandidate>> {
    let SplitPolicy { rules, cache, .. } = *options;
    let (claimed, leftover) = by_rule(path, rules);
    let declared = match (claimed, sniffed) {
        // A damaged header made the content look like another type.
        (claim, Sniffed::HostElf | Sniffed::Stripped) if is_named_code(path, claim.as_ref()) => {
            return Err(evidence::no_code(&file.content));
        }
        // A library that its rule does not assign to an arch belongs to the host.
        (claim, Sniffed::HostElf | Sniffed::Stripped)
            if claim.as_ref().is_none_or(|claim| claim.role != DatabaseRole::Whole) =>
        {
            return Ok(None);
        }
        // A library whose device code is already in archives belongs to the host as well.
        (_, Sniffed::HostElf) if host_binary::is_transformed(&file.content)? => return Ok(None),
        (Some(claim), _) => declare(&claim, path, notes),
        (None, Sniffed::CodeObject | Sniffed::Bundle) => unclaimed_code(path),
        _ => {
            note_leftover(path, leftover, notes);
            // The file becomes a host file, although its directory is for an arch.
            if let Some(directory) = rules.unknown_arch_directory(path) {
                notes.add(found::DatabaseArchUnknown { directory: notes.file(&directory) });
            }
            return Ok(None);
        }
    };
    let sniffed_file = SniffedFile { path, content: &file.content, sniffed };
    let evidence = evidence::read(sniffed_file, &declared, cache, notes)?;
    candidate(path, file.clone(), declared, evidence, notes)
}

/// The archive as a database file of the archs in its table of contents; `None` if it holds no code and
/// nothing else names its archs.
pub(super) fn claim_archive(
    archive: &KernelArchive,
    rules: &DatabaseRules,
    notes: &mut Notes,
) -> Result<Option<DatabaseCandidate>> {
    let KernelArchive { path, module, mode, content, .. } = archive;
    let (claimed, leftover) = by_rule(path, rules);
    let declared = match &claimed {
        Some(claim) => {
            let declared = declare(claim, path, notes);
            // It is code whatever its name, unless it serves all archs.
            let role = match declared.role {
                role @ (DatabaseRole::Shared | DatabaseRole::Cache) => role,
                _ => DatabaseRole::Code,
            };
            DeclaredFile { role, code: true, standalone: true, ..declared }
        }
        None => DeclaredFile { rule: LONE_ARCHIVE.to_owned(), ..unclaimed_code(path) },
    };
    let evidence = evidence::of_archive(archive)?;
    if evidence.code.is_empty() && declared.role == DatabaseRole::Code && declared.archs.is_empty()
    {
        note_leftover(path, leftover, notes);
        return Ok(None);
    }
    let file = StagedFile { content: content.clone(), module: module.clone(), mode: *mode };
    candidate(path, file, declared, evidence, notes)
}

/// The claim of a rule on a path, or the rule that marks the path as a leftover.
fn by_rule<'a>(
    path: &TreePath,
    rules: &'a DatabaseRules,
) -> (Option<DatabaseClaim<'a>>, Option<&'a Rule>) {
    match rules.claim(path) {
        Some(claim) if claim.role == DatabaseRole::Leftover => (None, Some(claim.rule)),
        claim => (claim, None),
    }
}

/// The file as a candidate, if its declared properties and its content make it one.
fn candidate(
    path: &TreePath,
    file: StagedFile,
    declared: DeclaredFile,
    evidence: Evidence,
    notes: &mut Notes,
) -> Result<Option<DatabaseCandidate>> {
    let Some(archs) = decide_archs(path, &declared, &evidence, notes) else {
        return Ok(None);
    };
    if declared.role == DatabaseRole::Code && evidence.archs.len() > 1 {
        notes.add(found::DatabaseBundle { file: notes.file(path), archs: archs.clone() });
    }
    let mut code_objects = Vec::new();
    let kept = archs.is_empty() || declared.role == DatabaseRole::Whole;
    for code in evidence.code.iter().filter(|_| kept) {
        code_objects.push(code.content.digest()?);
    }
    let says_no_member = evidence.archs.iter().all(BaseArch::is_generic);
    let StagedFile { content, module, mode } = file;
    let DeclaredFile { rule, role, standalone, moves, opens_dir, for_arch_family, .. } = declared;
    let file = DatabaseFile {
        path: path.clone(),
        archs,
        for_arch_family,
        of_whole_family: for_arch_family && says_no_member,
        module,
        shard: notes.shard().to_owned(),
        rule,
        moves,
        opens_dir,
        content,
        mode,
    };
    let description = evidence.description;
    Ok(Some(DatabaseCandidate { file, role, standalone, code_objects, description }))
}

/// Reports that a file that no library reads from a package becomes a host file.
fn note_leftover(path: &TreePath, rule: Option<&Rule>, notes: &mut Notes) {
    if let Some(rule) = rule {
        let (file, rule) = (notes.file(path), rule.name.clone());
        notes.add(found::DatabaseLeftover { file, rule });
    }
}

/// Whether the name of a file says that it is device code and nothing else.
fn is_named_code(path: &TreePath, claim: Option<&DatabaseClaim<'_>>) -> bool {
    match claim {
        Some(claim) => claim.role != DatabaseRole::Whole && claim.rule.is_code(path.name()),
        None => path.name().ends_with(CODE_ENDING),
    }
}

fn declare(claim: &DatabaseClaim, path: &TreePath, notes: &mut Notes) -> DeclaredFile {
    let named = match claim.named.as_slice() {
        [one] => Some(one),
        _ => None,
    };
    if let (false, Some(named)) = (claim.directory.is_empty(), named)
        && !claim.directory.contains(named)
    {
        let (named, directory) = (named.clone(), claim.directory.clone());
        let mismatch = ArchMismatch::Name { named, directory };
        notes.add(found::DatabaseArchMismatch { file: notes.file(path), mismatch });
    }
    // A library that searches the directory of an arch searches no other.
    let archs = if !claim.directory.is_empty() {
        claim.directory.clone()
    } else if matches!(claim.role, DatabaseRole::Shared | DatabaseRole::Cache) {
        Vec::new()
    } else {
        named.into_iter().cloned().collect()
    };
    DeclaredFile {
        rule: claim.rule.name.clone(),
        role: claim.role,
        code: claim.rule.is_code(path.name()),
        standalone: claim.rule.is_standalone(path.name()),
        moves: claim.directory.is_empty() && claim.rule.is_moved(path.name()),
        opens_dir: claim.rule.opens_dir(path.name()),
        for_arch_family: claim.directory.len() > 1,
        archs,
    }
}

fn unclaimed_code(path: &TreePath) -> DeclaredFile {
    let named: BTreeSet<_> = gfx::archs_in(path.name()).into_iter().collect();
    DeclaredFile {
        rule: LONE_CODE.to_owned(),
        role: DatabaseRole::Code,
        code: true,
        standalone: true,
        moves: false,
        opens_dir: false,
        for_arch_family: false,
        archs: if named.len() == 1 { named.into_iter().collect() } else { Vec::new() },
    }
}

/// Decides the archs of a file: content first, then name and directory. Sorted; empty if it serves all archs;
/// `None` if it is not a database file.
fn decide_archs(
    path: &TreePath,
    declared: &DeclaredFile,
    evidence: &Evidence,
    notes: &mut Notes,
) -> Option<Vec<BaseArch>> {
    let own: Vec<BaseArch> = evidence.archs.iter().cloned().collect();
    let mut mismatch = |outcome| {
        let (placed, holds) = (declared.archs.clone(), own.clone());
        let mismatch = ArchMismatch::Content { placed, holds, outcome };
        notes.add(found::DatabaseArchMismatch { file: notes.file(path), mismatch });
    };
    let said = &declared.archs;
    let covered = said.iter().all(|arch| own.contains(arch));
    match declared.role {
        _ if declared.serves_all() => Some(Vec::new()),
        _ if own.is_empty() || own == *said => Some(said.clone()),
        // Code for a generic target runs on all members of its family.
        _ if declared.for_arch_family && own.iter().all(BaseArch::is_generic) => Some(said.clone()),
        // A file of AOTriton names those members of its family that it has code for.
        DatabaseRole::Data if evidence.code.is_empty() => Some(own),
        DatabaseRole::Whole if own.len() > 1 => {
            mismatch(MismatchOutcome::NoDatabase);
            None
        }
        // An index may name more archs than those that it is for.
        DatabaseRole::Index if !said.is_empty() && covered => Some(said.clone()),
        DatabaseRole::Index if own.len() > 1 => {
            if !said.is_empty() {
                mismatch(MismatchOutcome::StaysWithHost);
            }
            Some(Vec::new())
        }
        _ => {
            if !said.is_empty() {
                mismatch(MismatchOutcome::ContentDecides);
            }
            Some(own)
        }
    }
}

/// The outcome for database candidates: files of some archs, and host files that serve all archs.
#[derive(Default)]
pub(super) struct AssignedFiles {
    pub databases: Vec<DatabaseFile>,
    pub shared: BTreeMap<TreePath, SharedFile>,
}

/// Makes database files of the candidates for some archs; the others become host files, each with a finding.
pub(super) fn assign_files(
    candidates: Vec<DatabaseCandidate>,
    host: &mut Tree<HostFile>,
    notes: &mut Notes,
) -> Result<AssignedFiles> {
    let mut settled = AssignedFiles::default();
    for candidate in candidates {
        let DatabaseCandidate { file: own, role, code_objects, .. } = candidate;
        if !own.archs.is_empty() {
            if role == DatabaseRole::Whole {
                let (file, archs) = (notes.file(&own.path), own.archs.clone());
                notes.add(found::DatabaseHostCode { file, archs, code_objects });
            }
            settled.databases.push(own);
            continue;
        }
        let DatabaseFile { path, module, rule, moves, content, mode, .. } = own;
        let (file, is_cache) = (notes.file(&path), role == DatabaseRole::Cache);
        notes.add(found::DatabaseShared { file, rule: rule.clone(), is_cache, code_objects });
        let shared = SharedFile { rule, moves, cache: is_cache };
        settled.shared.insert(path.clone(), shared);
        let data = HostFile { module, kind: HostKind::Plain(content) };
        host.insert(path, Node::File { data, mode })?;
    }
    Ok(settled)
}
