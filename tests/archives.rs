//! Packed artifacts as input: the same packages as from folders, and what is wrong with an archive
//! is said with its name, the member's and the place.
#![allow(clippy::unwrap_used)] // a test that panics has failed

#[path = "support/archives.rs"]
mod archives;
#[path = "support/example.rs"]
mod example;
#[path = "support/tools.rs"]
mod tools;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use archives::{Handmade, Packing, archive_of, artifacts, have_tools, pack, sum, tar};
use example::{GROUPS, Set, build_of, contents, copy_shards, names, rockpack};
use rockpack::artifact::{Scan, scan};
use rockpack::content::Content;
use rockpack::error::Error;
use rockpack::report::Code;
use rockpack::tree::{Node, TreePath};
use tempfile::TempDir;

const BOTH: [Packing; 2] = [Packing::Zstd, Packing::Xz];

/// A folder with a shard that has one packed artifact.
struct Packed {
    folder: TempDir,
    archive: PathBuf,
}

impl Packed {
    fn new(tar: &[u8]) -> Self {
        Self::compressed(Packing::Zstd, &zstd::encode_all(tar, 1).unwrap())
    }

    fn compressed(packing: Packing, bytes: &[u8]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let shard = folder.path().join("shard");
        fs::create_dir(&shard).unwrap();
        let archive = shard.join(format!("a_lib_generic.{}", packing.ending()));
        fs::write(&archive, bytes).unwrap();
        Self { folder, archive }
    }

    fn scan(&self) -> Result<Scan, Error> {
        scan(&[self.folder.path().to_path_buf()])
    }

    fn refusal(&self) -> Error {
        self.scan().unwrap_err()
    }

    /// What a member is called in errors.
    fn member(&self, name: &str) -> PathBuf {
        format!("{}({name})", self.archive.display()).into()
    }
}

fn assert_names(error: &Error, path: &Path, message: &str) {
    assert_eq!(error.place().file.as_deref(), Some(path), "{error}");
    assert!(error.to_string().contains(message), "{error}");
}

/// Fails unless an archive with the members that `add` adds is refused, naming `member`.
fn refuses(member: &str, message: &str, add: impl FnOnce(&mut Handmade)) {
    let mut archive = Handmade::with_manifest();
    add(&mut archive);
    let packed = Packed::new(&archive.finish());
    assert_names(&packed.refusal(), &packed.member(member), message);
}

fn node<'a>(scan: &'a Scan, path: &str) -> &'a Node<Content> {
    let prefix = &scan.shards[0].artifacts[0].prefixes[0];
    prefix.tree.get(&TreePath::new(path).unwrap()).unwrap()
}

fn text(scan: &Scan, path: &str) -> Vec<u8> {
    match node(scan, path) {
        Node::File { data, .. } => data.read_vec(0..data.len(), 1 << 20, "file").unwrap(),
        _ => panic!("{path} is no file"),
    }
}

#[test]
fn the_packages_are_those_of_folders() {
    if !have_tools() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    copy_shards(&folder.path().join("shards"));
    let out = folder.path().join("out");
    tools::run(&mut build_of(&folder.path().join("shards"), &out));
    let expected = contents(&out);
    // All of one kind, and mixed with folders.
    let kinds: [[Option<Packing>; 2]; 3] = [
        [Some(Packing::Zstd), Some(Packing::Zstd)],
        [Some(Packing::Xz), Some(Packing::Xz)],
        [None, Some(Packing::Zstd)],
    ];
    for kind in kinds {
        let folder = tempfile::tempdir().unwrap();
        let shards = folder.path().join("shards");
        copy_shards(&shards);
        for (number, artifact) in artifacts(&shards).iter().enumerate() {
            if let Some(packing) = kind[number % 2] {
                sum(&pack(artifact, packing));
            }
        }
        let out = folder.path().join("out");
        tools::run(&mut build_of(&shards, &out));
        let got = contents(&out);
        assert!(got == expected, "{kind:?}: {:?}", names(&out));
        let mut verify = rockpack();
        tools::run(verify.arg("verify").arg(&out).arg("--against").arg(&shards));
    }
}

/// Runs a command on the example shards as folders, then packed; the streams of both.
fn both_ways(run: impl Fn(&Path, &Path) -> String) -> [(String, TempDir); 2] {
    [false, true].map(|packed| {
        let folder = tempfile::tempdir().unwrap();
        let shards = folder.path().join("shards");
        copy_shards(&shards);
        if packed {
            for (number, artifact) in artifacts(&shards).iter().enumerate() {
                pack(artifact, BOTH[number % 2]);
            }
        }
        let said = run(&shards, &folder.path().join("out"));
        let ending = if packed { "packed" } else { "folders" };
        eprintln!("{ending}: {said}");
        (said, folder)
    })
}

#[test]
fn every_command_reads_archives_like_folders() {
    if !have_tools() {
        return;
    }
    let command = |name: &str, flag: &str, from: &Path, out: Option<&Path>| {
        let mut command = rockpack();
        command.arg(name).arg(flag).arg(from);
        if name == "recombine" {
            command.arg("--config").arg(example::configuration());
        }
        if let Some(out) = out {
            command.arg("--output-dir").arg(out);
        }
        tools::succeed(&mut command)
    };
    let [one, other] = both_ways(|shards, _| command("discover", "--artifacts", shards, None));
    assert!(one.0 == other.0 && one.0.contains("gfx1151"), "{}", one.0);

    let written = |folder: &TempDir| example::tree(&folder.path().join("out"));
    for (name, flag) in [("split", "--artifacts"), ("recombine", "--artifacts")] {
        let [one, other] = both_ways(|shards, out| command(name, flag, shards, Some(out)));
        assert!(written(&one.1) == written(&other.1), "{name}");
        assert!(written(&one.1).len() > 20, "{name}");
    }
    let shard = |shards: &Path| GROUPS[1].folder(shards);
    let [one, other] = both_ways(|shards, out| {
        command("split", "--batch-artifact-parent-dir", &shard(shards), Some(out))
    });
    assert!(written(&one.1) == written(&other.1));
    let [one, other] = both_ways(|shards, out| {
        let mut artifact = shard(shards).join("blas_lib_gfx1151");
        if !artifact.exists() {
            let packed = BOTH.map(|packing| archive_of(&artifact, packing));
            artifact = packed.into_iter().find(|archive| archive.exists()).unwrap();
        }
        command("split", "--artifact-dir", &artifact, Some(out))
    });
    assert!(written(&one.1) == written(&other.1));
    let names = names(&one.1.path().join("out"));
    let expected = ["blas_lib_generic", "blas_lib_gfx1151", "blas_lib_gfx906"];
    assert!(names.iter().eq(expected), "{names:?}");
}

#[test]
fn build_and_split_name_an_artifact_in_an_unknown_packing() {
    let folder = tempfile::tempdir().unwrap();
    let shards = folder.path().join("shards");
    copy_shards(&shards);
    let shard = GROUPS[1].folder(&shards);
    fs::write(shard.join("math_lib_gfx1151.tar.gz"), "").unwrap();
    let expected =
        "R008 artifact-packing-unknown: gfx1151-build/math_lib_gfx1151.tar.gz: is named like";
    let out = folder.path().join("out");
    let says = |command: &mut Command| {
        let Output { stdout, stderr, .. } = tools::run(command);
        let said = String::from_utf8([stdout, stderr].concat()).unwrap();
        assert!(said.contains(expected), "{said}");
    };
    says(&mut build_of(&shards, &out));
    for (flag, input) in [("--artifacts", &shards), ("--batch-artifact-parent-dir", &shard)] {
        let out = folder.path().join(flag);
        says(rockpack().arg("split").arg(flag).arg(input).arg("--output-dir").arg(&out));
    }
}

#[test]
fn verification_against_another_archive_fails() {
    if !have_tools() {
        return;
    }
    let set = Set::build();
    let shards = set.scratch("shards");
    copy_shards(&shards);
    let artifact = GROUPS[0].folder(&shards).join("blas_lib_gfx110X-dgpu");
    fs::write(artifact.join("math-libs/BLAS/rocBLAS/stage/lib/more.txt"), "more").unwrap();
    pack(&artifact, Packing::Xz);
    let output =
        rockpack().arg("verify").arg(set.out()).arg("--against").arg(&shards).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("lib/more.txt") && said.contains("is in no package"), "{said}");
}

/// Names longer than a header holds, hard links, modes, empty files: in every format of GNU tar.
#[test]
fn members_are_what_their_files_are() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    if !have_tools() {
        return;
    }
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
        assert_eq!(findings[0].code, Code::OutsidePrefixes);
        assert!(findings[0].message.ends_with("no package: libs/beside"), "{format}");
    }
}

/// Python's tarfile is what ROCm's build packs with: pax, and a record for every time.
#[test]
fn what_python_packs_is_read() {
    if !tools::have(&["python3"]) {
        return;
    }
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
    if !have_tools() {
        return;
    }
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
fn checksums_are_checked() {
    if !have_tools() {
        return;
    }
    let packed = Packed::new(&Handmade::with_manifest().finish());
    let path = sum(&packed.archive);
    assert_eq!(packed.scan().unwrap().findings.iter().count(), 0, "no finding about the checksum");
    let good = fs::read_to_string(&path).unwrap();
    let digest = &good[..64];
    for text in [digest.to_owned(), good.replace("  ", " *"), good.to_uppercase()[..64].into()] {
        fs::write(&path, text).unwrap();
        packed.scan().unwrap();
    }
    let other = example::sha256_of(b"other");
    fs::write(&path, &other).unwrap();
    let error = packed.refusal();
    assert_names(&error, &packed.archive, digest);
    assert!(error.to_string().contains(&other), "{error}");
    // A wrong digest is said even where the damage shows otherwise.
    fs::write(&path, &good).unwrap();
    let bytes = fs::read(&packed.archive).unwrap();
    fs::write(&packed.archive, &bytes[..bytes.len() - 1]).unwrap();
    assert_names(&packed.refusal(), &packed.archive, "has the SHA-256");
    fs::write(&path, good.replace("a_lib", "b_lib")).unwrap();
    assert_names(&packed.refusal(), &path, "has no SHA-256 of a_lib_generic.tar.zst");
    fs::write(&path, "what?").unwrap();
    assert_names(&packed.refusal(), &path, "is neither a SHA-256");
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert_names(&packed.refusal(), &path, "is no regular file");
}

#[test]
fn the_manifest_comes_first() {
    let mut archive = Handmade::new();
    archive.file("libs/A/stage/x", b"");
    archive.file("artifact_manifest.txt", b"libs/A/stage\n");
    let packed = Packed::new(&archive.finish());
    let error = packed.refusal();
    assert_names(&error, &packed.member("libs/A/stage/x"), "comes before the manifest");
    assert!(error.hint_text().unwrap().contains("manifest first"));

    let mut archive = Handmade::new();
    archive.member("./", b'5', "", 0o755, b"");
    archive.file("./artifact_manifest.txt", b"libs/A/stage\n");
    archive.file("./libs/A/stage/x", b"x");
    assert_eq!(text(&Packed::new(&archive.finish()).scan().unwrap(), "x"), b"x");

    let packed = Packed::new(&Handmade::new().finish());
    assert_names(&packed.refusal(), &packed.archive, "the archive is empty");
    refuses("artifact_manifest.txt", "is there twice", |archive| {
        archive.file("artifact_manifest.txt", b"libs/B/stage\n");
    });
    let mut archive = Handmade::new();
    archive.member("artifact_manifest.txt", b'2', "x", 0o777, b"");
    let packed = Packed::new(&archive.finish());
    assert_names(&packed.refusal(), &packed.member("artifact_manifest.txt"), "no regular file");
    for (manifest, message) in [
        (b"\n".to_vec(), "lists no stage prefix"),
        (b"../x\n".to_vec(), "no path inside"),
        (vec![b'x'; (1 << 20) + 1], "longer than"),
    ] {
        let mut archive = Handmade::new();
        archive.file("artifact_manifest.txt", &manifest);
        let packed = Packed::new(&archive.finish());
        assert_names(&packed.refusal(), &packed.member("artifact_manifest.txt"), message);
    }
}

#[test]
fn members_outside_of_the_artifact_are_refused() {
    for name in ["/libs/A/stage/x", "../x", "libs/A/../../x", "libs//x", "x/", "libs/./x", ".."] {
        refuses(name, "inside of the artifact", |archive| archive.file(name, b""));
    }
    refuses("../x/", "inside of the artifact", |archive| {
        archive.member("../x/", b'5', "", 0o755, b"");
    });
}

#[test]
fn a_path_is_a_members_once() {
    let x = "libs/A/stage/x";
    refuses(x, "is there twice; an earlier member is a file", |archive| {
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
    refuses("libs/A", "earlier members lie below it", |archive| {
        archive.file(x, b"");
        archive.file("libs/A", b"");
    });
    refuses("libs/A/stage/x/y", "lies below `libs/A/stage/x`, which is a link", |archive| {
        archive.member(x, b'2', "/etc", 0o777, b"");
        archive.file("libs/A/stage/x/y", b"");
    });
}

#[test]
fn links_are_those_of_a_folder() {
    let x = "libs/A/stage/x";
    for target in ["/etc/passwd", "../../x", "y/../../x"] {
        let message = format!("the link leads to `{target}`, outside of the stage prefix");
        refuses(x, &message, |archive| archive.member(x, b'2', target, 0o777, b""));
    }
    for target in ["libs/A/stage/y", "../x", "libs/A/stage", "libs/A/stage/link", ""] {
        refuses(x, "is a hard link to", |archive| {
            archive.member("libs/A/stage/link", b'2', "y", 0o777, b"");
            archive.member(x, b'1', target, 0o644, b"");
            archive.file("libs/A/stage/y", b"");
        });
    }
    refuses(x, "has content but is no file", |archive| {
        archive.member(x, b'2', "y", 0o777, b"content");
    });
    refuses("libs", "leads through a symbolic link", |archive| {
        archive.member("libs", b'2', "elsewhere", 0o777, b"");
    });
    refuses("libs/A/stage", "is no folder", |archive| archive.file("libs/A/stage", b""));
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

#[test]
fn sparse_archives_of_tar_are_refused() {
    if !have_tools() {
        return;
    }
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
    assert_names(&packed.refusal(), &odd, "is no artifact name");
    fs::remove_file(&odd).unwrap();
    std::os::unix::fs::symlink("nowhere", &packed.archive).unwrap();
    assert_names(&packed.refusal(), &packed.archive, "cannot open");
}

#[test]
fn a_window_that_needs_too_much_memory_is_refused() {
    if !have_tools() {
        return;
    }
    let mut archive = Handmade::with_manifest();
    archive.file("libs/A/stage/x", &[0; 1000]);
    let bytes = archive.finish();
    let mut command = Command::new("zstd");
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("tar");
    fs::write(&input, bytes).unwrap();
    // Without a known size the frame states the whole window.
    let input = fs::File::open(input).unwrap();
    command.args(["-c", "-q", "--ultra", "--long=28"]).stdin(input);
    let packed = Packed::compressed(Packing::Zstd, &tools::run(&mut command).stdout);
    let error = packed.refusal();
    assert_eq!(error.place().file.as_deref(), Some(packed.archive.as_path()));
    assert!(error.hint_text().unwrap().contains("--long=27"), "{error}");
}

/// Cut anywhere, a compressed archive is an error that names the file and an offset.
#[test]
fn a_truncated_archive_is_an_error_wherever_it_is_cut() {
    if !have_tools() {
        return;
    }
    let mut archive = Handmade::with_manifest();
    archive.file("libs/A/stage/x", b"some text");
    archive.member("libs/A/stage/y", b'2', "x", 0o777, b"");
    let tar = archive.finish();
    for packing in BOTH {
        let bytes = packing.compress(&tar);
        let packed = Packed::compressed(packing, &bytes);
        packed.scan().unwrap();
        for len in 0..bytes.len() {
            fs::write(&packed.archive, &bytes[..len]).unwrap();
            let error = packed.refusal();
            assert_eq!(error.place().file.as_deref(), Some(packed.archive.as_path()), "{error}");
            assert!(error.place().offset.unwrap() <= len as u64, "{len}: {error}");
        }
        let mut more = bytes.clone();
        more.extend(b"more");
        fs::write(&packed.archive, more).unwrap();
        assert_names(&packed.refusal(), &packed.archive, "decode the compressed stream");
    }
}

/// Behind the two blocks of zeros that end it, a tar archive may have any number of zeros.
#[test]
fn a_truncated_tar_is_an_error_up_to_its_end() {
    let mut archive = Handmade::with_manifest();
    archive.file("libs/A/stage/x", b"some text");
    let mut tar = archive.finish();
    let end = tar.len();
    tar.resize(10240, 0);
    let packed = Packed::new(&tar);
    let cut = |len: usize| {
        fs::write(&packed.archive, zstd::encode_all(&tar[..len], 1).unwrap()).unwrap();
        packed.scan()
    };
    for len in 0..end {
        let error = cut(len).unwrap_err();
        assert!(error.place().file.is_some(), "{error}");
        if len > 512 && len % 512 == 0 {
            let text = error.to_string();
            assert!(text.contains("tar archive at its byte"), "{len}: {error}");
        }
    }
    for len in [end, end + 1, end + 512, tar.len()] {
        cut(len).unwrap();
    }
    tar[end + 600] = 1;
    fs::write(&packed.archive, zstd::encode_all(&tar[..], 1).unwrap()).unwrap();
    assert_names(&packed.refusal(), &packed.archive, "has data behind its end");
}

#[test]
fn every_damaged_byte_of_a_header_is_an_error() {
    let mut archive = Handmade::with_manifest();
    archive.file("libs/A/stage/x", b"some text");
    let tar = archive.finish();
    let packed = Packed::new(&tar);
    // The two bytes behind the digits of the checksum say nothing.
    let says_something = |at: &usize| !(154..156).contains(&(at % 512));
    for at in (0..512).chain(1024..1536).filter(says_something) {
        let mut damaged = tar.clone();
        damaged[at] ^= 0x11;
        fs::write(&packed.archive, zstd::encode_all(&damaged[..], 1).unwrap()).unwrap();
        let error = packed.refusal();
        assert!(error.to_string().contains("checksum"), "{at}: {error}");
    }
}

#[test]
fn a_build_of_a_damaged_archive_leaves_nothing() {
    if !have_tools() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let shards = folder.path().join("shards");
    copy_shards(&shards);
    let artifact = GROUPS[0].folder(&shards).join("blas_lib_gfx110X-dgpu");
    let archive = pack(&artifact, Packing::Zstd);
    let mut bytes = fs::read(&archive).unwrap();
    let middle = bytes.len() / 2;
    bytes.truncate(middle);
    fs::write(&archive, bytes).unwrap();
    let out = folder.path().join("out");
    let output = build_of(&shards, &out).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("blas_lib_gfx110X-dgpu.tar.zst: "), "{said}");
    assert!(said.contains("copied only in part"), "{said}");
    assert!(!out.exists());
}

/// A fault in a file of an archive says which archive and which member, and where in it.
#[test]
fn a_fault_of_a_member_has_its_place() {
    if !have_tools() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let shards = folder.path().join("shards");
    copy_shards(&shards);
    let group = &GROUPS[0];
    let name = "lib/rocblas/library/TensileLibrary_gfx1101.co";
    let file = group.original(&shards, name);
    let bytes = fs::read(&file).unwrap();
    fs::write(&file, &bytes[..2000]).unwrap();
    pack(&group.folder(&shards).join("blas_lib_gfx110X-dgpu"), Packing::Zstd);
    let output = build_of(&shards, &folder.path().join("out")).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap().replace(['\n', ' ', '│'], "");
    let member = format!("tar.zst(math-libs/BLAS/rocBLAS/stage/{name}):");
    assert!(said.contains(&member) && said.contains("atoffset0x"), "{said}");
}
