//! No file outside of the output folder is written, made, renamed or removed: strace shows every system call
//! that names a file.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::archives::{Packing, pack};
use support::example::{build_of, copy_shards, names, rockpack, shards, tree};
use support::fat_wheels::{fat, wheel_command};
use support::kpack::need_python;
use support::strace::{Trace, changed_by};
use support::tools::need;

use crate::{Input, STAGE};

/// Runs a command and fails if it changes a file outside of `allowed`. Neighbours of `room`, and the
/// terminal, are outside, too.
fn changes_only(command: &Command, allowed: &[&Path], code: i32) {
    let trace = Trace::of(command, &[]);
    assert_eq!(trace.code, Some(code), "{command:?}");
    let paths = trace.changed();
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

/// The errors of a command that fails; `split` also lists on stdout the files that it wrote nevertheless.
fn failure(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let said = crate::text(&output);
    assert_eq!(output.status.code(), Some(2), "{command:?}: {said}");
    said
}

#[test]
fn each_path_of_a_call_is_one_in_the_folder_before_it() {
    for (call, expected) in [
        (r#"renameat(4</a>, "x", 5</b>, "y") = 0"#, &["/a/x", "/b/y"][..]),
        (r#"renameat2(AT_FDCWD</a>, "x", 5</b>, "/c/<y>", 0) = 0"#, &["/a/x", "/c/<y>"]),
        (r#"rename("x", "../y") = -1 ENOENT"#, &["/here/x", "/here/../y"]),
        (r#"symlinkat("/c", 4</a>, "x") = 0"#, &["/a/x"]),
        (r#"openat(4</a>, "say \"x\"", O_WRONLY|O_CREAT, 0644) = 5</a/x>"#, &[r#"/a/say \"x\""#]),
        (r#"openat(4</a>, "x", O_RDONLY) = 5</a/x>"#, &[]),
        (r#"lsetxattr("/a/x", "user.a", "/b", 2, 0) = 0"#, &["/a/x"]),
        (r#"fsetxattr(4</a/x>, "user.a", "/b", 2, 0) = 0"#, &["/a/x"]),
        (r#"removexattr("/a/x", "user.a") = 0"#, &["/a/x"]),
        (r#"utimensat(4</a/x>, NULL, NULL, 0) = 0"#, &["/a/x"]),
        (r#"fchownat(4</a/x>, "", 0, 0, AT_EMPTY_PATH) = 0"#, &["/a/x"]),
        (r#"fchmod(4</a/x>, 0600 <unfinished ...>"#, &["/a/x"]),
        (r#"stat("/a/x", {st_mode=S_IFREG|0644}) = 0"#, &[]),
    ] {
        let found = changed_by(call, Path::new("/here"));
        assert_eq!(found, expected.iter().map(PathBuf::from).collect::<Vec<_>>(), "{call}");
    }
}

/// The check sees every way to change a folder's files.
#[test]
fn every_change_of_a_file_is_seen() {
    const CHANGES: [(&str, &[&str]); 14] = [
        ("os.mkdir('x')", &["x"]),
        ("os.mkfifo('x')", &["x"]),
        ("os.rename('x', 'y', src_dir_fd=one, dst_dir_fd=other)", &["one/x", "other/y"]),
        ("os.link('x', 'y', src_dir_fd=one, dst_dir_fd=other)", &["one/x", "other/y"]),
        ("os.symlink('/x', 'y', dir_fd=other)", &["other/y"]),
        ("os.unlink('x', dir_fd=one)", &["one/x"]),
        ("os.rmdir('y')", &["y"]),
        ("os.truncate('y', 1)", &["y"]),
        ("os.chmod(one, 0o700)", &["one"]),
        ("os.lchown('x', -1, -1)", &["x"]),
        ("os.utime(one)", &["one"]),
        ("os.utime('x', follow_symlinks=False)", &["x"]),
        ("os.setxattr('x', 'user.x', b'/x', follow_symlinks=False)", &["x"]),
        ("os.removexattr(one, 'user.x')", &["one"]),
    ];
    need(&["strace", "python3"]);
    let room = tempfile::tempdir().unwrap();
    let mut script = "import os\nos.mkdir('one')\nos.mkdir('other')\n\
         one, other = [os.open(name, os.O_RDONLY) for name in ['one', 'other']]\n"
        .to_owned();
    for (change, _) in CHANGES {
        script.push_str(&format!("try: {change}\nexcept OSError: pass\n"));
    }
    let mut python = Command::new("python3");
    python.args(["-I", "-B", "-c", &script]).current_dir(room.path());
    let trace = Trace::of(&python, &[]);
    assert_eq!(trace.code, Some(0));
    let mut found = trace.changed();
    found.retain(|path| path.starts_with(room.path()));
    let made = ["one", "other"].into_iter();
    let expected = made.chain(CHANGES.iter().flat_map(|(_, paths)| paths.iter().copied()));
    assert_eq!(found, expected.map(|name| room.path().join(name)).collect::<Vec<_>>());
}

#[test]
fn commands_write_into_their_output_folders_only() {
    need(&["strace", "tar", "zstd"]);
    need_python();
    let room = tempfile::tempdir().unwrap();
    let [out, cache, repo] = ["out", "cache", "repo"].map(|name| room.path().join(name));
    let mut build = build_of(&shards(), &out);
    build.arg("--cache").arg(&cache).arg("--repo").arg(&repo);
    changes_only(&build, &[&out, &cache, &repo], 0);
    // Builds over an earlier set.
    changes_only(&build_of(&shards(), &out), &[&out], 0);
    for command in ["split", "recombine"] {
        let folder = room.path().join(command);
        let mut run = program(&[command, "--artifacts"]);
        run.arg(shards().join("gfx1151-build")).arg("--output-dir").arg(&folder);
        changes_only(&run, &[&folder], 0);
    }
    let (mut publish, other) = (program(&["repo"]), room.path().join("other"));
    publish.arg(&out).arg("--out").arg(&other);
    changes_only(&publish, &[&other], 0);
    let (mut extract, objects) = (program(&["extract"]), room.path().join("objects"));
    let library =
        "gfx1151-build/blas_lib_gfx1151/math-libs/BLAS/rocBLAS/stage/lib/libexblas.so.1.2";
    extract.arg(shards().join(library)).arg("--out").arg(&objects);
    changes_only(&extract, &[&objects], 0);
    let (wheel, wheels) = (fat().write(&room.path().join("fat")), room.path().join("wheels"));
    changes_only(&wheel_command(&[&wheel], &wheels), &[&wheels], 0);
    write_the_files_that_are_named(room.path());
    let reading: [(&[&str], &Path); 6] = [
        (&["plan", "--version", "7.1.0", "--artifacts"], &shards().join("gfx1151-build")),
        (&["discover"], &shards()),
        (&["inspect"], &shards().join(library)),
        (&["verify"], &out),
        (&["verify"], &repo),
        (&["verify"], &room.path().join("split/gfx1151-build")),
    ];
    for (arguments, folder) in reading {
        let mut command = program(arguments);
        changes_only(command.arg(folder), &[], 0);
    }
}

/// Commands that write a single file write it into its folder.
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

/// The content of packed artifacts goes to anonymous temporary files beside the output, or in TMPDIR.
#[test]
fn what_archives_hold_lies_beside_the_output_only() {
    need(&["strace", "tar", "zstd", "xz", "sha256sum"]);
    let room = tempfile::tempdir().unwrap();
    let packed = room.path().join("packed");
    copy_shards(&packed);
    for artifact in support::archives::artifacts(&packed) {
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

/// Members, links and manifests that lead out of an artifact are refused, and rockpack follows none of them.
#[test]
fn what_leads_out_of_an_artifact_is_not_followed() {
    need(&["strace"]);
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
        // The spool is beside the output as long as there is no output folder.
        let trace = Trace::of(&input.build(), &[]);
        assert_eq!(trace.code, Some(2));
        let mut named = trace.changed();
        named.retain(|path| *path != room && *path != out);
        assert!(named.is_empty(), "{named:?}");
        assert!(!out.exists() && !Path::new("/tmp/escaped").exists());
    }
}

/// Only the output folder itself may be a link.
#[test]
fn links_below_the_output_folder_are_not_written_through() {
    let input = Input::folder();
    fs::write(input.stage().join("lib/x"), "x").unwrap();
    let [link, victims] = ["link", "victim"].map(|name| input.folder.path().join(name));
    let victim = victims.join("a_lib_gfx1100");
    fs::create_dir_all(&victim).unwrap();
    fs::write(victim.join("artifact_manifest.txt"), "x/stage\n").unwrap();
    fs::create_dir(input.out()).unwrap();
    symlink("../victim", input.out().join("shard")).unwrap();
    let split = |out: &Path| {
        let mut split = program(&["split", "--artifacts"]);
        split.arg(input.shard()).arg("--output-dir").arg(out);
        split
    };
    let before = tree(&victims);
    let said = crate::refusal(&mut split(&input.out()));
    assert!(said.contains("out/shard: is a symbolic link"), "{said}");
    assert!(tree(&victims) == before);
    fs::remove_file(input.out().join("shard")).unwrap();
    symlink("out", &link).unwrap();
    support::tools::run(&mut split(&link));
    assert!(input.out().join("shard/a_lib_generic").is_dir());
}

/// Two artifacts of one component: one has a link where the other has a folder.
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
    let expected = ["/n", "leads to `l/l/l/../../../etc`, outside of the install prefix"];
    let folder = Input::folder();
    links.into_iter().for_each(|link| plant(&folder.stage(), link));
    folder.refused(&expected);
    let packed = Input::handmade(|archive| {
        for (name, target) in links {
            archive.member(&format!("{STAGE}/{name}"), b'2', target, 0o777, b"");
        }
    });
    packed.refused(&expected);
    // Each is in an artifact of its own.
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

fn plant(stage: &Path, (name, target): (&str, &str)) {
    symlink(target, stage.join(name)).unwrap();
}

/// An earlier set's receipt names the packages to remove, but none outside of its folder.
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
        assert_eq!(output.status.code(), Some(64), "{said}");
        assert!(said.contains("is not a receipt of rockpack"), "{said}");
        assert!(victim.exists());
    }
}
