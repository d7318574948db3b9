//! Packages for hardware: the script that names those of a machine, and DEP-11, which AppStream and isenkram read.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use support::repo_fixture::{
    deb, failed_checks, kernels, plain_spec, publish, repo, repo_at, rpm, verify,
};
use support::tools::{need, run, succeed};

use crate::updates::set_apt_up;

const URL: &str = "https://repo.example/rocm";

/// The RX 7900 XTX, and another GPU.
const KNOWN: &str = "pci:v00001002d0000744Csv*sd*bc*sc*i*";
const EARLIER: &str = "pci:v00001002d00007448sv*sd*bc*sc*i*";

/// Packages of a library and of its kernels, in both formats.
fn packages(folder: &Path) {
    deb(folder, ("rocm-blas", "1", "amd64"), "");
    for (version, modaliases) in [("1", EARLIER), ("2", KNOWN)] {
        let fields = kernels("rocm-blas", "gfx1100 gfx1101", modaliases);
        deb(folder, ("rocm-blas-gfx110x", version, "amd64"), &fields);
    }
    rpm(folder, &plain_spec("rocm-blas", "1", ""));
    let lines = "Provides: rocm-blas-kernels\nRequires: rocm-blas\nEnhances: rocm-blas";
    rpm(folder, &plain_spec("rocm-blas-gfx1100", "1", lines));
}

/// A made-up `/sys` with one RX 7900 XTX and no driver.
fn machine(sysfs: &Path) {
    let device = sysfs.join("bus/pci/devices/0000:03:00.0");
    fs::create_dir_all(&device).unwrap();
    for (name, value) in
        [("vendor", "0x1002"), ("device", "0x744c"), ("revision", "0xc8"), ("class", "0x030000")]
    {
        fs::write(device.join(name), format!("{value}\n")).unwrap();
    }
}

/// The answer of a published script for a machine.
fn answer(script: &Path, option: &str, sysfs: &Path) -> String {
    let mut sh = Command::new("sh");
    sh.arg(script).args([option, "--sysfs"]).arg(sysfs).env_remove("HSA_OVERRIDE_GFX_VERSION");
    succeed(&mut sh)
}

fn scripts(command: &mut Command) -> Vec<String> {
    let said: Value = serde_json::from_str(&succeed(command.arg("--json"))).unwrap();
    let channels = said["channels"].as_array().unwrap().iter();
    channels.filter_map(|it| Some(it["gpu_script"].as_str()?.to_owned())).collect()
}

#[test]
fn a_script_names_the_packages_of_a_machine() {
    need(&["dpkg-deb", "rpmbuild"]);
    let room = tempfile::tempdir().unwrap();
    let here = room.path();
    let (given, out, sysfs) = (here.join("given"), here.join("out"), here.join("sys"));
    packages(&given);
    machine(&sysfs);
    let published = scripts(repo(&[&given], &out).args(["--url", URL]));
    let [stable, rpms] = ["repo-example-stable-gpu.sh", "repo-example-gpu.sh"];
    assert_eq!(published, [stable, rpms]);
    for (script, package) in [(stable, "rocm-blas-gfx110x"), (rpms, "rocm-blas-gfx1100")] {
        let script = out.join(script);
        assert_eq!(answer(&script, "--targets", &sysfs), "gfx1100\n");
        assert_eq!(answer(&script, "--packages", &sysfs), format!("{package}\n"));
    }
    assert!(failed_checks(&verify(&out)).is_empty());
    let text = fs::read(out.join(rpms)).unwrap();
    fs::write(out.join(rpms), [&text[..], b"# more\n"].concat()).unwrap();
    assert_eq!(failed_checks(&verify(&out)), ["V104"]);
    // The script goes with the packages, and later than they do. It may come back before.
    let without = |after| {
        let mut run = repo_at(&[], &out, after);
        run.args(["--remove", "rocm-blas-gfx110x"]);
        scripts(&mut run)
    };
    assert_eq!(without(1), [rpms]);
    assert!(out.join(stable).is_file());
    assert!(failed_checks(&verify(&out)).is_empty());
    assert_eq!(scripts(&mut repo_at(&[&given], &out, 2)), [stable, rpms]);
    assert_eq!(scripts(repo_at(&[], &out, 9_000).args(["--set", "generations=1"])), [stable, rpms]);
    assert!(out.join(stable).is_file());
    assert_eq!(without(9_001), [rpms]);
    assert_eq!(scripts(repo_at(&[], &out, 18_000).args(["--set", "generations=1"])), [rpms]);
    assert!(!out.join(stable).exists());
}

#[test]
fn without_kernels_or_a_url_there_is_no_script() {
    need(&["dpkg-deb", "rpmbuild"]);
    let room = tempfile::tempdir().unwrap();
    let here = room.path();
    let (given, hosts) = (here.join("given"), here.join("hosts"));
    packages(&given);
    deb(&hosts, ("rocm-blas", "1", "amd64"), "");
    assert!(scripts(&mut repo(&[&given], &here.join("one"))).is_empty());
    let out = here.join("two");
    assert!(scripts(repo(&[&hosts], &out).args(["--url", URL])).is_empty());
    assert!(!out.join("dists/stable/main/dep11").exists());
}

/// What the package `appstream` has apt fetch.
const DEP_11: &str = r#"Acquire::IndexTargets::deb::DEP-11 {
MetaKey "$(COMPONENT)/dep11/Components-$(NATIVE_ARCHITECTURE).yml";
ShortDescription "DEP-11"; Description "DEP-11";
KeepCompressed "true"; KeepCompressedAs "gz"; };
"#;

/// Updates apt with that. Returns what AppStream reads in DEP-11.
fn appstream(room: &Path, out: &Path) -> String {
    set_apt_up(room, out, "", DEP_11);
    let mut apt = Command::new("apt-get");
    run(apt.arg("update").env("APT_CONFIG", room.join("settings")).env("LC_ALL", "C"));
    let files = fs::read_dir(room.join("lists")).unwrap().map(|entry| entry.unwrap().path());
    let mut lists =
        files.filter(|file| file.to_str().unwrap().ends_with("Components-amd64.yml.gz"));
    let yaml = run(Command::new("gzip").arg("-dc").arg(lists.next().unwrap())).stdout;
    let [from, to] = ["catalog.yml", "catalog.xml"].map(|name| room.join(name));
    fs::write(&from, yaml).unwrap();
    run(Command::new("appstreamcli").arg("convert").args([&from, &to]));
    fs::read_to_string(to).unwrap()
}

#[test]
fn appstream_finds_kernel_packages_by_modaliases() {
    need(&["dpkg-deb", "rpmbuild", "apt-get", "gzip", "appstreamcli"]);
    let room = tempfile::tempdir().unwrap();
    let here = room.path();
    let (given, out) = (here.join("given"), here.join("out"));
    packages(&given);
    publish(repo(&[&given], &out).args(["--url", URL]));
    let read = appstream(&here.join("one"), &out);
    for part in [
        "origin=\"repo-example-stable-main\"",
        "<component type=\"driver\">",
        "<id>example.repo.rocm_blas_gfx110x</id>",
        "<pkgname>rocm-blas-gfx110x</pkgname>",
        "<summary>one of rocm-blas-gfx110x</summary>",
        &format!("<modalias>{KNOWN}</modalias>"),
    ] {
        assert!(read.contains(part), "{part}: {read}");
    }
    assert!(!read.contains(EARLIER) && read.matches("<component ").count() == 1, "{read}");
    assert!(failed_checks(&verify(&out)).is_empty());
    // Ids follow the URL, also where the packages stay the same.
    publish(repo_at(&[], &out, 1).args(["--url", "https://new.example/rocm"]));
    let read = appstream(&here.join("two"), &out);
    assert!(read.contains("<id>example.new.rocm_blas_gfx110x</id>"), "{read}");
    let catalog = out.join("dists/stable/main/dep11/Components-amd64.yml");
    let text = fs::read_to_string(&catalog).unwrap();
    // Its other names are links of it.
    fs::remove_file(&catalog).unwrap();
    fs::write(&catalog, text.replace("744C", "744D")).unwrap();
    assert_eq!(failed_checks(&verify(&out)), ["V071"]);
}
