//! The explanations of finding and check codes, from the pages of the documentation.
//!
//! A page has a section for each code: `## R070 name-of-the-code`, and its text up to the next one.

/// The page of findings.
const FINDINGS: &str = include_str!("../../docs/reference/findings.md");

/// The page of checks.
const CHECKS: &str = include_str!("../../docs/reference/checks.md");

/// The least similarity of a text to a code or name for which it counts as a typo.
const LIKE: f64 = 0.7;

/// The documentation of a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Explanation {
    /// The code, e.g. `R070`.
    pub code: &'static str,
    /// The name of the code, e.g. `library-unresolved`.
    pub name: &'static str,
    /// The text, in Markdown.
    pub text: &'static str,
}

/// All explanations, in the order of the pages.
pub fn all() -> impl Iterator<Item = Explanation> {
    [FINDINGS, CHECKS].into_iter().flat_map(sections)
}

/// The explanation of a code or name, in upper or lower case.
pub fn find(asked: &str) -> Option<Explanation> {
    all().find(|it| [it.code, it.name].iter().any(|own| own.eq_ignore_ascii_case(asked)))
}

/// The code or name most similar to `asked`, if any is similar.
pub fn nearest(asked: &str) -> Option<&'static str> {
    let asked = asked.to_lowercase();
    let names = all().flat_map(|it| [it.code, it.name]);
    let alike = names.map(|own| (strsim::jaro_winkler(&own.to_lowercase(), &asked), own));
    let best = alike.max_by(|(a, _), (b, _)| a.total_cmp(b));
    best.filter(|(likeness, _)| *likeness >= LIKE).map(|(_, own)| own)
}

fn sections(page: &'static str) -> impl Iterator<Item = Explanation> {
    page.split("\n## ").skip(1).filter_map(|section| {
        let (title, text) = section.split_once('\n')?;
        let (code, name) = title.trim().split_once(' ')?;
        Some(Explanation { code, name, text: text.trim() })
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_code_has_a_section() {
        let findings = rockpack_report::Code::ALL.iter().map(|code| (code.id(), code.name()));
        let checks = rockpack_verify::Check::ALL.iter().map(|check| (check.id(), check.name()));
        let explained: BTreeSet<_> = all().map(|it| (it.code, it.name)).collect();
        assert_eq!(explained, findings.chain(checks).collect());
    }

    #[test]
    fn codes_and_names_are_found_in_any_case_and_slips_are_named() {
        assert_eq!(find("r012").unwrap().name, "arch-not-grouped");
        assert_eq!(find("Arch-Not-Grouped").unwrap().code, "R012");
        assert_eq!(find("R12"), None);
        assert_eq!(nearest("arch-notgrouped"), Some("arch-not-grouped"));
        assert_eq!(nearest("LIBARY-MISSING"), Some("library-missing"));
        assert_eq!(nearest("zzz"), None);
    }
}
