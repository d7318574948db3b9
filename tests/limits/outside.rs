//! Nothing is written, made, renamed or removed outside of the output folder: every system call that
//! names a file is looked at, as strace sees it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::archives::{Packing, pack};
use crate::example::{build_of, copy_shards, names, rockpack, shards, tree};
use crate::tools::have;
use crate::{Input, STAGE};

/// System calls that change what they name.
const CHANGING: [&str; 24] = [
    "creat",
    "mkdir",
    "mkdirat",
    "mknod",
    "mknodat",
    "rename",
    "renameat",
    "renameat2",
    "link",
    "linkat",
    "symlink",
    "symlinkat",
    "unlink",
    "unlinkat",
    "rmdir",
    "truncate",
    "chmod",
    "fchmodat",
    "fchmodat2",
    "chown",
    "lchown",
    "fchownat",
    "utimensat",
    "setxattr",
];
/// How a file is opened that is changed.
const WRITING: [&str; 5] = ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_TMPFILE"];

/// The files that a command changed, whether that succeeded or not, and its exit code.
fn changed(command: &Command) -> (Vec<PathBuf>, Option<i32>) {
    let notes = tempfile::tempdir().unwrap();
    let log = notes.path().join("log");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-y", "-s", "4096", "-e", "trace=%file,%desc", "-e", "signal=none", "-o"]);
    strace.arg(&log).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        value.map(|value| strace.env(name, value));
    }
    let output = strace.output().unwrap();
    let text = String::from_utf8_lossy(&fs::read(&log).unwrap()).into_owned();
    assert!(text.contains("openat("), "strace saw nothing");
    let paths = text.lines().filter_map(of_line).flatten().collect();
    (paths, output.status.code())
}

/// The paths that a line of strace changes.
fn of_line(line: &str) -> Option<Vec<PathBuf>> {
    // `1234 mkdir("/x", 0777) = 0`; lines that go on with a call that was cut say nothing new.
    let line = line.split_once(' ')?.1.trim_start();
    let (call, arguments) = line.split_once('(')?;
    let opens = ["open", "openat", "openat2"].contains(&call);
    let changes =
        CHANGING.contains(&call) || opens && WRITING.iter().any(|flag| arguments.contains(flag));
    changes.then(|| {
        let texts: Vec<&str> = arguments.split('"').skip(1).step_by(2).collect();
        // The text of a symbolic link is no file that is changed.
        let skip = usize::from(call.starts_with("symlink"));
        let folder = arguments.split_once('<').and_then(|(_, rest)| Some(rest.split_once('>')?.0));
        let folder = Path::new(folder.unwrap_or("/"));
        texts.iter().skip(skip).map(|text| folder.join(text)).collect()
    })
}

/// Runs a command and fails if it changes anything that lies in none of `allowed`. What is beside
/// `room`, and the terminal, it has no business with either.
fn changes_only(command: &Command, allowed: &[&Path], code: i32) {
    let (paths, found) = changed(command);
    assert_eq!(found, Some(code), "{command:?}");
    let outside: Vec<_> = paths
        .iter()
        .filter(|path| {
            let leaves = path.components().any(|part| part.as_os_str() == "..");
            leaves || !allowed.iter().any(|folder| path.starts_with(folder))
        })
        .filter(|path| !path.starts_with("/dev/null") && !path.starts_with("/dev/tty"))
        .collect();
    assert!(outside.is_empty(), "{command:?}: {outside:?}");
    assert_eq!(paths.is_empty(), allowed.is_empty(), "{command:?}: {paths:?}");
}

fn program(arguments: &[&str]) -> Command {
    let mut command = rockpack();
    command.args(arguments);
    command
}

/// What a command that fails says; `split` lists on stdout what it wrote nevertheless.
fn failure(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let said = crate::text(&output);
    assert_eq!(output.status.code(), Some(2), "{command:?}: {said}");
    said
}

#[test]
fn commands_write_into_their_output_folders_only() {
    if !have(&["strace", "tar", "zstd"]) {
        return;
    }
    let room = tempfile::tempdir().unwrap();
    let path = |name: &str| room.path().join(name);
    let (out, cache, repo) = (path("out"), path("cache"), path("repo"));
    let mut build = build_of(&shards(), &out);
    build.arg("--cache").arg(&cache).arg("--repo").arg(&repo);
    changes_only(&build, &[&out, &cache, &repo], 0);
    // Over an earlier set.
    changes_only(&build_of(&shards(), &out), &[&out], 0);
    for command in ["split", "recombine"] {
        let folder = path(command);
        let mut run = program(&[command, "--artifacts"]);
        run.arg(shards().join("gfx1151-build")).arg("--output-dir").arg(&folder);
        changes_only(&run, &[&folder], 0);
    }
    let (mut publish, other) = (program(&["repo"]), path("other"));
    publish.arg(&out).arg("--out").arg(&other);
    changes_only(&publish, &[&other], 0);
    let (mut extract, objects) = (program(&["extract"]), path("objects"));
    let library =
        "gfx1151-build/blas_lib_gfx1151/math-libs/BLAS/rocBLAS/stage/lib/libexblas.so.1.2";
    extract.arg(shards().join(library)).arg("--out").arg(&objects);
    changes_only(&extract, &[&objects], 0);
    write_the_files_that_are_named(room.path());
    let reading: [(&[&str], &Path); 6] = [
        (&["plan", "--version", "7.1.0", "--artifacts"], &shards().join("gfx1151-build")),
        (&["discover"], &shards()),
        (&["inspect"], &shards().join(library)),
        (&["verify"], &out),
        (&["verify"], &repo),
        (&["verify"], &path("split/gfx1151-build")),
    ];
    for (arguments, folder) in reading {
        let mut command = program(arguments);
        changes_only(command.arg(folder), &[], 0);
    }
}

/// Commands that write one file write it in its folder.
fn write_the_files_that_are_named(room: &Path) {
    let [notes, parts] = ["notes", "parts"].map(|name| room.join(name));
    fs::create_dir(&notes).unwrap();
    let mut propose = program(&["discover", "--propose"]);
    propose.arg(notes.join("packaging.toml")).arg(shards());
    changes_only(&propose, &[&notes], 0);
    for part in ["1/2", "2/2"] {
        changes_only(build_of(&shards(), &parts).args(["--partition", part]), &[&parts], 0);
    }
    let mut join = program(&["verify", "--join"]);
    join.arg(notes.join("packages.json")).arg(&parts);
    changes_only(&join, &[&notes], 0);
}

/// What packed artifacts hold lies beside the output, or in TMPDIR, without a name.
#[test]
fn what_archives_hold_lies_beside_the_output_only() {
    if !have(&["strace", "tar", "zstd", "xz", "sha256sum"]) {
        return;
    }
    let room = tempfile::tempdir().unwrap();
    let packed = room.path().join("packed");
    copy_shards(&packed);
    for artifact in crate::archives::artifacts(&packed) {
        pack(&artifact, Packing::Zstd);
    }
    let (out, temporary) = (room.path().join("out"), room.path().join("tmp"));
    fs::create_dir(&out).unwrap();
    fs::create_dir(&temporary).unwrap();
    changes_only(&build_of(&packed, &out), &[&out], 0);
    let mut plan = program(&["plan", "--version", "7.1.0", "--artifacts"]);
    changes_only(
        plan.arg(packed.join("gfx1151-build")).env("TMPDIR", &temporary),
        &[&temporary],
        0,
    );
    assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0);
}

/// Members, links and manifests that lead out of an artifact are refused, and nothing follows them.
#[test]
fn what_leads_out_of_an_artifact_is_not_followed() {
    if !have(&["strace"]) {
        return;
    }
    let inputs = [
        Input::handmade(|archive| archive.file("../../escaped", b"x")),
        Input::handmade(|archive| archive.file("/tmp/escaped", b"x")),
        Input::handmade(|archive| {
            archive.member(&format!("{STAGE}/away"), b'2', "/tmp", 0o777, b"");
            archive.file(&format!("{STAGE}/away/escaped"), b"x");
        }),
        Input::handmade(|archive| {
            archive.member(&format!("{STAGE}/passwd"), b'1', "/etc/passwd", 0o644, b"");
        }),
    ];
    for input in inputs {
        let (out, room) = (input.out(), input.folder.path().to_owned());
        // The spool beside the output, while there is no output folder yet.
        let (paths, code) = changed(&input.build());
        assert_eq!(code, Some(2));
        let named: Vec<_> = paths.iter().filter(|path| **path != room && **path != out).collect();
        assert!(named.is_empty(), "{named:?}");
        assert!(!out.exists() && !Path::new("/tmp/escaped").exists());
    }
}

/// Only the output folder itself may be a link.
#[test]
fn links_below_the_output_folder_are_not_written_through() {
    let input = Input::folder();
    fs::write(input.stage().join("lib/x"), "x").unwrap();
    let path = |name: &str| input.folder.path().join(name);
    let victim = path("victim/a_lib_gfx1100");
    fs::create_dir_all(&victim).unwrap();
    fs::write(victim.join("artifact_manifest.txt"), "x/stage\n").unwrap();
    fs::create_dir(input.out()).unwrap();
    symlink("../victim", input.out().join("shard")).unwrap();
    let split = |out: &Path| {
        let mut split = program(&["split", "--artifacts"]);
        split.arg(input.shard()).arg("--output-dir").arg(out);
        split
    };
    let before = tree(&path("victim"));
    let said = crate::refusal(&mut split(&input.out()));
    assert!(said.contains("out/shard: is a symbolic link"), "{said}");
    assert!(tree(&path("victim")) == before);
    fs::remove_file(input.out().join("shard")).unwrap();
    symlink("out", path("link")).unwrap();
    crate::tools::run(&mut split(&path("link")));
    assert!(input.out().join("shard/a_lib_generic").is_dir());
}

/// Artifacts of one component, of which one has a link where another has a folder.
#[test]
fn nothing_is_written_through_a_link_of_another_artifact() {
    let input = Input::folder();
    let other = input.shard().join("a_lib_gfx1100").join(STAGE);
    fs::create_dir_all(other.join("lib/y")).unwrap();
    fs::write(other.join("lib/y/file"), "x").unwrap();
    fs::write(input.shard().join("a_lib_gfx1100/artifact_manifest.txt"), format!("{STAGE}\n"))
        .unwrap();
    symlink("z", input.stage().join("lib/y")).unwrap();
    fs::create_dir(input.stage().join("lib/z")).unwrap();
    for command in ["split", "recombine"] {
        let mut command = program(&[command, "--artifacts"]);
        command.arg(input.shard()).arg("--output-dir").arg(input.out());
        let said = failure(&mut command);
        assert!(said.contains("lib/y"), "{said}");
        assert!(names(&input.out()).iter().all(|name| name == "shard"), "{said}");
        assert!(names(&input.out().join("shard")).is_empty(), "{said}");
    }
}

#[test]
fn links_that_leave_through_other_links_are_refused() {
    let links = [("l", "."), ("n", "l/l/l/../../../etc")];
    let expected = ["/n", "leads to `l/l/l/../../../etc`, outside of the stage prefix"];
    let folder = Input::folder();
    let plant = |stage: &Path, (name, target): (&str, &str)| {
        symlink(target, stage.join(name)).unwrap();
    };
    links.into_iter().for_each(|link| plant(&folder.stage(), link));
    folder.refused(&expected);
    let packed = Input::handmade(|archive| {
        for (name, target) in links {
            archive.member(&format!("{STAGE}/{name}"), b'2', target, 0o777, b"");
        }
    });
    packed.refused(&expected);
    // Each in an artifact of its own.
    for (name, commands) in
        [("a_dev_generic", &["recombine"][..]), ("a_lib_gfx1100", &["split", "recombine"])]
    {
        let apart = Input::folder();
        let other = apart.shard().join(name);
        fs::create_dir_all(other.join(STAGE)).unwrap();
        fs::write(other.join("artifact_manifest.txt"), format!("{STAGE}\n")).unwrap();
        plant(&other.join(STAGE), links[0]);
        plant(&apart.stage(), links[1]);
        apart.refused(&expected);
        for command in commands {
            let mut command = program(&[command, "--artifacts"]);
            command.arg(apart.shard()).arg("--output-dir").arg(apart.out());
            let said = failure(&mut command);
            assert!(said.contains(expected[1]), "{said}");
        }
    }
}

/// A receipt of an earlier set says which packages may go: none outside of its folder.
#[test]
fn a_forged_receipt_removes_nothing() {
    let room = tempfile::tempdir().unwrap();
    let out = room.path().join("out");
    fs::create_dir(&out).unwrap();
    let victim = room.path().join("victim.deb");
    fs::write(&victim, "").unwrap();
    for name in [
        "../victim.deb",
        victim.to_str().unwrap(),
        "x/../../victim.deb",
        ".hidden.deb",
        "notes.txt",
    ] {
        let receipt = serde_json::json!({ "packages": [{ "file_name": name, "sha256": "0" }] });
        fs::write(out.join("packages.json"), receipt.to_string()).unwrap();
        let output = build_of(&shards(), &out).output().unwrap();
        let said = crate::text(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("is no receipt of rockpack"), "{said}");
        assert!(victim.exists());
    }
}
