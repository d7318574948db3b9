//! The result of a verification, for people.

use crate::verify::Report;

/// Failed checks, one a line, then what was looked at.
pub fn verify_text(report: &Report) -> String {
    let mut text = String::new();
    for problem in &report.problems {
        text.push_str(&format!("failed: {problem}\n"));
    }
    text.push_str(&format!(
        "{} packages, {} files, {} archive rows, {} code objects read",
        report.packages, report.files, report.archive_rows, report.code_objects
    ));
    if report.input_code_objects > 0 {
        text.push_str(&format!(
            "; {} code objects of the artifacts looked for",
            report.input_code_objects
        ));
    }
    match report.problems.len() {
        0 => text.push_str("; all checks passed\n"),
        count => text.push_str(&format!("; {count} checks failed\n")),
    }
    text
}
