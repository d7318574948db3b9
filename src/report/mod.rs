//! The report on a package set, from receipts only: what the user of each GPU downloads and has on disk, compared with
//! fat libraries and with an earlier set; the findings; what changed; and what was left out.

mod gpus;

use std::collections::BTreeMap;
use std::path::Path;

use rockpack_archive::apt_index::format_date;
use rockpack_core::content::{is_folder, read_small};
use rockpack_core::error::{Error, Kind, Result, ResultExt};
use rockpack_package::receipt::difference::{Difference, between};
use rockpack_package::receipt::listing::{self, Listing};
use rockpack_package::receipt::{self, Receipt};
use rockpack_report::{Finding, page};
use serde::Serialize;
use serde_json::json;

pub use gpus::{FormatReport, GpuReport, Sizes};

#[derive(Debug, Serialize)]
pub struct Report {
    pub version: String,
    pub date: String,
    pub rockpack_version: String,
    pub prefix: String,
    pub distributions: Vec<String>,
    /// Version and release of the earlier set, if there is one.
    pub since: Option<String>,
    pub formats: Vec<FormatReport>,
    /// The findings by code: warnings, then notes, then those that the configuration accepts.
    pub findings: Vec<CodeReport>,
    pub changes: Option<Difference>,
    /// Installed paths of the input that no package has because the set was limited.
    pub left_out: Vec<String>,
}

#[derive(Debug, Serialize)]
pub struct CodeReport {
    /// `warning`, `note` or `accepted`.
    pub severity: &'static str,
    pub code: String,
    pub name: String,
    /// How to solve it, in Markdown; `None` if this version of rockpack does not know the code.
    pub remedy: Option<String>,
    /// The number of findings that the earlier set does not have.
    pub new: Option<usize>,
    /// Code objects of the input that no package has, and that these findings account for.
    pub code_objects: usize,
    /// The findings: subject and message, with the reason for accepting it.
    pub texts: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DocumentFormat {
    /// One HTML file that needs no other.
    Html,
    /// Markdown, as GitHub shows it.
    Markdown,
}

impl DocumentFormat {
    pub fn of_file(path: &Path) -> Result<Self> {
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("html") => Ok(Self::Html),
            Some("md") => Ok(Self::Markdown),
            _ => Err(Error::new(Kind::Usage, "a report is a .html or .md file").file(path)),
        }
    }
}

/// Reads the receipt of a whole set: a `packages.json`, or its folder.
pub fn read(path: &Path) -> Result<Listing> {
    let file = match is_folder(path).map_err(Error::named_by_user)? {
        true => path.join(receipt::FILE_NAME),
        false => path.to_owned(),
    };
    let bytes = read_small(&file, receipt::LIMIT, "receipt").map_err(Error::named_by_user)?;
    let set = listing::parse(path.display().to_string(), &bytes).file(&file)?;
    if let Some(part) = set.receipt.as_ref().and_then(|receipt| receipt.part.as_ref()) {
        let message = format!("is part {} of its set alone", part.part);
        let hint = "join the parts first: `rockpack verify FOLDERS --join packages.json`";
        return Err(Error::new(Kind::Usage, message).file(&file).hint(hint));
    }
    Ok(set)
}

fn receipt_of(set: &Listing) -> Result<&Receipt> {
    let hint = "name the packages.json that `build` wrote, or its folder";
    let none = || Error::new(Kind::Usage, "a report needs a receipt").file(&set.name).hint(hint);
    set.receipt.as_deref().ok_or_else(none)
}

impl Report {
    /// The report on `set`, compared with `since`. `remedy` says how to solve findings with a code.
    pub fn new(
        set: &Listing,
        since: Option<&Listing>,
        remedy: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self> {
        let receipt = receipt_of(set)?;
        let earlier = since.map(receipt_of).transpose()?;
        // `rpm` is the generic table of all rpm distributions.
        let distributions = receipt.distributions.iter().filter(|it| it.name != "rpm");
        let before = since.map(|it| &*it.packages).unwrap_or_default();
        let of_format = set.packages.chunk_by(|a, b| a.format == b.format);
        Ok(Self {
            version: receipt.release(),
            date: format_date(receipt.content_date)?,
            rockpack_version: receipt.rockpack_version.clone(),
            prefix: receipt.prefix.clone(),
            distributions: distributions.map(|it| it.name.clone()).collect(),
            since: earlier.map(Receipt::release),
            formats: of_format.map(|own| FormatReport::new(own, before, receipt)).collect(),
            findings: findings_by_code(receipt, earlier, remedy),
            changes: since.map(|since| between(since, set)),
            left_out: receipt.left_out.clone(),
        })
    }

    pub fn render(&self, form: DocumentFormat) -> Result<String> {
        match form {
            DocumentFormat::Html => {
                page::render("report.html", include_str!("../../templates/report.html"), self)
            }
            DocumentFormat::Markdown => {
                page::render("report.md", include_str!("../../templates/report.md"), self)
            }
        }
    }
}

/// The order of severities in a report.
const SEVERITIES: [&str; 3] = ["warning", "note", "accepted"];

fn findings_by_code(
    receipt: &Receipt,
    earlier: Option<&Receipt>,
    remedy: &dyn Fn(&str) -> Option<String>,
) -> Vec<CodeReport> {
    let mut codes: BTreeMap<(usize, String), CodeReport> = BTreeMap::new();
    for finding in receipt.findings.iter() {
        let fields = json!(finding);
        let text = |name: &str| fields[name].as_str().unwrap_or_default().to_owned();
        let severity = match (finding.is_warning(), fields["accepted"].is_string()) {
            (true, _) => 0,
            (false, is_accepted) => 1 + usize::from(is_accepted),
        };
        let own = codes.entry((severity, text("code"))).or_insert_with(|| CodeReport {
            severity: SEVERITIES[severity],
            code: text("code"),
            name: text("name"),
            remedy: remedy(&text("code")),
            new: earlier.map(|_| 0),
            code_objects: 0,
            texts: Vec::new(),
        });
        // Findings that differ only in numbers count as the same.
        let words = |of: &Finding| of.message().replace(|c: char| c.is_ascii_digit(), "");
        let is_same = |other: &Finding| {
            (other.code(), other.subject()) == (finding.code(), finding.subject())
                && words(other) == words(finding)
        };
        if let (Some(new), Some(earlier)) = (&mut own.new, earlier) {
            *new += usize::from(!earlier.findings.iter().any(is_same));
        }
        own.code_objects += finding.code_objects().len();
        let reason = fields["accepted"].as_str().map(|reason| format!(" (accepted: {reason})"));
        let (subject, message) = (finding.subject(), finding.message());
        own.texts.push(format!("{subject}: {message}{}", reason.unwrap_or_default()));
    }
    codes.into_values().collect()
}
