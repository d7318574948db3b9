//! Indexes of kernel databases.

use crate::inspect::KernelIndex;
use crate::render::units::bytes;

pub(super) fn index_text(index: &KernelIndex) -> String {
    let mut text = format!("Kernel index ({})\n", bytes(index.size));
    let archs: Vec<&str> = index.archs.iter().map(|arch| arch.as_str()).collect();
    let archs = if archs.is_empty() { "none named".to_owned() } else { archs.join(" ") };
    text.push_str(&format!("Archs: {archs}\nSolutions: {}\n", index.solutions));
    for (what, names) in [
        ("Operations", &index.operations),
        ("Code object files", &index.code_object_files),
        ("Libraries loaded when needed", &index.libraries),
    ] {
        text.push_str(&format!("{what}: {}\n", names.len()));
        names.iter().for_each(|name| text.push_str(&format!("  {name}\n")));
    }
    text
}
