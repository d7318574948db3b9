//! Kernel database files: whose they are.
//!
//! The arch of a file is read from its content: the flags of a code object, the entries of a
//! bundle, the strings of an index. Its name and directory decide only what content cannot. Device
//! code in a file of its own is treated the same way where no rule claims it.

use std::collections::{BTreeMap, BTreeSet};

use super::code;
use super::development::Sniffed;
use super::flatten::Located;
use super::notes::Notes;
use super::{CodeObject, DatabaseFile, HostFile, HostKind};
use crate::content::Content;
use crate::database::{Claim, Index, Role, Rules, read_index};
use crate::error::{Error, Result};
use crate::formats::code_object;
use crate::formats::fatbin::Bundles;
use crate::gfx::{self, BaseArch};
use crate::report::Code;
use crate::tree::{Node, Tree, TreePath};

/// The rule named for device code that no rule of the table claims.
const LONE_CODE: &str = "code-object";

/// A database file whose arch is not settled yet.
pub(super) struct Candidate {
    path: TreePath,
    module: Option<String>,
    mode: u32,
    content: Content,
    rule: String,
    role: Role,
    standalone: bool,
    /// Whose it is; none if it serves several archs.
    arch: Option<BaseArch>,
    /// SHA-256 of the code objects inside, if it serves several archs.
    code_objects: Vec<String>,
}

/// What content says of archs.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Evidence {
    /// Nothing.
    Silent,
    /// One.
    One(BaseArch),
    /// Several.
    Several(BTreeSet<BaseArch>),
}

impl Evidence {
    fn of(archs: BTreeSet<BaseArch>) -> Self {
        match archs.len() {
            0 => Self::Silent,
            1 => archs.into_iter().next().map_or(Self::Silent, Self::One),
            _ => Self::Several(archs),
        }
    }
}

/// What is known of a file before its content is read.
struct Declared {
    rule: String,
    role: Role,
    standalone: bool,
    arch: Option<BaseArch>,
}

/// The file as a database file, if a rule or its content says that it is one.
pub(super) fn claim(
    path: &TreePath,
    file: &Located,
    sniffed: Sniffed,
    rules: &Rules,
    notes: &mut Notes,
) -> Result<Option<Candidate>> {
    let declared = match (rules.claim(path), sniffed) {
        // Host code belongs to the host, wherever it lies.
        (_, Sniffed::HostElf | Sniffed::Stripped) => return Ok(None),
        (Some(claim), _) => declare(&claim, path, notes),
        (None, Sniffed::CodeObject) => lone(path),
        (None, Sniffed::Bundle) => lone(path),
        _ => return Ok(None),
    };
    let device = device_code(path, file, sniffed, &declared, notes)?;
    let evidence = match declared.role {
        Role::Index if device.is_empty() => index_evidence(path, &file.content, notes)?,
        _ => Evidence::of(device.iter().map(|code| code.target.base().clone()).collect()),
    };
    let arch = decide(path, &declared, evidence, notes)
        .map_err(|error| error.at(&file.content.place(0)))?;
    let mut code_objects = Vec::new();
    for code in device.iter().filter(|_| arch.is_none()) {
        code_objects.push(code.content.sha256_hex()?);
    }
    Ok(Some(Candidate {
        path: path.clone(),
        module: file.module.clone(),
        mode: file.mode,
        content: file.content.clone(),
        rule: declared.rule,
        role: declared.role,
        standalone: declared.standalone,
        arch,
        code_objects,
    }))
}

fn declare(claim: &Claim, path: &TreePath, notes: &mut Notes) -> Declared {
    let named = match claim.named.as_slice() {
        [one] => Some(one),
        _ => None,
    };
    if let (Some(directory), Some(named)) = (&claim.directory, named)
        && directory != named
    {
        let message = format!("names {named} and lies in the directory of {directory}");
        notes.add(Code::DatabaseArchMismatch, path, message);
    }
    Declared {
        rule: claim.rule.name.clone(),
        role: claim.role,
        standalone: claim.rule.is_standalone(path.name()),
        // A library that looks into the directory of an arch looks nowhere else.
        arch: claim.directory.as_ref().or(named).cloned(),
    }
}

fn lone(path: &TreePath) -> Declared {
    let named: BTreeSet<_> = gfx::archs_in(path.name()).into_iter().collect();
    Declared {
        rule: LONE_CODE.to_owned(),
        role: Role::Code,
        standalone: true,
        arch: match Evidence::of(named) {
            Evidence::One(arch) => Some(arch),
            _ => None,
        },
    }
}

/// The code objects in a file.
fn device_code(
    path: &TreePath,
    file: &Located,
    sniffed: Sniffed,
    declared: &Declared,
    notes: &mut Notes,
) -> Result<Vec<CodeObject>> {
    match (sniffed, declared.role) {
        (Sniffed::CodeObject, _) => {
            let found = lone_code(path, &file.content, declared.arch.as_ref(), notes)?;
            Ok(found.into_iter().collect())
        }
        (Sniffed::Bundle | Sniffed::UnlinkedBundle, _) => {
            let mut found = Vec::new();
            for next in Bundles::new(&file.content) {
                found.extend(code::code_objects(&next?.bundle.bundle, path, notes)?);
            }
            Ok(found)
        }
        (_, Role::Code) => {
            let message = "holds neither a code object nor a bundle of them; its name decides";
            notes.add(Code::UnknownProcessor, path, message);
            Ok(Vec::new())
        }
        _ => Ok(Vec::new()),
    }
}

fn lone_code(
    path: &TreePath,
    content: &Content,
    declared: Option<&BaseArch>,
    notes: &mut Notes,
) -> Result<Option<CodeObject>> {
    let header = code_object::read_whole(content)?;
    let Some(target) = header.target else {
        let flags = header.flags;
        if declared.is_none() {
            let message = format!("a code object with the unknown flags {flags:#x} names no arch");
            return Err(Error::unsupported(message).at(&content.place(0)));
        }
        let message = format!("a code object with the unknown flags {flags:#x}; its name decides");
        notes.add(Code::UnknownProcessor, path, message);
        return Ok(None);
    };
    let base = declared.map_or(target.base(), |arch| code::refine(arch, target.base()));
    Ok(Some(CodeObject { target: base.clone().into(), content: content.clone() }))
}

fn index_evidence(path: &TreePath, content: &Content, notes: &mut Notes) -> Result<Evidence> {
    match read_index(content)? {
        Index::Described(description) => Ok(Evidence::of(description.archs)),
        Index::Unreadable(reason) => {
            let message = format!("is no MessagePack index ({reason}); its name decides");
            notes.add(Code::UnknownProcessor, path, message);
            Ok(Evidence::Silent)
        }
    }
}

/// Whose a file is: content first, then name and directory.
fn decide(
    path: &TreePath,
    declared: &Declared,
    evidence: Evidence,
    notes: &mut Notes,
) -> Result<Option<BaseArch>> {
    let mut mismatch = |holds: &str, then: &str| {
        let arch = declared.arch.as_ref().map(BaseArch::as_str);
        let message = format!("is placed for {}, and holds {holds}; {then}", arch.unwrap_or("all"));
        notes.add(Code::DatabaseArchMismatch, path, message);
    };
    match (evidence, &declared.arch) {
        (Evidence::Silent, arch) => Ok(arch.clone()),
        (Evidence::One(own), Some(arch)) if own != *arch => {
            mismatch(own.as_str(), "the content decides");
            Ok(Some(own))
        }
        (Evidence::One(own), _) => Ok(Some(own)),
        (Evidence::Several(_), None) => Ok(None),
        (Evidence::Several(archs), Some(_)) if declared.role == Role::Code => {
            let message = format!("holds code for {}, and its name is one arch's", list(&archs));
            Err(Error::unsupported(format!("{path} {message}"))
                .hint("a file of several archs can be in no kernel package; build it per arch"))
        }
        (Evidence::Several(archs), Some(arch)) => {
            if !archs.contains(arch) {
                mismatch(&list(&archs), "it stays with the host files");
                return Ok(None);
            }
            Ok(Some(arch.clone()))
        }
    }
}

fn list(archs: &BTreeSet<BaseArch>) -> String {
    let names: Vec<&str> = archs.iter().map(BaseArch::as_str).collect();
    names.join(", ")
}

/// Brings the partners `X.dat` and `X.co` together, and notes files that have none.
pub(super) fn pair(candidates: &mut [Candidate], notes: &mut Notes) {
    follow_code(candidates, notes);
    let keys = |wanted: fn(Role) -> bool| -> BTreeSet<PartnerKey> {
        let of_role = candidates.iter().filter(|c| wanted(c.role));
        of_role.map(partner_key).collect()
    };
    let code = keys(|role| role == Role::Code);
    let indexes = keys(|role| matches!(role, Role::Index | Role::SharedIndex));
    for candidate in candidates.iter().filter(|candidate| !candidate.standalone) {
        let (partners, partner) = match candidate.role {
            Role::Code => (&indexes, "index"),
            Role::Index | Role::SharedIndex => (&code, "code object"),
            Role::Other => continue,
        };
        if !partners.contains(&partner_key(candidate)) {
            let message = format!("has no {partner} of its name beside it");
            notes.add(Code::DatabaseUnpaired, &candidate.path, message);
        }
    }
}

/// Directory and stem without arch and features: what partners share.
type PartnerKey = (Option<TreePath>, String);

fn partner_key(candidate: &Candidate) -> PartnerKey {
    let stem = stem(candidate.path.name());
    let end = match gfx::archs_in(stem).is_empty() {
        true => None,
        false => stem.find("gfx"),
    };
    let common = end.map_or(stem, |end| stem[..end].trim_end_matches(['_', '-']));
    (candidate.path.parent(), common.to_owned())
}

/// The name without `.co`, `.hsaco`, `.dat` or `.dat.zlib`.
fn stem(name: &str) -> &str {
    let name = name.strip_suffix(".zlib").unwrap_or(name);
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

/// An index goes where the code of its own name goes: neither works without the other.
fn follow_code(candidates: &mut [Candidate], notes: &mut Notes) {
    let exact = |c: &Candidate| (c.path.parent(), stem(c.path.name()).to_owned());
    let mut code: BTreeMap<PartnerKey, BTreeSet<Option<BaseArch>>> = BTreeMap::new();
    for candidate in candidates.iter().filter(|c| c.role == Role::Code) {
        let archs = code.entry(exact(candidate)).or_default();
        archs.insert(candidate.arch.clone());
    }
    for candidate in candidates.iter_mut().filter(|c| c.role == Role::Index) {
        let Some(archs) = code.get(&exact(candidate)) else {
            continue;
        };
        let partner = match archs.len() {
            1 => archs.iter().next().cloned().flatten(),
            _ => None,
        };
        if archs.len() > 1 || (candidate.arch.is_some() && candidate.arch != partner) {
            let place = |arch: &Option<BaseArch>| {
                arch.as_ref().map_or("all".to_owned(), ToString::to_string)
            };
            let message = format!(
                "is an index for {}, and the code of its name is for {}; it goes with the code",
                place(&candidate.arch),
                archs.iter().map(place).collect::<Vec<_>>().join(", ")
            );
            notes.add(Code::DatabaseUnpaired, &candidate.path, message);
        }
        candidate.arch = partner;
    }
}

/// Files of one arch become database files; the others go to the host files, each with a finding.
pub(super) fn settle(
    candidates: Vec<Candidate>,
    host: &mut Tree<HostFile>,
    notes: &mut Notes,
) -> Result<Vec<DatabaseFile>> {
    let mut databases = Vec::new();
    for candidate in candidates {
        let Candidate { path, module, mode, content, rule, arch, code_objects, .. } = candidate;
        if let Some(arch) = arch {
            let (archs, shard) = (vec![arch], notes.shard().to_owned());
            databases.push(DatabaseFile { path, archs, module, shard, rule, content, mode });
            continue;
        }
        let message = format!("serves several archs ({rule}) and stays with the host files");
        notes.account(Code::DatabaseShared, &path, message, code_objects);
        let kind = HostKind::Plain(content);
        let data = HostFile { module, kind };
        host.insert(path, Node::File { data, mode })?;
    }
    Ok(databases)
}
