//! Bytes to download and on disk, compared with the package files and what dpkg and rpm say of them.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use support::ccob::ccob;
use support::example::{Set, rockpack};
use support::queries::{deb_field, packages, rpm_tags};
use support::tools;

use super::{json, length_of, markdown, report};
use crate::odd_code::{self, GFX1100, HOST, bundle, code_object};

/// What the users of each GPU of the example install, and all packages that this brings.
const USERS: [(&[&str], [&str; 4]); 3] = [
    (
        &["gfx1100", "gfx1101", "gfx1102"],
        ["rocm-gfx110x", "rocm-common", "rocm-blas", "rocm-blas-gfx110x"],
    ),
    (&["gfx1151"], ["rocm-gfx115x", "rocm-common", "rocm-blas", "rocm-blas-gfx115x"]),
    (&["gfx1200", "gfx1201"], ["rocm-gfx120x", "rocm-common", "rocm-blas", "rocm-blas-gfx120x"]),
];

/// The packages that all of them bring.
const EVERY_GPU: [&str; 8] = [
    "rocm-gfx110x",
    "rocm-gfx115x",
    "rocm-gfx120x",
    "rocm-common",
    "rocm-blas",
    "rocm-blas-gfx110x",
    "rocm-blas-gfx115x",
    "rocm-blas-gfx120x",
];

/// The installed size that a `.deb` states.
fn deb_size(deb: &Path) -> u64 {
    1024 * deb_field(deb, "Installed-Size").parse::<u64>().unwrap()
}

/// The installed size that an `.rpm` states.
fn rpm_size(rpm: &Path) -> u64 {
    rpm_tags(rpm, "%{SIZE}").parse().unwrap()
}

/// The sizes of packages, as a report has them.
fn sizes(files: &[PathBuf], installed: fn(&Path) -> u64) -> Value {
    let on_disk: u64 = files.iter().map(|file| installed(file)).sum();
    json!({ "packages": files.len(), "download": length_of(files), "installed": on_disk })
}

#[test]
fn figures_are_those_of_the_packages_that_a_user_gets() {
    tools::need(&["dpkg-deb", "rpm"]);
    let set = Set::build();
    let found = json(&mut report(&set.out()));
    let [debs, rpms] = found["formats"].as_array().unwrap().as_slice() else { panic!("{found}") };
    of_format(debs, &packages(&set.out(), "deb"), |name| set.deb(name), deb_size);
    of_format(rpms, &packages(&set.out(), "rpm"), |name| set.rpm(name), rpm_size);
}

fn of_format(
    found: &Value,
    all: &[PathBuf],
    file: impl Fn(&str) -> PathBuf,
    installed: fn(&Path) -> u64,
) {
    let files = |names: &[&str]| names.iter().map(|name| file(name)).collect::<Vec<_>>();
    let length = |names: &[&str]| length_of(&files(names));
    assert_eq!(found["all"], sizes(all, installed));
    let gpus = found["gpus"].as_array().unwrap();
    assert_eq!(gpus.len(), USERS.len(), "{found}");
    for (gpu, (targets, names)) in gpus.iter().zip(USERS) {
        let [meta, common, host, kernels] = names;
        assert_eq!(gpu["targets"], json!(targets));
        assert_eq!(gpu["install"], json!([meta]));
        assert_eq!(gpu["sizes"], sizes(&files(&names), installed));
        let families = json!({
            "metapackages": length(&[meta]),
            "rocm-blas": length(&[host, kernels]),
            "rocm-common": length(&[common]),
        });
        assert_eq!(gpu["families"], families);
        assert_eq!((&gpu["earlier"], &gpu["without_code"]), (&Value::Null, &json!([])));
    }
    assert_eq!(found["fat"]["packages"], EVERY_GPU.len());
    assert_eq!(found["fat"]["download"], length(&EVERY_GPU));
    let families = json!({
        "metapackages": length(&EVERY_GPU[..3]),
        "rocm-blas": length(&EVERY_GPU[4..]),
        "rocm-common": length(&["rocm-common"]),
    });
    assert_eq!(found["every_gpu"], families);
    let download = |name: &Value| families[name.as_str().unwrap()].as_u64();
    let order = found["families"].as_array().unwrap();
    assert!(order.len() == 3 && order.is_sorted_by_key(|it| std::cmp::Reverse(download(it))));
}

/// A shard with a library in each artifact: its name, its GPU, and the bundle in it.
fn shard(folder: &Path, artifacts: &[(&str, &str, Vec<u8>)]) {
    for (name, gpu, bundle) in artifacts {
        let artifact = folder.join(format!("shards/one/{name}_lib_{gpu}"));
        let library = artifact.join(format!("stage/lib/lib{name}.so"));
        fs::create_dir_all(library.parent().unwrap()).unwrap();
        fs::write(artifact.join("artifact_manifest.txt"), "stage\n").unwrap();
        odd_code::link(folder, &library, std::slice::from_ref(bundle), "");
    }
}

/// Builds the shard, and returns the folder of the packages.
fn built(folder: &Path) -> PathBuf {
    let out = folder.join("out");
    let mut build = rockpack();
    build.arg("build").arg("--artifacts").arg(folder.join("shards")).arg("--out").arg(&out);
    tools::run(build.args(["--version", "7.1.0"]));
    out
}

/// The bytes on disk of the fat original of a library with one bundle, and of its packages without their
/// archive.
fn fat(bundle: Vec<u8>) -> [u64; 2] {
    let folder = tempfile::tempdir().unwrap();
    shard(folder.path(), &[("odd", "gfx1100", bundle)]);
    let out = built(folder.path());
    let file = |name: &str, arch: &str| out.join(format!("{name}-7.1.0-1.{arch}.rpm"));
    let kernels = file("rocm-odd-gfx110x", "x86_64");
    let names = ["rocm-odd", "rocm-gfx110x"].map(|name| file(name, "x86_64"));
    let files = [&[file("rocm-common", "noarch"), kernels.clone()][..], &names].concat();
    let members = rpm_tags(&kernels, "[%{FILENAMES} %{FILESIZES}\n]");
    let archive = members.lines().find_map(|line| line.split_once("_gfx1100.kpack ")).unwrap().1;
    let on_disk: u64 = files.iter().map(|file| rpm_size(file)).sum();
    let found = json(&mut report(&out));
    let rpms = &found["formats"][1];
    assert_eq!(rpms["gpus"][0]["sizes"]["installed"], on_disk, "{rpms}");
    [rpms["fat"]["installed"].as_u64().unwrap(), on_disk - archive.parse::<u64>().unwrap()]
}

/// A code object of gfx1100 that compresses well.
fn code() -> Vec<u8> {
    code_object(0x41, &(0..9000).map(|number| number.to_string()).collect::<String>())
}

#[test]
fn the_fat_original_has_the_code_in_its_libraries() {
    tools::need(&["gcc", "rpm"]);
    let code = code();
    let [fat, without] = fat(bundle(&[(HOST, Vec::new()), (GFX1100, code.clone())]));
    assert_eq!(fat - without, code.len() as u64);
}

#[test]
fn code_that_was_compressed_in_the_input_stays_so_in_the_fat_original() {
    tools::need(&["gcc", "rpm"]);
    let code = code();
    let plain = bundle(&[(HOST, Vec::new()), (GFX1100, code.clone())]);
    let compressed = ccob(2, 1, &plain, &zstd::encode_all(&plain[..], 3).unwrap());
    let len = compressed.len() as u64;
    assert!(len < code.len() as u64 / 2);
    let [fat, without] = fat(compressed);
    assert!((len - 2..=len).contains(&(fat - without)), "{} of {len}", fat - without);
}

#[test]
fn libraries_without_code_for_a_gpu_are_named() {
    tools::need(&["gcc"]);
    let folder = tempfile::tempdir().unwrap();
    let gfx1151 = "hipv4-amdgcn-amd-amdhsa--gfx1151";
    let of = |id, flags| bundle(&[(HOST, Vec::new()), (id, code_object(flags, "code"))]);
    let artifacts = [
        ("odd", "gfx1100", of(GFX1100, 0x41)),
        ("rare", "gfx1151", of(gfx1151, 0x4a)),
        ("even", "gfx1151", of(gfx1151, 0x4a)),
    ];
    shard(folder.path(), &artifacts);
    let out = built(folder.path());
    let found = json(&mut report(&out));
    for format in found["formats"].as_array().unwrap() {
        let rows = format["gpus"].as_array().unwrap().iter();
        let rows: Vec<_> = rows.map(|gpu| (&gpu["targets"][0], &gpu["without_code"])).collect();
        let (one, other) = (json!(["rocm-even", "rocm-rare"]), json!(["rocm-odd"]));
        assert_eq!(rows, [(&json!("gfx1100"), &one), (&json!("gfx1151"), &other)]);
    }
    let shown = markdown(&out);
    assert_eq!(
        shown.matches("gfx1100: no code for this GPU in rocm-even, rocm-rare.\n").count(),
        2
    );
}

#[test]
fn a_set_without_device_code_serves_no_gpu() {
    let folder = tempfile::tempdir().unwrap();
    let tree = folder.path().join("tree");
    fs::create_dir_all(tree.join("share")).unwrap();
    fs::write(tree.join("share/text"), "text\n").unwrap();
    let out = folder.path().join("out");
    let mut build = rockpack();
    build.arg("build").arg(support::trees::named("mine", &tree)).arg("--out").arg(&out);
    tools::run(build.args(["--version", "7.1.0", "--format", "deb"]));
    let found = json(&mut report(&out));
    let [debs] = found["formats"].as_array().unwrap().as_slice() else { panic!("{found}") };
    assert_eq!((&debs["gpus"], &debs["families"]), (&json!([]), &json!([])));
    assert_eq!(debs["all"], sizes(&packages(&out, "deb"), deb_size));
    let shown = markdown(&out);
    assert_eq!(shown.matches("\nNo package has device code.\n").count(), 1, "{shown}");
    assert!(!shown.contains('|'), "{shown}");
}

#[test]
fn a_set_of_debs_has_no_figures_of_rpms() {
    let set = Set::with(&["--format", "deb"]);
    let whole = Set::build();
    let [own, both] = [&set, &whole].map(|set| json(&mut report(&set.out())));
    let formats = own["formats"].as_array().unwrap();
    assert!(formats.len() == 1 && formats[0]["format"] == "deb", "{own}");
    assert_eq!(formats[0]["gpus"], both["formats"][0]["gpus"]);
    assert!(!markdown(&set.out()).contains(".rpm"));
    // A format that the earlier set lacks is new to everyone.
    let since = json(report(&whole.out()).arg("--since").arg(set.out()));
    let earlier = |format: usize| since["formats"][format]["gpus"][0]["earlier"].clone();
    assert_eq!((earlier(0), earlier(1)), (formats[0]["gpus"][0]["sizes"].clone(), Value::Null));
}

/// No build writes such sizes, but a receipt can state them.
#[test]
fn sizes_beyond_any_sum_and_of_nothing_are_shown() {
    let set = Set::build();
    let file = set.scratch("packages.json");
    for (size, expected) in [(u64::MAX, "18446744073.70 GB"), (0, "12 packages, 0 B")] {
        let mut receipt = set.receipt();
        for package in receipt["packages"].as_array_mut().unwrap() {
            package["size"] = size.into();
            package["installed_size"] = size.into();
        }
        fs::write(&file, receipt.to_string()).unwrap();
        assert!(markdown(&file).contains(expected));
        tools::run(report(&file).arg("--out").arg(set.scratch("report.html")));
    }
}
