//! Destinations for results, and users that run the program.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use support::example::{contents, names, rockpack, shards};
pub use support::tools::by_nobody;
use support::tools::{self, need, need_root};

use crate::room::folder;

/// Commands with much output, and one with little.
fn printing(room: &std::path::Path) -> [Command; 4] {
    let artifacts = shards().join("gfx1151-build");
    let mut discover = rockpack();
    discover.arg("discover").arg(&artifacts).arg("--json");
    let mut inspect = rockpack();
    inspect.arg("inspect").arg(artifacts.join("blas_lib_gfx1151"));
    let mut plan = rockpack();
    plan.args(["plan", "--version", "7.1.0", "--details", "--artifacts"]).arg(&artifacts);
    let mut build = rockpack();
    build.args(["build", "--version", "7.1.0", "--json", "--artifacts"]).arg(&artifacts);
    build.arg("--out").arg(room.join("out"));
    [discover, inspect, plan, build]
}

#[test]
fn a_full_device_for_results_is_a_failure() {
    let room = folder();
    for mut command in printing(room.path()) {
        command.stdout(File::create("/dev/full").unwrap());
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{command:?}: {said}");
        assert!(said.contains("<stdout>: cannot write: No space left"), "{said}");
    }
    // The set was complete before the report.
    assert!(names(&room.path().join("out")).contains("packages.json"));
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let room = folder();
    for command in printing(room.path()) {
        let mut shell = Command::new("sh");
        shell.args(["-c", "{ \"$@\"; echo $? >&2; } | :", "sh"]);
        shell.arg(command.get_program()).args(command.get_args());
        let said = tools::run(&mut shell).stderr;
        let said = String::from_utf8_lossy(&said);
        assert_eq!(said.lines().last(), Some("0"), "{said}");
        assert!(!said.contains("panicked") && !said.contains("os error"), "{said}");
    }
}

/// Commands that fail, or find what they look for, with their exit codes.
fn failing(room: &std::path::Path) -> [(Command, i32); 5] {
    let shard = shards().join("gfx1151-build");
    let set = room.join("set");
    tools::run(&mut build_of(&shard, &set));
    let bad = room.join("bad.deb");
    fs::write(&bad, "no package").unwrap();
    let (parent, broken) = (room.join("shard"), room.join("shard/x_lib_gfx1151"));
    fs::create_dir_all(broken.join("stage/lib")).unwrap();
    fs::write(broken.join("artifact_manifest.txt"), "../outside\n").unwrap();
    let mut verify = rockpack();
    verify.arg("verify").arg(&bad);
    let mut json = rockpack();
    json.args(["verify", "--json"]).arg(&bad);
    let mut plan = rockpack();
    plan.args(["plan", "--version", "7.1.1", "--format", "deb", "--exit-code", "--artifacts"]);
    plan.arg(&shard).arg("--diff").arg(&set);
    let mut split = rockpack();
    split.arg("split").arg("--batch-artifact-parent-dir").arg(&parent);
    split.arg("--output-dir").arg(room.join("split"));
    let mut inspect = rockpack();
    inspect.arg("inspect").arg(shard.join("blas_lib_gfx1151")).arg(&bad);
    [(verify, 1), (json, 1), (plan, 1), (split, 2), (inspect, 2)]
}

/// The exit code of a command that writes to a pipe without a reader, with stdout only or with both streams.
fn unread(command: &mut Command, both: bool) -> Option<i32> {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    if both {
        command.stderr(writer.try_clone().unwrap());
    }
    command.stdout(writer).status().unwrap().code()
}

#[test]
fn a_reader_that_goes_away_changes_no_exit_code() {
    let room = folder();
    for (mut command, code) in failing(room.path()) {
        assert_eq!(command.output().unwrap().status.code(), Some(code), "{command:?}");
        for both in [false, true] {
            assert_eq!(unread(&mut command, both), Some(code), "{both} {command:?}");
        }
    }
    let mut version = rockpack();
    version.arg("--version");
    assert_eq!(unread(&mut version, false), Some(0));
}

/// A full device hides no earlier error, and help that cannot be printed is a failure.
#[test]
fn a_result_that_is_lost_is_told_beside_what_failed() {
    let room = folder();
    for (mut command, _) in failing(room.path()) {
        let output = command.stdout(File::create("/dev/full").unwrap()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{command:?}: {said}");
        assert!(said.contains("<stdout>: cannot write: No space left"), "{said}");
        let named = [("split", "x_lib_gfx1151"), ("inspect", "bad.deb")];
        let of_word = |(word, _): &(&str, &str)| command.get_args().any(|it| it == *word);
        if let Some((_, name)) = named.into_iter().find(of_word) {
            assert!(said.contains(name), "{said}");
        }
    }
    let mut help = rockpack();
    let help = help.arg("--help").stdout(File::create("/dev/full").unwrap());
    assert_eq!(help.output().unwrap().status.code(), Some(2));
}

/// A file opened later must not get the descriptor of a closed stream.
#[test]
fn closed_streams_are_no_failure_and_no_files() {
    let room = folder();
    for closed in [">&-", "2>&-", "<&- >&- 2>&-"] {
        for command in printing(room.path()) {
            let mut shell = Command::new("sh");
            shell.args(["-c", &format!("\"$@\" {closed}"), "sh"]);
            shell.arg(command.get_program()).args(command.get_args());
            shell.stdin(Stdio::null());
            tools::run(&mut shell);
        }
        let mut verify = rockpack();
        tools::run(verify.arg("verify").arg(room.path().join("out")));
    }
}

/// A folder that everyone may write to.
pub fn open_folder() -> tempfile::TempDir {
    let room = folder();
    fs::set_permissions(room.path(), Permissions::from_mode(0o777)).unwrap();
    room
}

pub fn build_of(artifacts: &std::path::Path, out: &std::path::Path) -> Command {
    let mut build = rockpack();
    build.args(["build", "--version", "7.1.0", "--format", "deb", "--artifacts"]).arg(artifacts);
    build.arg("--out").arg(out);
    build
}

#[test]
fn missing_permissions_are_named_and_change_nothing() {
    need_root();
    need(&["setpriv"]);
    let room = open_folder();
    let out = room.path().join("out");
    tools::run(&mut build_of(&shards().join("gfx1151-build"), &out));
    let earlier = contents(&out);
    // The folder is root's: others may read it but not write to it.
    let closed = room.path().join("closed");
    tools::run(Command::new("cp").arg("-r").arg(shards().join("gfx110X-build")).arg(&closed));
    let file =
        closed.join("blas_lib_gfx110X-dgpu/math-libs/BLAS/rocBLAS/stage/lib/libexblas.so.1.2");
    fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    let locked = room.path().join("locked");
    tools::run(Command::new("cp").arg("-r").arg(shards().join("gfx110X-build")).arg(&locked));
    let inside = locked.join("blas_lib_gfx110X-dgpu/math-libs/BLAS");
    fs::set_permissions(&inside, Permissions::from_mode(0o700)).unwrap();
    let shard = shards().join("gfx1151-build");
    let fresh = room.path().join("fresh");
    let cases = [
        (build_of(&shard, &out), out.clone()),
        (build_of(&shard, &room.path().join("out/below")), out.clone()),
        (build_of(&closed, &fresh), file),
        (build_of(&locked, &fresh), inside),
    ];
    for (command, named) in cases {
        let mut command = by_nobody(&command);
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(named.to_str().unwrap()), "{}: {said}", named.display());
        assert!(
            said.contains("Permission denied") && said.contains("check the permissions"),
            "{said}"
        );
        assert!(contents(&out) == earlier, "{said}");
        assert!(!fresh.exists(), "{said}");
    }
}

/// Like mv, rockpack replaces other users' packages if the folder allows it.
#[test]
fn a_set_of_another_user_is_replaced_or_left() {
    need_root();
    need(&["setpriv"]);
    let room = open_folder();
    let shard = shards().join("gfx1151-build");
    for (mode, may) in [(0o777, true), (0o1777, false)] {
        let out = room.path().join(format!("{mode:o}"));
        tools::run(&mut build_of(&shard, &out));
        fs::set_permissions(&out, Permissions::from_mode(mode)).unwrap();
        let earlier = contents(&out);
        let mut command = build_of(&shard, &out);
        command.args(["--release", "2"]);
        let mut command = by_nobody(&command);
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.success(), may, "{mode:o}: {said}");
        assert_eq!(contents(&out) == earlier, !may, "{mode:o}: {said}");
        assert!(names(&out).iter().all(|name| !name.starts_with('.')), "{mode:o}: {said}");
    }
}
