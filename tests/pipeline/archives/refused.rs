//! Archives that are refused, with their errors.

use super::*;

#[test]
fn checksums_are_checked() {
    need(&archives::TOOLS);
    let packed = Packed::new(&Handmade::with_manifest().finish());
    let path = sum(&packed.archive);
    assert_eq!(packed.scan().unwrap().findings.iter().count(), 0, "no finding about the checksum");
    let good = fs::read_to_string(&path).unwrap();
    let digest = &good[..64];
    for text in [digest.to_owned(), good.replace("  ", " *"), good.to_uppercase()[..64].into()] {
        fs::write(&path, text).unwrap();
        packed.scan().unwrap();
    }
    let other = support::sha256(b"other");
    fs::write(&path, &other).unwrap();
    let error = packed.refusal();
    assert_names(&error, &packed.archive, digest);
    assert!(error.to_string().contains(&other), "{error}");
    // A wrong digest is reported even if the damage also shows elsewhere.
    fs::write(&path, &good).unwrap();
    let bytes = fs::read(&packed.archive).unwrap();
    fs::write(&packed.archive, &bytes[..bytes.len() - 1]).unwrap();
    assert_names(&packed.refusal(), &packed.archive, "has the SHA-256");
    fs::write(&path, good.replace("a_lib", "b_lib")).unwrap();
    assert_names(&packed.refusal(), &path, "has no SHA-256 of a_lib_generic.tar.zst");
    // sha256sum fails for such a file, even if one line is right.
    for second in [format!("{other}  a_lib_generic.tar.zst\n"), good.replace(digest, &other)] {
        fs::write(&path, good.clone() + &second).unwrap();
        let expected = "line 2: has another SHA-256 of a_lib_generic.tar.zst";
        assert_names(&packed.refusal(), &path, expected);
    }
    fs::write(&path, "what?").unwrap();
    assert_names(&packed.refusal(), &path, "is not a SHA-256");
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert_names(&packed.refusal(), &path, "is not a regular file");
}

#[test]
fn members_outside_of_the_artifact_are_refused() {
    refuses("/libs/A/stage/x", "has an absolute path", |archive| {
        archive.file("/libs/A/stage/x", b"");
    });
    for name in ["../x", "libs/A/../../x", "libs//x", "x/", "libs/./x", ".."] {
        refuses(name, "inside the archive", |archive| archive.file(name, b""));
    }
    refuses("../x/", "inside the archive", |archive| {
        archive.member("../x/", b'5', "", 0o755, b"");
    });
}

#[test]
fn special_members_are_refused() {
    let x = "libs/A/stage/x";
    for (kind, message) in [
        (b'3', "is a device"),
        (b'4', "is a device"),
        (b'6', "is a named pipe"),
        (b'M', "type 'M'"),
    ] {
        refuses(x, message, |archive| archive.member(x, kind, "", 0o644, b""));
    }
    for mode in [0o4755, 0o2755] {
        let set_id = |archive: &mut Handmade| archive.member(x, b'0', "", mode, b"x");
        refuses(x, "setuid or setgid", set_id);
    }
    for sparse in [&b"22 GNU.sparse.major=1\n"[..], b"26 GNU.sparse.name=abcdef\n"] {
        let mut archive = Handmade::with_manifest();
        archive.member("PaxHeaders/x", b'x', "", 0o644, sparse);
        archive.file(x, b"");
        let packed = Packed::new(&archive.finish());
        assert_names(&packed.refusal(), &packed.archive, "a sparse member is not read");
    }
}

/// Base-256 numbers whose upper bytes a careless reader would drop, leaving a size of 2.
#[test]
fn numbers_that_no_system_has_are_refused() {
    for (at, number, name) in [
        (124, base_256([0x80, 0, 0, 1]), "size"),
        (124, base_256([0x80, 1, 0, 0]), "size"),
        (124, base_256([0x81, 0, 0, 0]), "size"),
        (124, vec![0xff; 12], "size"),
        (124, [&[0x80, 0, 0, 0, 1][..], &[0; 6], &[2]].concat(), "size"),
        (108, vec![0x81, 0, 0, 0, 0, 0, 0, 0], "user"),
        (116, vec![0xff; 8], "group"),
        (136, base_256([0x80, 0, 0, 1]), "time"),
    ] {
        let message = format!("has an invalid {name}");
        let mut archive = Handmade::with_manifest();
        archive.patched("libs/A/stage/x", b"xy", at, &number);
        let packed = Packed::new(&archive.finish());
        assert_names(&packed.refusal(), &packed.archive, &message);
    }
    for (at, number) in [(124, base_256([0x80, 0, 0, 0])), (136, vec![0xff; 12])] {
        let mut archive = Handmade::with_manifest();
        archive.patched("libs/A/stage/x", b"xy", at, &number);
        let packed = Packed::new(&archive.finish());
        assert_eq!(text(&packed.scan().unwrap(), "x"), b"xy");
    }
}

/// The number of 12 bytes that begins with `upper` and ends with 2.
fn base_256(upper: [u8; 4]) -> Vec<u8> {
    [&upper[..], &[0, 0, 0, 0, 0, 0, 0, 2]].concat()
}

#[test]
fn sparse_archives_of_tar_are_refused() {
    need(&archives::TOOLS);
    for format in ["gnu", "pax"] {
        let folder = tempfile::tempdir().unwrap();
        let artifact = folder.path().join("shard/a_lib_generic");
        fs::create_dir_all(artifact.join("libs/A/stage")).unwrap();
        fs::write(artifact.join("artifact_manifest.txt"), "libs/A/stage\n").unwrap();
        let file = fs::File::create(artifact.join("libs/A/stage/x")).unwrap();
        file.set_len(1 << 20).unwrap();
        let bytes = tar(&artifact, &["--sparse", "--format", format]);
        let packed = Packed::compressed(Packing::Zstd, &Packing::Zstd.compress(&bytes));
        let error = packed.refusal();
        assert_names(&error, &packed.archive, "a sparse member is not read");
        assert!(error.hint_text().unwrap().contains("--sparse"));
    }
}

#[test]
fn all_faults_of_all_archives_are_told_together() {
    let mut archive = Handmade::with_manifest();
    archive.file("../one", b"1");
    archive.member("libs/A/stage/two", b'6', "", 0o644, b"");
    let packed = Packed::new(&archive.finish());
    fs::write(packed.archive.with_file_name("b_lib_generic.tar.xz"), b"").unwrap();
    let error = packed.refusal();
    let places: Vec<String> = std::iter::once(&error)
        .chain(error.others())
        .map(|fault| fault.place().file.as_deref().unwrap().display().to_string())
        .collect();
    assert_eq!(places.len(), 3, "{places:?}");
    assert!(places[0].ends_with("a_lib_generic.tar.zst(../one)"), "{places:?}");
    assert!(places[1].ends_with("(libs/A/stage/two)"), "{places:?}");
    assert!(places[2].ends_with("b_lib_generic.tar.xz"), "{places:?}");
}

#[test]
fn two_artifacts_of_one_name_are_refused() {
    let bytes = zstd::encode_all(&Handmade::with_manifest().finish()[..], 1).unwrap();
    let packed = Packed::compressed(Packing::Zstd, &bytes);
    let folder = packed.archive.with_file_name("a_lib_generic");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("artifact_manifest.txt"), "libs/A/stage\n").unwrap();
    let error = packed.refusal();
    assert_names(&error, &packed.archive, &folder.display().to_string());
    fs::remove_dir_all(&folder).unwrap();
    let other = packed.archive.with_file_name("a_lib_generic.tar.xz");
    fs::write(&other, b"").unwrap();
    assert_names(&packed.refusal(), &packed.archive, &other.display().to_string());
}

#[test]
fn odd_names_are_refused() {
    let packed = Packed::new(&Handmade::with_manifest().finish());
    let odd = packed.archive.with_file_name("sources.tar.xz");
    fs::rename(&packed.archive, &odd).unwrap();
    assert_names(&packed.refusal(), &odd, "is not an artifact name");
    fs::remove_file(&odd).unwrap();
    std::os::unix::fs::symlink("nowhere", &packed.archive).unwrap();
    assert_names(&packed.refusal(), &packed.archive, "cannot open");
}

#[test]
fn a_window_that_needs_too_much_memory_is_refused() {
    need(&archives::TOOLS);
    let mut archive = Handmade::with_manifest();
    archive.file("libs/A/stage/x", &[0; 1000]);
    let bytes = archive.finish();
    let mut command = Command::new("zstd");
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("tar");
    fs::write(&input, bytes).unwrap();
    // Unless it knows the size, zstd states the whole window in the frame.
    let input = fs::File::open(input).unwrap();
    command.args(["-c", "-q", "--ultra", "--long=28"]).stdin(input);
    let packed = Packed::compressed(Packing::Zstd, &tools::run(&mut command).stdout);
    let error = packed.refusal();
    assert_eq!(error.place().file.as_deref(), Some(packed.archive.as_path()));
    assert!(error.hint_text().unwrap().contains("--long=27"), "{error}");
}
