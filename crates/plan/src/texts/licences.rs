//! Licence texts of an artifact, and their copyright lines for a `copyright` file.

use std::collections::BTreeSet;

use rockpack_core::content::Content;
use rockpack_core::error::Result;
use rockpack_core::tree::TreePath;

use crate::recombine::Component;
use rockpack_report::{ComponentFile, Findings, NotQuoted, found};

const FOLDERS: [&str; 2] = ["share/doc/", "share/licenses/"];

/// Prefixes of the names of licence texts, in lower case. `NOTICE` belongs to the Apache licence's terms.
const NAMES: [&str; 5] = ["license", "licence", "copying", "copyright", "notice"];

/// Longest text in a `copyright` file, in bytes; LLVM's, with all bundled licences, is a tenth of it.
const TEXT_MAX: u64 = 1 << 18;

/// Maximum number of lines that name copyright holders: a project's whole list of contributors stays in its text.
const HOLDERS_MAX: usize = 20;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Licence {
    pub path: TreePath,
    pub lines: Vec<String>,
}

pub(crate) fn is_licence(path: &TreePath) -> bool {
    let name = path.name().to_ascii_lowercase();
    let placed = FOLDERS.iter().any(|folder| path.as_str().starts_with(folder));
    placed && NAMES.iter().any(|start| name.starts_with(start))
}

/// Reads a text; a finding names one that is too long or not UTF-8.
pub(crate) fn read(
    component: &Component,
    path: &TreePath,
    content: &Content,
    findings: &mut Findings,
) -> Result<Option<Licence>> {
    let mut leave_out = |reason| {
        let file = ComponentFile::new(&*component.id, path);
        findings.add(found::LicenceNotQuoted { file, reason });
        Ok(None)
    };
    if content.len() > TEXT_MAX {
        return leave_out(NotQuoted::TooLong);
    }
    let bytes = content.read_vec(0..content.len(), TEXT_MAX, "licence text")?;
    let Ok(text) = String::from_utf8(bytes) else { return leave_out(NotQuoted::NotUtf8) };
    // Form feeds and carriage returns have no meaning in a control file; tabs do.
    let plain = |line: &str| line.replace(|c: char| c != '\t' && c.is_control(), "");
    let all: Vec<String> = text.lines().map(|it| plain(it).trim_end().to_owned()).collect();
    let first = all.iter().position(|line| !line.is_empty());
    let last = all.iter().rposition(|line| !line.is_empty());
    let (Some(first), Some(last)) = (first, last) else { return Ok(None) };
    let lines = all.get(first..=last).unwrap_or_default().to_vec();
    Ok(Some(Licence { path: path.clone(), lines }))
}

pub(crate) fn deduplicate(texts: &mut Vec<Licence>) {
    texts.sort();
    let mut seen = BTreeSet::new();
    texts.retain(|text| seen.insert(text.lines.clone()));
}

/// The lines of `texts` that name copyright holders, each once, without the words before the year.
pub(crate) fn holders(texts: &[Licence]) -> Vec<String> {
    let lines = texts.iter().flat_map(|text| &text.lines);
    let mut seen = BTreeSet::new();
    let holders = lines.filter_map(|line| holder(line)).filter(|it| seen.insert(it.clone()));
    holders.take(HOLDERS_MAX).collect()
}

/// `2018-2025 Somebody` of `Copyright (c) 2018-2025 Somebody`.
fn holder(line: &str) -> Option<String> {
    let line = line.trim_start_matches(|c: char| !c.is_alphanumeric());
    let (word, rest) = line.split_at_checked("copyright".len())?;
    if !word.eq_ignore_ascii_case("copyright") {
        return None;
    }
    let rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ':');
    let sign = ["(c)", "(C)", "\u{a9}", "&copy;"].iter().find_map(|sign| rest.strip_prefix(sign));
    let rest = sign.unwrap_or(rest).trim();
    rest.starts_with(|c: char| c.is_ascii_digit()).then(|| rest.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_and_names_tell_licences() {
        for (path, expected) in [
            ("share/doc/rocblas/LICENSE.md", true),
            ("share/licenses/x/COPYING", true),
            ("share/doc/hip/copyright", true),
            ("share/doc/rocblas/README.md", false),
            ("lib/LICENSE", false),
            ("include/notice.h", false),
        ] {
            assert_eq!(is_licence(&TreePath::new(path).unwrap()), expected, "{path}");
        }
    }

    #[test]
    fn holders_are_those_with_a_year() {
        for (line, expected) in [
            ("Copyright (c) 2018-2025 A Company, Inc.", Some("2018-2025 A Company, Inc.")),
            (" * Copyright \u{a9} 2020 B", Some("2020 B")),
            ("COPYRIGHT 2020 C", Some("2020 C")),
            ("The above copyright notice and this", None),
            ("Copyright notice and this permission", None),
            ("", None),
        ] {
            assert_eq!(holder(line).as_deref(), expected, "{line}");
        }
    }
}
