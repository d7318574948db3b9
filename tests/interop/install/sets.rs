//! The sets that scenarios install.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock};

use serde_json::{Value, json};
use support::example::{GROUPS, Group, configuration, copy_shards, rockpack, shards};
use support::tools;
use tempfile::TempDir;

use crate::install::updates::components::{self, Revision};

/// The path of the sparse suite's library in a shard.
pub const SPARSE_LIBRARY: &str =
    "host-suite-sparse_lib_generic/third-party/SuiteSparse/stage/lib/libexsuitesparse.so.7.8";

/// The path of the sparse suite's stage in a shard.
const SPARSE_STAGE: &str = "host-suite-sparse_lib_generic/third-party/SuiteSparse/stage";

/// An entry to add to the library's stage, or to the sparse suite's, in every shard.
#[derive(Debug, Clone, Copy)]
pub enum Planted {
    /// A file with this text.
    File(&'static str, &'static str),
    /// A link with this target.
    Link(&'static str, &'static str),
    /// A file of the sparse suite.
    SparseFile(&'static str, &'static str),
    /// A link of the sparse suite.
    SparseLink(&'static str, &'static str),
}

impl Planted {
    fn plant(self, group: &Group, artifacts: &Path) {
        let stage = match self {
            Self::File(..) | Self::Link(..) => group.stage(artifacts, "lib"),
            Self::SparseFile(..) | Self::SparseLink(..) => {
                group.folder(artifacts).join(SPARSE_STAGE)
            }
        };
        let (Self::File(path, text)
        | Self::Link(path, text)
        | Self::SparseFile(path, text)
        | Self::SparseLink(path, text)) = self;
        let place = stage.join(path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        match self {
            Self::File(..) | Self::SparseFile(..) => fs::write(place, text).unwrap(),
            Self::Link(..) | Self::SparseLink(..) => symlink(text, place).unwrap(),
        }
    }
}

/// The recipe of a set. Only the version is required.
#[derive(Debug, Clone, Default)]
pub struct Recipe {
    pub version: &'static str,
    /// Keys added to the example configuration.
    pub keys: Option<Value>,
    pub options: Vec<String>,
    /// Files to write into the stage of every shard's library.
    pub changes: &'static [(&'static str, &'static str)],
    /// Further entries to add to every shard.
    pub planted: &'static [Planted],
    /// Whether the sparse suite's libraries differ.
    pub other_sparse: bool,
    /// Files to remove from the stage of every shard's programs.
    pub without: &'static [&'static str],
    /// A library of two families, and its debug file.
    pub sample: Option<(PathBuf, PathBuf)>,
    /// The changed components, in shards with five components; unset for the usual shards.
    pub revisions: Option<Vec<Revision>>,
    /// The number of parts to build the set in; zero for one piece.
    pub parts: usize,
    /// Folders of the sets that this one updates.
    pub earlier: Vec<PathBuf>,
}

impl Recipe {
    pub fn new(version: &'static str) -> Self {
        Self { version, ..Self::default() }
    }

    pub fn keys(self, keys: Value) -> Self {
        Self { keys: Some(keys), ..self }
    }

    pub fn option(mut self, name: &str, value: &Path) -> Self {
        self.options.extend([name.to_owned(), value.display().to_string()]);
        self
    }

    pub fn scheme(mut self, name: &str) -> Self {
        self.options.extend(["--scheme".to_owned(), name.to_owned()]);
        self
    }

    pub fn changes(self, changes: &'static [(&'static str, &'static str)]) -> Self {
        Self { changes, ..self }
    }

    pub fn planted(self, planted: &'static [Planted]) -> Self {
        Self { planted, ..self }
    }

    pub fn without(self, without: &'static [&'static str]) -> Self {
        Self { without, ..self }
    }

    pub fn other_sparse(self) -> Self {
        Self { other_sparse: true, ..self }
    }

    pub fn sample(self, library: &Path, debug: &Path) -> Self {
        Self { sample: Some((library.to_owned(), debug.to_owned())), ..self }
    }

    /// Uses shards with five components, with these changes.
    pub fn revisions(self, revisions: &[Revision]) -> Self {
        Self { revisions: Some(revisions.to_vec()), ..self }
    }

    pub fn parts(self, parts: usize) -> Self {
        Self { parts, ..self }
    }

    pub fn text(mut self, name: &str, value: &str) -> Self {
        self.options.extend([name.to_owned(), value.to_owned()]);
        self
    }

    /// Makes a further release as an update of `sets`; it reads the last one's receipts.
    pub fn on(mut self, release: &str, sets: &[&Built]) -> Self {
        let last = sets.last().unwrap().receipts();
        self.earlier = sets.iter().map(|set| set.out()).collect();
        let with_release = self.text("--release", release);
        last.iter().fold(with_release, |recipe, receipt| recipe.option("--since", receipt))
    }

    /// Builds the set, once for all systems and scenarios.
    pub fn build(&self) -> Arc<Built> {
        static BUILT: Mutex<BTreeMap<String, Arc<OnceLock<Arc<Built>>>>> =
            Mutex::new(BTreeMap::new());
        let built = BUILT.lock().unwrap().entry(format!("{self:?}")).or_default().clone();
        built.get_or_init(|| Arc::new(self.build_anew())).clone()
    }

    fn build_anew(&self) -> Built {
        let (recipe, folder) = (self.clone(), tempfile::tempdir().unwrap());
        let built = Built { recipe, folder, plan: OnceLock::new() };
        fs::write(built.config(), self.config().to_string()).unwrap();
        for part in 1..=self.parts {
            built.run_build(&["--partition", &format!("{part}/{}", self.parts)]);
        }
        if self.parts == 0 {
            built.run_build(&[]);
        }
        built
    }

    /// The example configuration with the added keys.
    fn config(&self) -> Value {
        let mut config: Value =
            serde_json::from_slice(&fs::read(configuration()).unwrap()).unwrap();
        let added = self.keys.iter().flat_map(|keys| keys.as_object().unwrap());
        added.for_each(|(key, value)| config[key] = value.clone());
        config
    }

    fn artifacts(&self, folder: &Path) -> PathBuf {
        let is_changed =
            !self.changes.is_empty() || !self.planted.is_empty() || !self.without.is_empty();
        let is_changed = is_changed || self.revisions.is_some();
        if !is_changed && !self.other_sparse && self.sample.is_none() {
            return shards();
        }
        let copy = folder.join("artifacts");
        if !copy.exists() {
            copy_shards(&copy);
            GROUPS.iter().for_each(|group| self.change(group, &copy));
        }
        copy
    }

    fn change(&self, group: &Group, artifacts: &Path) {
        for (path, text) in self.changes {
            let file = group.stage(artifacts, "lib").join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        self.planted.iter().for_each(|planted| planted.plant(group, artifacts));
        for path in self.without {
            fs::remove_file(group.stage(artifacts, "run").join(path)).unwrap();
        }
        if let Some(sample) = &self.sample {
            crate::install::debug::add(sample, group, artifacts);
        }
        if let Some(revisions) = &self.revisions {
            components::add(revisions, group, artifacts);
        }
        if self.other_sparse {
            let file = group.folder(artifacts).join(SPARSE_LIBRARY);
            let mut bytes = fs::read(&file).unwrap();
            // Bytes after the end of an ELF file are never read.
            bytes.extend_from_slice(b"another build");
            fs::write(&file, bytes).unwrap();
        }
    }
}

/// A set in its own folder.
pub struct Built {
    recipe: Recipe,
    folder: TempDir,
    plan: OnceLock<Value>,
}

impl Built {
    pub fn out(&self) -> PathBuf {
        self.folder.path().join("out")
    }

    pub fn receipt(&self) -> PathBuf {
        self.out().join("packages.json")
    }

    /// The receipts of the set, one for each part.
    pub fn receipts(&self) -> Vec<PathBuf> {
        let names = support::example::names(&self.out());
        let receipts = names.into_iter().filter(|name| name.ends_with(".json"));
        receipts.map(|name| self.out().join(name)).collect()
    }

    fn run_build(&self, options: &[&str]) {
        tools::run(self.command("build").arg("--out").arg(self.out()).args(options));
    }

    fn config(&self) -> PathBuf {
        self.folder.path().join("config.json")
    }

    /// A rockpack command with the set's options.
    fn command(&self, name: &str) -> Command {
        let mut command = rockpack();
        let artifacts = self.recipe.artifacts(self.folder.path());
        command.arg(name).arg("--artifacts").arg(artifacts).arg("--config").arg(self.config());
        command.args(["--version", self.recipe.version]).args(&self.recipe.options);
        command
    }

    /// The packages for a group according to the plan.
    pub fn planned(&self, group: &str, format: &str) -> BTreeSet<String> {
        let plan = self.plan.get_or_init(|| {
            let text = tools::succeed(self.command("plan").arg("--json"));
            serde_json::from_str(&text).unwrap()
        });
        let groups = plan["groups"].as_array().unwrap().iter();
        let mut same = groups.filter(|sum| sum["group"] == group && sum["format"] == format);
        let sum = same.next().unwrap();
        let names = sum["packages"].as_array().unwrap().iter();
        names.map(|name| name.as_str().unwrap().to_owned()).collect()
    }

    /// The packages of the set in one format.
    pub fn packages(&self, format: &str) -> BTreeSet<String> {
        let ids = self.receipts().into_iter().flat_map(|file| {
            let receipt: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
            let packages = receipt["packages"].as_array().unwrap().clone().into_iter();
            let same = packages.filter(|package| package["format"] == format);
            same.map(|package| package["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        });
        ids.collect()
    }
}

/// Selectors that put the sparse suite into `rocm-blas`.
pub fn joined() -> Value {
    json!({ "selectors": { "rocm-blas": [
        { "artifact": "blas" },
        { "artifact": "host-suite-sparse" }
    ] } })
}
