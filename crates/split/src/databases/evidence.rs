//! The archs that the content of a database file is for.

use std::collections::BTreeSet;

use crate::aks2;
use rockpack_core::content::Content;
use rockpack_core::error::{Error, Faults, Result};
use rockpack_core::gfx::Target;
use rockpack_core::tree::TreePath;
use rockpack_elf::code_object;
use rockpack_elf::fatbin::Bundles;

use super::{DeclaredFile, Evidence, kept};
use crate::archives::{DistinctRow, distinct_rows};
use crate::code_objects::{code_objects, refine, row_target};
use crate::development::{self, Sniffed};
use crate::host_binary;
use crate::input::database::{DatabaseRole, Index};
use crate::parts::{CodeObject, KernelArchive, Notes};
use rockpack_files::cache::Cache;
use rockpack_report::{DecidedBy, found};

pub(super) struct SniffedFile<'a> {
    pub path: &'a TreePath,
    pub content: &'a Content,
    pub sniffed: Sniffed,
}

pub(super) fn read(
    file: SniffedFile<'_>,
    declared: &DeclaredFile,
    cache: Option<&Cache>,
    notes: &mut Notes,
) -> Result<Evidence> {
    let SniffedFile { path, content, sniffed } = file;
    let code = match (sniffed, declared.role) {
        (Sniffed::CodeObject, _) => {
            lone_code(path, content, declared, notes)?.into_iter().collect()
        }
        (Sniffed::Bundle | Sniffed::UnlinkedBundle, _) => bundled_code(path, content, notes)?,
        // The device code of a host library stays in it, whether or not it could be removed.
        (Sniffed::HostElf, DatabaseRole::Whole) => {
            let mut found = Vec::new();
            for section in host_binary::device_sections(content)? {
                found.extend(bundled_code(path, &section, notes)?);
            }
            found
        }
        (Sniffed::Development(Some(_)), DatabaseRole::Whole) => {
            let archs = development::archs_of_archive(content)?;
            return Ok(Evidence { archs, ..Evidence::default() });
        }
        (_, DatabaseRole::Code | DatabaseRole::Shared) if declared.code => {
            return Err(no_code(content));
        }
        (_, DatabaseRole::Index | DatabaseRole::Shared) => match kept::read(content, cache)? {
            Index::Described(description) => {
                let archs = description.archs.clone();
                return Ok(Evidence { archs, code: Vec::new(), description: Some(description) });
            }
            Index::Unreadable(reason) => {
                let by_rule = declared.serves_all();
                let decided_by = if by_rule { DecidedBy::Rule } else { DecidedBy::Name };
                let file = notes.file(path);
                notes.add(found::DatabaseUnreadable { file, reason, decided_by });
                Vec::new()
            }
        },
        (Sniffed::Other, DatabaseRole::Data) if declared.for_arch_family => {
            let archs = aks2::archs(content, &declared.archs)?;
            let is_empty = archs.is_empty() && content.len() >= 4;
            if is_empty && aks2::MAGICS.contains(&content.read_array(0)?) {
                notes.add(found::KernelImagesUnread { file: notes.file(path) });
            }
            return Ok(Evidence { archs, ..Evidence::default() });
        }
        _ => Vec::new(),
    };
    let archs = code.iter().map(|code| code.target.base().clone()).collect();
    Ok(Evidence { archs, code, description: None })
}

/// Reads the table of contents of an archive that is packed unchanged. Its library asks for rows by the
/// target of a device, so the rows decide, and each must hold code of its target.
pub(super) fn of_archive(archive: &KernelArchive) -> Result<Evidence> {
    let toc = archive.reader.toc();
    let listed: BTreeSet<&String> = toc.gfx_arches.iter().collect();
    let mut code = Vec::new();
    let mut checked = BTreeSet::new();
    let mut faults = Faults::default();
    for (key, targets) in &toc.rows {
        let place = format!("kernel archive, {key}");
        for target in targets.keys() {
            if !listed.contains(target) {
                let message = format!("has a row of {target}, which is not one of its targets");
                let error = Error::malformed(message).structure(&place);
                faults.add(error.at(&archive.content.place(0)).hint(
                    "libraries look a device up in `gfx_arches` first: build the archive again",
                ));
            }
        }
        let rows = distinct_rows(targets).map_err(|error| error.structure(&place));
        for DistinctRow { target, ordinal, .. } in faults.keep(rows).unwrap_or_default() {
            // Many rows may refer to one code object, which is decoded once.
            if !checked.insert((ordinal, target.clone())) {
                continue;
            }
            let content = archive.reader.code_object(ordinal)?;
            faults.keep(check_row(&target, &content).map_err(|error| error.structure(&place)));
            code.push(CodeObject { target, content, stored_size: None });
        }
    }
    faults.finish()?;
    let archs = code.iter().map(|code| code.target.base().clone()).collect();
    Ok(Evidence { archs, code, description: None })
}

/// Refuses a row with code that a device of its target cannot run. Code for a generic target runs on
/// several archs, and may have a row of each.
fn check_row(target: &Target, content: &Content) -> Result<()> {
    let (actual, claimed) = row_target(target, content)?;
    if claimed.is_none() || actual.base().is_generic() {
        return Ok(());
    }
    let message = format!("the row of {target} holds code for {actual}");
    Err(Error::malformed(message).at(&content.place(0)).hint(
        "the library that opens this archive would load code that the GPU cannot run: build the \
         archive again",
    ))
}

pub(super) fn no_code(content: &Content) -> Error {
    let message = if content.is_empty() {
        "is empty, although its name is that of device code"
    } else {
        "is neither a code object nor a bundle of them, although its name is that of device code"
    };
    Error::malformed(message).structure("kernel database").at(&content.place(0)).hint(
        "the file is damaged or was copied only in part: build it or copy it again; if it is not \
         device code, claim it as `data` by a rule under `databases` in the configuration",
    )
}

fn bundled_code(path: &TreePath, content: &Content, notes: &mut Notes) -> Result<Vec<CodeObject>> {
    let mut found = Vec::new();
    for next in Bundles::new(content) {
        found.extend(code_objects(&next?, path, notes)?);
    }
    Ok(found)
}

fn lone_code(
    path: &TreePath,
    content: &Content,
    declared: &DeclaredFile,
    notes: &mut Notes,
) -> Result<Option<CodeObject>> {
    let header = code_object::read_whole(content)?;
    let Some(target) = header.target else {
        let flags = header.flags;
        if declared.archs.is_empty() {
            let message =
                format!("the code object has unknown flags {flags:#x}, and its name has no arch");
            return Err(Error::unsupported(message).at(&content.place(0)));
        }
        notes.add(found::UnknownProcessor { file: notes.file(path), entry: None, flags });
        return Ok(None);
    };
    let refined = declared.archs.iter().find(|arch| refine(arch, target.base()) == *arch);
    let base = refined.unwrap_or(target.base());
    let (target, content) = (base.clone().into(), content.clone());
    Ok(Some(CodeObject { target, content, stored_size: None }))
}
