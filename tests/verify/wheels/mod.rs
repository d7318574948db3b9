//! Python wheels: an undamaged set passes, and each damage is found.
//!
//! The set is put together by hand from a split artifact, so that it does not depend on the writer of wheels.

mod against;
mod bytes;
mod code;
mod headers;
mod installed;
mod members;
mod shim;
mod together;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use support::tampered::{Run, shard, verify};
use support::wheels::LooseWheel;
use tempfile::TempDir;

use crate::folders::split;

const TAGS: &str = "py3-none-manylinux_2_28_x86_64";
const VERSION: &str = "1.0+rocm7.1";
const HOST: &str = "ex_blas";
const LIBRARY: &str = "lib/libexblas.so.1.2";
const DATABASE: &str = "lib/rocblas/library";

/// The archs of the shard that is split.
const ARCHS: [&str; 4] = ["gfx1100", "gfx1101", "gfx1102", "gfx906"];

fn file_name(distribution: &str) -> String {
    format!("{distribution}-{VERSION}-{TAGS}.whl")
}

fn device(arch: &str) -> String {
    format!("{HOST}_device_{arch}")
}

fn archive(arch: &str) -> String {
    format!("lib/.kpack/blas_lib_{arch}.kpack")
}

/// The line of a requirement.
fn pin(distribution: &str, extra: &str) -> String {
    let name = distribution.replace('_', "-");
    let marker = if extra.is_empty() { String::new() } else { format!("; extra == \"{extra}\"") };
    format!("Requires-Dist: {name} == {VERSION}{marker}\n")
}

/// Adds all files of an artifact, with their modes and without links and manifests.
fn add_files(wheel: &mut LooseWheel, artifact: &Path) {
    let mut folders = vec![artifact.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let metadata = fs::symlink_metadata(&path).unwrap();
            let name = path.to_str().unwrap().split_once("/stage/").map(|(_, name)| name);
            if metadata.is_dir() {
                folders.push(path);
            } else if let Some(name) = name.filter(|name| !name.ends_with(".kpm"))
                && metadata.is_file()
            {
                wheel.add(name, fs::read(&path).unwrap());
            }
        }
    }
}

/// The folder with the wheels as they are made, and a fat one in a folder of its own.
fn made() -> &'static Path {
    static MADE: OnceLock<TempDir> = OnceLock::new();
    let make = || {
        let folder = tempfile::tempdir().unwrap();
        for name in ["set", "fat"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        let split = split().join("split/gfx110X-build");
        let mut fields = String::new();
        for arch in ARCHS {
            let extra = format!("device-{arch}");
            fields.push_str(&format!("Provides-Extra: {extra}\n{}", pin(&device(arch), &extra)));
        }
        fields.push_str("Provides-Extra: device-all\n");
        fields.extend(ARCHS.map(|arch| pin(&device(arch), "device-all")));
        let mut host = LooseWheel::new(&file_name(HOST), &fields);
        add_files(&mut host, &split.join("blas_lib_generic"));
        host.write(&folder.path().join("set"));
        for arch in ARCHS {
            let mut wheel = LooseWheel::new(&file_name(&device(arch)), &pin(HOST, ""));
            add_files(&mut wheel, &split.join(format!("blas_lib_{arch}")));
            wheel.write(&folder.path().join("set"));
        }
        let mut fat = LooseWheel::new(&file_name(HOST), "");
        add_files(&mut fat, &shard("gfx110X"));
        fat.write(&folder.path().join("fat"));
        folder
    };
    MADE.get_or_init(make).path()
}

/// The fat wheel.
fn fat() -> PathBuf {
    made().join("fat").join(file_name(HOST))
}

/// A copy of the set that may be spoiled.
struct Wheels(TempDir);

impl Wheels {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for entry in fs::read_dir(made().join("set")).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
        }
        Self(folder)
    }

    fn path(&self, distribution: &str) -> PathBuf {
        self.0.path().join(file_name(distribution))
    }

    fn read(&self, distribution: &str) -> LooseWheel {
        LooseWheel::read(&self.path(distribution))
    }

    /// Changes a wheel, whose RECORD then fits.
    fn edit(&self, distribution: &str, edit: impl FnOnce(&mut LooseWheel)) {
        let mut wheel = self.read(distribution);
        edit(&mut wheel);
        wheel.write(self.0.path());
    }

    /// Changes a wheel with its RECORD.
    fn edit_as_is(&self, distribution: &str, edit: impl FnOnce(&mut LooseWheel)) {
        let mut wheel = self.read(distribution);
        edit(&mut wheel);
        wheel.write_as_is(self.0.path());
    }

    fn remove(&self, distribution: &str) {
        fs::remove_file(self.path(distribution)).unwrap();
    }

    fn verify(&self, arguments: &[&str]) -> Run {
        verify(&[self.0.path().to_str().unwrap()], arguments)
    }

    #[track_caller]
    fn fires_nothing(&self) {
        self.verify(&[]).fired(&[]);
    }

    /// Asserts which checks fail, and that one of them says all of `words`.
    #[track_caller]
    fn fires(&self, codes: &[&str], words: &[&str]) {
        let run = self.verify(&[]);
        run.fired(codes);
        says(&run, words);
    }
}

/// Asserts that a problem says all of `words`.
#[track_caller]
fn says(run: &Run, words: &[&str]) {
    let problems = run.problems();
    let mut texts = problems.iter().map(|it| format!("{} {}", it["subject"], it["message"]));
    assert!(texts.any(|text| words.iter().all(|word| text.contains(word))), "{}", run.text);
}
