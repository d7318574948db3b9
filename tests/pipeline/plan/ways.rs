//! Plans of sets whose archives are uncompressed: both ways, compared with the packages that `build` writes.

use std::fs;
use std::path::Path;

use serde_json::Value;
use support::example::{GROUPS, Set, kernels, rockpack, shards};
use support::random::Random;
use support::tools;

use super::{close, json, packages, plan_of};
use crate::odd_code::{HOST, bundle, code_object, link};

const STORED: [&str; 2] = ["--archive-level", "deb=none"];

/// Whether an estimate is within 15 % of the real size.
fn near(estimate: &Value, real: u64) -> bool {
    estimate["bytes"].as_u64().unwrap().abs_diff(real) * 100 <= real * 15
}

fn len(path: &Path) -> u64 {
    fs::metadata(path).unwrap().len()
}

#[test]
fn both_ways_are_those_of_two_builds() {
    let plain = json(&mut plan_of(&shards()));
    let stored = json(plan_of(&shards()).args(STORED));
    let (before, after) = (Set::build(), Set::with(&STORED));
    let [plain_debs, debs] = [&plain, &stored].map(|plan| packages(plan, "deb"));
    for group in &GROUPS {
        let name = kernels(group);
        let (deb, size) = (&debs[&*name], len(&after.deb(&name)));
        assert!(near(&deb["download"], size), "{name}: {deb} {size}");
        let both = |sum: &&Value| sum["group"] == group.name && sum["format"] == "deb";
        let sum = stored["groups"].as_array().unwrap().iter().find(both).unwrap();
        // The other packages of the group are the same.
        let others =
            |of: &Set| ["rocm-blas", "rocm-common"].map(|it| len(&of.deb(it))).iter().sum::<u64>();
        assert!(near(&sum["download"], size + others(&after)), "{sum}");
        let by_default = &sum["by_default"];
        let size = len(&before.deb(&name));
        assert!(near(&by_default["download"], size + others(&before)), "{sum} {size}");
        let installed = |sizes: &Value| sizes["installed"]["bytes"].as_u64().unwrap();
        let whole = ["rocm-blas", &name, "rocm-common"].map(|it| installed(plain_debs[it]));
        assert!(near(&by_default["installed"], whole.iter().sum()), "{sum} {whole:?}");
        assert!(installed(sum) > installed(by_default));
    }
}

#[test]
fn only_formats_with_uncompressed_archives_have_both_ways() {
    let [plain, stored] =
        [&STORED[..0], &STORED].map(|options| json(plan_of(&shards()).args(options)));
    let sums = stored["groups"].as_array().unwrap();
    for (sum, plain) in sums.iter().zip(plain["groups"].as_array().unwrap()) {
        assert_eq!(sum["by_default"].is_object(), sum["format"] == "deb", "{sum}");
        assert_eq!(sum["packages"], plain["packages"]);
        assert_eq!(plain["by_default"], Value::Null);
        // Only the sizes of kernel packages are estimated in another way than before.
        if sum["format"] == "rpm" {
            let size = |sum: &Value| sum["download"]["bytes"].as_u64().unwrap();
            assert!(near(&sum["download"], size(plain)), "{sum} {plain}");
        }
    }
    let text = tools::succeed(plan_of(&shards()).args(STORED));
    let rows = text.lines().filter(|line| line.trim_start().starts_with("by default")).count();
    assert_eq!(rows, GROUPS.len(), "{text}");
}

/// Three architectures with 2 MB of code each that differ in one of 8,000 bytes, which samples do not see.
#[test]
fn estimates_see_what_architectures_have_in_common() {
    let folder = tempfile::tempdir().unwrap();
    let artifact = folder.path().join("shards/one/copies_lib_all");
    fs::create_dir_all(artifact.join("stage/lib")).unwrap();
    fs::write(artifact.join("artifact_manifest.txt"), "stage\n").unwrap();
    let mut random = Random(76);
    let text: Vec<u8> = (0..2 << 20).map(|_| b"abcdefghijklmnop"[random.below(16)]).collect();
    let mut entries = vec![(HOST, Vec::new())];
    for (id, flags, digit) in [
        ("hipv4-amdgcn-amd-amdhsa--gfx1100", 0x41, b'0'),
        ("hipv4-amdgcn-amd-amdhsa--gfx1101", 0x46, b'1'),
        ("hipv4-amdgcn-amd-amdhsa--gfx1102", 0x47, b'2'),
    ] {
        let mut text = text.clone();
        text.iter_mut().step_by(8000).for_each(|byte| *byte = digit);
        entries.push((id, code_object(flags, &String::from_utf8(text).unwrap())));
    }
    link(folder.path(), &artifact.join("stage/lib/libcopies.so"), &[bundle(&entries)], "");
    let config = folder.path().join("copies.toml");
    let archs = "architectures = ['gfx1100', 'gfx1101', 'gfx1102']\n";
    fs::write(&config, format!("version = '7.1.0'\n[architecture_groups.near]\n{archs}")).unwrap();
    let run = |command: &str| {
        let mut run = rockpack();
        run.arg(command).arg("--artifacts").arg(folder.path().join("shards"));
        run.arg("--config").arg(&config).args(["--format", "deb"]);
        run
    };
    let plan = json(run("plan").args(STORED));
    let name = "rocm-copies-near_7.1.0-1_amd64.deb";
    let built = |out: &str, options: &[&str]| {
        let out = folder.path().join(out);
        let printed = tools::succeed(run("build").args(options).arg("--out").arg(&out));
        (len(&out.join(name)), printed)
    };
    let ((plain, before), (stored, after)) = (built("plain", &[]), built("stored", &STORED));
    assert!(stored * 5 < plain * 4, "{stored} {plain}");
    let planned = packages(&plan, "deb");
    let package: &Value = planned.values().find(|package| package["file_name"] == name).unwrap();
    assert!(near(&package["download"], stored), "{package} {stored}");
    let (sum, installed) = (&plan["groups"][0], &package["installed"]["bytes"]);
    let download = |sizes: &Value| sizes["download"]["bytes"].as_u64().unwrap();
    let others = download(sum) - download(package);
    assert!(close(download(&sum["by_default"]), plain + others), "{sum} {plain}");
    assert!(installed.as_u64().unwrap() > 3 * (2 << 20), "{installed}");
    for text in [before, after] {
        let line = text.lines().find(|line| line.starts_with("kernel packages (.deb): "));
        assert!(line.unwrap().ends_with("; 6.29 MB of code before compression"), "{text}");
    }
}
