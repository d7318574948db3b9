//! Reports as files: by `report --out` and by `build --report`, and where none can be written.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::example::{
    GROUPS, Set, build_of, configuration, contents, copy_set, copy_shards, names, rockpack, shards,
};
use support::tools;
use tempfile::TempDir;

use super::{markdown, report};
use crate::refusals::{FAILED, USAGE};

/// A folder with the example set in `set`.
struct Room(TempDir);

impl Room {
    fn new() -> Self {
        let room = Self(tempfile::tempdir().unwrap());
        copy_set(&room.path("set"));
        room
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// `rockpack report` about a file or folder of this name.
    fn report(&self, set: &str, words: &[&str]) -> Command {
        let mut command = report(Path::new(set));
        command.args(words).current_dir(self.0.path());
        command
    }

    /// `rockpack build` of the shards into the folder `out`.
    fn build(&self, shards: &Path, words: &[&str]) -> Command {
        let mut build = build_of(shards, Path::new("out"));
        build.args(words).current_dir(self.0.path());
        build
    }
}

/// Fails unless the command ends with this code and says so, and nothing else.
#[track_caller]
fn is_refused(command: &mut Command, code: i32, expected: &str) {
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{said}");
    assert!(said.contains(expected), "no `{expected}` in\n{said}");
    assert!(!said.contains("panicked") && !said.contains("bug in rockpack"), "{said}");
    assert_eq!(output.stdout, b"", "{said}");
}

#[test]
fn a_build_writes_what_report_writes() {
    let room = Room::new();
    for file in ["out/a.html", "b.md", "out/b.md"] {
        tools::run(&mut room.build(&shards(), &["--report", file]));
        let other = format!("other-{}", file.replace('/', "-"));
        tools::run(&mut room.report("out", &["--out", &other]));
        assert!(room.read(file) == room.read(&other), "{file}");
        // Neither the time nor the place of a run is in a report.
        tools::run(&mut room.report("set/packages.json", &["--out", &other]));
        assert!(room.read(file) == room.read(&other), "{file}");
    }
    assert_eq!(room.read("b.md"), markdown(&room.path("out")));
    // A report in the folder of the set is in nobody's way.
    let with_reports = names(&room.path("out"));
    assert!(["a.html", "b.md"].iter().all(|name| with_reports.contains(*name)), "{with_reports:?}");
    tools::run(rockpack().arg("verify").arg(room.path("out")));
}

/// The build replaces the set that it is compared with.
#[test]
fn a_build_compares_with_the_set_that_it_replaces() {
    let room = Room::new();
    let artifacts = room.path("shards");
    copy_shards(&artifacts);
    tools::run(&mut room.build(&artifacts, &[]));
    fs::copy(room.path("out/packages.json"), room.path("first.json")).unwrap();
    for (release, since, compared) in
        [("2", &["set", "out/packages.json"][..], "first.json"), ("3", &["out", "set"], "set")]
    {
        for group in &GROUPS {
            let artifact = group.folder(&artifacts).join(format!("blas_lib_{}", group.family));
            let library = artifact.join("math-libs/BLAS/hipBLAS/stage/lib/libexcblas.so.1.0");
            let longer = [fs::read(&library).unwrap(), b"x".to_vec()].concat();
            fs::write(library, longer).unwrap();
        }
        let since = since.iter().flat_map(|set| ["--since", set]);
        let words = ["--release", release, "--report", "out/r.md"].into_iter().chain(since);
        tools::run(&mut room.build(&artifacts, &words.collect::<Vec<_>>()));
        tools::run(&mut room.report("out", &["--since", compared, "--out", "other.md"]));
        let written = room.read("out/r.md");
        assert_eq!(written, room.read("other.md"));
        assert!(written.contains("compared with 7.1.0-1\n"), "{written}");
        assert!(written.contains("\n- changed: .deb rocm-blas 7.1.0-1 → 7.1.0-"), "{written}");
        // All packages count, not only those that were made again.
        assert!(written.contains("\n## .deb: 12 packages, "), "{written}");
    }
}

#[test]
fn a_report_is_replaced_and_nothing_else() {
    let room = Room::new();
    for name in ["r.html", "r.md"] {
        fs::write(room.path(name), "old").unwrap();
        tools::run(&mut room.report("set", &["--out", name]));
        assert!(room.read(name).contains("Packages 7.1.0-1"));
    }
    fs::create_dir(room.path("folder.html")).unwrap();
    fs::write(room.path("target"), "text").unwrap();
    symlink("target", room.path("link.html")).unwrap();
    symlink("absent", room.path("dangling.md")).unwrap();
    for name in ["folder.html", "link.html", "dangling.md"] {
        let expected = format!("{name}: already exists, and is not a file");
        is_refused(&mut room.report("set", &["--out", name]), USAGE, &expected);
        is_refused(&mut room.build(&shards(), &["--report", name]), USAGE, &expected);
        assert!(!room.path("out").exists());
    }
    assert_eq!(room.read("target"), "text");
    assert!(room.path("link.html").is_symlink() && !room.path("absent").exists());
}

#[test]
fn places_without_a_report_are_refused_before_anything_is_built() {
    let room = Room::new();
    let ending = "a report is a .html or .md file";
    for (file, code, expected) in [
        ("r.txt", USAGE, format!("r.txt: {ending}")),
        ("r", USAGE, format!("r: {ending}")),
        ("set/packages.json", USAGE, format!("packages.json: {ending}")),
        ("-", USAGE, "not standard output".to_owned()),
        ("absent/r.html", FAILED, "absent/r.html: cannot create: No such file".to_owned()),
        ("out/absent/r.md", FAILED, "out/absent/r.md: cannot create: No such file".to_owned()),
    ] {
        is_refused(&mut room.report("set", &["--out", file]), code, &expected);
        is_refused(&mut room.build(&shards(), &["--report", file]), code, &expected);
        assert!(!room.path("out").exists(), "{file}");
    }
    let words = ["--partition", "1/2", "--report", "r.html"];
    let expected = "'--partition <I/N>' cannot be used with '--report <FILE>'";
    is_refused(&mut room.build(&shards(), &words), USAGE, expected);
    is_refused(&mut room.report("set", &["--json", "--out", "r.html"]), USAGE, "cannot be used");
    assert!(!room.path("out").exists() && !room.path("r.html").exists());
}

#[test]
fn what_is_no_receipt_of_a_whole_set_is_refused() {
    let room = Room::new();
    tools::run(&mut room.build(&shards(), &["--format", "deb", "--partition", "1/2"]));
    let mut plan = rockpack();
    plan.args(["plan", "--json", "--version", "7.1.0", "--format", "deb"]);
    let plan = tools::succeed(plan.arg("--artifacts").arg(shards()));
    fs::write(room.path("plan.json"), plan).unwrap();
    fs::write(room.path("text"), "text").unwrap();
    fs::create_dir(room.path("empty")).unwrap();
    for (name, code, expected) in [
        ("plan.json", USAGE, "plan.json: a report needs a receipt"),
        ("out/packages-1-of-2.json", USAGE, "is part 1/2 of its set alone"),
        ("out", USAGE, "out/packages.json: cannot open: No such file"),
        ("empty", USAGE, "empty/packages.json: cannot open: No such file"),
        ("absent", USAGE, "absent: cannot open: No such file"),
        ("text", FAILED, "text: is neither a receipt nor a plan"),
    ] {
        is_refused(&mut room.report(name, &[]), code, expected);
        is_refused(&mut room.report("set", &["--since", name]), code, expected);
        is_refused(&mut room.report(name, &["--out", "r.html"]), code, expected);
        assert!(!room.path("r.html").exists());
    }
    let output = room.report("plan.json", &[]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("help: name the packages.json that `build` wrote, or its folder"),
        "{said}"
    );
    let output = room.report("out/packages-1-of-2.json", &[]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("help: join the parts first: "), "{said}");
}

#[test]
fn the_same_set_gives_the_same_bytes() {
    let sets = [Set::build(), Set::build()];
    for words in [&["--json"][..], &[]] {
        let [one, other] =
            [0, 1].map(|at: usize| tools::run(report(&sets[at].out()).args(words)).stdout);
        assert!(one == other && !one.is_empty());
    }
    let folder = tempfile::tempdir().unwrap();
    for name in ["1.html", "2.html"] {
        tools::run(report(&sets[0].out()).arg("--out").arg(folder.path().join(name)));
    }
    let files = contents(folder.path());
    assert!(files["1.html"] == files["2.html"] && files.len() == 2);
}

/// A part says too little to be compared with: that is known before the build replaces anything.
#[test]
fn a_build_refuses_to_report_on_the_difference_from_a_part() {
    let room = Room::new();
    for part in ["1/2", "2/2"] {
        tools::run(&mut room.build(&shards(), &["--partition", part]));
    }
    fs::rename(room.path("out"), room.path("parts")).unwrap();
    let parts = ["--since", "parts/packages-1-of-2.json", "--since", "parts/packages-2-of-2.json"];
    let words = [&["--release", "2", "--report", "r.md"][..], &parts].concat();
    let expected = "is part 2/2 of its set alone";
    is_refused(&mut room.build(&shards(), &words), USAGE, expected);
    assert!(!room.path("out").exists() && !room.path("r.md").exists());
}

/// A plan and a folder of packages say too little for a comparison, so the receipt before them counts.
#[test]
fn a_build_compares_with_the_last_receipt() {
    let room = Room::new();
    let mut plan = rockpack();
    plan.args(["plan", "--json", "--version", "7.1.0", "--config"]).arg(configuration());
    let plan = tools::succeed(plan.arg("--artifacts").arg(shards()));
    fs::write(room.path("plan.json"), plan).unwrap();
    let words = ["--since", "set", "--since", "plan.json", "--release", "2", "--report", "r.md"];
    tools::run(&mut room.build(&shards(), &words));
    assert!(room.read("r.md").contains("; compared with 7.1.0-1\n"), "{}", room.read("r.md"));
}
