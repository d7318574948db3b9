//! Archive members and the files that they become.

use super::*;

/// Names longer than a header's field, hard links, modes and empty files, in every format of GNU tar.
#[test]
fn members_are_what_their_files_are() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    need(&archives::TOOLS);
    let long = format!("lib/{}/{}", "folder".repeat(20), "n".repeat(180));
    for (format, packing) in [("gnu", BOTH[0]), ("pax", BOTH[1]), ("posix", BOTH[0])] {
        let folder = tempfile::tempdir().unwrap();
        let artifact = folder.path().join("shard/a_lib_generic");
        let stage = artifact.join("libs/A/stage");
        fs::create_dir_all(stage.join(&long).parent().unwrap()).unwrap();
        fs::write(artifact.join("artifact_manifest.txt"), "libs/A/stage\n").unwrap();
        fs::write(artifact.join("libs/beside"), "").unwrap();
        fs::write(stage.join(&long), "long").unwrap();
        fs::write(stage.join("empty"), "").unwrap();
        fs::write(stage.join("tool"), "#!").unwrap();
        fs::set_permissions(stage.join("tool"), fs::Permissions::from_mode(0o751)).unwrap();
        fs::set_permissions(stage.join("lib"), fs::Permissions::from_mode(0o750)).unwrap();
        fs::hard_link(stage.join("tool"), stage.join("zz-same")).unwrap();
        symlink(&long, stage.join("link")).unwrap();
        let bytes = packing.compress(&tar(&artifact, &["--format", format]));
        fs::write(archive_of(&artifact, packing), bytes).unwrap();
        fs::remove_dir_all(&artifact).unwrap();
        let scan = scan(&[folder.path().to_path_buf()]).unwrap();
        assert_eq!(text(&scan, &long), b"long");
        assert_eq!(text(&scan, "empty"), b"");
        for name in ["tool", "zz-same"] {
            assert_eq!(text(&scan, name), b"#!");
            assert!(matches!(node(&scan, name), Node::File { mode: 0o751, .. }), "{format}");
        }
        assert!(matches!(node(&scan, "lib"), Node::Directory { mode: 0o750 }));
        assert!(matches!(node(&scan, "link"), Node::Link { target } if *target == long));
        assert_eq!(scan.shards[0].artifacts[0].prefixes[0].tree.len(), 7);
        let findings: Vec<_> = scan.shards[0].artifacts[0].findings.iter().collect();
        assert_eq!(findings[0].code(), Some(Code::OutsidePrefixes));
        assert!(findings[0].message().ends_with("no package: libs/beside"), "{format}");
    }
}

/// GNU tar begins an archive with its label: a member that is no file, or a global header.
#[test]
fn a_volume_label_is_skipped() {
    need(&archives::TOOLS);
    for format in ["gnu", "posix"] {
        let folder = tempfile::tempdir().unwrap();
        let artifact = folder.path().join("shard/a_lib_generic");
        fs::create_dir_all(artifact.join("libs/A/stage")).unwrap();
        fs::write(artifact.join("artifact_manifest.txt"), "libs/A/stage\n").unwrap();
        fs::write(artifact.join("libs/A/stage/text"), "text").unwrap();
        let options = ["--format", format, "--label=volume"];
        let bytes = BOTH[0].compress(&tar(&artifact, &options));
        fs::write(archive_of(&artifact, BOTH[0]), bytes).unwrap();
        fs::remove_dir_all(&artifact).unwrap();
        let scan = scan(&[folder.path().to_path_buf()]).unwrap();
        assert_eq!(text(&scan, "text"), b"text", "{format}");
    }
}

/// ROCm's build packs with Python's tarfile: pax, with a record for every timestamp.
#[test]
fn what_python_packs_is_read() {
    tools::need(&["python3"]);
    let folder = tempfile::tempdir().unwrap();
    let shard = folder.path().join("shard");
    let stage = shard.join("libs/A/stage/lib");
    fs::create_dir_all(&stage).unwrap();
    fs::write(shard.join("artifact_manifest.txt"), "libs/A/stage\n").unwrap();
    fs::write(stage.join("é".repeat(90)), "name").unwrap();
    fs::hard_link(stage.join("é".repeat(90)), stage.join("other")).unwrap();
    let script = "import tarfile, os\n\
        with tarfile.open('../a_lib_generic.tar.xz', 'x:xz') as archive:\n\
        \x20 archive.add('artifact_manifest.txt')\n\
        \x20 for path in sorted(os.listdir('libs/A/stage/lib'), reverse=True):\n\
        \x20   archive.add('libs/A/stage/lib/' + path)\n";
    tools::run(Command::new("python3").args(["-c", script]).current_dir(&shard));
    fs::remove_dir_all(&shard).unwrap();
    fs::create_dir(&shard).unwrap();
    let archive = "a_lib_generic.tar.xz";
    fs::rename(folder.path().join(archive), shard.join(archive)).unwrap();
    let scan = scan(&[shard]).unwrap();
    for name in ["é".repeat(90), "other".into()] {
        assert_eq!(text(&scan, &format!("lib/{name}")), b"name");
    }
    assert!(matches!(node(&scan, "lib"), Node::Directory { mode: 0o755 }), "implied");
}

#[test]
fn frames_and_streams_follow_one_another() {
    need(&archives::TOOLS);
    let mut archive = Handmade::with_manifest();
    archive.file("libs/A/stage/x", &[7; 5000]);
    let bytes = archive.finish();
    for packing in BOTH {
        let parts = bytes.split_at(777);
        let both = [packing.compress(parts.0), packing.compress(parts.1)].concat();
        let scan = Packed::compressed(packing, &both).scan().unwrap();
        assert_eq!(text(&scan, "x"), [7; 5000]);
    }
}

#[test]
fn the_manifest_comes_first() {
    let mut archive = Handmade::new();
    archive.file("libs/A/stage/x", b"");
    archive.file("artifact_manifest.txt", b"libs/A/stage\n");
    let packed = Packed::new(&archive.finish());
    let error = packed.refusal();
    assert_names(&error, &packed.member("libs/A/stage/x"), "precedes the manifest");
    assert!(error.hint_text().unwrap().contains("manifest first"));

    let mut archive = Handmade::new();
    archive.member("./", b'5', "", 0o755, b"");
    archive.file("./artifact_manifest.txt", b"libs/A/stage\n");
    archive.file("./libs/A/stage/x", b"x");
    assert_eq!(text(&Packed::new(&archive.finish()).scan().unwrap(), "x"), b"x");

    let packed = Packed::new(&Handmade::new().finish());
    assert_names(&packed.refusal(), &packed.archive, "the archive is empty");
    refuses("artifact_manifest.txt", "occurs twice", |archive| {
        archive.file("artifact_manifest.txt", b"libs/B/stage\n");
    });
    let mut archive = Handmade::new();
    archive.member("artifact_manifest.txt", b'2', "x", 0o777, b"");
    let packed = Packed::new(&archive.finish());
    assert_names(&packed.refusal(), &packed.member("artifact_manifest.txt"), "not a regular file");
    for (manifest, message) in [
        (b"\n".to_vec(), "lists no stage prefix"),
        (b"../x\n".to_vec(), "not a path inside"),
        (vec![b'x'; (1 << 20) + 1], "longer than"),
    ] {
        let mut archive = Handmade::new();
        archive.file("artifact_manifest.txt", &manifest);
        let packed = Packed::new(&archive.finish());
        assert_names(&packed.refusal(), &packed.member("artifact_manifest.txt"), message);
    }
}

#[test]
fn a_path_is_a_members_once() {
    let x = "libs/A/stage/x";
    refuses(x, "occurs twice; an earlier member is a file", |archive| {
        archive.file(x, b"");
        archive.file(x, b"");
    });
    refuses("./libs/A/stage/x", "an earlier member is a link", |archive| {
        archive.member(x, b'2', "y", 0o777, b"");
        archive.file("./libs/A/stage/x", b"");
    });
    refuses("libs/A/stage/x/", "an earlier member is a folder", |archive| {
        archive.member("libs/A/stage/x", b'5', "", 0o755, b"");
        archive.member("libs/A/stage/x/", b'5', "", 0o755, b"");
    });
    refuses("libs/A", "earlier members are below it", |archive| {
        archive.file(x, b"");
        archive.file("libs/A", b"");
    });
    refuses("libs/A/stage/x/y", "is below `libs/A/stage/x`, which is a link", |archive| {
        archive.member(x, b'2', "/etc", 0o777, b"");
        archive.file("libs/A/stage/x/y", b"");
    });
}

#[test]
fn links_are_those_of_a_folder() {
    let x = "libs/A/stage/x";
    for target in ["/etc/passwd", "../../x", "y/../../x"] {
        let message = format!("the link leads to `{target}`, outside of the install prefix");
        refuses(x, &message, |archive| archive.member(x, b'2', target, 0o777, b""));
    }
    for target in ["libs/A/stage/y", "../x", "libs/A/stage", "libs/A/stage/link", ""] {
        refuses(x, "is a hard link to", |archive| {
            archive.member("libs/A/stage/link", b'2', "y", 0o777, b"");
            archive.member(x, b'1', target, 0o644, b"");
            archive.file("libs/A/stage/y", b"");
        });
    }
    refuses(x, "has content but is not a file", |archive| {
        archive.member(x, b'2', "y", 0o777, b"content");
    });
    refuses("libs", "leads through a symbolic link", |archive| {
        archive.member("libs", b'2', "elsewhere", 0o777, b"");
    });
    refuses("libs/A/stage", "is not a folder", |archive| archive.file("libs/A/stage", b""));
}

/// Byte order puts `x-1` and `x.1` between `x` and `x/…`.
#[test]
fn prefixes_whose_names_begin_alike_hold_each_their_own() {
    let mut archive = Handmade::new();
    archive.file("artifact_manifest.txt", b"x\nx-1\nx.1/y\n");
    for name in ["x/a", "x-1/b", "x.1/y/c", "x.1/z/d", "x0", "x-/e"] {
        archive.file(name, name.as_bytes());
    }
    let packed = Packed::new(&archive.finish());
    let scan = packed.scan().unwrap();
    let artifact = &scan.shards[0].artifacts[0];
    let paths = artifact.prefixes.iter().flat_map(|prefix| {
        let files = prefix.tree.keys().map(|path| path.to_string());
        files.map(|file| (&*prefix.path, file))
    });
    let expected = [("x", "a"), ("x-1", "b"), ("x.1/y", "c")];
    assert_eq!(paths.collect::<Vec<_>>(), expected.map(|(prefix, path)| (prefix, path.to_owned())));
    let finding = artifact.findings.iter().next().unwrap();
    assert!(finding.message().starts_with("3 files"), "{}", finding.message());
    assert!(finding.message().ends_with("x-/e, x.1/z/d, x0"), "{}", finding.message());
}
