//! Components that need each other, like ROCm's blas, solver and sparse: kernel packages depend on each other
//! within their group, and apt and dpkg install the cycle.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use support::example::{self, GROUPS, build_of, copy_shards, deb_name};
use support::queries;
use support::roots::{dpkg, dpkg_database, stubs};
use support::tools::{self, need, run, succeed};

/// Components that each need the next one.
const RING: [&str; 3] = ["blas", "solver", "sparse"];

/// Writes the example shards with three libraries. Each needs the next one, and the last needs the first.
fn ring(root: &Path) {
    copy_shards(root);
    for group in &GROUPS {
        let blas = group.original(root, "lib/libexblas.so.1.2");
        let original = fs::read(&blas).unwrap();
        for (at, name) in RING.iter().enumerate() {
            let artifact = group.folder(root).join(format!("{name}_lib_{}", group.family));
            let file = match *name {
                "blas" => blas.clone(),
                _ => {
                    let prefix = format!("math-libs/{name}/stage");
                    fs::create_dir_all(artifact.join(&prefix).join("lib")).unwrap();
                    fs::write(artifact.join("artifact_manifest.txt"), &prefix).unwrap();
                    artifact.join(prefix).join(format!("lib/libex{name}.so.1.2"))
                }
            };
            fs::write(&file, &original).unwrap();
            let next = RING[(at + 1) % RING.len()];
            // These run separately: given both, patchelf mixes up the names.
            for (option, name) in [("--set-soname", *name), ("--add-needed", next)] {
                let library = format!("libex{name}.so.1");
                run(Command::new("patchelf").args([option, &library]).arg(&file));
            }
        }
    }
}

fn depends(out: &Path, package: &str) -> BTreeSet<String> {
    let text = queries::deb_field(&out.join(deb_name(package)), "Depends");
    text.split(", ").map(str::to_owned).collect()
}

#[test]
fn a_ring_of_components_is_installed_group_by_group() {
    let needed = ["patchelf", "dpkg-deb", "dpkg", "dpkg-scanpackages", "apt-get"];
    need(&needed);
    tools::need_root();
    let folder = tempfile::tempdir().unwrap();
    let (shards, out) = (folder.path().join("shards"), folder.path().join("out"));
    ring(&shards);
    run(build_of(&shards, &out).args(["--format", "deb"]));

    for group in &GROUPS {
        for (at, name) in RING.iter().enumerate() {
            let next = RING[(at + 1) % RING.len()];
            let own = depends(&out, &format!("rocm-{name}-{}", group.suffix));
            let of_ring = |text: &&String| RING.iter().any(|name| text.contains(*name));
            let found: BTreeSet<&str> = own.iter().filter(of_ring).map(String::as_str).collect();
            let host = format!("rocm-{name} (= 7.1.0-1)");
            let other = format!("rocm-{next}-{}", group.suffix);
            let kernels = ["(<< 7.1.1~)", "(>= 7.1.0-1)"].map(|bound| format!("{other} {bound}"));
            let expected = [host.as_str(), kernels[0].as_str(), kernels[1].as_str()];
            assert_eq!(found, BTreeSet::from(expected));
        }
    }
    let root = folder.path().join("root");
    let wanted = apt_would_install(&root, &out, "rocm-blas-gfx115x");
    let kernels = |name: &&String| name.contains("-gfx");
    let found: BTreeSet<&str> = wanted.iter().filter(kernels).map(String::as_str).collect();
    let of_group = RING.map(|name| format!("rocm-{name}-gfx115x"));
    assert_eq!(found, of_group.iter().map(String::as_str).collect());
    assert!(RING.iter().all(|name| wanted.contains(&format!("rocm-{name}"))), "{wanted:?}");

    run(dpkg(&root).arg("--install").args(wanted.iter().map(|name| out.join(deb_name(name)))));
    for name in RING {
        assert!(root.join(format!("opt/rocm-7.1/lib/libex{name}.so.1.2")).is_file());
        let archive = format!("opt/rocm-7.1/lib/.kpack/{name}_lib_gfx1151.kpack");
        assert!(root.join(archive).is_file(), "{name}");
    }
    run(example::rockpack().arg("verify").arg(&out).arg("--against").arg(&shards));
}

/// The packages that apt would install for `package`, with stubs for everything outside of the set.
fn apt_would_install(root: &Path, out: &Path, package: &str) -> BTreeSet<String> {
    dpkg_database(root, &stubs(&queries::packages(out, "deb")));
    for path in ["etc/apt/apt.conf.d", "state/lists/partial", "cache/archives/partial"] {
        fs::create_dir_all(root.join(path)).unwrap();
    }
    let mut scan = Command::new("dpkg-scanpackages");
    let packages = succeed(scan.args(["-m", "."]).current_dir(out));
    fs::write(out.join("Packages"), packages).unwrap();
    let source = format!("deb [trusted=yes] file:{} ./\n", out.display());
    fs::write(root.join("sources.list"), source).unwrap();
    let apt = || {
        let mut apt = Command::new("apt-get");
        for (key, value) in [
            ("Dir::State", "state"),
            ("Dir::State::status", "var/lib/dpkg/status"),
            ("Dir::Cache", "cache"),
            ("Dir::Etc::sourcelist", "sources.list"),
            ("Dir::Etc::sourceparts", "none"),
            ("Dir::Etc::main", "none"),
            ("Dir::Etc::parts", "etc/apt/apt.conf.d"),
            ("Dir::Etc::preferencesparts", "none"),
        ] {
            apt.arg("-o").arg(format!("{key}={}", root.join(value).display()));
        }
        apt.args(["-o", "APT::Architecture=amd64", "-o", "APT::Sandbox::User=root"]);
        apt
    };
    run(apt().arg("update"));
    let said = succeed(apt().args(["--simulate", "install", package]));
    fs::remove_file(out.join("Packages")).unwrap();
    let names = said.lines().filter_map(|line| line.strip_prefix("Inst "));
    names.filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}
