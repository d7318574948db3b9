//! A folder for steps with one cache.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::archives::{Draft, code, digest, marker};
use crate::program::{both, steps};

/// A folder with a marker of `lib/x.so`.
pub struct World {
    folder: TempDir,
}

impl World {
    /// A folder with a marker that has these paths.
    pub fn new(paths: &[&str]) -> Self {
        let world = Self { folder: tempfile::tempdir().unwrap() };
        marker(world.path(), paths);
        world
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes an archive for gfx1100 with one code object of this seed.
    pub fn archive(&self, name: &str, seed: u32) -> PathBuf {
        Draft::zstd(&["gfx1100"], &[code(seed, 5000)]).write(self.path().join(name))
    }

    /// The arguments for steps with one cache, in which `@` is the folder.
    pub fn with_cache(&self, list: &[&str]) -> Vec<String> {
        let folder = self.path().to_str().unwrap();
        let all = ["marker @/marker", "cache"].iter().chain(list);
        all.map(|step| step.replace('@', folder)).collect()
    }

    /// The lines of the standard output, and the standard error, of steps with one cache, in which `@` is the
    /// folder.
    pub fn both(&self, list: &[&str]) -> (Vec<String>, String) {
        let all = self.with_cache(list);
        let (out, errors) = both(&mut steps(&all.iter().map(String::as_str).collect::<Vec<_>>()));
        (out.lines().map(str::to_owned).collect(), errors)
    }

    /// The lines of the standard output of steps, see [`both`](Self::both).
    pub fn run(&self, list: &[&str]) -> Vec<String> {
        self.both(list).0
    }
}

/// The line of a load of the code object with this seed.
pub fn loaded(seed: u32) -> String {
    format!("0 5000 {}", digest(&code(seed, 5000)))
}
