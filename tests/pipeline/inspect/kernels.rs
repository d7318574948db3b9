//! Kernel archives, their manifests and indexes, and code objects.

use super::*;

#[test]
fn an_archive_is_shown() {
    let archive = installed().join("lib/.kpack/blas_lib_gfx1100.kpack");
    let expected = "\
Kernel archive: blas_lib for gfx1100
Targets: gfx1100
Compression: zstd-per-kernel
Code objects: 4 (16.35 kB in 5.29 kB)
  bin/exblas-bench#0
    gfx1100 → code object 0 (3.76 kB)
  lib/libexblas.so.1.2#0
    gfx1100 → code object 1 (4.91 kB)
  lib/libexblas.so.1.2#1
    gfx1100 → code object 2 (3.92 kB)
  libexec/exblas/exblas-tune#0
    gfx1100 → code object 3 (3.76 kB)
";
    assert_eq!(text(&archive), expected);
    let found = json(&archive);
    assert_eq!(found["type"], "archive");
    assert_eq!(found["gfx_arches"], json!(["gfx1100"]));
    assert_eq!(found["size"], fs::metadata(&archive).unwrap().len());
    let row = json!({"gfx1100": {"ordinal": 1, "original_size": 4912}});
    assert_eq!(found["rows"]["lib/libexblas.so.1.2#0"], row);
}

#[test]
fn a_manifest_is_shown() {
    let manifest = installed().join("lib/.kpack/blas_lib.kpm");
    let size = fs::metadata(installed().join("lib/.kpack/blas_lib_gfx1100.kpack")).unwrap().len();
    let text = text(&manifest);
    let lines: Vec<&str> = text.lines().collect();
    let head = [
        "Component: blas_lib",
        "Format Version: 1",
        "Prefix: lib",
        "",
        "Available Architectures: 6",
    ];
    assert_eq!(lines[..5], head);
    assert_eq!(lines[5..7], ["", "Architectures:"]);
    assert_eq!(lines[7], "  - gfx1100      → blas_lib_gfx1100.kpack (0.01 MB, 4 kernels)");
    assert_eq!(lines.len(), 13);
    let found = json(&manifest);
    assert_eq!(found["type"], "manifest");
    assert_eq!((&found["component_name"], &found["prefix"]), (&json!("blas_lib"), &json!("lib")));
    let archive = json!({"file": "blas_lib_gfx1100.kpack", "size": size, "kernel_count": 4});
    assert_eq!(found["archives"]["gfx1100"], archive);
}

#[test]
fn a_code_object_is_shown() {
    let file = stage().join("lib/rocblas/library/TensileLibrary_gfx1100.co");
    let text = text(&file);
    assert!(text.starts_with("Code object: gfx1100 ("), "{text}");
    let found = json(&file);
    let kernels = found["kernels"].as_array().unwrap();
    assert!(text.contains(&format!("Kernels: {}\n", kernels.len())));
    let resources = "arguments 24 B, group segment 0 B, private segment 0 B, 6 SGPRs, 2 VGPRs, \
                     wavefront 32, work-group up to 1024";
    assert!(text.contains(resources), "{text}");
    tools::need(&["readelf"]);
    let mut symbols = Command::new("readelf");
    let symbols = tools::succeed(symbols.args(["--dyn-syms", "-W"]).arg(&file));
    let mut names: Vec<&str> = symbols
        .lines()
        .filter_map(|line| line.split_whitespace().nth(7))
        .filter_map(|name| name.strip_suffix(".kd"))
        .collect();
    names.sort_unstable();
    let own: Vec<&str> =
        kernels.iter().map(|kernel| kernel.as_str().unwrap().trim_end_matches(".kd")).collect();
    assert_eq!(own, names);
    assert!(!own.is_empty());
}

#[test]
fn an_index_is_shown() {
    let library = stage().join("lib/rocblas/library");
    let expected = "\
Kernel index (98 B)
Archs: gfx1101
Solutions: 0
Operations: 0
Code object files: 1
  TensileLibrary_gfx1101.co
Libraries loaded when needed: 0
";
    let index = library.join("TensileLibrary_gfx1101.dat");
    assert_eq!(text(&index), expected);
    let found = json(&index);
    assert_eq!((&found["type"], &found["archs"]), (&json!("index"), &json!(["gfx1101"])));
    assert_eq!(found["code_object_files"], json!(["TensileLibrary_gfx1101.co"]));
}

/// The sizes match the files and their code objects. llvm-readelf shows the same target and the same numbers
/// for every kernel.
#[test]
fn the_metadata_is_what_llvm_sees() {
    tools::need(&["llvm-readelf-19"]);
    let fields = [
        "name",
        "symbol",
        "kernarg_segment_size",
        "group_segment_fixed_size",
        "private_segment_fixed_size",
        "wavefront_size",
        "sgpr_count",
        "vgpr_count",
        "agpr_count",
        "max_flat_workgroup_size",
    ];
    let library = stage().join("lib/rocblas/library");
    for name in ["TensileLibrary_gfx1101.co", "Kernels.so-000-gfx1102.hsaco"] {
        let file = library.join(name);
        let mut notes = Command::new("llvm-readelf-19");
        let notes = tools::succeed(notes.arg("--notes").arg(&file));
        let found = json(&file);
        let metadata = &found["metadata"][0];
        let target = notes.lines().find_map(|line| value_of(line, "amdhsa.target")).unwrap();
        assert_eq!(metadata["target"], target.as_str());
        let kernels = metadata["kernels"].as_array().unwrap();
        assert!(!kernels.is_empty());
        for field in fields {
            let own: Vec<String> = kernels
                .iter()
                .filter_map(|kernel| kernel.get(field))
                .map(|value| value.as_str().map_or(value.to_string(), str::to_owned))
                .collect();
            let theirs: Vec<String> =
                notes.lines().filter_map(|line| value_of(line, &format!(".{field}"))).collect();
            // Some compilers give kernel arguments other names.
            assert_eq!(own, theirs, "{field}");
        }
    }
}

fn value_of(line: &str, field: &str) -> Option<String> {
    let rest = line.trim_start_matches([' ', '-']).strip_prefix(field)?;
    Some(rest.strip_prefix(':')?.trim().to_owned())
}
