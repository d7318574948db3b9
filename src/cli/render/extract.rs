//! Extracted code objects, for people.

use super::units::bytes;
use crate::inspect::extract::Extracted;
use rockpack_files::new_file::WriteOutcome;
use rockpack_report::words::counted;

/// One line for each file, and the sum.
pub fn extract_text(extracted: &[Extracted]) -> String {
    let mut text = String::new();
    for one in extracted {
        let what = match one.outcome {
            WriteOutcome::Written => "wrote",
            WriteOutcome::Identical => "kept",
        };
        text.push_str(&text_line!("{what} {} ({})", one.file.display(), bytes(one.size)));
    }
    let total = extracted.iter().map(|one| one.size).sum();
    text + &text_line!("{}, {}", counted(extracted.len(), "code object"), bytes(total))
}
