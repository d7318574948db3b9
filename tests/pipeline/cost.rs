//! The options about cost: compression levels, which change only the bytes, and memory, which changes none.

use std::fs;
use std::path::Path;
use std::process::Command;

use support::example::{
    Entry, build_of, configuration, contents, copy_set, names, rockpack, shards, tree,
};
use support::queries::rpm_tags;
use support::tools::{need, succeed};

fn build(out: &Path, options: &[&str]) {
    succeed(build_of(&shards(), out).args(options));
}

/// The compression level that rpm reads from a package's header.
fn level(package: &Path) -> String {
    rpm_tags(package, "%{PAYLOADCOMPRESSOR} %{PAYLOADFLAGS}")
}

#[test]
fn presets_and_levels_reach_the_packages_and_change_no_file() {
    need(&["rpm", "dpkg-deb"]);
    let scratch = tempfile::tempdir().unwrap();
    let mut trees = Vec::new();
    for (name, options, expected) in [
        ("balanced", &[][..], "zstd 9"),
        ("fast", &["--preset", "fast"], "zstd 3"),
        ("small", &["--preset", "small"], "zstd 19"),
        ("xz", &["--compression", "xz", "--preset", "fast"], "xz 1"),
        ("levels", &["--archive-level", "1", "--payload-level", "12"], "zstd 12"),
        ("stored", &["--archive-level", "none"], "zstd 9"),
    ] {
        let out = scratch.path().join(name);
        if options.is_empty() {
            copy_set(&out);
        } else {
            build(&out, options);
        }
        assert_eq!(level(&out.join("rocm-blas-7.1.0-1.x86_64.rpm")), expected);
        let root = scratch.path().join(format!("{name}.root"));
        for package in names(&out).iter().filter(|name| name.ends_with(".deb")) {
            succeed(Command::new("dpkg-deb").arg("-x").arg(out.join(package)).arg(&root));
        }
        let mut files = tree(&root);
        // The archives' frames differ, and so do the files that state their sizes.
        for (path, entry) in &mut files {
            let Entry::File { bytes, .. } = entry else { continue };
            if path.ends_with(".kpack") || path.ends_with(".kpm") {
                bytes.clear();
            }
        }
        trees.push((names(&out), files));
    }
    for (names, files) in &trees {
        assert_eq!(names, &trees[0].0);
        let others = files.iter().filter(|(path, entry)| trees[0].1.get(*path) != Some(*entry));
        assert_eq!(others.map(|(path, _)| path).collect::<Vec<_>>(), [""; 0]);
        assert_eq!(files.len(), trees[0].1.len());
    }
}

#[test]
fn memory_does_not_change_a_byte() {
    let scratch = tempfile::tempdir().unwrap();
    let [little, much] = ["little", "much"].map(|name| scratch.path().join(name));
    build(&little, &["--memory", "1100M", "--jobs", "3"]);
    build(&much, &["--memory", "64G", "--jobs", "1"]);
    assert_eq!(contents(&little), contents(&much));
}

/// Without memory there is one thread, no bundle is kept in memory, and every frame is spooled.
#[test]
fn memory_of_split_and_recombine_does_not_change_a_byte() {
    let scratch = tempfile::tempdir().unwrap();
    let [mut split, mut recombined] = [Vec::new(), Vec::new()];
    for memory in ["0", "64G"] {
        let [parts, groups] =
            ["split", "recombined"].map(|name| scratch.path().join(format!("{name}-{memory}")));
        let mut command = rockpack();
        command.arg("split").arg("--artifacts").arg(shards());
        succeed(command.args(["--memory", memory, "--output-dir"]).arg(&parts));
        split.push(tree(&parts));
        let mut command = rockpack();
        command.arg("recombine").arg("--artifacts").arg(&parts);
        command.arg("--config").arg(configuration());
        succeed(command.args(["--memory", memory, "--output-dir"]).arg(&groups));
        recombined.push(tree(&groups));
    }
    assert!(split[0].len() > 100 && split[0] == split[1]);
    assert!(recombined[0].len() > 50 && recombined[0] == recombined[1]);
}

#[test]
fn what_cannot_be_is_refused_before_anything_is_written() {
    let scratch = tempfile::tempdir().unwrap();
    let out = scratch.path().join("out");
    for (options, message) in [
        (&["--memory", "100M"][..], "--memory 100M is too small"),
        (&["--preset", "small", "--memory", "1G"], "is too small"),
        (&["--archive-level", "22", "--memory", "2G"], "--memory 2048M is too small"),
        (&["--archive-level", "23"], "--archive-level: `23` is not a valid level"),
        (&["--payload-level", "20"], "zstd level 20"),
        (&["--memory", "lots"], "such as 20G"),
    ] {
        let output = build_of(&shards(), &out).args(options).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(64), "{stderr}");
        assert!(stderr.contains(message), "{stderr}");
        assert!(fs::read_dir(&out).is_err(), "{options:?}");
    }
}
