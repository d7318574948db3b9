//! Kernel archives are compressed unless `archive_level` says `none`, and only their bytes depend on it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use rockpack_core::content::Content;
use serde_json::{Value, json};
use support::example::{GROUPS, Set, UNITS, build_of, contents, rockpack, shards};
use support::kpack::{archive_sizes, judged, listed_sizes, need_python};
use support::queries::installed;
use support::tampered::passes;
use support::tools;

/// Archives are stored in a `.deb` alone.
const DEB: [&str; 2] = ["--archive-level", "deb=none,rpm=9"];

const FRAMES: &str = "zstd-per-kernel";
const STORED: &str = "none";

fn need_judges() {
    tools::need(&["dpkg-deb", "rpm2cpio", "cpio"]);
    need_python();
}

/// The rows of all archives in the packages of a format, by archive and key, from the independent reader.
/// Fails unless all archives have this scheme, and the manifest lists their sizes.
fn rows(out: &Path, format: &str, scheme: &str) -> BTreeMap<(String, String), Value> {
    let files = installed(out, format);
    assert_eq!(listed_sizes(&files), archive_sizes(&files), "{format}");
    let archives = files.into_iter().filter(|(path, _)| path.ends_with(".kpack"));
    let rows = archives.flat_map(|(path, bytes)| {
        let mut archive = judged(&Content::of_bytes(bytes));
        assert_eq!(archive["compression_scheme"], scheme, "{path} of {format}");
        let Value::Object(rows) = archive["rows"].take() else { panic!("{archive}") };
        rows.into_iter().map(move |(key, row)| ((path.clone(), key), row))
    });
    rows.collect()
}

/// The formats whose archives are stored, as the receipt's finding says.
fn formats_of_finding(set: &Set) -> Vec<Value> {
    let receipt = set.receipt();
    let findings = receipt["findings"].as_array().unwrap().iter();
    findings.filter(|it| it["code"] == "R159").map(|it| it["formats"].clone()).collect()
}

/// Stored archives are several times larger on disk, and their code objects have no checksums. The example has
/// compressed bundles and plain ones.
#[test]
fn archives_are_stored_only_where_that_is_asked_for() {
    need_judges();
    let usual = Set::build();
    let expected = rows(&usual.out(), "deb", FRAMES);
    let archs: usize = GROUPS.iter().map(|group| group.archs.len()).sum();
    assert_eq!(expected.len(), UNITS.len() * archs);
    assert!(rows(&usual.out(), "rpm", FRAMES) == expected);
    assert_eq!(formats_of_finding(&usual), Vec::<Value>::new());
    let [all, deb] = [["--archive-level", "none"], DEB].map(|options| Set::with(&options));
    for (set, schemes, formats) in
        [(&all, [STORED, STORED], json!(["deb", "rpm"])), (&deb, [STORED, FRAMES], json!(["deb"]))]
    {
        for (format, scheme) in ["deb", "rpm"].into_iter().zip(schemes) {
            assert!(rows(&set.out(), format, scheme) == expected, "{format}, {formats}");
        }
        assert_eq!(formats_of_finding(set), [formats]);
        passes(&set.out(), &shards());
    }
    // A package does not depend on the level of the other format.
    for (name, bytes) in contents(&deb.out()) {
        let alone = if name.ends_with(".deb") { &all } else { &usual };
        assert!(name.ends_with(".json") || fs::read(alone.file(&name)).unwrap() == bytes, "{name}");
    }
}

#[test]
fn neither_jobs_nor_memory_nor_cache_nor_parts_change_a_byte() {
    let set = Set::with(&DEB);
    let expected = contents(&set.out());
    let cache = set.scratch("cache");
    let cached = ["--cache", cache.to_str().unwrap()];
    // The cache has the frames of compressed archives, but other payloads.
    tools::run(
        build_of(&shards(), &set.scratch("usual")).args(["--archive-level", "1"]).args(cached),
    );
    let ways = [
        &["--jobs", "1", "--memory", "64G"][..],
        &["--jobs", "3", "--memory", "1100M"],
        &["--jobs", "7"],
        &cached,
        &cached,
    ];
    for (index, way) in ways.into_iter().enumerate() {
        let out = set.scratch(&index.to_string());
        tools::run(build_of(&shards(), &out).args(DEB).args(way));
        assert!(contents(&out) == expected, "{way:?}");
    }
    let folders = ["1/2", "2/2"].map(|part| {
        let out = set.scratch(&part.replace('/', "-of-"));
        tools::run(build_of(&shards(), &out).args(DEB).args(["--partition", part]));
        out
    });
    let joined = set.scratch("joined.json");
    let mut verify = rockpack();
    verify.arg("verify").args(&folders).arg("--against").arg(shards());
    tools::run(verify.arg("--join").arg(&joined));
    let mut parts: BTreeMap<_, _> = folders.iter().flat_map(|folder| contents(folder)).collect();
    parts.retain(|name, _| !name.ends_with(".json"));
    parts.insert("packages.json".to_owned(), fs::read(joined).unwrap());
    assert!(parts == expected, "parts");
}
