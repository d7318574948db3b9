//! The libraries of installed wheels, loaded by the dynamic loader and the runtime library.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::runtime::{Line, Runtime, TOOLS, answers, fat, found, missing};
use support::tools::{self, need};
use support::{fixtures, kpack};

use super::lossless::{expected, spelled, unpack};
use super::made;

/// The archs of each wrapper in a library with three.
const OTHER: &[&str] = &["gfx1100", "gfx90a:xnack+"];

/// The fat wheel's libraries, with the archs of each of their wrappers.
const LIBRARIES: [(&str, &[&[&str]]); 5] = [
    (
        "x/_C.so",
        &[&["gfx1100", "gfx1101", "gfx1102", "gfx906"], &["gfx1100", "gfx1101", "gfx1102"]],
    ),
    ("x/sub/_C.so", &[&["gfx1200", "gfx1201", "gfx906"], &["gfx1200", "gfx1201"]]),
    ("x.libs/libexblas-1a2b3c4d.so.1.2", &[&["gfx1151"], &["gfx1151", "gfx906"]]),
    ("y/_D.so", &[OTHER, OTHER, OTHER]),
    ("_E.so", &[&["gfx1151"], &["gfx1151", "gfx906"]]),
];

/// All wheels installed into one folder.
struct Installed {
    room: tempfile::TempDir,
    runtime: Runtime,
    /// The SHA-256 of the code object of a row, by archive, key and target.
    rows: BTreeMap<(PathBuf, String, String), String>,
}

impl Installed {
    fn new() -> Self {
        let room = tempfile::tempdir().unwrap();
        let site = room.path().join("site");
        let wheels = made().wheels();
        unpack(&wheels.keys().map(|name| made().out().join(name)).collect::<Vec<_>>(), &site);
        let libraries: Vec<PathBuf> = LIBRARIES.iter().map(|(name, _)| site.join(name)).collect();
        let runtime = Runtime::build(&room.path().join("stub"), &libraries).with_kpack_library();
        let mut rows = BTreeMap::new();
        for archive in fs::read_dir(site.join("x/.kpack")).unwrap() {
            let path = archive.unwrap().path().canonicalize().unwrap();
            let toc = kpack::judged(&fixtures::content(&path));
            for (key, targets) in toc["rows"].as_object().unwrap() {
                for (target, row) in targets.as_object().unwrap() {
                    let digest = row["sha256"].as_str().unwrap().to_owned();
                    rows.insert((path.clone(), key.clone(), target.clone()), digest);
                }
            }
        }
        Self { room, runtime, rows }
    }

    fn site(&self) -> PathBuf {
        self.room.path().join("site")
    }

    fn load(&self, name: &str, device: &str) -> Vec<Line> {
        self.runtime.load(&[self.site().join(name)], device)
    }

    /// Fails unless each library's wrappers get the fat wheel's bytes for each arch.
    fn resolves(&self, expected: &BTreeMap<(String, String), String>) {
        for (name, wrappers) in LIBRARIES {
            let mut archs: Vec<&str> = wrappers.concat();
            archs.sort_unstable();
            archs.dedup();
            for arch in archs {
                let lines = self.load(name, arch);
                let own: Vec<usize> =
                    (0..wrappers.len()).filter(|at| wrappers[*at].contains(&arch)).collect();
                let found = found(&lines);
                assert_eq!(found.len(), own.len(), "{name} {arch}: {lines:#?}");
                // The stand-in and the library each report it.
                assert_eq!(
                    missing(&lines).len(),
                    2 * (wrappers.len() - own.len()),
                    "{name} {arch}: {lines:#?}"
                );
                assert_eq!(fat(&lines, name.rsplit('/').next().unwrap()), 0, "{name} is fat");
                for (index, found) in own.iter().zip(&found) {
                    let key = format!("{name}#{index}");
                    assert_eq!(found.key, key, "{arch}");
                    let row = (found.archive.clone(), key.clone(), found.target.clone());
                    let code = &self.rows[&row];
                    assert_eq!(code, &expected[&(key, spelled(&found.target))], "{name} {arch}");
                }
                // The runtime library gave the same bytes.
                assert_eq!(answers(&lines, 0), found.len(), "{name} {arch}: {lines:#?}");
            }
        }
    }

    fn each(&self, command: impl Fn() -> Command) {
        for (name, _) in LIBRARIES {
            tools::run(command().arg(self.site().join(name)));
        }
    }
}

#[test]
fn every_wrapper_gets_its_code_from_the_installed_wheels() {
    need(&["clang-offload-bundler-19", "strip", "patchelf"]);
    need(TOOLS);
    kpack::need_python();
    let (installed, expected) = (Installed::new(), expected());
    installed.resolves(expected);
    installed.each(|| Command::new("strip"));
    let run_path = format!("$ORIGIN:{}", "/nowhere".repeat(40));
    installed.each(|| {
        let mut patchelf = Command::new("patchelf");
        patchelf.args(["--set-rpath", &run_path]);
        patchelf
    });
    installed.resolves(expected);
    // Without an arch's wheel its code is missing, and no other arch's code replaces it.
    remove(&installed.site(), "_gfx1101.kpack");
    let lines = installed.load("x/_C.so", "gfx1101");
    assert_eq!((found(&lines).len(), missing(&lines).len()), (0, 2), "{lines:?}");
    assert_eq!(found(&installed.load("x/_C.so", "gfx1100")).len(), 2);
}

fn remove(site: &Path, ending: &str) {
    let mut archives =
        fs::read_dir(site.join("x/.kpack")).unwrap().map(|entry| entry.unwrap().path());
    let own = archives.find(|path| path.to_str().unwrap().ends_with(ending)).unwrap();
    fs::remove_file(own).unwrap();
}
