//! The commands as scripts call them: options, summaries, exit codes, and output folders.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use support::example::{
    GROUPS, build_of, configuration, copy_shards, names, plant, rockpack, shards, tree,
};

use crate::directories::{Work, ends_with, split_of};

fn artifact(shards: &Path) -> PathBuf {
    GROUPS[0].folder(shards).join("blas_lib_gfx110X-dgpu")
}

/// The command of the workflow's tutorial.
fn tutorial(out: &Path) -> Command {
    let mut command = rockpack();
    command.arg("split").arg("--input-dir").arg(artifact(&shards())).arg("--output-dir").arg(out);
    command.args(["--component-name", "blas_lib", "--tmp-dir", "/nonexistent"]);
    command.args(["--split-databases", "rocblas", "hipblaslt"]);
    command.args(["--clang-offload-bundler", "/nonexistent/bundler", "--verbose"]);
    command
}

#[test]
fn the_options_of_the_earlier_tool_are_accepted() {
    let work = Work::new();
    let out = work.path("out");
    let (said, notes) = ends_with(&mut tutorial(&out), 0);
    assert!(said.contains("Splitting complete"), "{said}");
    for option in ["--tmp-dir", "--split-databases", "--clang-offload-bundler"] {
        let lines = notes.lines().filter(|line| line.contains(option));
        assert_eq!(lines.count(), 1, "{notes}");
    }
    let archs = ["generic", "gfx1100", "gfx1101", "gfx1102", "gfx906"];
    let expected: Vec<String> = archs.iter().map(|arch| format!("blas_lib_{arch}")).collect();
    assert_eq!(names(&out).into_iter().collect::<Vec<_>>(), expected);
}

#[test]
fn one_artifact_gives_what_it_gives_within_its_shard() {
    let work = Work::new();
    let split = GROUPS[0].folder(&work.split_shards());
    let out = work.path("out");
    ends_with(&mut tutorial(&out), 0);
    for name in names(&out) {
        assert!(tree(&out.join(&name)) == tree(&split.join(&name)), "{name}");
    }
}

#[test]
fn the_name_of_a_component_can_be_given() {
    let work = Work::new();
    let out = work.path("out");
    let mut command = rockpack();
    command.arg("split").arg("--artifact-dir").arg(artifact(&shards()));
    command.arg("--output-dir").arg(&out).args(["--artifact-prefix", "algebra_lib"]);
    ends_with(&mut command, 0);
    assert!(names(&out).iter().all(|name| name.starts_with("algebra_lib_")), "{:?}", names(&out));
    ends_with(command.args(["--batch-artifact-parent-dir", "x"]), 64);
}

#[test]
fn only_the_targets_asked_for_are_kept() {
    let work = Work::new();
    for (number, targets) in
        [&["gfx1100,gfx1102"][..], &["gfx1100;gfx1102"], &["gfx1100", "gfx1102:xnack-"]]
            .into_iter()
            .enumerate()
    {
        let out = work.path(&number.to_string());
        let mut command = rockpack();
        command.arg("split").arg("--artifact-dir").arg(artifact(&shards()));
        command.arg("--output-dir").arg(&out).arg("--verbose").arg("--gpu-targets").args(targets);
        let (_, said) = ends_with(&mut command, 0);
        let expected = ["blas_lib_generic", "blas_lib_gfx1100", "blas_lib_gfx1102"];
        assert_eq!(names(&out).into_iter().collect::<Vec<_>>(), expected);
        assert!(said.contains("R043"), "{said}");
        let files = tree(&out);
        assert!(!files.keys().any(|path| path.contains("gfx1101")));
    }
}

#[test]
fn targets_that_no_binary_has_are_an_error() {
    let work = Work::new();
    let out = work.path("out");
    let mut command = rockpack();
    command.arg("split").arg("--artifact-dir").arg(artifact(&shards()));
    command.arg("--output-dir").arg(&out).args(["--gpu-targets", "gfx942"]);
    let (_, said) = ends_with(&mut command, 2);
    assert!(said.contains("libexblas.so.1.2") && said.contains("gfx1100"), "{said}");
    assert_eq!(names(&out).len(), 0, "no fat binary is left in a generic artifact");
    ends_with(command.arg("gfx_nonsense"), 64);
}

#[test]
fn a_failing_artifact_does_not_keep_the_others_from_being_written() {
    let work = Work::new();
    let spoiled = work.path("shards");
    copy_shards(&spoiled);
    fs::write(artifact(&spoiled).join("artifact_manifest.txt"), "../outside\n").unwrap();
    let out = work.path("out");
    let mut command = rockpack();
    command.arg("split").arg("--batch-artifact-parent-dir").arg(GROUPS[0].folder(&spoiled));
    command.arg("--output-dir").arg(&out);
    let (said, errors) = ends_with(&mut command, 2);
    assert!(!said.contains("complete"), "{said}");
    assert!(
        errors.contains("gfx110X-build/blas_lib") && errors.contains("1 component failed"),
        "{errors}"
    );
    let written = names(&out);
    assert!(
        written.contains("blas_run_generic") && written.contains("host-suite-sparse_lib_generic")
    );
    assert!(!written.iter().any(|name| name.starts_with("blas_lib") || name.starts_with('.')));
    let json = ends_with(command.arg("--json"), 2).0;
    let report: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(report["failures"].as_array().unwrap().len(), 1);
    assert_eq!(report["artifacts"].as_array().unwrap().len(), written.len());
}

#[test]
fn split_artifacts_give_no_warnings_that_fat_ones_do_not() {
    let work = Work::new();
    let split = work.split_shards();
    let out = work.path("again");
    let (_, said) = ends_with(split_of(&split).arg("--output-dir").arg(&out), 0);
    assert!(!said.contains("warning"), "{said}");
    let from_split = warning_codes(&work.build(&split, "from-split"));
    assert_eq!(from_split, warning_codes(&work.direct("direct")));
}

fn warning_codes(set: &Path) -> Vec<String> {
    let receipt = fs::read(set.join("packages.json")).unwrap();
    let receipt: Value = serde_json::from_slice(&receipt).unwrap();
    let findings = receipt["findings"].as_array().unwrap();
    let warnings = findings.iter().filter(|finding| finding["severity"] == "warning");
    warnings.map(|finding| finding["code"].to_string()).collect()
}

#[test]
fn what_is_no_artifact_is_not_replaced() {
    let work = Work::new();
    let out = work.path("out");
    fs::create_dir_all(out.join("blas_lib_gfx1100")).unwrap();
    fs::write(out.join("blas_lib_gfx1100/notes"), "mine").unwrap();
    let (_, said) = ends_with(&mut tutorial(&out), 2);
    assert!(said.contains("has the name of an artifact"), "{said}");
    let only = ["blas_lib_gfx1100".to_owned()];
    assert_eq!(names(&out).into_iter().collect::<Vec<_>>(), only);
    assert_eq!(fs::read_to_string(out.join("blas_lib_gfx1100/notes")).unwrap(), "mine");
}

#[test]
fn a_second_run_replaces_the_first() {
    let work = Work::new();
    let out = work.path("out");
    ends_with(&mut tutorial(&out), 0);
    let first = tree(&out);
    let library = out.join("blas_lib_generic/math-libs/BLAS/rocBLAS/stage/lib/libexblas.so.1.2");
    fs::write(library, "damaged").unwrap();
    ends_with(&mut tutorial(&out), 0);
    assert!(tree(&out) == first);
}

#[test]
fn recombining_reports_as_json() {
    let work = Work::new();
    let out = work.path("out");
    let mut command = rockpack();
    command.args(["recombine", "--json", "--config"]).arg(configuration());
    command.arg("--input-shards-dir").arg(shards()).arg("--output-dir").arg(&out);
    let (json, _) = ends_with(&mut command, 0);
    let report: Value = serde_json::from_str(&json).unwrap();
    let listed: Vec<&str> = report["artifacts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|artifact| artifact["artifact"].as_str().unwrap())
        .collect();
    assert_eq!(names(&out).into_iter().collect::<Vec<_>>(), listed);
    let groups = ["generic", "gfx110X", "gfx115X", "gfx120X"];
    let expected = groups.map(|group| format!("blas_lib_{group}"));
    assert!(expected.iter().all(|name| listed.contains(&name.as_str())), "{listed:?}");
}

#[test]
fn output_inside_of_the_input_is_refused_in_words_of_all_commands() {
    let work = Work::new();
    let shards = work.path("shards");
    copy_shards(&shards);
    let mut command = split_of(&shards);
    let (_, said) = ends_with(command.arg("--output-dir").arg(shards.join("out")), 64);
    let hint = "give a folder outside of all artifacts that are read";
    assert!(said.contains("the output folder lies inside of") && said.contains(hint), "{said}");
    assert!(!said.contains("--out ") && !shards.join("out").exists(), "{said}");
}

#[test]
fn a_failure_names_its_component_once() {
    let work = Work::new();
    let spoiled = work.path("shards");
    copy_shards(&spoiled);
    let tool = "math-libs/BLAS/rocBLAS/stage/lib/libexblas.so.1.2";
    let library = artifact(&spoiled).join(tool);
    let bytes = fs::read(&library).unwrap();
    fs::write(&library, &bytes[..bytes.len() / 2]).unwrap();
    let mut command = split_of(&GROUPS[0].folder(&spoiled));
    let (_, said) = ends_with(command.arg("--output-dir").arg(work.path("out")), 2);
    let line = said.lines().find(|line| line.contains("splitting")).unwrap();
    let start = "  × splitting gfx110X-build/blas_lib_gfx110X-dgpu: reading lib/libexblas.so.1.2: ";
    assert!(line.starts_with(start), "{said}");
    assert_eq!(line.matches("gfx110X-build/blas_lib: ").count(), 0, "{said}");
    assert!(said.contains("1 component failed; 5 artifacts written to"), "{said}");
}

#[test]
fn an_empty_archive_is_named() {
    let work = Work::new();
    let split = work.split_shards();
    let stage = "blas_lib_gfx1151/math-libs/BLAS/rocBLAS/stage/lib/.kpack/blas_lib_gfx1151.kpack";
    let archive = GROUPS[1].folder(&split).join(stage);
    fs::write(&archive, "").unwrap();
    let mut command = split_of(&split);
    let (_, said) = ends_with(command.arg("--output-dir").arg(work.path("again")), 2);
    let line = said.lines().find(|line| line.contains("16 bytes requested, 0 left")).unwrap();
    assert!(line.contains(archive.to_str().unwrap()), "{said}");
}

#[test]
fn sizes_have_one_unit_in_tables_and_lines() {
    let work = Work::new();
    let output = support::example::build_of(&shards(), &work.path("out")).output().unwrap();
    let (said, notes) = (String::from_utf8(output.stdout), String::from_utf8(output.stderr));
    let (said, notes) = (said.unwrap(), notes.unwrap());
    let file = support::example::deb_name("rocm-blas");
    let made = notes.lines().find(|line| line.starts_with(&format!("made {file} ("))).unwrap();
    let size = made.split_once('(').unwrap().1.trim_end_matches(')');
    let row = said.lines().find(|line| line.starts_with(&file)).unwrap();
    assert!(size.ends_with(" kB") && row.contains(size), "{row}\n{made}");
}

#[test]
fn dangling_links_are_named_by_split_recombine_and_build() {
    let work = Work::new();
    let artifacts = work.path("shards");
    copy_shards(&artifacts);
    for (link, target) in [("gone", "nowhere.so"), ("there", "librockpack-there.so")] {
        let path = GROUPS[0].original(&artifacts, &format!("lib/{link}"));
        std::os::unix::fs::symlink(target, path).unwrap();
    }
    let there = GROUPS[0].original(&artifacts, "lib/librockpack-there.so");
    fs::write(there, "").unwrap();
    let split = work.path("split");
    let in_shard = "gfx110X-build/blas_lib_gfx110X-dgpu";
    names_dangling_link(split_of(&artifacts).arg("--output-dir").arg(&split), in_shard);
    let mut recombine = rockpack();
    recombine.args(["recombine", "--config"]).arg(configuration());
    recombine.arg("--input-shards-dir").arg(&artifacts);
    names_dangling_link(recombine.arg("--output-dir").arg(work.path("recombined")), "blas_lib");
    names_dangling_link(&mut build_of(&artifacts, &work.path("packages")), "blas_lib");
}

fn names_dangling_link(command: &mut Command, subject: &str) {
    let (stdout, stderr) = ends_with(command, 0);
    let said = stdout + &stderr;
    assert!(said.contains(&format!("R006 link-dangling: {subject}/lib/gone")), "{said}");
    assert_eq!(said.matches("R006").count(), 1, "{said}");
}

/// Two builds of a component are joined first, in a step that sees only that component.
#[test]
fn links_into_another_component_of_a_flat_folder_lead_somewhere() {
    let work = Work::new();
    let artifacts = work.path("shards");
    copy_shards(&artifacts);
    let flat = work.path("flat");
    for group in &GROUPS[..2] {
        let link = group.original(&artifacts, "lib/bench");
        std::os::unix::fs::symlink("../bin/exblas-bench", link).unwrap();
        for component in ["lib", "run"] {
            let name = format!("blas_{component}_{}", group.family);
            let there = flat.join(&name);
            fs::create_dir_all(&there).unwrap();
            plant(&tree(&group.folder(&artifacts).join(&name)), &there, false);
        }
    }
    let mut command = split_of(&flat);
    command.args(["--gpu-targets", "gfx1100,gfx1151"]).arg("--output-dir").arg(work.path("out"));
    let (stdout, stderr) = ends_with(&mut command, 0);
    assert!(!(stdout + &stderr).contains("R006"));
    assert!(names(&work.path("out/flat")).contains("blas_lib_gfx1151"));
}
