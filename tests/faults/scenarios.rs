//! Commands that write, each over an earlier output of its own.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::example::{self, Entry, rockpack, shards};
use crate::room::{Fault, Struck, Tree, all, folder, link_tree, strike, unfinished, visible};
use crate::tools;

/// A command, what it found and what it makes of that.
pub struct Scenario {
    pub name: &'static str,
    pub room: tempfile::TempDir,
    command: fn(&Path, &Path) -> Command,
    /// What becomes visible at once: all of it, or what has the same of these names.
    unit: fn(&str) -> &str,
    earlier: Tree,
    whole: Tree,
}

fn input(room: &Path) -> PathBuf {
    room.join("gfx1151-build")
}

fn build(room: &Path, out: &Path) -> Command {
    let mut command = rockpack();
    command.arg("build").arg("--artifacts").arg(input(room)).arg("--out").arg(out);
    command.args(["--version", example::VERSION]);
    command
}

fn build_packed(room: &Path, out: &Path) -> Command {
    let mut command = rockpack();
    command.arg("build").arg("--artifacts").arg(room.join("packed")).arg("--out").arg(out);
    command.args(["--version", example::VERSION]);
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

/// `blas_lib` of `gfx1151-build/blas_lib_generic/…`.
fn component(path: &str) -> &str {
    let artifact = path.strip_prefix("gfx1151-build").unwrap_or(path).trim_start_matches('/');
    let artifact = artifact.split('/').next().unwrap();
    artifact.rsplit_once('_').map_or(artifact, |(component, _)| component)
}

impl Scenario {
    /// Packages of one version over those of another.
    pub fn build() -> Self {
        Self::new("build", build, &["--release", "0"], |_| "all")
    }

    /// Artifacts of one build over those of another with fewer archs.
    pub fn split() -> Self {
        Self::new("split", split, &["--gpu-targets", "gfx1151"], component)
    }

    /// The same.
    pub fn recombine() -> Self {
        Self::new("recombine", recombine, &[], |_| "all")
    }

    fn new(
        name: &'static str,
        command: fn(&Path, &Path) -> Command,
        earlier: &[&str],
        unit: fn(&str) -> &str,
    ) -> Self {
        let room = folder();
        let shard = input(room.path());
        example::plant(&example::tree(&shards().join("gfx1151-build")), &shard, false);
        let [old, new] = ["earlier", "whole"].map(|name| room.path().join(name));
        // Another host file and other options: nothing of the earlier output is the new one's.
        let readme = shard.join("blas_lib_gfx1151/math-libs/BLAS/rocBLAS/stage/lib/note");
        std::fs::write(&readme, "earlier").unwrap();
        tools::run(command(room.path(), &old).args(earlier));
        std::fs::write(&readme, "new").unwrap();
        tools::run(&mut command(room.path(), &new));
        let (earlier, whole) = (visible(&old), visible(&new));
        assert!(earlier != whole && !whole.is_empty());
        Self { name, room, command, unit, earlier, whole }
    }

    /// The same from packed artifacts, whose content is kept in a file of the run meanwhile.
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
        Self { name: "build of packed artifacts", command: build_packed, ..scenario }
    }

    /// The command for another output folder.
    pub fn command_into(&self, out: &Path) -> Command {
        (self.command)(self.room.path(), out)
    }

    /// What it makes.
    pub fn whole(&self) -> &Tree {
        &self.whole
    }

    fn out(&self, name: &str) -> PathBuf {
        self.room.path().join("outs").join(name)
    }

    /// How many calls of these kinds an undisturbed run makes.
    pub fn count(&self, calls: &str) -> usize {
        let out = self.begin("count");
        let fault = Fault { calls, act: "", at: 0 };
        let struck = strike(&mut (self.command)(self.room.path(), &out), self.room.path(), fault);
        assert_eq!(struck.code(), Some(0), "{}", struck.stderr);
        self.end("count");
        struck.counted
    }

    fn begin(&self, name: &str) -> PathBuf {
        let out = self.out(name);
        link_tree(&self.room.path().join("earlier"), &out);
        out
    }

    fn end(&self, name: &str) {
        std::fs::remove_dir_all(self.out(name)).unwrap();
    }

    /// A run with a fault over the earlier output, looked at by `judge`; then the next run.
    pub fn disturb(&self, fault: Fault<'_>, judge: impl FnOnce(&Left<'_>)) -> bool {
        let name = format!("{}-{}-{}", fault.calls.split(',').count(), fault.act, fault.at);
        let out = self.begin(&name);
        let struck = strike(&mut (self.command)(self.room.path(), &out), self.room.path(), fault);
        let hit = struck.call.is_some();
        let about = format!(
            "{} {fault:?} at {:?}: {}\n{}",
            self.name, struck.call, struck.output.status, struck.stderr
        );
        assert!(!struck.stderr.contains("panicked"), "{about}");
        assert!(!struck.stderr.contains("a bug in rockpack"), "{about}");
        let tree = visible(&out);
        judge(&Left { scenario: self, struck, tree, unfinished: unfinished(&out), about });
        tools::run(&mut (self.command)(self.room.path(), &out));
        assert!(visible(&out) == self.whole, "{} {fault:?}: the next run", self.name);
        assert_eq!(unfinished(&out), [""; 0], "{} {fault:?}: the next run", self.name);
        self.end(&name);
        hit
    }
}

/// A sweep over places, all of which are tried before the first failure is told.
#[derive(Default)]
pub struct Sweep {
    pub hits: usize,
    failures: Vec<String>,
}

impl Sweep {
    pub fn strike(&mut self, scenario: &Scenario, fault: Fault<'_>, judge: impl Fn(&Left<'_>)) {
        let result = catch_unwind(AssertUnwindSafe(|| scenario.disturb(fault, judge)));
        match result {
            Ok(hit) => self.hits += usize::from(hit),
            Err(panic) => {
                let text = panic.downcast_ref::<String>().cloned();
                self.failures.push(text.unwrap_or_default());
            }
        }
    }

    pub fn finish(self, about: &str) {
        let failures = self.failures;
        assert!(failures.is_empty(), "{about}: {} failed\n{}", failures.len(), failures.join("\n"));
        assert!(self.hits > 0, "{about}: no call was struck");
        if all() {
            println!("{about}: {} calls", self.hits);
        }
    }
}

/// What a disturbed run left.
pub struct Left<'a> {
    scenario: &'a Scenario,
    pub struck: Struck,
    tree: Tree,
    pub unfinished: Vec<String>,
    /// For messages.
    pub about: String,
}

impl Left<'_> {
    /// All of the new output, and nothing else.
    pub fn is_whole(&self) {
        assert!(self.tree == self.scenario.whole, "{}: not the new output", self.about);
        self.left_nothing();
    }

    /// No unfinished folder, unless that one could not be cleared away: the next run does.
    pub fn left_nothing(&self) {
        let (_, path) = self.struck.call.clone().unwrap_or_default();
        let stuck = self.unfinished.iter().any(|name| path.to_str().unwrap().contains(name));
        assert!(stuck || self.unfinished.is_empty(), "{}: {:?}", self.about, self.unfinished);
    }

    /// Each unit is whole: the earlier one or the new one. Which units are new.
    fn units(&self) -> Vec<&str> {
        let unit = self.scenario.unit;
        let of = |tree: &Tree, name: &str| -> Tree {
            let of_it = tree.iter().filter(|(path, _)| unit(path) == name);
            of_it.map(|(path, entry)| (path.clone(), entry.clone())).collect()
        };
        let (earlier, whole) = (&self.scenario.earlier, &self.scenario.whole);
        let mut names: Vec<&str> =
            earlier.keys().chain(whole.keys()).map(|path| unit(path)).collect();
        names.sort_unstable();
        names.dedup();
        names.retain(|name| {
            let now = of(&self.tree, name);
            let (old, new) = (now == of(earlier, name), now == of(whole, name));
            assert!(old || new, "{}: {name} is neither old nor new", self.about);
            new
        });
        names
    }

    /// The earlier output as it was, where it becomes visible at once.
    pub fn is_earlier(&self) {
        let new = self.units();
        let once = (self.scenario.unit)("a") == (self.scenario.unit)("b");
        assert!(!once || new.is_empty(), "{}: the output is new", self.about);
    }

    /// Nothing in part under a final name: every file is that of the earlier output or of the new.
    pub fn has_no_part(&self) {
        for (path, entry) in &self.tree {
            let is = |tree: &Tree| tree.get(path) == Some(entry);
            let folder = matches!(entry, Entry::Folder { .. });
            let known = is(&self.scenario.earlier) || is(&self.scenario.whole);
            assert!(known || folder, "{}: {path} is neither old nor new", self.about);
        }
        let receipt = self.tree.get("packages.json");
        if receipt.is_some() {
            self.units();
        }
    }
}
