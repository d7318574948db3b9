//! Naming schemes from outside: `rockpack build --scheme` on the example shards, judged by dpkg and
//! rpm.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::example::{self, configuration, rockpack, shards};
use support::queries::{deb_fields, packages, rpm_lists};
use support::roots::{dpkg, dpkg_database, stubs};
use support::tools::{self, need, succeed, told};
use tempfile::TempDir;

/// The packages of the example shards in a folder of their own.
struct Built {
    folder: TempDir,
}

impl Built {
    fn new(options: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut build = command(folder.path());
        tools::run(build.args(options));
        Self { folder }
    }
}

fn command(out: &Path) -> Command {
    let mut build = rockpack();
    build.args(["build", "--version", "7.15.0", "--artifacts"]).arg(shards());
    build.arg("--config").arg(configuration()).arg("--out").arg(out);
    build
}

fn keys(map: &BTreeMap<String, String>) -> BTreeSet<&str> {
    map.keys().map(String::as_str).collect()
}

#[test]
fn versioned_names_carry_the_series() {
    need(&["dpkg-deb", "rpm"]);
    let built = Built::new(&["--scheme", "rocm-versioned"]);
    let depends = deb_fields(built.folder.path(), "Depends");
    let expected = BTreeSet::from([
        "rocm-blas7.15",
        "rocm-blas7.15-all",
        "rocm-blas7.15-gfx110x",
        "rocm-blas7.15-gfx115x",
        "rocm-blas7.15-gfx120x",
        "rocm-host-suite-sparse7.15",
        "rocm7.15",
        "rocm7.15-all-gpus",
        "rocm7.15-gfx110x",
        "rocm7.15-gfx115x",
        "rocm7.15-gfx120x",
    ]);
    assert!(expected.is_subset(&keys(&depends)), "{depends:?}");
    assert!(keys(&depends).iter().all(|name| name.contains("7.15")), "{depends:?}");
    assert!(depends["rocm-blas7.15-gfx110x"].contains("rocm-blas7.15 (= 7.15.0-1)"));
    assert!(depends["rocm7.15-gfx110x"].contains("rocm-blas7.15-gfx110x (>= 7.15.0-1)"));
    assert_eq!(keys(&rpm_lists(built.folder.path(), "--requires")), keys(&depends));
}

/// Two minor versions share one root: every package of both is installed, and no path is written twice.
#[test]
fn minor_versions_stand_side_by_side() {
    need(&["dpkg", "dpkg-deb"]);
    tools::need_root();
    let [one, other] = ["7.15.0", "7.16.0"].map(|version| {
        let folder = tempfile::tempdir().unwrap();
        let mut build = rockpack();
        build.args([
            "build",
            "--scheme",
            "rocm-versioned",
            "--format",
            "deb",
            "--version",
            version,
        ]);
        build.arg("--artifacts").arg(shards()).arg("--config").arg(configuration());
        tools::run(build.arg("--out").arg(folder.path()));
        Built { folder }
    });
    let root = tempfile::tempdir().unwrap();
    let debs: Vec<PathBuf> =
        [&one, &other].iter().flat_map(|set| packages(set.folder.path(), "deb")).collect();
    dpkg_database(root.path(), &stubs(&debs));
    tools::run(dpkg(root.path()).arg("--install").args(&debs));
    let listed = dpkg(root.path()).args(["-l"]).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let installed = listed.lines().filter(|line| line.starts_with("ii  rocm")).count();
    assert_eq!(installed, debs.len(), "{listed}");
    for series in ["7.15", "7.16"] {
        let library = root.path().join(format!("opt/rocm-{series}/lib/libexblas.so.1.2"));
        assert!(library.is_file(), "{}", library.display());
    }
    let gone = deb_fields(one.folder.path(), "Package").into_keys();
    tools::run(dpkg(root.path()).arg("--purge").args(gone));
    assert!(!root.path().join("opt/rocm-7.15").exists());
    assert!(root.path().join("opt/rocm-7.16/lib/libexblas.so.1.2").is_file());
}

/// The order is that of versions: 7.10 is newer than 7.2.
#[test]
fn the_loader_takes_the_newest_of_several_versions() {
    need(&["dpkg-deb", "gcc", "ldconfig"]);
    let (folder, root) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let root = root.path();
    for version in ["7.2.0", "7.10.0", "7.1.0", "6.4.0"] {
        let out = folder.path().join(version);
        let mut build = rockpack();
        build.args(["build", "--scheme", "rocm-versioned", "--format", "deb"]);
        build.args(["--version", version, "--artifacts"]).arg(shards());
        tools::run(build.arg("--config").arg(configuration()).arg("--out").arg(&out));
        let series = version.trim_end_matches(".0");
        let common = out.join(format!("rocm-common{series}_{version}-1_all.deb"));
        tools::run(Command::new("dpkg-deb").arg("-x").arg(common).arg(root));
        let library = root.join(format!("opt/rocm-{series}/lib/libside.so.1"));
        fs::create_dir_all(library.parent().unwrap()).unwrap();
        let mut gcc = Command::new("gcc");
        gcc.args(["-shared", "-nostdlib", "-Wl,-soname,libside.so.1", "-x", "c", "/dev/null"]);
        tools::run(gcc.arg("-o").arg(library));
    }
    fs::write(root.join("etc/ld.so.conf"), "include /etc/ld.so.conf.d/*.conf\n").unwrap();
    tools::run(Command::new("ldconfig").arg("-r").arg(root));
    let known = succeed(Command::new("ldconfig").arg("-r").arg(root).arg("-p"));
    let paths: Vec<&str> = known
        .lines()
        .filter_map(|line| line.split_once("libside.so.1 "))
        .filter_map(|(_, rest)| rest.split("=> ").nth(1))
        .collect();
    let expected = ["7.10", "7.2", "7.1", "6.4"].map(|v| format!("/opt/rocm-{v}/lib/libside.so.1"));
    assert_eq!(paths, expected, "{known}");
}

#[test]
fn amds_names_have_a_kernel_package_per_target() {
    need(&["dpkg-deb", "rpm"]);
    let built = Built::new(&["--scheme", "amdrocm", "--release", "12345"]);
    let depends = deb_fields(built.folder.path(), "Depends");
    let host = "amdrocm-blas-host7.15 (= 7.15.0-12345)";
    for target in ["gfx1100", "gfx1101", "gfx1102", "gfx1151", "gfx1200", "gfx1201"] {
        let kernels = format!("amdrocm-blas7.15-{target}");
        assert!(depends[&kernels].contains(host), "{depends:?}");
        assert!(depends["amdrocm-blas7.15"].contains(&format!("{kernels} (>= 7.15.0-12345)")));
    }
    assert!(depends["amdrocm-blas7.15"].contains(&host.replace("(=", "(>=")));
    let within = "amdrocm-blas7.15 (<< 7.15.1~), amdrocm-blas7.15 (>= 7.15.0-12345)";
    assert_eq!(depends["amdrocm-blas"], within);
    // The scheme's runtime, which includes the HIP library.
    let runtime = depends["amdrocm-blas-host7.15"].matches("amdrocm-runtime7.15").count();
    assert_eq!(runtime, 1, "{depends:?}");
    let receipt = fs::read_to_string(built.folder.path().join("packages.json")).unwrap();
    assert!(!receipt.contains("libamdhip64.so.7, which neither"), "{receipt}");
    // A component without device code has no separate host package.
    let sparse = "amdrocm-host-suite-sparse7.15";
    let within = format!("{sparse} (<< 7.15.1~), {sparse} (>= 7.15.0-12345)");
    assert_eq!(depends["amdrocm-host-suite-sparse"], within);
    assert!(!depends.contains_key("amdrocm-host-suite-sparse-host7.15"));
    let requires = rpm_lists(built.folder.path(), "--requires");
    assert_eq!(keys(&requires), keys(&depends));
    assert!(requires["amdrocm-blas"].contains("amdrocm-blas7.15 >= 7.15.0-12345"));
    let files = rpm_lists(built.folder.path(), "-l");
    assert!(
        files["amdrocm-blas7.15-gfx1101"]
            .contains("/opt/rocm/core-7.15/lib/.kpack/blas_lib_gfx1101.kpack")
    );
    tools::run(rockpack().arg("verify").arg(built.folder.path()));
}

/// Hosts of this scheme also look for archives where AMD's own packaging has them.
#[test]
fn amds_hosts_name_the_second_folder_of_archives() {
    need(&["dpkg-deb"]);
    let built = Built::new(&["--scheme", "amdrocm", "--format", "deb"]);
    let host = built.folder.path().join("amdrocm-blas-host7.15_7.15.0-1_amd64.deb");
    let root = built.folder.path().join("root");
    tools::run(Command::new("dpkg-deb").arg("-x").arg(host).arg(&root));
    let library = root.join("opt/rocm/core-7.15/lib/libexblas.so.1.2");
    let said = succeed(rockpack().arg("inspect").arg(library));
    for pattern in [".kpack/blas_lib_@GFXARCH@.kpack", "../.kpack/blas_lib_@GFXARCH@.kpack"] {
        assert!(said.contains(pattern), "{said}");
    }
}

#[test]
fn a_variant_is_a_word_in_names_and_prefix() {
    need(&["dpkg-deb"]);
    let built = Built::new(&["--scheme", "amdrocm", "--variant", "asan", "--format", "deb"]);
    let depends = deb_fields(built.folder.path(), "Depends");
    for name in ["amdrocm-blas-host-asan7.15", "amdrocm-blas-asan7.15-gfx1100", "amdrocm-blas-asan"]
    {
        assert!(depends.contains_key(name), "{depends:?}");
    }
    let host = built.folder.path().join("amdrocm-blas-host-asan7.15_7.15.0-1_amd64.deb");
    let listed = succeed(Command::new("dpkg-deb").arg("-c").arg(host));
    assert!(listed.contains(" ./opt/rocm/core-asan-7.15/lib/libexblas.so.1.2\n"), "{listed}");
}

#[test]
fn a_scheme_of_ones_own_and_parts_of_the_configuration() {
    need(&["dpkg-deb"]);
    let folder = tempfile::tempdir().unwrap();
    let scheme = folder.path().join("own.toml");
    let text = fs::read_to_string(tools::repository("config/schemes/rocm.toml")).unwrap();
    fs::write(&scheme, text.replace("kernels = \"{name}", "kernels = \"{name}-code")).unwrap();
    let config = folder.path().join("config.toml");
    let tools = "epoch = 2\ndistribution_tag.deb = '~deb12'\n[[parts]]\nname = 'tools'\nkinds = ['run']\nrole = 'host'\n\
                 suffix = { deb = '-utils', rpm = '-tools' }\nneeds_host = true\nprograms = true\n\
                 [architecture_groups.gfx1100]\narchitectures = ['gfx1100']\n";
    fs::write(&config, tools).unwrap();
    let out = folder.path().join("out");
    let mut build = rockpack();
    build.args(["build", "--version", "7.15.0", "--artifacts"]).arg(shards());
    build.arg("--scheme").arg(&scheme).arg("--config").arg(&config).arg("--out").arg(&out);
    tools::run(&mut build);
    let deb = out.join("rocm-blas-utils-code-gfx1100_7.15.0-1~deb12_amd64.deb");
    let info = succeed(Command::new("dpkg-deb").arg("-I").arg(deb));
    assert!(info.contains("Version: 2:7.15.0-1~deb12\n"), "{info}");
    assert!(info.contains("rocm-blas-utils (= 2:7.15.0-1~deb12)"), "{info}");
    let deb = out.join("rocm-blas-utils_7.15.0-1~deb12_amd64.deb");
    let listed = succeed(Command::new("dpkg-deb").arg("-c").arg(&deb));
    assert!(listed.contains("/bin/exblas-bench\n") && !listed.contains("libexblas"), "{listed}");
    let info = succeed(Command::new("dpkg-deb").arg("-I").arg(deb));
    assert!(info.contains("rocm-blas (= 2:7.15.0-1~deb12)"), "{info}");
    assert!(out.join("rocm-blas-tools-7.15.0-1.x86_64.rpm").is_file());
    tools::run(rockpack().arg("verify").arg(&out).arg("--against").arg(shards()));
}

/// Headers and documents are the same on every processor.
#[test]
fn packages_without_machine_code_are_for_every_processor() {
    need(&["dpkg-deb", "rpm"]);
    let built = Built { folder: tempfile::tempdir().unwrap() };
    let shards = built.folder.path().join("shards");
    example::copy_shards(&shards);
    for (component, file) in [("dev", "include/exblas.h"), ("doc", "share/doc/exblas/README")] {
        let artifact = shards.join(format!("gfx110X-build/blas_{component}_generic"));
        let file = artifact.join("math-libs/BLAS/rocBLAS/stage").join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, "text\n").unwrap();
        fs::write(artifact.join("artifact_manifest.txt"), "math-libs/BLAS/rocBLAS/stage\n")
            .unwrap();
    }
    let mut build = rockpack();
    build.args(["build", "--version", "7.15.0", "--artifacts"]).arg(&shards);
    build.arg("--config").arg(configuration()).arg("--out").arg(built.folder.path());
    tools::run(&mut build);
    let (debs, rpms) = (
        deb_fields(built.folder.path(), "Architecture"),
        rpm_lists(built.folder.path(), "--queryformat=%{ARCH}"),
    );
    for name in ["rocm-blas-dev", "rocm-blas-doc"] {
        assert_eq!(debs[name], "all");
        assert_eq!(rpms[&name.replace("-dev", "-devel")], "noarch");
    }
    assert_eq!((debs["rocm-blas"].as_str(), rpms["rocm-blas"].as_str()), ("amd64", "x86_64"));
}

#[test]
fn bad_schemes_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let unknown = ["--scheme", "there is no naming scheme `rcom`", "exit status: 64"];
    refused(&out, &["--scheme", "rcom"], &unknown);
    refused(&out, &["--variant", "a_b"], &["--variant", "`a_b` cannot be a package name"]);
    let file = folder.path().join("own.toml");
    let text = fs::read_to_string(tools::repository("config/schemes/rocm.toml")).unwrap();
    let own = file.to_str().unwrap();
    fs::write(&file, text.replace("host = \"{name}", "host = \"{nam}")).unwrap();
    refused(&out, &["--scheme", own], &["line 10, column 8", "names.host", "{nam}", "{series}"]);
    fs::write(&file, text.replace("vendor", "vender")).unwrap();
    refused(&out, &["--scheme", own], &["line 4, column 1", "did you mean `vendor`?"]);
    fs::write(&file, text.replace("{group}", "")).unwrap();
    refused(&out, &["--scheme", own], &["cannot be a package name"]);
    // Nothing of the set needs the library.
    for (added, key) in [
        ("[libraries.'libno.so.{major}']\ndeb = 'a, b'\n", "libraries.libno.so.{major}.deb"),
        ("[runtime_relation]\nrpm = 'hip >= '\n", "runtime_relation.rpm"),
    ] {
        fs::write(&file, format!("{text}{added}")).unwrap();
        refused(&out, &["--scheme", own], &["own.toml", "line ", key, "is not a valid relation"]);
    }
    fs::write(&file, format!("{text}[runtime_relation]\ndeb = 'hip-{{name}}'\n")).unwrap();
    let expected = ["own.toml", "runtime_relation.deb", "`{name}` is not a placeholder"];
    refused(&out, &["--scheme", own], &expected);
}

fn refused(out: &Path, options: &[&str], expected: &[&str]) {
    let said = told(command(out).args(options));
    for text in expected {
        assert!(said.contains(text), "{text} is not in: {said}");
    }
    assert!(!out.exists());
}
