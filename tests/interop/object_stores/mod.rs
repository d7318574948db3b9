//! Packed artifacts in object stores and on web servers: SeaweedFS and rclone check signatures and give pages of
//! listings, rclone and Python serve index pages.

mod access;
mod built;
mod fetched;
mod listed;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use serde_json::Value;
use support::archives::{self, Packing, artifacts, pack, sum};
use support::example::{VERSION, contents, copy_shards, plant, rockpack, tree};
use support::program::scratch;
use support::python::PYTHON;
use support::tools::{need, repository, run};
use support::waiting::Process;

/// The access key that the stores know.
const KEY: &str = "AKIAEXAMPLE";
/// Its secret, with characters that URLs encode. No file and no output may have [`HIDDEN`].
const SECRET: &str = "neverprinted/+=x";
const HIDDEN: [&str; 2] = ["neverprinted", "X-Amz-Signature"];

/// The servers with the protocol of S3.
const STORES: [&str; 2] = ["seaweedfs", "rclone"];
/// The servers with index pages: the first sends ranges, the second does not.
const WEB: [&str; 2] = ["ranges", "whole"];

/// An object of two ranges, and a small one.
const LARGE: [&str; 2] = ["big_lib_generic.tar.zst", "small_lib_generic.tar.zst"];

/// The start of file names that URLs and listings encode, or that mean something else where they are decoded once
/// too often.
const ODD: [&str; 14] = [
    "a b", "a+b", "a%41", "aA", "a%20b", "ü", "a&b", "a&amp;b", "a=b;c", "a'b\"", "a~", "a#b",
    "a?b", "<a>",
];

/// The run of a CI job, as TheRock names it.
const RUN: &str = "16182435321-linux";

/// Servers of the same buckets.
struct Servers {
    /// The folder of the buckets.
    buckets: PathBuf,
    urls: Value,
    /// Ends when this process ends, which closes its standard input.
    _process: Process,
}

/// The servers, which are started once in a run.
fn servers() -> &'static Servers {
    static SERVERS: OnceLock<Servers> = OnceLock::new();
    need(&["weed", "rclone", PYTHON]);
    need(&archives::TOOLS);
    SERVERS.get_or_init(Servers::start)
}

impl Servers {
    fn start() -> Self {
        let room = scratch("object-stores");
        let [buckets, data] = ["buckets", "data"].map(|name| room.join(name));
        fill(&buckets);
        fs::create_dir(&data).unwrap();
        let mut python = Command::new(PYTHON);
        python.arg(script("stores.py")).args([&buckets, &data]).args([KEY, SECRET]);
        let mut process = Process::start(python.stdin(Stdio::piped()).stdout(Stdio::piped()));
        let urls = serde_json::from_str(&first_line(&mut process)).unwrap();
        Self { buckets, urls, _process: process }
    }

    fn url(&self, server: &str) -> &str {
        self.urls[server].as_str().unwrap()
    }

    /// The address of a folder of the buckets on a web server.
    fn web(&self, server: &str, folder: &str) -> String {
        format!("{}/{folder}/", self.url(server))
    }

    /// The URL of the listing of a folder in a bucket of SeaweedFS that needs no signature.
    fn listing(&self, bucket: &str, prefix: &str) -> String {
        format!("{}/{bucket}?list-type=2&prefix={prefix}/", self.url("seaweedfs"))
    }
}

fn script(name: &str) -> PathBuf {
    repository("tests/interop/object_stores").join(name)
}

fn first_line(process: &mut Process) -> String {
    let mut line = String::new();
    BufReader::new(process.child().stdout.take().unwrap()).read_line(&mut line).unwrap();
    line
}

/// Writes the objects of all buckets.
fn fill(buckets: &Path) {
    let shards = buckets.join("private/run-17");
    copy_shards(&shards);
    for (number, artifact) in artifacts(&shards).iter().enumerate() {
        sum(&pack(artifact, [Packing::Zstd, Packing::Xz][number % 2]));
    }
    plant(&tree(&shards), &buckets.join("public/run-17"), false);

    let large = buckets.join("private/large");
    fs::create_dir(&large).unwrap();
    for (name, size) in LARGE.into_iter().zip([12 << 20, 4 << 10]) {
        let mut bytes = Vec::new();
        File::open("/dev/urandom").unwrap().take(size).read_to_end(&mut bytes).unwrap();
        fs::write(large.join(name), bytes).unwrap();
        sum(&large.join(name));
    }

    let [many, odd] = ["many", "odd/run"].map(|folder| buckets.join(folder));
    fs::create_dir(&many).unwrap();
    for number in 0..5000 {
        File::create(many.join(format!("part{number:04}_lib_generic.tar.zst"))).unwrap();
    }
    fs::create_dir_all(&odd).unwrap();
    for name in ODD {
        fs::write(odd.join(format!("{name}_lib_generic.tar.zst")), name).unwrap();
    }
    listed::fill(buckets);
}

/// The program without the variables and the home of who runs the tests.
fn client() -> Command {
    let mut command = rockpack();
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", "/nonexistent");
    command
}

/// The program with the key of the store at `url`.
fn signed(url: &str) -> Command {
    let mut command = client();
    command.env("AWS_ENDPOINT_URL", url);
    command.env("AWS_ACCESS_KEY_ID", KEY).env("AWS_SECRET_ACCESS_KEY", SECRET);
    command
}

/// `rockpack build` of `inputs` into `out`.
fn build(mut command: Command, inputs: &[&str], out: &Path) -> Command {
    command.arg("build").args(inputs).args(["--version", VERSION, "--out"]).arg(out);
    command
}

/// `rockpack fetch` of `addresses` into `out`, with JSON as its output.
fn fetch(mut command: Command, addresses: &[&str], out: &Path) -> Command {
    command.arg("fetch").args(addresses).arg("--json").arg("--out").arg(out);
    command
}

/// The result of a `fetch` that must succeed.
#[track_caller]
fn fetched(command: &mut Command) -> Value {
    serde_json::from_slice(&run(command).stdout).unwrap()
}

/// The errors of a run that must fail before it writes `out`.
#[track_caller]
fn refused(command: &mut Command, out: &Path) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap();
    assert!(!status.success(), "{command:?} succeeded");
    let said = String::from_utf8([stdout, stderr].concat()).unwrap();
    assert!(!out.exists(), "{said}");
    said
}

/// Fails if a secret is in `bytes`.
#[track_caller]
fn assert_hides(bytes: &[u8], about: &str) {
    let text = String::from_utf8_lossy(bytes);
    for secret in HIDDEN {
        assert!(!text.contains(secret), "{about} has {secret}");
    }
}

/// The files that a build of these inputs writes.
#[track_caller]
fn built(command: Command, inputs: &[&str]) -> BTreeMap<String, Vec<u8>> {
    let room = tempfile::tempdir().unwrap();
    let out = room.path().join("out");
    run(&mut build(command, inputs, &out));
    contents(&out)
}

/// Fails unless both builds wrote the same files.
#[track_caller]
fn assert_same(
    found: &BTreeMap<String, Vec<u8>>,
    expected: &BTreeMap<String, Vec<u8>>,
    about: &str,
) {
    assert!(found.keys().eq(expected.keys()), "{about}: {:?}", found.keys());
    let differs = |name: &&String| found[*name] != expected[*name];
    let different: Vec<&String> = expected.keys().filter(differs).collect();
    assert!(different.is_empty(), "{about}: {different:?}");
}

/// A server that passes requests on and writes them down.
struct Recorder {
    url: String,
    log: PathBuf,
    _process: Process,
}

impl Recorder {
    /// Starts the recorder with options of its own.
    fn start(options: &[&str]) -> Self {
        let log = scratch("recorder").join("log");
        let mut python = Command::new(PYTHON);
        python.arg(script("recorder.py")).arg(&log).args(options);
        let mut process = Process::start(python.stdout(Stdio::piped()));
        let port = first_line(&mut process);
        Self { url: format!("http://127.0.0.1:{}", port.trim()), log, _process: process }
    }

    /// All requests so far.
    fn requests(&self) -> Vec<Value> {
        let log = fs::read_to_string(&self.log).unwrap();
        log.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The requests for archives: their file names, and where the range begins. By the first byte alone, clients ask
    /// for the size.
    fn archives(&self) -> Vec<(String, u64)> {
        let asked = self.requests().into_iter().filter_map(|request| {
            let path = request["target"].as_str()?.split('?').next()?;
            let name = path
                .rsplit('/')
                .next()
                .filter(|name| name.ends_with(".tar.zst") || name.ends_with(".tar.xz"))?;
            let range = request["range"].as_str();
            let first =
                range.map_or(Some("0"), |range| range.strip_prefix("bytes=")?.split('-').next());
            (range != Some("bytes=0-0")).then(|| (name.to_owned(), first.unwrap().parse().unwrap()))
        });
        asked.collect()
    }
}
