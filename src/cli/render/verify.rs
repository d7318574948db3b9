//! The result of a verification, for people.

use super::EXPLAIN;
use rockpack_report::words::counted;
use rockpack_verify::{CheckCount, Report, Unproved, UnreadData};

/// Failed checks, one a line, then the extent of the check.
pub fn verify_text(report: &Report) -> String {
    let mut text = String::new();
    text.extend(report.tolerated.iter().map(|problem| text_line!("warning: {problem}")));
    text.extend(report.problems.iter().map(|problem| text_line!("failed: {problem}")));
    for CheckCount { code, name, count } in &report.more {
        text.push_str(&text_line!("failed: {code} {name}: {count} more, which are not listed"));
    }
    text.push_str(&read_text(report));
    text.push_str(&repository_text(report));
    text.push_str(&compared_text(report));
    if report.elsewhere > 0 {
        let count = report.elsewhere;
        text.push_str(&text_line!("dependencies on packages of other repositories: {count}"));
    }
    if report.left_out > 0 {
        let paths = counted(report.left_out as u64, "path");
        text.push_str(&text_line!("{paths} of the artifacts left out on purpose (--only)"));
    }
    if !report.warnings.is_empty() {
        let count = counted(report.warnings.len() as u64, "build warning");
        text.push_str(&text_line!("{count} (they do not fail the verification)"));
    }
    if report.wheels_without_digests > 0 {
        let wheels = counted(report.wheels_without_digests as u64, "wheel");
        text.push_str(&text_line!("{wheels} with files of which RECORD states no digest"));
    }
    text.push_str(&kept_text(report));
    text.push_str(&unproved_text(report));
    if !report.undecided.is_empty() {
        let checks: Vec<String> = report
            .undecided
            .iter()
            .map(|it| format!("{} {} ({})", it.code, it.name, it.count))
            .collect();
        text.push_str(&text_line!(
            "not decided without the other packages of the set: {}",
            checks.join(", ")
        ));
    }
    if report.may_be_part {
        text.push_str(
            "if these are some packages of a set, verify its folder, or name them with --partial\n",
        );
    }
    let told = report.problems.len() + report.tolerated.len() + report.warnings.len();
    if told > 0 {
        text.push_str(&text_line!("{EXPLAIN}"));
    }
    match report.failed() {
        0 => text.push_str("all checks passed\n"),
        count => text.push_str(&text_line!("{} failed", counted(count, "check"))),
    }
    text
}

/// The packages of earlier builds that were not checked.
fn kept_text(report: &Report) -> String {
    let mut text = String::new();
    if report.kept_absent > 0 {
        let packages = counted(report.kept_absent as u64, "package");
        text.push_str(&text_line!(
            "the set keeps {packages} of earlier builds that were not named: to check all of it, name the \
             folders of these builds, too"
        ));
    }
    if report.superseded > 0 {
        let packages = counted(report.superseded as u64, "package");
        text.push_str(&text_line!(
            "{packages} of earlier builds not looked at, because they are in the set no more"
        ));
    }
    text
}

/// The unchecked data of repositories, and the missing keys.
fn repository_text(report: &Report) -> String {
    let mut text = String::new();
    for key in &report.keys_beside {
        text.push_str(&text_line!(
            "the key {key}, which was not given, is one of the repository's: a signed index names it"
        ));
    }
    for UnreadData { file, reason } in &report.data_unread {
        text.push_str(&text_line!("what {file} installs was not looked at: {reason}"));
    }
    text
}

/// The sources that packages were compared with, and the parts that were not compared.
fn compared_text(report: &Report) -> String {
    let mut text = String::new();
    if let Some(joined) = &report.joined {
        let (parts, sha256) = (counted(joined.parts as u64, "part"), &joined.receipt_sha256);
        let signed = match joined.signed {
            Some(true) => ", written with a signature",
            Some(false) => ", written without a signature",
            None => "",
        };
        text.push_str(&text_line!(
            "{parts}, together the set whose packages.json is {sha256}{signed}"
        ));
    }
    if let Some(count) = report.input_code_objects {
        let count = counted(count, "code object");
        text.push_str(&text_line!("{count} of the artifacts looked for in each format"));
    }
    text
}

/// The lines about what was not proved.
fn unproved_text(report: &Report) -> String {
    let mut text = String::new();
    let is_unproved = |what: Unproved| report.unproved.contains(&what);
    if is_unproved(Unproved::Origin) {
        let more = if is_unproved(Unproved::Scripts) { ", scripts and relations" } else { "" };
        text.push_str(&text_line!(
            "not proved: the origin{more} (no good signature, or no --key to check it)"
        ));
    }
    if is_unproved(Unproved::Completeness) {
        text.push_str("not proved: that no package is missing (there is no receipt)\n");
    }
    text
}

/// The extent of the check.
fn read_text(report: &Report) -> String {
    let read = [
        (report.packages, "package"),
        (report.wheels, "wheel"),
        (report.artifacts, "artifact"),
        (report.prefixes, "installed prefix"),
        (report.repositories, "repository"),
        (report.indexes, "index file"),
        (report.indexed, "indexed package"),
        (report.signatures, "good signature"),
        (report.single_files, "single file"),
    ];
    let counted_read = read.into_iter().filter(|(count, _)| *count > 0);
    let mut parts: Vec<String> =
        counted_read.map(|(count, what)| counted(count as u64, what)).collect();
    // In repositories, packages are compared with indexes, and their files are not checked.
    if report.files > 0 || report.repositories == 0 {
        parts.push(counted(report.files, "file"));
        parts.push(match report.archive_rows {
            0 => "no kernel archives".to_owned(),
            rows => format!(
                "kernel archives with {} and {}",
                counted(report.code_objects, "code object"),
                counted(rows, "row")
            ),
        });
    }
    text_line!("{}", parts.join(", "))
}
