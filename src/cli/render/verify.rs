//! The result of a verification, for people.

use crate::report::words::counted;
use crate::verify::Report;

/// Failed checks, one a line, then what was looked at.
pub fn verify_text(report: &Report) -> String {
    let mut text = String::new();
    for problem in &report.problems {
        text.push_str(&text_line!("failed: {problem}"));
    }
    let archives = match report.archive_rows {
        0 => "no kernel archives".to_owned(),
        rows => format!(
            "kernel archives with {} and {}",
            counted(report.code_objects, "code object"),
            counted(rows, "row")
        ),
    };
    let read = [
        (report.packages, "package"),
        (report.artifacts, "artifact"),
        (report.prefixes, "installed prefix"),
        (report.repositories, "repository"),
        (report.indexed, "indexed package"),
        (report.signatures, "good signature"),
        (report.single_files, "single file"),
    ];
    for (count, what) in read.into_iter().filter(|(count, _)| *count > 0) {
        text.push_str(&format!("{}, ", counted(count as u64, what)));
    }
    text.push_str(&text_line!("{}, {archives}", counted(report.files, "file")));
    if let Some(joined) = &report.joined {
        let (parts, sha256) = (counted(joined.parts as u64, "part"), &joined.receipt_sha256);
        text.push_str(&text_line!("{parts}, together the set whose packages.json is {sha256}"));
    }
    if let Some(count) = report.input_code_objects {
        let count = counted(count, "code object");
        text.push_str(&text_line!("{count} of the artifacts looked for in each format"));
    }
    if report.elsewhere > 0 {
        let count = report.elsewhere;
        text.push_str(&text_line!("dependencies on packages of other repositories: {count}"));
    }
    if report.left_out > 0 {
        let paths = counted(report.left_out as u64, "path");
        text.push_str(&text_line!("{paths} of the artifacts left out on purpose (--only)"));
    }
    if !report.warnings.is_empty() {
        let count = counted(report.warnings.len() as u64, "thing");
        text.push_str(&text_line!("the build warned of {count}, which no check fails for"));
    }
    match report.problems.len() {
        0 => text.push_str("all checks passed\n"),
        count => text.push_str(&text_line!("{} failed", counted(count, "check"))),
    }
    text
}
