//! Pipes without a writer in place of files: no command waits for them.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

use support::example::shards;
use support::program::rockpack_path;
use support::tools::{self, need};
use support::waiting::Process;

/// A limit in seconds, longer than any of these runs takes.
const SECONDS: &str = "30";

/// The exit code of `timeout` after it ended the program.
const TIMED_OUT: i32 = 124;

fn pipe(path: &Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    tools::run(Command::new("mkfifo").arg(path));
}

/// Runs the command `words` with `room` in place of `{}`. Fails unless it ends by itself and names `file`.
#[track_caller]
fn ends(room: &Path, words: &str, file: &str) {
    let words = words.replace("{}", room.to_str().unwrap());
    let mut command = Command::new("timeout");
    command.args(["-s", "KILL", "-k", "1", SECONDS]).arg(rockpack_path());
    let run = command.args(words.split(' ')).output().unwrap();
    let said = String::from_utf8_lossy(&run.stderr).into_owned();
    let printed = String::from_utf8_lossy(&run.stdout).into_owned();
    let code = run.status.code().unwrap_or(TIMED_OUT);
    assert!(code != TIMED_OUT && code != 137, "{words} waits: {said}");
    assert!(code != 0 && (said + &printed).contains(file), "{words}: {code}");
}

#[test]
fn pipes_in_the_place_of_files_are_refused_at_once() {
    need(&["mkfifo", "timeout"]);
    let folder = tempfile::tempdir().unwrap();
    let room = folder.path();
    let build = "build --version 7.1.0 --out {}/out --artifacts";

    pipe(&room.join("packed/s/b_lib_generic.tar.zst"));
    for command in [build, "plan --version 7.1.0 --artifacts", "discover", "verify"] {
        ends(room, &[command, "{}/packed/s"].join(" "), "b_lib_generic.tar.zst");
    }
    let split = "split --output-dir {}/out --artifact-dir {}/packed/s/b_lib_generic.tar.zst";
    ends(room, split, "b_lib_generic.tar.zst");
    ends(room, "recombine --output-dir {}/out --artifacts {}/packed/s", "b_lib_generic.tar.zst");

    let summed = room.join("summed/s/c_lib_generic.tar.zst");
    pipe(&summed.with_file_name("c_lib_generic.tar.zst.sha256sum"));
    fs::write(summed, "").unwrap();
    ends(room, "discover {}/summed/s", "c_lib_generic.tar.zst");

    pipe(&room.join("packages/x_1_amd64.deb"));
    ends(room, "verify {}/packages", "x_1_amd64.deb");
    ends(room, "repo {}/packages --out {}/repository", "x_1_amd64.deb");
    ends(room, "inspect {}/packages/x_1_amd64.deb", "x_1_amd64.deb");
    ends(room, "extract {}/packages/x_1_amd64.deb --out {}/out", "x_1_amd64.deb");

    pipe(&room.join("set/packages.json"));
    ends(room, "verify {}/set", "packages.json");
}

#[test]
fn a_pipe_in_the_place_of_a_receipt_or_its_signature_is_refused_at_once() {
    need(&["mkfifo", "timeout"]);
    let folder = tempfile::tempdir().unwrap();
    let room = folder.path();
    let shard = shards().join("gfx1151-build").canonicalize().unwrap();
    std::os::unix::fs::symlink(shard, room.join("s")).unwrap();
    pipe(&room.join("out/packages.json"));
    ends(room, "build --version 7.1.0 --artifacts {}/s --out {}/out", "packages.json");
    pipe(&room.join("earlier/packages.json.asc"));
    let receipt = "tests/fixtures/receipt/packages.json";
    fs::copy(receipt, room.join("earlier/packages.json")).unwrap();
    let since = "--artifacts {}/s --since {}/earlier/packages.json";
    ends(room, &["plan --version 7.1.0", since].join(" "), "packages.json.asc");
}

/// A process that holds a lease on `file`, as servers do, until another one opens it.
fn holder_of(file: &Path) -> Process {
    let holds = "import fcntl, os, signal, sys, time\n\
                     file = os.open(sys.argv[1], os.O_RDWR)\n\
                     give = lambda *_: (time.sleep(.2), fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_UNLCK))\n\
                     signal.signal(signal.SIGIO, give)\n\
                     fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)\n\
                     print('held', flush=True)\n\
                     time.sleep(30)";
    let mut python = Command::new("python3");
    let mut holder = Process::start(python.args(["-c", holds]).arg(file).stdout(Stdio::piped()));
    let mut said = [0; 5];
    holder.child().stdout.take().unwrap().read_exact(&mut said).unwrap();
    assert_eq!(&said, b"held\n");
    holder
}

#[test]
fn a_file_that_is_leased_is_waited_for() {
    need(&["python3", "timeout"]);
    let folder = tempfile::tempdir().unwrap();
    let room = folder.path();
    let cases = [
        ("leased_1_amd64.deb", "inspect {}/leased_1_amd64.deb", "is not a file of a known kind"),
        ("p/a_lib_generic.tar.zst", "discover {}/p", "a_lib_generic.tar.zst"),
        ("f/a_lib_generic/artifact_manifest.txt", "discover {}/f", "lists no stage prefix"),
    ];
    for (file, words, named) in cases {
        let path = room.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "\n").unwrap();
        let _held = holder_of(&path);
        ends(room, words, named);
    }
}
