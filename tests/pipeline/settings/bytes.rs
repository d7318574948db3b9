//! Settings, told apart by their effects: a part of a set notices that it was made with other settings, and a
//! cache returns nothing made with other settings. A declared key or option that is not tried here fails the
//! test.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

use clap::Args;
use rockpack::pipeline::{Built, build};
use rockpack::settings::{BuildArguments, keys};
use rockpack_core::error::Result;
use rockpack_report::Silent;
use serde_json::Value;
use support::example::{configuration, contents, shards};
use support::fat_wheels::shim;
use support::program::{build_settings, repository};
use tempfile::TempDir;

/// Another value than the example's for each key. `+` marks values that change the packages' bytes, `!`
/// values with which the example is refused.
const KEYS: &str = r#"
- $schema = "a.json"
+ primary_shard = "gfx120X-build"
+ architecture_groups.gfx110X.display_name = "RDNA 3"
+ architecture_groups.gfx110X.architectures = ["gfx1100"]
- additional_architectures = ["gfx1400"]
- validation.error_on_duplicate_device_code = false
! validation.verify_generic_artifacts_match = true
- validation.error_on_missing_architecture = true
- validation.unassigned_architectures = "drop"
- validation.untransformable = "error"
- components.blas_lib.error_on_duplicate_device_code = false
! components.blas_lib.verify_generic_artifacts_match = true
- components.blas_lib.error_on_missing_architecture = true
- components.blas_lib.unassigned_architectures = "drop"
- components.blas_lib.untransformable = "error"
+ components.blas_lib.code_files = "compressed"
+ components.blas_lib.include_architectures = ["gfx1100", "gfx1151", "gfx1200"]
+ components.blas_lib.exclude_architectures = ["gfx1101"]
+ packages.rocm-blas.summary = "Other words"
+ packages.rocm-blas.description = "Other words."
+ packages.rocm-blas.section = "contrib/libs"
+ packages.rocm-blas.license = "MIT"
+ packages.rocm-blas.homepage = "https://example.org"
+ packages.rocm-blas.copyright = "2026 A Company"
+ packages.rocm-blas.include_architectures = ["gfx1100"]
+ packages.rocm-blas.exclude_architectures = ["gfx1151"]
+ scheme = "rocm-versioned"
+ variant = "asan"
+ version = "7.1.1"
+ release = "2"
+ release_type = "nightly:20261120"
+ prefix = "/opt/other-7.1"
+ series_link = true
+ libdir = "lib64"
+ kpackdir = "lib/kernels"
+ epoch = 1
+ distribution_tag.deb = "~deb12"
+ distribution_tag.rpm = ".el9"
- accept = [{ "code": "R001", "subject": "*", "reason": "why" }]
+ parts = [{ "name": "tools", "kinds": ["run"], "role": "host", "suffix": { "deb": "-utils", "rpm": "-tools" } }]
+ content_date = "2025-02-01T00:00:00Z"
+ maintainer = "Others <others@example.org>"
+ vendor = "A Company"
+ homepage = "https://example.org"
+ license = "MIT"
+ copyright = "2026 A Company"
+ alternatives = "programs"
- distro = "debian-13"
+ code_files = "compressed"
+ archive_level.deb = "none"
+ libraries.libamdhip64·so·7.deb = "other-runtime"
+ libraries.libamdhip64·so·7.rpm = "other-runtime"
- interpreters./bin/never = "/bin/sh"
- runpath = "origin"
+ set_relations = "exact"
+ kernel_relations = "code"
+ runtime_relation.deb = "other-runtime (>= 7.1)"
+ runtime_relation.rpm = "other-runtime >= 7.1"
+ hip_runtime = "any"
- hip_shim = "{shim}"
+ hardware_hints.deb = "none"
+ hardware_hints.rpm = "discrete"
+ relations.rocm-blas.deb = { "suggests": ["other"] }
+ relations.rocm-blas.rpm = { "suggests": ["other"] }
+ replaces.rocm-blas = ["rocblas"]
+ moved.rocm-blas = ["rocm-sparse < 7.0"]
+ selectors.rocm-linear = [{ "artifact": "blas" }]
+ databases = [{ "name": "rocblas", "directories": ["never"] }]
- other_machines = ["share/never/*.elf"]
- wheels.device_name = "amd-{name}-device-{group}"
- wheels.device_requires = ["other == 7.1"]
- wheels.host_requires = ["other == 7.1"]
- repository.suite = "testing"
- repository.component = "extra"
- repository.codename = "noble"
- repository.origin = "A Company"
- repository.label = "ROCm"
- repository.description = "Other words"
- repository.valid_days = 9
- repository.url = "https://example.org"
- repository.name = "other"
- repository.pin = 600
- repository.rpm_md_compression = "zstd"
- repository.generations = 5
- repository.maintainer = "Others <others@example.org>"
- repository.index_page = false
"#;

/// Another value for each option, with the same marks. Options of a publication come together, since none
/// changes a package; new ones need no line.
const OPTIONS: &str = "
+ --scheme amdrocm
+ --variant asan
+ --version 7.1.1
+ --release 2
+ --release deb=2,rpm=3
+ --version deb=7.1.0~pre2,rpm=7.1.0~rc2
+ --release-type prerelease:2
+ --prefix /opt/other-7.1
- --distro debian-13
+ --packages {list} --scheme amdrocm
+ --format deb
+ --only blas
+ --since {earlier}/packages.json --release 2
- --expect gfx1151
- --jobs 1
! --strict
+ --compression xz
+ --preset small
+ --archive-level 1
+ --archive-level deb=9,rpm=none
+ --payload-level 1
- --memory 1G
+ --sign-key {key}
- --sbom
- --repo {repo} --repo-set suite=s --repo-set url=https://example.org --repo-set valid_days=9
";

/// Options that name input and output, and keys that sign no packages.
const PLACES: [&str; 13] = [
    "paths",
    "artifacts",
    "config",
    "out",
    "partition",
    "cache",
    "cache_size",
    "fetch_cache",
    "sign_passphrase_file",
    "gpg_key_id",
    "sign_command",
    "public_key",
    "receipt_key",
];

/// A set's packages by file name, and the digest that distinguishes its parts from those of other sets.
struct Made {
    packages: BTreeMap<String, Vec<u8>>,
    digest: String,
}

/// Builds of the example shards.
struct Case {
    folder: TempDir,
    /// The example's configuration.
    config: Value,
    /// The packages made from the example's configuration.
    made: Option<Made>,
}

impl Case {
    fn new() -> Self {
        let mut config: Value =
            serde_json::from_slice(&fs::read(configuration()).unwrap()).unwrap();
        config["version"] = "7.1.0".into();
        // For `hip_runtime`: a program of the example cannot be made for every HIP runtime.
        config["validation"]["untransformable"] = "keep-fat".into();
        let mut case = Self { folder: tempfile::tempdir().unwrap(), config, made: None };
        case.made = case.made(&case.config, &[]);
        case
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Builds in this process, as the command does.
    fn build(&self, out: &str, config: &Value, options: &[String]) -> Result<Built> {
        let file = self.path("config.json");
        fs::write(&file, config.to_string()).unwrap();
        let paths = [("--artifacts", shards()), ("--config", file), ("--out", self.path(out))];
        let paths =
            paths.into_iter().flat_map(|(option, path)| [OsString::from(option), path.into()]);
        let settings = build_settings(paths.chain(options.iter().map(OsString::from)));
        Ok(build(&settings.unwrap(), &Silent)?.0)
    }

    fn packages(&self, out: &str) -> BTreeMap<String, Vec<u8>> {
        let mut packages = contents(&self.path(out));
        packages.retain(|name, _| !name.contains(".json"));
        fs::remove_dir_all(self.path(out)).unwrap();
        packages
    }

    /// Builds the set as one part, with the cache shared by all builds of this case; returns nothing if the
    /// build is refused.
    fn made(&self, config: &Value, options: &[String]) -> Option<Made> {
        let cache = self.path("cache");
        let own = ["--partition", "1/1", "--cache", cache.to_str().unwrap()].map(str::to_owned);
        let built = self.build("part", config, &[options, &own].concat());
        // Faults in the settings themselves have another exit code.
        let part = built.inspect_err(|error| assert!(!error.is_refusal(), "{error}")).ok()?;
        let digest = part.receipt.part.unwrap().plan_sha256;
        Some(Made { packages: self.packages("part"), digest })
    }

    /// Describes the fault of a change by `line`, if any: its mark is wrong, parts do not notice that packages
    /// differ, or the cache gives other packages than a build without it. [`Case::unchanged`] builds all lines
    /// with `-` without a cache.
    fn fault(&self, line: &str, config: &Value, options: &[String]) -> Option<String> {
        let before = self.made.as_ref().unwrap();
        let Some(made) = self.made(config, options) else {
            return (!line.starts_with('!')).then(|| format!("{line}: is refused"));
        };
        let fault = if line.starts_with('-') {
            (made.packages != before.packages).then_some("the sign in front is wrong")?
        } else {
            let plain = self.plain(config, options);
            if plain == before.packages || !line.starts_with('+') {
                "the sign in front is wrong"
            } else if made.digest == before.digest {
                "parts do not know"
            } else if made.packages != plain {
                "the cache gives others"
            } else {
                return None;
            }
        };
        Some(format!("{line}: {fault}"))
    }

    /// Fails if all changes by lines with `-` together change packages: the cache could hide that one does.
    fn unchanged(&self, config: &Value, options: &[String]) {
        let before = self.made.as_ref().unwrap();
        assert!(self.plain(config, options) == before.packages, "a line with - changes bytes");
    }

    /// The packages built without a cache.
    fn plain(&self, config: &Value, options: &[String]) -> BTreeMap<String, Vec<u8>> {
        self.build("plain", config, options).unwrap();
        self.packages("plain")
    }
}

/// The declared key that has a value at `place`.
fn declared<'a>(place: &[&str], all: &'a [Vec<String>]) -> &'a [String] {
    let fits = |key: &&Vec<String>| {
        key.len() <= place.len()
            && key.iter().zip(place).all(|(key, part)| key == "*" || key == part)
    };
    all.iter().filter(fits).max_by_key(|key| key.len()).unwrap()
}

#[test]
fn parts_and_caches_know_the_keys_that_change_bytes() {
    let case = Case::new();
    let shim = shim(case.folder.path(), "");
    let all: Vec<Vec<String>> = keys().into_iter().map(|key| key.path).collect();
    let (mut tried, mut faults) = (BTreeSet::new(), Vec::new());
    // Keys of components replace those of `validation`, so each kind is tried without the other.
    let mut unchanged = [&case.config, &case.config].map(Value::clone);
    for line in KEYS.lines().filter(|line| !line.is_empty()) {
        let (place, value) = line[2..].split_once(" = ").unwrap();
        let place: Vec<&str> = place.split('.').collect();
        let key = declared(&place, &all);
        tried.extend((1..=key.len()).map(|depth| key[..depth].to_vec()));
        let set = |config: &mut Value| {
            let at = place.iter().fold(config, |value, part| &mut value[part.replace('·', ".")]);
            let value = value.replace("{shim}", shim.to_str().unwrap());
            *at = serde_json::from_str(&value).unwrap();
        };
        if line.starts_with('-') {
            set(&mut unchanged[usize::from(place[0] == "components")]);
        }
        let mut config = case.config.clone();
        set(&mut config);
        faults.extend(case.fault(line, &config, &[]));
    }
    assert!(faults.is_empty(), "{faults:#?}");
    unchanged.iter().for_each(|config| case.unchanged(config, &[]));
    let untried: Vec<_> = all.iter().filter(|key| !tried.contains(*key)).collect();
    assert!(untried.is_empty(), "add a line to KEYS for each of {untried:?}");
}

#[test]
fn parts_and_caches_know_the_options_that_change_bytes() {
    let case = Case::new();
    let key = repository("tests/pipeline/pins/key.asc");
    let list = repository("tests/fixtures/package_list/package.json");
    case.build("earlier", &case.config, &[]).unwrap();
    let (earlier, repo) = (case.path("earlier"), case.path("repo"));
    let places = [("{key}", key), ("{list}", list), ("{earlier}", earlier), ("{repo}", repo)];
    let (mut faults, mut unchanged) = (Vec::new(), Vec::new());
    let command = BuildArguments::augment_args(clap::Command::new("build"));
    let of_packages =
        command.get_arguments().filter(|it| it.get_help_heading() != Some("Repository"));
    let mut untried: BTreeSet<&str> = of_packages.map(|it| it.get_id().as_str()).collect();
    PLACES.iter().for_each(|place| assert!(untried.remove(place), "{place}"));
    for line in OPTIONS.lines().filter(|line| !line.is_empty()) {
        let words: Vec<String> = line[2..]
            .split_whitespace()
            .map(|word| {
                let place = |text: String, (name, path): &(&str, PathBuf)| {
                    text.replace(name, path.to_str().unwrap())
                };
                places.iter().fold(word.to_owned(), place)
            })
            .collect();
        for option in words.iter().filter_map(|word| word.strip_prefix("--")) {
            untried.remove(option.replace('-', "_").as_str());
        }
        faults.extend(case.fault(line, &case.config, &words));
        if line.starts_with('-') {
            unchanged.extend(words);
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
    case.unchanged(&case.config, &unchanged);
    assert!(untried.is_empty(), "add a line to OPTIONS for each of {untried:?}");
}
