//! Findings that the configuration accepts: the table `accept`.

use rockpack_core::error::{Faults, Result};
use schemars::JsonSchema;
use serde::Deserialize;

use super::Config;
use super::check::single_lines;
use super::document::{ConfigDocument, nearest};
use rockpack_report::{Code, Finding, Findings, found};
use rockpack_split::input::database::matches_name;

const ACCEPT: &str = "accept";

/// Findings to accept.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AcceptSchema {
    /// Code of the findings, as in `R070`
    #[schemars(regex(pattern = "^R[0-9]{3}$"))]
    pub code: String,
    /// Glob that is matched with the subject of a finding, each of its text fields (`library`, `package`),
    /// the path of each of its files, and the last part of each path; `*` matches any characters
    #[schemars(length(min = 1))]
    pub subject: String,
    /// Reason for accepting the findings, in one line
    #[schemars(length(min = 1))]
    pub reason: String,
}

/// How much of the configured set a run covers. An entry for the rest may stay unmatched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetScope {
    /// All packages in all formats, as an update of an earlier set.
    Whole,
    /// All packages without an earlier set: no findings that compare with it.
    WithoutEarlier,
    /// Some packages, one format, or another distribution: no findings about the rest.
    Limited,
    /// Artifacts alone: no findings about packages.
    Artifacts,
}

pub(super) fn accepted(
    schema: Vec<AcceptSchema>,
    document: &ConfigDocument,
    faults: &mut Faults,
) -> Vec<(Code, AcceptSchema)> {
    let mut all = Vec::new();
    for (index, entry) in schema.into_iter().enumerate() {
        let (index, AcceptSchema { code, subject, reason }) = (index.to_string(), &entry);
        let lines = [("subject", Some(subject.as_str())), ("reason", Some(reason.as_str()))];
        single_lines(&[ACCEPT, &index], lines, document, faults);
        let code = faults.keep(read_code(code, &[ACCEPT, &index, "code"], document));
        all.extend(code.map(|code| (code, entry)));
    }
    all
}

fn read_code(text: &str, keys: &[&str], document: &ConfigDocument) -> Result<Code> {
    match Code::of_id(text) {
        Some(code) if Code::NEVER_ACCEPTED.contains(&code) => {
            let message = format!("{code} is not a finding about packages and cannot be accepted");
            Err(document.fault(keys, message).hint("remove the entry"))
        }
        Some(code) => Ok(code),
        None => {
            let message = format!("`{}` is not a finding code", text.escape_debug());
            let named = acceptable_codes().find(|code| code.name == text).map(|code| code.id);
            let is_finding = !text.to_uppercase().starts_with('V');
            let meant = named.or_else(|| {
                nearest(text, acceptable_codes().map(|code| code.id)).filter(|_| is_finding)
            });
            let hint = match meant {
                None if !is_finding => "failed checks of `verify` cannot be accepted".to_owned(),
                Some(meant) => format!("did you mean `{meant}`?"),
                None => "write a code as `build` and `plan` print it, such as `R070`".to_owned(),
            };
            Err(document.fault(keys, message).hint(hint))
        }
    }
}

fn acceptable_codes() -> impl Iterator<Item = &'static Code> {
    Code::ALL.iter().filter(|code| !Code::NEVER_ACCEPTED.contains(code))
}

impl Config {
    /// Accepts the findings that an entry matches, the first entry first. An entry without a match becomes a finding
    /// itself: its cause was fixed, or its subject is mistyped.
    pub fn accept(&self, findings: &mut Findings, scope: SetScope) {
        let mut unmatched = Vec::new();
        for (index, (code, AcceptSchema { subject, reason, .. })) in self.accept.iter().enumerate()
        {
            let fits = |finding: &Finding| {
                finding.code() == Some(*code)
                    && finding.matchable_names().iter().any(|thing| matches_name(subject, thing))
            };
            if findings.accept(fits, reason) == 0 && scope != SetScope::Artifacts {
                let (entry, accepts, pattern) =
                    (format!("{ACCEPT}.{index}"), code.id.to_owned(), subject.clone());
                let has_all = match scope {
                    SetScope::Whole => true,
                    SetScope::WithoutEarlier => !Code::OF_EARLIER.contains(code),
                    SetScope::Limited | SetScope::Artifacts => false,
                };
                unmatched.push(if has_all {
                    Finding::from(found::AcceptUnmatched { entry, accepts, pattern })
                } else {
                    Finding::from(found::AcceptUnmatchedHere { entry, accepts, pattern })
                });
            }
        }
        findings.extend(unmatched);
        findings.sort();
    }
}
