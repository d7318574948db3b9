//! Libraries and kernel archives in other folders of the prefix: `libdir` and `kpackdir`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use support::example::{
    COMMON, GROUPS, PREFIX, VERSION, configuration, copy_shards, deb_name, kernels, rockpack,
    rpm_name,
};
use support::queries::{deb_field, rpm_list};
use support::runtime::{Runtime, TOOLS, found, missing};
use support::tools;
use tempfile::TempDir;

const LIBRARY: &str = "lib64/libexblas.so.1";
const PROGRAMS: [&str; 2] = ["bin/exblas-bench", "libexec/exblas/exblas-tune"];

/// The example shards, changed to what a build with another library folder leaves.
struct Shards(TempDir);

impl Shards {
    fn with(libdir: &str) -> Self {
        let shards = Self(tempfile::tempdir().unwrap());
        copy_shards(&shards.artifacts());
        shards.rename(&shards.artifacts(), libdir);
        shards
    }

    fn rename(&self, folder: &Path, libdir: &str) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if !path.is_dir() || path.is_symlink() {
                continue;
            }
            if path.file_name().is_some_and(|name| name == "stage") && path.join("lib").is_dir() {
                fs::rename(path.join("lib"), path.join(libdir)).unwrap()
            } else {
                self.rename(&path, libdir)
            }
        }
    }

    fn artifacts(&self) -> PathBuf {
        self.0.path().join("shards")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A build with `keys` in its configuration.
    fn build(&self, keys: &[(&str, &str)]) -> Command {
        let mut config: Value =
            serde_json::from_slice(&fs::read(configuration()).unwrap()).unwrap();
        keys.iter().for_each(|(key, value)| config[*key] = Value::from(*value));
        fs::write(self.path("config.json"), config.to_string()).unwrap();
        let mut command = rockpack();
        command.arg("build").arg("--artifacts").arg(self.artifacts());
        command.arg("--config").arg(self.path("config.json")).args(["--version", VERSION]);
        command.arg("--out").arg(self.path("out"));
        command
    }

    /// The packages of a device's group, unpacked by dpkg-deb.
    fn unpacked(&self) -> PathBuf {
        let root = self.path("root");
        for package in ["rocm-blas".to_owned(), kernels(&GROUPS[0]), COMMON.to_owned()] {
            let deb = self.path("out").join(deb_name(&package));
            tools::run(Command::new("dpkg-deb").arg("-x").arg(deb).arg(&root));
        }
        root
    }

    /// Fails unless the library and the programs find a device's archives in `folder` of the prefix.
    fn works(&self, folder: &str) {
        let root = self.unpacked();
        let prefix = root.join(PREFIX);
        let binaries: Vec<PathBuf> =
            PROGRAMS.iter().chain([&LIBRARY]).map(|path| prefix.join(path)).collect();
        let runtime = Runtime::build(&self.path("stub"), &binaries);
        // A whole system's loader reads this file.
        let line = fs::read_to_string(root.join("etc/ld.so.conf.d/rocm.conf")).unwrap();
        assert_eq!(line, format!("/{PREFIX}/lib64\n"));
        let described = deb_field(&self.path("out").join(deb_name(COMMON)), "Description");
        assert!(described.contains(&format!("libraries in /{PREFIX}/lib64 known")), "{described}");
        let runtime = runtime.library_path(&root.join(line.trim().trim_start_matches('/')));
        let mut lines = runtime.load(&[prefix.join(LIBRARY)], "gfx1101");
        for program in PROGRAMS {
            lines.extend(runtime.run(&prefix.join(program), "gfx1101"));
        }
        assert_eq!(missing(&lines), Vec::<&str>::new());
        let archives: BTreeSet<PathBuf> =
            found(&lines).into_iter().map(|found| found.archive.clone()).collect();
        let archive = prefix.join(folder).join("blas_lib_gfx1101.kpack").canonicalize().unwrap();
        assert_eq!(archives, BTreeSet::from([archive]));
    }

    fn verify(&self, arguments: &[&str]) {
        let mut verify = rockpack();
        verify.current_dir(self.0.path()).arg("verify").args(arguments);
        tools::run(&mut verify);
    }

    fn rpm(&self, package: &str, query: &str) -> String {
        rpm_list(&self.path("out").join(rpm_name(package)), query)
    }
}

#[test]
fn archives_follow_the_folder_of_libraries() {
    tools::need(&["dpkg-deb", "rpm"]);
    tools::need(TOOLS);
    let shards = Shards::with("lib64");
    let output = tools::run(&mut shards.build(&[("libdir", "lib64")]));
    assert!(!String::from_utf8_lossy(&output.stderr).contains("R083"));
    shards.works("lib64/.kpack");
    shards.verify(&["out", "--against", "shards"]);
    shards.verify(&[&format!("root/{PREFIX}")]);

    // The `.rpm` also registers the folder with the dynamic linker, even at another prefix.
    let moved = shards.rpm(COMMON, "--scripts");
    assert!(moved.contains("\"$prefix/lib64\""), "{moved}");
    let provides = shards.rpm("rocm-blas", "--provides");
    assert!(provides.contains("libexblas.so.1()(64bit)"), "{provides}");
    let requires = shards.rpm("rocm-blas", "--requires");
    assert!(requires.contains(&format!("{COMMON} >= {VERSION}-1")), "{requires}");
    let listed = shards.rpm(&kernels(&GROUPS[0]), "-l");
    assert!(listed.contains(&format!("/{PREFIX}/lib64/.kpack/blas_lib_gfx1102.kpack")), "{listed}");
    assert!(!listed.contains(&format!("/{PREFIX}/lib/")), "{listed}");
}

#[test]
fn archives_lie_where_the_configuration_says() {
    tools::need(&["dpkg-deb"]);
    tools::need(TOOLS);
    for folder in ["lib64/rocm/kpack", ".kpack", "share/kernels"] {
        let shards = Shards::with("lib64");
        let keys = [("libdir", "lib64"), ("kpackdir", folder)];
        tools::run(shards.build(&keys).args(["--format", "deb"]));
        shards.works(folder);
        shards.verify(&["out", "--against", "shards"]);
        shards.verify(&["--installed", &format!("root/{PREFIX}")]);
        let manifest = shards.path("root").join(PREFIX).join(folder).join("blas_lib.kpm");
        let shown = tools::succeed(rockpack().arg("inspect").arg("--json").arg(manifest));
        let above = folder.rsplit_once('/').map_or(".", |(above, _)| above);
        assert!(shown.replace(' ', "").contains(&format!("\"prefix\":\"{above}\"")), "{shown}");
    }
}

#[test]
fn libraries_where_the_loader_is_not_told_to_look_are_a_finding() {
    let shards = Shards::with("lib64");
    let without = told_by_build(&shards, &[]);
    let remedy = "set `libdir` to lib64 if the artifacts were built for it";
    assert!(
        without.contains("R083 library-misplaced: rocm-blas: programs do not find"),
        "{without}"
    );
    assert!(without.contains("lib64/libexblas.so.1"), "{without}");
    assert!(without.contains(remedy), "{without}");
    let shards = Shards::with("lib");
    let with = told_by_build(&shards, &[("libdir", "lib64")]);
    assert!(with.contains("the loader searches lib64"), "{with}");
    assert!(!told_by_build(&shards, &[]).contains("R083"));
}

fn told_by_build(shards: &Shards, keys: &[(&str, &str)]) -> String {
    let output = tools::run(&mut shards.build(keys));
    String::from_utf8_lossy(&output.stderr).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn folders_that_cannot_be_the_prefixs_are_refused() {
    let shards = Shards::with("lib");
    for key in ["libdir", "kpackdir"] {
        for value in ["", "/usr/lib64", "../lib", "lib/../..", "lib/", "a b", "$LIB"] {
            let output = shards.build(&[(key, value)]).output().unwrap();
            let told = String::from_utf8_lossy(&output.stderr)
                .into_owned()
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ");
            assert_eq!(output.status.code(), Some(64), "{key} {value}: {told}");
            assert!(
                told.contains(&format!("`{value}` cannot be a folder below the prefix")),
                "{told}"
            );
            assert!(told.contains("line 1, column") && told.contains(key), "{told}");
            assert!(!shards.path("out").exists());
        }
    }
}
