//! Indexes of kernel databases.

use crate::cli::render::units::bytes;
use crate::inspect::KernelIndex;

pub(super) fn index_text(index: &KernelIndex) -> String {
    let mut text = text_line!("Kernel index ({})", bytes(index.size));
    let index = &index.description;
    let archs: Vec<&str> = index.archs.iter().map(|arch| arch.as_str()).collect();
    let archs = if archs.is_empty() { "none named".to_owned() } else { archs.join(" ") };
    text.push_str(&text_line!("Archs: {archs}"));
    text.push_str(&text_line!("Solutions: {}", index.solutions));
    for (what, names) in [
        ("Operations", &index.operations),
        ("Code object files", &index.code_object_files),
        ("Libraries loaded when needed", &index.libraries),
    ] {
        text.push_str(&text_line!("{what}: {}", names.len()));
        names.iter().for_each(|name| text.push_str(&text_line!("  {name}")));
    }
    text
}
