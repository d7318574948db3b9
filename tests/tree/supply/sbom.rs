//! `build --sbom`: the SPDX document, checked by pyspdxtools, and compared with the packages as dpkg-deb,
//! cpio, sha1sum and sha256sum read them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use support::example::{
    GROUPS, Set, build_of, configuration, contents, copy_shards, deb_name, kernels, names,
    rpm_name, shards,
};
use support::tools;
use tempfile::TempDir;

const NAME: &str = "packages.spdx.json";

/// A document, by its elements.
struct Sbom {
    document: Value,
}

impl Sbom {
    fn read(file: &Path) -> Self {
        Self { document: serde_json::from_slice(&fs::read(file).unwrap()).unwrap() }
    }

    fn list(&self, key: &str) -> &[Value] {
        self.document[key].as_array().unwrap()
    }

    /// The package whose file has this name.
    fn package(&self, file: &str) -> &Value {
        let mut packages = self.list("packages").iter();
        packages
            .find(|package| package["packageFileName"] == file)
            .unwrap_or_else(|| panic!("{file}"))
    }

    /// The IDs that an element is related to in this way.
    fn related(&self, id: &Value, relationship: &str) -> BTreeSet<&str> {
        let all = self.list("relationships").iter();
        all.filter(|one| one["spdxElementId"] == *id && one["relationshipType"] == relationship)
            .map(|one| one["relatedSpdxElement"].as_str().unwrap())
            .collect()
    }

    /// SHA-1 and SHA-256 of a package's files, by path.
    fn files(&self, package: &str) -> BTreeMap<String, [String; 2]> {
        let inside = self.related(&self.package(package)["SPDXID"], "CONTAINS");
        let all = self.list("files").iter();
        let files = all.filter(|file| inside.contains(file["SPDXID"].as_str().unwrap()));
        let digests =
            |file: &Value| ["SHA1", "SHA256"].map(|algorithm| digest(file, algorithm).unwrap());
        files.map(|file| (file["fileName"].as_str().unwrap().to_owned(), digests(file))).collect()
    }

    /// The artifacts that a package was made from, by shard and name.
    fn origins(&self, package: &str) -> BTreeSet<String> {
        let artifacts = self.related(&self.package(package)["SPDXID"], "GENERATED_FROM");
        let all = self.list("packages").iter();
        let found = all.filter(|one| artifacts.contains(one["SPDXID"].as_str().unwrap()));
        let label = |one: &Value| {
            let shard = one["comment"].as_str().unwrap().rsplit(' ').next().unwrap();
            format!("{shard}/{}", one["name"].as_str().unwrap())
        };
        found.map(label).collect()
    }
}

fn digest(element: &Value, algorithm: &str) -> Option<String> {
    let mut all = element["checksums"].as_array()?.iter();
    let found = all.find(|one| one["algorithm"] == algorithm)?;
    Some(found["checksumValue"].as_str().unwrap().to_owned())
}

/// The digests of every regular file below `root`, by path, computed by sha1sum or sha256sum.
fn sums(tool: &str, root: &Path) -> BTreeMap<String, String> {
    let mut find = Command::new("find");
    find.current_dir(root).args([".", "-type", "f", "-exec", tool, "{}", "+"]);
    let text = tools::succeed(&mut find);
    text.lines()
        .map(|line| {
            (
                line[line.find("  ").unwrap() + 2..].to_owned(),
                line.split(' ').next().unwrap().to_owned(),
            )
        })
        .collect()
}

fn sha256sum(file: &Path) -> String {
    let text = tools::succeed(Command::new("sha256sum").arg(file));
    text.split(' ').next().unwrap().to_owned()
}

/// The SHA-1 over all files of a package that SPDX requires, computed with the tools that its text names.
fn verification_code(sha1s: impl Iterator<Item = String>, scratch: &Path) -> String {
    fs::write(scratch, sha1s.map(|sum| sum + "\n").collect::<String>()).unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-c", "LC_ALL=C sort \"$0\" | tr -d '\\n' | sha1sum"]).arg(scratch);
    tools::succeed(&mut shell).split(' ').next().unwrap().to_owned()
}

fn validate(file: &Path) {
    tools::run(Command::new("pyspdxtools").arg("--infile").arg(file));
}

#[test]
fn the_document_is_spdx_to_its_own_tools() {
    tools::need(&["pyspdxtools"]);
    let set = Set::with(&["--sbom"]);
    validate(&set.file(NAME));
    // The judge can refuse a document.
    let text = fs::read_to_string(set.file(NAME)).unwrap();
    let broken = set.scratch("broken.spdx.json");
    fs::write(&broken, text.replacen("\"SHA1\"", "\"SHA3\"", 1)).unwrap();
    let told = tools::told(Command::new("pyspdxtools").arg("--infile").arg(&broken));
    assert!(!told.contains("exit status: 0"), "{told}");
}

#[test]
fn every_package_and_every_file_is_listed_with_the_digests_that_it_has() {
    tools::need(&["dpkg-deb", "rpm2cpio", "cpio", "sha1sum", "sha256sum", "find"]);
    let set = Set::with(&["--sbom"]);
    let sbom = Sbom::read(&set.file(NAME));
    let packages: BTreeSet<String> =
        names(&set.out()).into_iter().filter(|name| !name.ends_with(".json")).collect();
    let described = sbom.related(&"SPDXRef-DOCUMENT".into(), "DESCRIBES");
    assert_eq!(described.len(), packages.len());
    let mut of_packages = BTreeSet::new();
    for package in &packages {
        let element = sbom.package(package);
        assert!(described.contains(element["SPDXID"].as_str().unwrap()), "{package}");
        assert_eq!(digest(element, "SHA256").unwrap(), sha256sum(&set.file(package)), "{package}");
        let root = set.scratch(&format!("root-{package}"));
        tools::unpack(&set.file(package), &root);
        let (sha1, sha256) = (sums("sha1sum", &root), sums("sha256sum", &root));
        let files = sbom.files(package);
        let own =
            sha1.iter().map(|(path, sum)| (path.clone(), [sum.clone(), sha256[path].clone()]));
        assert_eq!(files, own.collect(), "{package}");
        assert_eq!(element["filesAnalyzed"], !files.is_empty(), "{package}");
        let code = &element["packageVerificationCode"]["packageVerificationCodeValue"];
        if files.is_empty() {
            assert!(code.is_null())
        } else {
            assert_eq!(*code, verification_code(sha1.into_values(), &set.scratch("sums")))
        }
        of_packages
            .extend(sbom.related(&element["SPDXID"], "CONTAINS").into_iter().map(str::to_owned));
    }
    let all: BTreeSet<String> =
        sbom.list("files").iter().map(|file| file["SPDXID"].as_str().unwrap().to_owned()).collect();
    assert_eq!(all, of_packages);
    assert_eq!(all.len(), sbom.list("files").len(), "an id stands for two files");
}

#[test]
fn packages_name_the_artifacts_that_their_bytes_come_from() {
    tools::need(&["tar", "zstd", "sha256sum"]);
    let folder = tempfile::tempdir().unwrap();
    let artifacts = folder.path().join("shards");
    copy_shards(&artifacts);
    // A packed artifact has a digest.
    let packed = pack(&GROUPS[1].folder(&artifacts), "blas_lib_gfx1151");
    let out = folder.path().join("out");
    tools::run(build_of(&artifacts, &out).arg("--sbom"));
    let sbom = Sbom::read(&out.join(NAME));
    for group in &GROUPS {
        for file in [deb_name(&kernels(group)), rpm_name(&kernels(group))] {
            let origins = sbom.origins(&file);
            let own =
                |origin: &&String| origin.starts_with(&format!("{}-build/blas_", group.shard));
            assert!(
                !origins.is_empty() && origins.iter().all(|origin| own(&origin)),
                "{origins:?}"
            );
            assert!(origins.contains(&format!("{}-build/blas_lib_{}", group.shard, group.family)));
        }
    }
    // Host files come from the primary shard, except for database files that serve several archs.
    let host = sbom.origins(&deb_name("rocm-blas"));
    for component in ["lib", "run"] {
        let primary = format!("gfx110X-build/blas_{component}_gfx110X-dgpu");
        assert!(host.contains(&primary), "{host:?}");
    }
    assert!(sbom.origins(&deb_name("rocm")).is_empty());
    let archive = sbom.package("blas_lib_gfx1151.tar.zst");
    assert_eq!(digest(archive, "SHA256"), Some(sha256sum(&packed)));
    let text = fs::read_to_string(out.join(NAME)).unwrap();
    assert!(!text.contains(folder.path().to_str().unwrap()), "a path of this machine");
}

/// Packs an artifact as `.tar.zst`, in place of its folder.
fn pack(shard: &Path, artifact: &str) -> PathBuf {
    let (folder, packed) = (shard.join(artifact), shard.join(format!("{artifact}.tar.zst")));
    let prefix = fs::read_to_string(folder.join("artifact_manifest.txt")).unwrap();
    let mut tar = Command::new("tar");
    tar.arg("--zstd").arg("-cf").arg(&packed).arg("-C").arg(&folder).arg("artifact_manifest.txt");
    tools::run(tar.args(prefix.lines().filter(|prefix| folder.join(prefix).is_dir())));
    fs::remove_dir_all(&folder).unwrap();
    packed
}

#[test]
fn what_is_configured_of_licence_vendor_and_copyright_is_passed_on() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("packaging.json");
    let mut settings: Value = serde_json::from_slice(&fs::read(configuration()).unwrap()).unwrap();
    settings["vendor"] = "A Company".into();
    settings["license"] = "MIT AND NCSA".into();
    settings["copyright"] = "2015-2026 A Company".into();
    settings["homepage"] = "https://example.org/rocm".into();
    let other = serde_json::json!({ "license": "as the authors say" });
    settings["packages"] = serde_json::json!({ "rocm-host-suite-sparse": other });
    fs::write(&config, settings.to_string()).unwrap();
    let out = folder.path().join("out");
    let mut build = support::example::rockpack();
    build.env("SOURCE_DATE_EPOCH", "1700000000").arg("build").arg("--artifacts").arg(shards());
    build.args(["--version", "7.1.0", "--sbom", "--config"]).arg(&config).arg("--out").arg(&out);
    tools::run(&mut build);
    let sbom = Sbom::read(&out.join(NAME));
    assert_eq!(sbom.document["creationInfo"]["created"], "2023-11-14T22:13:20Z");
    let element = sbom.package(&deb_name("rocm-blas"));
    for (key, value) in [
        ("name", "rocm-blas"),
        ("versionInfo", "7.1.0-1"),
        ("supplier", "Organization: A Company"),
        ("licenseDeclared", "MIT AND NCSA"),
        ("licenseConcluded", "NOASSERTION"),
        ("copyrightText", "2015-2026 A Company"),
        ("homepage", "https://example.org/rocm"),
    ] {
        assert_eq!(element[key], value, "{key}");
    }
    let other = sbom.package(&deb_name("rocm-host-suite-sparse"));
    assert_eq!(other["licenseDeclared"], "NOASSERTION");
    assert_eq!(other["licenseComments"], "The package says: as the authors say");
    tools::need(&["pyspdxtools"]);
    validate(&out.join(NAME));
}

/// Builds of the example set into a test's own folders.
struct Builds(TempDir);

impl Builds {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn command(&self, out: &str, options: &[&str]) -> Command {
        let mut build = build_of(&shards(), &self.path(out));
        build.args(options).stdout(Stdio::null());
        build
    }

    fn build(&self, out: &str, options: &[&str]) {
        tools::run(&mut self.command(out, options));
    }
}

#[test]
fn the_same_set_has_the_same_document_and_the_same_packages_as_without() {
    let builds = Builds::new();
    let cache = builds.path("cache");
    let cache = ["--sbom", "--cache", cache.to_str().unwrap()];
    builds.build("a", &["--sbom", "--jobs", "1"]);
    // The second build takes all payloads from the cache, the third some of them.
    builds.build("b", &cache);
    builds.build("b", &cache);
    builds.build("c", &[&cache[..], &["--format", "rpm"]].concat());
    builds.build("c", &cache);
    let with = contents(&builds.path("a"));
    assert!(with.contains_key(NAME));
    for other in ["b", "c"] {
        let same = contents(&builds.path(other)) == with;
        assert!(same, "{other}");
    }
    builds.build("without", &[]);
    let (mut packages, mut without) = (with, contents(&builds.path("without")));
    let [receipt, other] = [&mut packages, &mut without].map(|set| {
        let bytes = set.remove("packages.json").unwrap();
        serde_json::from_slice::<Value>(&bytes).unwrap()
    });
    let document = support::sha256(&packages.remove(NAME).unwrap());
    let mut expected = other;
    expected["spdx"] = serde_json::json!([{ "file_name": NAME, "sha256": document }]);
    assert_eq!(receipt, expected);
    assert!(without == packages);
}

#[test]
fn the_document_goes_with_its_set_and_no_other_is_touched() {
    let builds = Builds::new();
    let file = builds.path("out").join(NAME);
    builds.build("out", &["--sbom"]);
    let first = fs::read(&file).unwrap();
    // Another set has another document; a set without one removes an earlier set's.
    builds.build("out", &["--sbom", "--release", "2"]);
    let second = fs::read(&file).unwrap();
    assert_ne!(first, second);
    builds.build("out", &[]);
    assert!(!file.exists());
    // A foreign file stays, and is not overwritten either.
    fs::write(&file, "{}").unwrap();
    builds.build("out", &[]);
    let before = contents(&builds.path("out"));
    let told = tools::told(&mut builds.command("out", &["--sbom"]));
    assert!(told.contains("is not an SPDX document of rockpack"), "{told}");
    assert!(told.contains("exit status: 64") && contents(&builds.path("out")) == before, "{told}");
    assert_eq!(before[NAME], b"{}");
    // A document of a set that no longer exists stays, too.
    let other = builds.path("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join(NAME), &first).unwrap();
    for sbom in [&["--sbom"][..], &[]] {
        let told = tools::told(&mut builds.command("other", sbom));
        assert!(told.contains("but its packages.json is missing"), "{told}");
        assert!(told.contains("exit status: 64"), "{told}");
        assert_eq!(contents(&other), BTreeMap::from([(NAME.to_owned(), first.clone())]));
    }
}

#[test]
fn parts_have_documents_of_their_own_that_list_the_whole_set_together() {
    let builds = Builds::new();
    builds.build("whole", &["--sbom"]);
    let whole = Sbom::read(&builds.path("whole").join(NAME));
    let (mut files, mut packages) = (BTreeSet::new(), BTreeSet::new());
    for part in ["1", "2"] {
        builds.build("parts", &["--sbom", "--partition", &format!("{part}/2")]);
        let sbom =
            Sbom::read(&builds.path("parts").join(format!("packages-{part}-of-2.spdx.json")));
        files.extend(sbom.list("files").iter().map(Value::to_string));
        packages.extend(sbom.list("packages").iter().map(Value::to_string));
    }
    assert_eq!(files, whole.list("files").iter().map(Value::to_string).collect());
    assert_eq!(packages, whole.list("packages").iter().map(Value::to_string).collect());
}
