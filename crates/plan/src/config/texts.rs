//! The texts of single packages in the configuration: `packages.<name>`.

use rockpack_core::error::Faults;
use rockpack_core::once::Ordered;

use super::characters::is_small_or_digit;
use super::document::ConfigDocument;
use super::keys::{PackageSchema, SUMMARY_LIMIT};
use super::lines::single_lines;

/// Texts of a package, or of all packages of a family; `None` if the configuration has no such text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PackageTexts {
    /// The summary, one line.
    pub summary: Option<String>,
    /// The paragraphs of the description.
    pub description: Option<Vec<String>>,
    /// Debian's section, e.g. `libs`.
    pub section: Option<String>,
    /// Licence expression; also for a family.
    pub license: Option<String>,
    /// Home page; also for a family.
    pub homepage: Option<String>,
    /// Copyright holder and years, e.g. `2015-2026 A Company`; also for a family.
    pub copyright: Option<String>,
}

impl PackageTexts {
    /// Whether it has texts that can apply to one package only.
    pub fn is_of_one(&self) -> bool {
        self.summary.is_some() || self.description.is_some() || self.section.is_some()
    }
}

/// Reads the texts of all packages that have any.
pub(super) fn texts(
    schema: &Ordered<PackageSchema>,
    document: &ConfigDocument,
    faults: &mut Faults,
) -> Vec<(String, PackageTexts)> {
    let mut all = Vec::new();
    for (name, package) in &schema.0 {
        check(name, package, document, faults);
        let texts = PackageTexts {
            summary: package.summary.clone(),
            description: package.description.as_deref().map(paragraphs),
            section: package.section.clone(),
            license: package.license.clone(),
            homepage: package.homepage.clone(),
            copyright: package.copyright.clone(),
        };
        if texts != PackageTexts::default() {
            all.push((name.clone(), texts));
        }
    }
    all
}

fn paragraphs(text: &str) -> Vec<String> {
    let paragraphs = text.split("\n\n").map(str::trim).filter(|text| !text.is_empty());
    paragraphs.map(str::to_owned).collect()
}

fn check(name: &str, package: &PackageSchema, document: &ConfigDocument, faults: &mut Faults) {
    let lines = [
        ("summary", package.summary.as_deref()),
        ("section", package.section.as_deref()),
        ("license", package.license.as_deref()),
        ("homepage", package.homepage.as_deref()),
        ("copyright", package.copyright.as_deref()),
    ];
    single_lines(&["packages", name], lines, document, faults);
    if package.summary.as_ref().is_some_and(|text| text.chars().count() > SUMMARY_LIMIT) {
        let message = format!("has more than {SUMMARY_LIMIT} characters");
        let error = document.fault(&["packages", name, "summary"], message);
        faults.add(error.hint("package managers show it in one line; say more in `description`"));
    }
    if package.section.as_ref().is_some_and(|section| !is_section(section)) {
        let error = document.fault(&["packages", name, "section"], "is no section");
        faults.add(error.hint("sections are written as in `libs` or `contrib/libs`"));
    }
    if package.description.as_ref().is_some_and(|text| !is_description(text)) {
        let message = "has to be text that is not empty, with line breaks only";
        faults.add(document.fault(&["packages", name, "description"], message));
    }
}

fn is_section(text: &str) -> bool {
    text.chars().all(|c| is_small_or_digit(c) || c == '-' || c == '/')
}

fn is_description(text: &str) -> bool {
    !text.trim().is_empty() && !text.contains(|c: char| c.is_control() && c != '\n')
}
