//! Options, output streams, and a second run into the same folder.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use serde_json::Value;
use support::example::{Set, build_of, contents, deb_name, names, rockpack, rpm_name, shards};
use support::queries::rpm_tags;
use support::tools;

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn a_build_prints_packages_and_reports_findings_and_its_progress_apart() {
    let set = Set::with(&["-v"]);
    let (stdout, stderr) = (text(&set.output.stdout), text(&set.output.stderr));
    let mut packages = names(&set.out());
    packages.remove("packages.json");
    for package in &packages {
        let line = stdout.lines().find(|line| line.starts_with(&format!("{package} ")));
        assert!(line.is_some(), "{package}: {stdout}");
        let made = format!("made {package} (");
        assert_eq!(stderr.lines().filter(|line| line.starts_with(&made)).count(), 1, "{stderr}");
    }
    let (lines, summary) = stderr.split_once("stage ").unwrap();
    assert_eq!(lines.lines().count(), packages.len(), "one plain line per package: {stderr}");
    let end = format!(
        "{} packages in {out}; publish them with `rockpack repo {out} --out REPO`\n",
        packages.len(),
        out = set.out().display()
    );
    let (summary, findings) = summary.split_once(&end).unwrap();
    let receipt = set.receipt();
    let recorded = receipt["findings"].as_array().unwrap();
    let (notes, warnings) = ended_by_findings(findings);
    assert_eq!([notes.len(), warnings.len()], counts(recorded), "{stderr}");
    let brief = text(&Set::build().output.stderr);
    let told = format!("{} notes; -v shows them\n{}", notes.len(), warnings.join("\n"));
    assert!(notes.len() > 1 && brief.contains(&told) && !brief.contains("note: "), "{brief}");
    assert!(summary.contains("s of CPU") && !stdout.contains("of CPU"), "{stderr}");
    let kernels = stdout.lines().find(|line| line.starts_with(&deb_name("rocm-blas-gfx110x")));
    let words: Vec<_> = kernels.unwrap().split_whitespace().collect();
    assert!(words.ends_with(&["12", "gfx1100", "gfx1101", "gfx1102"]), "{words:?}");
    assert!(!stdout.contains("made ") && !stdout.contains('\x1b'), "{stdout}");
    assert!(!stdout.contains(": R0"), "{stdout}");
    let findings: Vec<_> = stderr.lines().filter(|line| line.contains(" R012 ")).collect();
    assert_eq!(findings.len(), 1);
    assert!(findings[0].starts_with("warning: R012 arch-not-grouped: gfx906: 3 code objects"));
}

/// The notes and the warnings among the lines with which a run ends; the last line has the number of warnings.
fn ended_by_findings(lines: &str) -> (Vec<&str>, Vec<&str>) {
    let (mut findings, mut last): (Vec<&str>, Vec<&str>) =
        lines.lines().partition(|line| line.starts_with("note: ") || line.starts_with("warning: "));
    let first = findings.iter().position(|line| line.starts_with("warning: "));
    let warnings = findings.split_off(first.unwrap_or(findings.len()));
    assert!(warnings.iter().all(|line| line.starts_with("warning: ")), "{lines}");
    let expected = "`rockpack explain CODE` says what a code means and what solves it";
    assert_eq!(last.pop(), Some(&*format!("{} warnings; {expected}", warnings.len())), "{lines}");
    assert!(last.is_empty() && lines.trim_end().ends_with(expected), "{lines}");
    (findings, warnings)
}

/// The numbers of notes and warnings among findings of a receipt.
fn counts(findings: &[Value]) -> [usize; 2] {
    ["note", "warning"].map(|it| findings.iter().filter(|found| found["severity"] == it).count())
}

#[test]
fn json_is_the_receipt_and_nothing_else() {
    let set = Set::with(&["--json"]);
    let printed: Value = serde_json::from_slice(&set.output.stdout).unwrap();
    assert_eq!(printed, set.receipt());
}

#[test]
fn one_format_is_the_same_as_that_half_of_both() {
    let both = contents(&Set::build().out());
    for (format, other) in [("deb", ".rpm"), ("rpm", ".deb")] {
        let mut one = contents(&Set::with(&["--format", format]).out());
        one.remove("packages.json").unwrap();
        let half = both
            .iter()
            .filter(|(name, _)| !name.ends_with(other))
            .filter(|(name, _)| *name != "packages.json");
        assert!(one.iter().eq(half), "--format {format}");
    }
}

#[test]
fn only_one_component_is_built_where_one_is_asked_for() {
    for name in ["blas", "blas_lib"] {
        let set = Set::with(&["--only", name]);
        let packages = names(&set.out());
        assert!(packages.contains(&deb_name("rocm-blas")), "{packages:?}");
        assert!(packages.contains(&rpm_name("rocm-blas-gfx120x")));
        assert!(!packages.iter().any(|name| name.contains("sparse")), "{packages:?}");
        let receipt = set.receipt();
        let records = receipt["packages"].as_array().unwrap().iter();
        let listed: BTreeSet<_> =
            records.map(|record| record["file_name"].as_str().unwrap().to_owned()).collect();
        assert_eq!(listed.len() + 1, packages.len());
    }
    let set = Set::with(&["--only", "host-suite-sparse", "--format", "deb"]);
    assert!(names(&set.out()).contains(&deb_name("rocm-host-suite-sparse")));
    assert!(!names(&set.out()).iter().any(|name| name.contains("blas")));
}

#[test]
fn xz_holds_the_same_as_zstd() {
    tools::need(&["dpkg-deb", "ar", "rpm", "rpm2cpio"]);
    let (zstd, xz) = (Set::build(), Set::with(&["--compression", "xz"]));
    assert_eq!(names(&zstd.out()), names(&xz.out()));
    for package in ["rocm-blas", "rocm-blas-gfx110x", "rocm-gfx110x"] {
        for (set, ending) in [(&zstd, "zst"), (&xz, "xz")] {
            let members = tools::succeed(Command::new("ar").arg("t").arg(set.deb(package)));
            assert_eq!(members, format!("debian-binary\ncontrol.tar.gz\ndata.tar.{ending}\n"));
        }
        let [one, other] = [&zstd, &xz].map(|set| {
            tools::run(Command::new("dpkg-deb").arg("--fsys-tarfile").arg(set.deb(package))).stdout
        });
        assert_eq!(one, other, "{package}");
        assert_eq!(rpm_tags(&xz.rpm(package), "%{PAYLOADCOMPRESSOR}"), "xz");
        let [one, other] = [&zstd, &xz]
            .map(|set| tools::run(Command::new("rpm2cpio").arg(set.rpm(package))).stdout);
        assert_eq!(one, other, "{package}");
    }
    let told = tools::succeed(Command::new("rpm").arg("-K").arg(xz.rpm("rocm-blas")));
    assert!(told.contains("digests OK"), "{told}");
}

#[test]
fn a_second_run_replaces_the_first_and_nothing_else() {
    let set = Set::build();
    let first = contents(&set.out());
    fs::write(set.file("notes.txt"), "mine").unwrap();
    fs::write(set.file("other_1_all.deb"), "somebody's").unwrap();
    tools::run(&mut build_of(&shards(), &set.out()));
    let mut second = contents(&set.out());
    assert_eq!(second.remove("notes.txt").unwrap(), b"mine");
    assert_eq!(second.remove("other_1_all.deb").unwrap(), b"somebody's");
    assert!(second == first, "the same set again");

    tools::run(build_of(&shards(), &set.out()).args(["--format", "deb", "--release", "2"]));
    let third = names(&set.out());
    assert!(third.contains("rocm-blas_7.1.0-2_amd64.deb") && third.contains("other_1_all.deb"));
    let old = third.iter().find(|name| name.ends_with(".rpm") || name.contains("7.1.0-1"));
    assert_eq!(old, None, "packages of the earlier set");
}

#[test]
fn what_an_earlier_set_had_beyond_the_new_one_is_removed_and_named() {
    let blas = ["--only", "blas", "--format", "deb"];
    let set = Set::with(&blas);
    let earlier = names(&set.out());
    let other = ["--only", "host-suite-sparse", "--format", "deb"];
    let run = tools::run(build_of(&shards(), &set.out()).args(other));
    let now = names(&set.out());
    let gone: Vec<&String> = earlier.iter().filter(|name| !now.contains(*name)).collect();
    assert!(gone.len() > 3 && gone.iter().all(|name| name.contains("blas")), "{gone:?}");
    let said = text(&run.stdout);
    let lines: Vec<&str> = said.lines().filter(|line| line.starts_with("removed ")).collect();
    let expected: Vec<String> =
        gone.iter().map(|name| format!("removed {name} of the earlier set")).collect();
    assert_eq!(lines, expected);
    let again = tools::run(build_of(&shards(), &set.out()).args(blas).arg("--json"));
    let json: serde_json::Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!(json["removed"], serde_json::json!(["rocm-host-suite-sparse_7.1.0-1_amd64.deb"]));
    assert!(json["packages"].is_array() && names(&set.out()) == earlier);
    assert!(!set.receipt().as_object().unwrap().contains_key("removed"));
}

#[test]
fn help_and_version_are_no_errors() {
    let version = format!("rockpack {}", env!("CARGO_PKG_VERSION"));
    let commit = option_env!("ROCKPACK_COMMIT").map(|commit| format!("commit {commit}"));
    let commit = commit.unwrap_or_else(|| "an unknown commit".to_owned());
    let long = format!("{version}, of {commit}\n");
    let cases: [(&[&str], &str); 5] = [
        (&["-V"], &version),
        (&["--version"], &long),
        (&["--version"], "\nfor x86_64-linux"),
        (&["--version"], "; zstd 1."),
        (&["build", "--help"], "--artifacts"),
    ];
    for (arguments, expected) in cases {
        let output = tools::run(rockpack().args(arguments));
        assert!(text(&output.stdout).contains(expected));
        assert!(output.stderr.is_empty());
    }
}
