//! `examples/Containerfile`, its instructions carried out in roots of Debian without a container engine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::bases::{copy, debian};
use support::example::names;
use support::program::repository;
use support::tools;
use tempfile::TempDir;

use crate::install::own;

/// The folder in the build context that `.ci/release` fills.
const DIST: &str = "target/dist/";

/// The stages of a build, each a root; the last one becomes the image.
struct Stages {
    folder: TempDir,
    names: Vec<String>,
    arguments: Vec<(String, String)>,
}

impl Stages {
    fn root(&self, stage: usize) -> PathBuf {
        self.folder.path().join(stage.to_string())
    }

    fn last(&self) -> PathBuf {
        self.root(self.names.len() - 1)
    }

    /// `debian:SUITE-slim`, or `debian:SUITE-slim AS NAME`.
    fn begin(&mut self, words: &str) {
        let (image, name) = words.split_once(" AS ").unwrap_or((words, ""));
        let suite = image.strip_prefix("debian:").unwrap().strip_suffix("-slim").unwrap();
        self.names.push(name.to_owned());
        let root = self.last();
        copy(&debian(suite), &root);
        // No network.
        fs::write(root.join("etc/apt/sources.list"), "").unwrap();
        let configuration = root.join("etc/apt/apt.conf.d/sandbox");
        fs::write(configuration, "APT::Sandbox::User \"root\";\n").unwrap();
    }

    /// `NAME=DEFAULT`, unless the caller of the build gave a value.
    fn declare(&mut self, words: &str) {
        let (name, default) = words.split_once('=').unwrap();
        if self.arguments.iter().all(|(given, _)| given != name) {
            self.arguments.push((name.to_owned(), default.to_owned()));
        }
    }

    /// `SOURCE TARGET`, from the repository, or from rockpack's own packages.
    fn copy(&self, words: &str) {
        let (source, target) = words.split_once(' ').unwrap();
        let source = source.strip_prefix(DIST).map_or_else(
            || repository(source).display().to_string(),
            |name| own::packages().join(name).display().to_string(),
        );
        let target = format!("{}{target}", self.last().display());
        // The shell expands the pattern.
        tools::run(Command::new("sh").args(["-c", "cp -r $0 \"$1\"", &source, &target]));
    }

    /// A command, after at most one `--mount=type=bind,from=STAGE,target=FOLDER`.
    fn run(&self, words: &str) {
        let root = self.last();
        let Some((mount, command)) =
            words.strip_prefix("--mount=").and_then(|rest| rest.split_once(' '))
        else {
            return self.shell(&root, words);
        };
        let value = |key: &str| mount.split(',').find_map(|part| part.strip_prefix(key)).unwrap();
        assert_eq!(value("type="), "bind");
        let stage = self.names.iter().position(|name| name == value("from=")).unwrap();
        let target = root.join(value("target=").trim_start_matches('/'));
        fs::remove_dir(&target).unwrap();
        copy(&self.root(stage), &target);
        self.shell(&root, command);
        fs::remove_dir_all(&target).unwrap();
        fs::create_dir(target).unwrap();
    }

    fn shell(&self, root: &Path, command: &str) {
        let mut shell = Command::new("chroot");
        shell.arg(root).args(["/bin/sh", "-c", command]).env_clear();
        shell.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("DEBIAN_FRONTEND", "noninteractive");
        tools::run(shell.envs(self.arguments.iter().map(|(name, value)| (name, value))));
    }
}

/// The root that the instructions make, with this value of `GPU`.
fn image(gpu: &str) -> Stages {
    let mut stages = Stages {
        folder: tempfile::tempdir().unwrap(),
        names: Vec::new(),
        arguments: vec![("GPU".to_owned(), gpu.to_owned())],
    };
    let text = fs::read_to_string(repository("examples/Containerfile")).unwrap();
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    for line in lines.join("\n").replace("\\\n", "").lines().filter(|line| !line.is_empty()) {
        let (instruction, words) = line.split_once(' ').unwrap();
        match instruction {
            "FROM" => stages.begin(words),
            "ARG" => stages.declare(words),
            "COPY" => stages.copy(words),
            "RUN" => stages.run(words),
            other => panic!("{other} is not an instruction that this test carries out"),
        }
    }
    stages
}

/// The image has the kernels of the GPU, and no rockpack.
#[test]
fn an_image_has_the_packages_of_one_gpu() {
    tools::need(&["mmdebstrap", "chroot", "rpmbuild", "strip", "git"]);
    tools::need_root();
    let stages = image("RX 9070 XT");
    let root = stages.last();
    let archives = names(&root.join("opt/rocm-7.1/lib/.kpack"));
    let kernels: Vec<&String> = archives.iter().filter(|name| name.ends_with(".kpack")).collect();
    assert_eq!(kernels, ["blas_lib_gfx1200.kpack", "blas_lib_gfx1201.kpack"]);
    assert!(!root.join("usr/bin/rockpack").exists() && !root.join("packages").exists());
    assert!(names(&root.join("mnt")).is_empty());
}
