//! Databases in the packages that the program builds.

use std::fs;
use std::path::Path;
use std::process::Command;

use support::device::{compile, run as execute};
use support::example::{GROUPS, build_of, copy_shards, deb_name, files, kernels, rockpack};
use support::queries::deb_field;
use support::tools::{need, run, told};

use crate::databases::code_object;

const LIBRARY: &str = "lib/rocblas/library";

/// The files below the install prefix in a `.deb` of the set in `out`.
pub(super) fn installed(out: &Path, package: &str) -> Vec<String> {
    let root = tempfile::tempdir().unwrap();
    run(Command::new("dpkg-deb").arg("-x").arg(out.join(deb_name(package))).arg(root.path()));
    let paths = files(root.path()).into_keys();
    let below = paths.filter_map(|path| Some(path.split_once(LIBRARY)?.1.to_owned()));
    below.collect()
}

pub(super) fn is_installed(out: &Path, package: &str, name: &str) -> bool {
    installed(out, package).contains(&format!("/{name}"))
}

#[test]
fn a_library_with_different_fallbacks_is_packed_by_arch() {
    need(&["dpkg-deb"]);
    let folder = tempfile::tempdir().unwrap();
    let (shards, out) = (folder.path().join("shards"), folder.path().join("out"));
    copy_shards(&shards);
    let fallback = format!("{LIBRARY}/TensileLibrary_fallback.dat");
    let changed = GROUPS[0].original(&shards, &fallback);
    let mut bytes = fs::read(&changed).unwrap();
    let at = bytes.windows(4).position(|window| window == b"Cijk").unwrap();
    bytes[at] = b'K';
    fs::write(&changed, &bytes).unwrap();
    let output = run(&mut build_of(&shards, &out));
    let shown = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!installed(&out, "rocm-blas").iter().any(|path| path.contains("fallback")));
    for group in &GROUPS {
        let paths = installed(&out, &kernels(group));
        for arch in group.archs {
            for name in ["TensileLibrary_fallback.dat", &format!("TensileLibrary_{arch}.co")] {
                let path = format!("/{arch}/{name}");
                assert!(paths.contains(&path), "{path} is not in {paths:?}; {shown}");
            }
        }
        assert!(paths.iter().all(|path| path.matches('/').count() == 2), "{paths:?}");
    }
    let verified = rockpack().arg("verify").arg(&out).output().unwrap();
    assert!(verified.status.success(), "{}", told(rockpack().arg("verify").arg(&out)));
}

/// An offload bundle of `code`: (arch, code object).
fn bundle_of(code: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let ids: Vec<String> =
        code.iter().map(|(arch, _)| format!("hipv4-amdgcn-amd-amdhsa--{arch}")).collect();
    let mut bytes = b"__CLANG_OFFLOAD_BUNDLE__".to_vec();
    append_number(&mut bytes, code.len());
    let mut start = bytes.len() + ids.iter().map(|id| 24 + id.len()).sum::<usize>();
    for ((_, code), id) in code.iter().zip(&ids) {
        append_number(&mut bytes, start);
        append_number(&mut bytes, code.len());
        append_number(&mut bytes, id.len());
        bytes.extend(id.as_bytes());
        start += code.len();
    }
    bytes.extend(code.iter().flat_map(|(_, code)| code));
    bytes
}

fn append_number(bytes: &mut Vec<u8>, number: usize) {
    bytes.extend((number as u64).to_le_bytes());
}

#[test]
fn a_bundle_of_several_archs_is_packed_whole_and_only_for_their_groups() {
    need(&["dpkg-deb"]);
    let folder = tempfile::tempdir().unwrap();
    let (shards, out) = (folder.path().join("shards"), folder.path().join("out"));
    copy_shards(&shards);
    for (name, archs) in [
        ("Kernels.so-000-two.hsaco", [("gfx1100", 0x41), ("gfx1101", 0x46)]),
        ("Kernels.so-001-two.hsaco", [("gfx1100", 0x41), ("gfx1151", 0x4a)]),
    ] {
        let path = GROUPS[0].original(&shards, &format!("{LIBRARY}/{name}"));
        fs::write(path, bundle_of(&archs.map(|(arch, mach)| (arch, code_object(mach))))).unwrap();
    }
    let output = run(build_of(&shards, &out).arg("-v"));
    let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    for (name, archs) in [("000", "gfx1100, gfx1101"), ("001", "gfx1100, gfx1151")] {
        let finding = format!(
            "{LIBRARY}/Kernels.so-{name}-two.hsaco: is an offload bundle for {archs}, which"
        );
        assert!(said.contains("R060") && said.contains(&finding), "{said}");
    }
    let packages = GROUPS.iter().map(kernels).chain(["rocm-blas".to_owned()]);
    for package in packages {
        let own = package == kernels(&GROUPS[0]);
        assert_eq!(is_installed(&out, &package, "Kernels.so-000-two.hsaco"), own, "{package}");
        assert!(!is_installed(&out, &package, "Kernels.so-001-two.hsaco"), "{package}");
    }
    assert!(is_installed(&out, "rocm-blas-kernels-common", "Kernels.so-001-two.hsaco"));
    for (group, depends) in GROUPS.iter().zip([true, true, false]) {
        let fields = deb_field(&out.join(deb_name(&kernels(group))), "Depends");
        assert_eq!(fields.contains("rocm-blas-kernels-common"), depends, "{fields}");
    }
}

#[test]
fn an_index_that_cannot_be_read_is_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let (shards, out) = (folder.path().join("shards"), folder.path().join("out"));
    copy_shards(&shards);
    let index = format!("{LIBRARY}/TensileLibrary_gfx1151.dat");
    fs::write(GROUPS[1].original(&shards, &index), "hello").unwrap();
    let output = run(&mut build_of(&shards, &out));
    let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    let subject = format!("gfx1151-build/blas_lib_gfx1151/{index}");
    assert!(said.contains(&format!("R029 database-unreadable: {subject}: is no")), "{said}");
    assert!(!said.contains("R019"), "{said}");
    let refused = build_of(&shards, &out).arg("--strict").output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn a_library_of_one_arch_is_in_its_kernel_package() {
    need(&["clang++-19", "ld.lld-19", "dpkg-deb"]);
    let folder = tempfile::tempdir().unwrap();
    let (shards, out) = (folder.path().join("shards"), folder.path().join("out"));
    copy_shards(&shards);
    compile(folder.path(), "unit", &["gfx1151"], &[]);
    let library = GROUPS[1].original(&shards, "lib/libMIOpenCKConv_gfx1151.so");
    let linked = library.to_str().unwrap();
    execute(folder.path(), &["clang++-19", "-shared", "-fuse-ld=lld", "unit.o", "-o", linked]);
    run(&mut build_of(&shards, &out));
    let root = folder.path().join("root");
    let package = out.join(deb_name(&kernels(&GROUPS[1])));
    run(Command::new("dpkg-deb").arg("-x").arg(package).arg(&root));
    let installed = root.join("opt/rocm-7.1/lib/libMIOpenCKConv_gfx1151.so");
    assert_eq!(fs::read(installed).unwrap(), fs::read(&library).unwrap());
    let mut verify = rockpack();
    verify.arg("verify").arg(&out).arg("--against").arg(&shards);
    let verified = verify.output().unwrap();
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stdout));
    // Only the finding allows it.
    let receipt = fs::read_to_string(out.join("packages.json")).unwrap();
    fs::write(out.join("packages.json"), receipt.replace("R028", "R999")).unwrap();
    let shown = String::from_utf8_lossy(&verify.output().unwrap().stdout).into_owned();
    assert!(shown.contains("V021") && shown.contains("libMIOpenCKConv_gfx1151.so"), "{shown}");
}
