//! The content of artifacts, archives and code objects.

use support::kpack;

use super::*;

#[test]
fn artifacts_pass_as_they_are_made() {
    let split = split().join("split");
    let paths = [tools::repository("examples/shards"), split.clone(), split.join(SHARD)];
    let artifacts = [9, 24, 10];
    for (path, count) in paths.iter().zip(artifacts) {
        let run = verify(&[path.to_str().unwrap()], &[]);
        run.fired(&[]);
        let json: serde_json::Value = serde_json::from_str(&run.text).unwrap();
        assert_eq!((&json["artifacts"], &json["packages"]), (&count.into(), &0.into()));
    }
    for artifact in ["blas_lib_generic", "blas_lib_gfx1100", "host-suite-sparse_lib_generic"] {
        verify(&[split.join(SHARD).join(artifact).to_str().unwrap()], &[]).fired(&[]);
    }
    let fat = shard("gfx1151");
    verify(&[fat.to_str().unwrap()], &[]).fired(&[]);
}

#[test]
fn artifacts_of_the_existing_tool_pass() {
    kpack::need_python();
    let out = tempfile::tempdir().unwrap();
    for scheme in ["zstd-per-kernel", "none"] {
        let fat = tools::repository("examples/shards").join(SHARD);
        let existing = out.path().join(scheme).join(SHARD);
        let mut script = Command::new(kpack::PYTHON);
        script.arg(tools::repository("tests/support/existing_split.py")).arg(fat);
        tools::run(script.arg(split().join("split").join(SHARD)).arg(&existing).arg(scheme));
        verify(&[existing.to_str().unwrap()], &[]).fired(&[]);
        fs::remove_file(
            existing
                .join("blas_run_gfx1101")
                .join(STAGE)
                .join(".kpack")
                .join("blas_run_gfx1101.kpack"),
        )
        .unwrap();
        verify(&[existing.to_str().unwrap()], &[]).fired(&[]);
        for arch in ["gfx1100", "gfx1102"] {
            fs::remove_dir_all(existing.join(format!("blas_run_{arch}"))).unwrap();
        }
        verify(&[existing.to_str().unwrap()], &[]).fired(&["V030"]);
    }
}

#[test]
fn v060_manifests_of_artifacts() {
    for text in [None, Some(""), Some("../other/stage\n")] {
        let copy = Copy::split();
        let manifest = copy.root().join("blas_lib_gfx1100/artifact_manifest.txt");
        match text {
            None => fs::remove_file(&manifest).unwrap(),
            Some(text) => fs::write(&manifest, text).unwrap(),
        }
        let run = copy.verify();
        run.fired(&["V060"]);
        assert!(run.text.contains("blas_lib_gfx1100/artifact_manifest.txt"), "{}", run.text);
    }
}

#[test]
fn v020_device_code_in_a_generic_artifact() {
    let code = format!("{DATABASE}/Kernels.so-000-gfx1100.hsaco");
    let copy = Copy::split();
    fs::copy(fat_library(), copy.at("blas_lib_generic", LIBRARY)).unwrap();
    copy.verify().fired(&["V020"]);
    let copy = Copy::split();
    fs::rename(copy.at("blas_lib_gfx1100", &code), copy.at("blas_lib_generic", &code)).unwrap();
    copy.verify().fired(&["V020"]);
    // Without any sign of a split, the name alone promises host code.
    let copy = Copy::of(&shard("gfx1151"));
    let generic = copy.0.path().join("shard/blas_lib_generic");
    fs::create_dir(generic.parent().unwrap()).unwrap();
    fs::rename(copy.root(), &generic).unwrap();
    verify(&[generic.to_str().unwrap()], &[]).fired(&["V020"]);
}

#[test]
fn v020_a_transformed_binary_that_keeps_its_device_code() {
    let copy = Copy::split();
    let bytes = fs::read(fat_library()).unwrap();
    let (offset, size) = tampered::section(&bytes, ".hip_fatbin");
    let library = copy.at("blas_lib_generic", LIBRARY);
    let mut transformed = fs::read(&library).unwrap();
    transformed.extend(&bytes[offset..offset + size]);
    fs::write(&library, transformed).unwrap();
    copy.verify().fired(&["V020"]);
}

#[test]
fn v021_host_code_in_an_arch_artifact() {
    let copy = Copy::split();
    let library = shard("gfx110X").join("math-libs/BLAS/hipBLAS/stage/lib/libexcblas.so.1.0");
    fs::copy(library, copy.at("blas_lib_gfx1100", "lib/libhelper.so")).unwrap();
    copy.verify().fired(&["V021"]);
}

#[test]
fn v022_code_of_another_arch() {
    let name = format!("{DATABASE}/Kernels.so-000-gfx1101.hsaco");
    for name in [name, archive("gfx1101")] {
        let copy = Copy::split();
        fs::rename(copy.at("blas_lib_gfx1101", &name), copy.at("blas_lib_gfx1100", &name)).unwrap();
        copy.verify().fired(&["V022"]);
    }
    // The name of the file says one thing, its content another.
    let copy = Copy::split();
    let [own, other] = ["gfx1100", "gfx1101"].map(|arch| {
        let name = format!("{DATABASE}/TensileLibrary_{arch}.co");
        copy.at(&format!("blas_lib_{arch}"), &name)
    });
    fs::copy(other, own).unwrap();
    copy.verify().fired(&["V022"]);
}

#[test]
fn v023_archives_that_are_damaged() {
    let bytes = fs::read(Copy::split().at("blas_lib_gfx1100", &archive("gfx1100"))).unwrap();
    let [table, frame] = [8, 64 + 8 + 40].map(|at| {
        let mut bytes = bytes.clone();
        bytes[at..at + 24].fill(0xff);
        bytes
    });
    // The table, a frame, and the end of both.
    for damaged in [table, frame, bytes[..100].to_vec()] {
        let copy = Copy::split().without_manifests();
        fs::write(copy.at("blas_lib_gfx1100", &archive("gfx1100")), damaged).unwrap();
        let codes = copy.verify().codes();
        assert!(codes.contains(&"V023".to_owned()), "{codes:?}");
    }
}

#[test]
fn v023_archives_without_their_first_bytes() {
    let bytes = fs::read(Copy::split().at("blas_lib_gfx1100", &archive("gfx1100"))).unwrap();
    let mut headless = bytes.clone();
    headless[0] = 0;
    for damaged in [&headless[..], &bytes[..3], &[], &bytes[..bytes.len() / 2]] {
        let prefix = prefix();
        fs::write(prefix.root().join(archive("gfx1100")), damaged).unwrap();
        prefix.verify().fired(&["V023"]);
        let copy = Copy::split();
        fs::write(copy.at("blas_lib_gfx1100", &archive("gfx1100")), damaged).unwrap();
        copy.verify().fired(&["V023"]);
        let artifact = copy.root().join("blas_lib_gfx1100");
        verify(&[artifact.to_str().unwrap()], &[]).fired(&["V023"]);
    }
}

#[test]
fn v023_an_archive_of_a_package_without_its_magic() {
    let set = Set::new();
    set.remove_receipt();
    let kernels = "rocm-blas-gfx110x_7.1.0-1_amd64.deb";
    let kernels = set.packages().into_iter().find(|path| path.ends_with(kernels)).unwrap();
    let name = Path::new(&kernels).file_name().unwrap().to_str().unwrap().to_owned();
    set.edit(&name, |root| {
        patch(&root.join("opt/rocm-7.1").join(archive("gfx1100")), 0, &[0]);
    });
    set.fires(&[], &["V023"]);
}

/// Gives the section `of` of the binary in `file` the name of `name`.
fn rename_section(file: &Path, of: &str, name: &str) {
    let mut bytes = fs::read(file).unwrap();
    let [table, size, count, names] =
        [(0x28, 8), (0x3a, 2), (0x3c, 2), (0x3e, 2)].map(|(at, len)| number_at(&bytes, at, len));
    let names = number_at(&bytes, table + names * size + 0x18, 8);
    let [from, to] = [name, of].map(|wanted| {
        let named = |header: &usize| {
            bytes[names + number_at(&bytes, *header, 4)..].starts_with(wanted.as_bytes())
        };
        let mut headers = (0..count).map(|index| table + index * size);
        headers.find(named).unwrap_or_else(|| panic!("no {wanted}"))
    });
    bytes.copy_within(from..from + 4, to);
    fs::write(file, bytes).unwrap();
}

fn number_at(bytes: &[u8], at: usize, len: usize) -> usize {
    let field = bytes[at..at + len].iter().rev();
    field.fold(0, |number, byte| number << 8 | usize::from(*byte))
}

#[test]
fn v032_a_section_of_device_code_that_is_there_twice() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("libexblas.so.1.2");
    let fat = fs::read(fat_library()).unwrap();
    let transformed = fs::read(Copy::split().at("blas_lib_generic", LIBRARY)).unwrap();
    for (bytes, name) in [
        (&fat, ".hip_fatbin\0"),
        (&fat, ".hipFatBinSegment\0"),
        (&transformed, ".hipFatBinSegment\0"),
        (&transformed, ".rocm_kpack_ref\0"),
    ] {
        fs::write(&library, bytes).unwrap();
        verify(&[library.to_str().unwrap()], &[]).fired(&[]);
        rename_section(&library, ".comment\0", name);
        let run = verify(&[library.to_str().unwrap()], &[]);
        run.fired(&["V032"]);
        assert!(
            run.text.contains(&format!("more than one section {}", name.trim_end_matches('\0'))),
            "{}",
            run.text
        );
    }
}
