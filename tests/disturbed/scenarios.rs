//! Commands that write, each over its own earlier output.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use sha2::{Digest, Sha256};
use support::example::{self, rockpack, shards};
use support::tools;

use crate::left::Left;
use crate::room::{self, Call, Fault, Tree, filled, link_tree, strike, visible};

/// The only unit of an output that becomes visible at once.
pub const AT_ONCE: &str = "all";

/// A command, the output that it finds, and the output that it makes.
pub struct Scenario {
    pub name: &'static str,
    pub room: tempfile::TempDir,
    command: fn(&Path, &Path) -> Command,
    pub promise: Promise,
    /// The folder that runs find.
    start: PathBuf,
    tried: Tried,
    pub earlier: Tree,
    pub whole: Tree,
}

/// The folders from which a next run was tried, as numbers of their content.
type Tried = Arc<Mutex<BTreeSet<u64>>>;

/// Makes such a number. The standard library's is slow without optimisation.
#[derive(Default)]
struct Number(Sha256);

impl Hasher for Number {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        let digest = self.0.clone().finalize();
        u64::from_le_bytes(digest[..8].try_into().unwrap())
    }
}

/// The folders that were tried for all scenarios of this name.
fn tried(name: &'static str) -> Tried {
    static TRIED: Mutex<BTreeMap<&str, Tried>> = Mutex::new(BTreeMap::new());
    TRIED.lock().unwrap().entry(name).or_default().clone()
}

/// Promises that hold whatever happens to a run.
#[derive(Clone, Copy)]
pub struct Promise {
    /// The unit of a path: entries of the same unit become visible at once.
    pub unit: fn(&str) -> &str,
    /// Whether earlier entries stay beside new ones.
    pub adds: bool,
    /// A folder with optional entries, each on its own.
    pub aside: Option<&'static str>,
    /// Whether a failing run leaves its clean-up to the next one.
    pub left_to_the_next: bool,
    /// Tells whether a call is the one by which a run, after cleaning up, begins something new.
    pub begins: fn(&Call) -> bool,
    /// Further checks of the output.
    pub also: fn(&Path),
}

/// Everything becomes visible at once, and a failing run leaves nothing.
pub const SET: Promise = Promise {
    unit: |_| AT_ONCE,
    adds: false,
    aside: None,
    left_to_the_next: false,
    begins: |(kind, path)| {
        let name = path.file_name().unwrap().to_str().unwrap();
        ["make", "create"].contains(&kind.as_str()) && name.starts_with(".rockpack-")
    },
    also: |_| (),
};

fn input(room: &Path) -> PathBuf {
    room.join("gfx1151-build")
}

fn build_of(artifacts: &Path, out: &Path) -> Command {
    let mut command = rockpack();
    command.arg("build").arg("--artifacts").arg(artifacts).arg("--out").arg(out);
    command.args(["--version", example::VERSION]);
    command
}

fn build(room: &Path, out: &Path) -> Command {
    build_of(&input(room), out)
}

fn build_packed(room: &Path, out: &Path) -> Command {
    build_of(&room.join("packed"), out)
}

fn build_with_document(room: &Path, out: &Path) -> Command {
    let mut command = build(room, out);
    command.arg("--sbom");
    command
}

fn build_with_cache(room: &Path, out: &Path) -> Command {
    let mut command = build(room, &out.join("set"));
    command.arg("--cache").arg(out.join("cache"));
    command
}

fn build_zstd(room: &Path, out: &Path) -> Command {
    let mut command = build(room, out);
    command.args(["--compression", "zstd"]);
    command
}

fn build_xz(room: &Path, out: &Path) -> Command {
    let mut command = build(room, out);
    command.args(["--compression", "xz"]);
    command
}

fn split(room: &Path, out: &Path) -> Command {
    let mut command = rockpack();
    command.arg("split").arg("--artifacts").arg(input(room)).arg("--output-dir").arg(out);
    command
}

fn recombine(room: &Path, out: &Path) -> Command {
    let mut command = rockpack();
    command.arg("recombine").arg("--artifacts").arg(input(room)).arg("--output-dir").arg(out);
    command
}

fn extract(room: &Path, out: &Path) -> Command {
    let libraries = "blas_lib_gfx1151/math-libs/BLAS/rocBLAS/stage/lib/libexblas.so.1.2";
    let mut command = rockpack();
    command.arg("extract").arg(input(room).join(libraries)).arg("--out").arg(out);
    command
}

/// The component of a path: `blas_lib` of `gfx1151-build/blas_lib_generic/…`.
fn component(path: &str) -> &str {
    let artifact = path
        .strip_prefix("gfx1151-build")
        .unwrap_or(path)
        .trim_start_matches('/')
        .split('/')
        .next()
        .unwrap();
    artifact.rsplit_once('_').map_or(artifact, |(component, _)| component)
}

/// The unit of a path: the set, or a single cache entry.
fn set_or_entry(path: &str) -> &str {
    if path.starts_with("cache") { path } else { AT_ONCE }
}

impl Scenario {
    /// Builds packages of one version over those of another.
    pub fn build() -> Self {
        Self::of_shard("build", (build, SET), &["--release", "0"])
    }

    /// Builds packages with an SPDX document beside them.
    pub fn build_with_document() -> Self {
        Self::of_shard("build --sbom", (build_with_document, SET), &["--release", "0"])
    }

    /// Builds packages without an SPDX document over a set that has one.
    pub fn build_without_document() -> Self {
        Self::of_shard("build over a document", (build, SET), &["--release", "0", "--sbom"])
    }

    /// Builds packages with a cache that already has some of the entries.
    pub fn build_with_cache() -> Self {
        let promise = Promise { unit: set_or_entry, adds: true, aside: Some("cache"), ..SET };
        Self::of_shard("build --cache", (build_with_cache, promise), &["--release", "0"])
    }

    /// Builds packages with a cache that does not exist yet.
    pub fn build_with_new_cache() -> Self {
        let mut scenario = Self::build_with_cache();
        std::fs::remove_dir_all(scenario.start.join("cache")).unwrap();
        scenario.name = "build --cache (new)";
        scenario.tried = tried(scenario.name);
        scenario.earlier = visible(&scenario.start);
        // Entries that only the earlier set needs are missing, too.
        let whole = scenario.room.path().join("whole-alone");
        tools::run(&mut scenario.command_into(&whole));
        scenario.whole = visible(&whole);
        scenario
    }

    /// Builds packages larger than a compressor handles on one thread, with this compressor.
    pub fn build_of_noise(compression: &str) -> Self {
        let (name, build): (_, fn(&Path, &Path) -> Command) = match compression {
            "xz" => ("build --compression xz", build_xz),
            _ => ("build --compression zstd", build_zstd),
        };
        let make = |room: &Path| {
            let shard = input(room);
            example::plant(&example::tree(&shards().join("gfx1151-build")), &shard, false);
            let noise = (0..1_u32 << 20).map(|n| n.wrapping_mul(2_654_435_761).to_be_bytes()[0]);
            let noise: Vec<u8> = noise.collect();
            let library = shard.join("blas_lib_gfx1151/math-libs/BLAS/rocBLAS/stage/lib");
            std::fs::write(library.join("noise"), noise).unwrap();
            tools::run(build(room, &room.join("earlier")).args(["--release", "0"]));
        };
        Self::over_earlier(name, make, (build, SET))
    }

    /// Splits artifacts of one build over those of another with fewer archs.
    pub fn split() -> Self {
        let promise = Promise { unit: component, ..SET };
        Self::of_shard("split", (split, promise), &["--gpu-targets", "gfx1151"])
    }

    /// Recombines artifacts of one build over those of another with fewer archs.
    pub fn recombine() -> Self {
        Self::of_shard("recombine", (recombine, SET), &[])
    }

    /// Extracts all code objects into a folder with those of one arch.
    pub fn extract() -> Self {
        let promise = Promise { unit: |path| path, ..SET };
        Self::of_shard("extract", (extract, promise), &["--target", "gfx1151"])
    }

    /// A command that reads the example shard, over the output of an earlier run with the options `earlier`.
    fn of_shard(
        name: &'static str,
        (command, promise): (fn(&Path, &Path) -> Command, Promise),
        earlier: &[&str],
    ) -> Self {
        let make = |room: &Path| {
            let shard = input(room);
            example::plant(&example::tree(&shards().join("gfx1151-build")), &shard, false);
            // With another host file and other options, no earlier entry equals a new one.
            let note = shard.join("blas_lib_gfx1151/math-libs/BLAS/rocBLAS/stage/lib/note");
            std::fs::write(&note, "earlier").unwrap();
            tools::run(command(room, &room.join("earlier")).args(earlier));
            std::fs::write(&note, "new").unwrap();
        };
        Self::over_earlier(name, make, (command, promise))
    }

    /// A command over the output `earlier`, which `make` makes in the room of this name.
    pub fn over_earlier(
        name: &'static str,
        make: impl FnOnce(&Path),
        (command, promise): (fn(&Path, &Path) -> Command, Promise),
    ) -> Self {
        let room = filled(name, |room| {
            make(room);
            let [start, new] = ["earlier", "whole"].map(|name| room.join(name));
            // Replaced entries leave nothing behind: an empty folder gets the same output.
            if promise.adds {
                link_tree(&start, &new);
            }
            tools::run(&mut command(room, &new));
        });
        let [start, new] = ["earlier", "whole"].map(|name| room.path().join(name));
        let (earlier, whole) = (visible(&start), visible(&new));
        assert!(earlier != whole && !whole.is_empty());
        Self { name, room, command, promise, start, tried: tried(name), earlier, whole }
    }

    /// Builds packages from packed artifacts, whose content the run keeps in a file meanwhile.
    pub fn build_of_packed() -> Self {
        let scenario = Self::build();
        let packed = scenario.room.path().join("packed/gfx1151-build");
        std::fs::create_dir_all(&packed).unwrap();
        let shard = input(scenario.room.path());
        for artifact in example::names(&shard) {
            let (folder, archive) = (shard.join(&artifact), packed.join(artifact + ".tar.zst"));
            let mut tar = Command::new("sh");
            tar.args(["-c", "tar -C \"$1\" -c artifact_manifest.txt $(cd \"$1\" && ls | grep -vx artifact_manifest.txt) | zstd -q -o \"$2\"", "sh"]);
            tools::run(tar.arg(folder).arg(archive));
        }
        let name = "build of packed artifacts";
        Self { name, command: build_packed, tried: tried(name), ..scenario }
    }

    /// Makes runs find the output of a run killed at this call.
    pub fn after_a_kill(&mut self, calls: &str, at: usize) {
        self.start = self.room.path().join("earlier");
        let killed = self.room.path().join(format!("killed-{calls}-{at}"));
        link_tree(&self.start, &killed);
        let fault = Fault { calls, act: "signal:9", at };
        let struck = strike(&mut self.command_into(&killed), &killed, fault);
        assert_eq!(struck.signal(), Some(9), "{} {fault:?}: {}", self.name, struck.stderr);
        self.start = killed;
        self.forget();
    }

    /// Lets the next run be tried from every folder again.
    pub fn forget(&mut self) {
        self.tried = Tried::default();
    }

    /// The command for another output folder.
    pub fn command_into(&self, out: &Path) -> Command {
        (self.command)(self.room.path(), out)
    }

    fn out(&self, name: &str) -> PathBuf {
        self.room.path().join("outs").join(name)
    }

    /// The calls of these kinds that an undisturbed run makes on paths below `under`: a path in the room, or
    /// in the output if it begins with `out`.
    pub fn calls(&self, kinds: &str, under: &str) -> Vec<Call> {
        self.undisturbed(|mut run, out| room::calls(&mut run, &self.under(under, out), kinds))
    }

    /// Passes an undisturbed run and its output folder to `look`, and returns the result.
    pub fn undisturbed<T>(&self, look: impl FnOnce(Command, &Path) -> T) -> T {
        let out = self.begin("undisturbed");
        let seen = look(self.command_into(&out), &out);
        self.end("undisturbed");
        seen
    }

    fn under(&self, under: &str, out: &Path) -> PathBuf {
        match under {
            "" => self.room.path().to_owned(),
            "out" => out.to_owned(),
            other => self.room.path().join(other),
        }
    }

    /// Copies the folder that runs find.
    pub fn begin(&self, name: &str) -> PathBuf {
        let out = self.out(name);
        link_tree(&self.start, &out);
        out
    }

    pub fn end(&self, name: &str) {
        std::fs::remove_dir_all(self.out(name)).unwrap();
    }

    /// Runs with a fault on paths below `under`, lets `judge` check the result, and makes the next run.
    /// Returns how the first one ended, if it was struck.
    pub fn disturb(
        &self,
        (fault, under): (Fault<'_>, &str),
        judge: impl FnOnce(&Left<'_>),
    ) -> Option<String> {
        let act = fault.act.split_whitespace().next().unwrap_or_default().replace('/', "-");
        // Each strike has its own folder, which remains if the strike fails.
        let name = format!("{}-{act}-{}", fault.calls.replace(',', "-"), fault.at);
        let out = self.begin(&name);
        let struck = strike(&mut self.command_into(&out), &self.under(under, &out), fault);
        let ended = struck.call.is_some().then(|| struck.output.status.to_string());
        let about = format!(
            "{} {fault:?} at {:?}: {}\n{}",
            self.name, struck.call, struck.output.status, struck.stderr
        );
        assert!(!struck.stderr.contains("panicked"), "{about}");
        assert!(!struck.stderr.contains("a bug in rockpack"), "{about}");
        let (tree, unfinished, aside) = room::remains(&out);
        judge(&Left { scenario: self, struck, tree, unfinished, aside, about });
        (self.promise.also)(&out);
        self.next_run(&out, &format!("{} {fault:?}", self.name));
        self.end(&name);
        ended
    }

    /// Makes the run after a disturbed one, described by `about`. In the same files, the next run is the same
    /// each time: only full sweeps repeat it.
    pub fn next_run(&self, out: &Path, about: &str) {
        let left = example::tree(out);
        let mut number = Number::default();
        (room::is_same(&self.start, out, &left), left).hash(&mut number);
        let is_first = self.tried.lock().unwrap().insert(number.finish());
        if !is_first && !room::all() {
            return;
        }
        tools::run(&mut self.command_into(out));
        let (tree, unfinished, _) = room::remains(out);
        assert!(tree == self.whole, "{about}: the next run");
        assert_eq!(unfinished, [""; 0], "{about}: the next run");
    }
}
