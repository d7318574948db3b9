//! A manifest of kernel archives as people read it.

use rockpack_elf::kpm::Manifest;

use rockpack_report::words::counted;

/// The column of the arrows, unless an arch is longer.
const ARCH_WIDTH: usize = 12;

/// The text that `inspect` prints for a manifest; sizes are in units of 1,000,000 bytes.
pub fn manifest(manifest: &Manifest) -> String {
    let archives = manifest.by_generation();
    let mut text = text_line!("Component: {}", manifest.component_name);
    text.push_str("Format Version: 1\n");
    text.push_str(&text_line!("Prefix: {}", manifest.prefix));
    text.push_str(&format!("\nAvailable Architectures: {}\n\nArchitectures:\n", archives.len()));
    let widths = archives.iter().map(|(arch, _)| arch.len());
    let width = widths.max().unwrap_or_default().max(ARCH_WIDTH);
    for (arch, archive) in archives {
        let (size, kernels) = (megabytes(archive.size), counted(archive.kernel_count, "kernel"));
        text.push_str(&text_line!("  - {arch:width$} → {} ({size} MB, {kernels})", archive.file));
    }
    text
}

/// Millions of bytes with two digits, rounded half up.
fn megabytes(bytes: u64) -> String {
    let hundredths = bytes / 10_000 + u64::from(bytes % 10_000 >= 5_000);
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

#[cfg(test)]
mod tests {
    use rockpack_elf::kpm::ManifestArchive;

    use super::*;

    #[test]
    fn the_documented_layout() {
        let archive = |arch: &str, size| {
            let file = format!("blas_lib_{arch}.kpack");
            let archive = ManifestArchive { file, size, kernel_count: 4 };
            (arch.to_owned(), archive)
        };
        let text = manifest(&Manifest {
            component_name: "blas_lib".to_owned(),
            prefix: "lib".to_owned(),
            archives: [archive("gfx1100", 3_894_999), archive("gfx942", 3_935_000)].into(),
        });
        let expected = "\
Component: blas_lib
Format Version: 1
Prefix: lib

Available Architectures: 2

Architectures:
  - gfx942       → blas_lib_gfx942.kpack (3.94 MB, 4 kernels)
  - gfx1100      → blas_lib_gfx1100.kpack (3.89 MB, 4 kernels)
";
        assert_eq!(text, expected);
    }
}
