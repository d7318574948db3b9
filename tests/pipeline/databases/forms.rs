//! Indexes in the forms used by libraries since ROCm 7.13, in packages that the program builds.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use support::example::{GROUPS, build_of, copy_shards, kernels, rockpack};
use support::tools::{need, run, told};
use support::{kpack, python};

use super::built::{installed, is_installed};

const LIBRARY: &str = "lib/rocblas/library";

/// The name of an index that names no arch.
const NAME: &str = "TensileLibrary_lazy_indexed.dat";

/// A script that writes a library of format version 2. Arguments: file, arch, version, order of keys, and a
/// fault to put in.
const WRITE: &str = "import msgpack, sys, zlib
path, arch, version, order, wrong = sys.argv[1:]
index, blob = [], b''
for number in (3, 8, 21):
    solution = msgpack.packb({
        'name': f'Cijk_{number}', 'index': number,
        'problemType': {'operationIdentifier': f'Contraction_{number}'},
        'hardwarePredicate': {'type': 'Processor', 'value': arch}})
    index += [number, len(blob), len(solution)]
    blob += solution
if wrong == 'outside':
    index[-1] += 1
values = {'format_version': int(version), 'solutions_index': index, 'solutions_blob': blob,
          'library': {'type': 'Placeholder', 'value': f'TensileLibrary_{arch}'}}
data = msgpack.packb({key: values[key] for key in order.split(',')})
if path.endswith('.zlib'):
    data = zlib.compress(data, 9)
if wrong == 'followed':
    data += b'x'
open(path, 'wb').write(data)
";

/// The order in which TensileLite writes the keys.
const ORDER: &str = "format_version,solutions_index,solutions_blob,library";

/// Another order, with each value before the key that explains how to read it.
const TURNED: &str = "library,solutions_blob,solutions_index,format_version";

fn write(path: &Path, version: &str, order: &str, wrong: &str) {
    let arguments = [path.to_str().unwrap(), GROUPS[1].archs[0], version, order, wrong];
    python::run(WRITE, &arguments, "").unwrap();
}

/// The example's shards, and a folder for their packages.
struct Built {
    folder: tempfile::TempDir,
}

impl Built {
    fn new() -> Self {
        need(&["dpkg-deb"]);
        kpack::need_python();
        let built = Self { folder: tempfile::tempdir().unwrap() };
        copy_shards(&built.shards());
        built
    }

    fn shards(&self) -> PathBuf {
        self.folder.path().join("shards")
    }

    fn out(&self) -> PathBuf {
        self.folder.path().join("out")
    }

    /// The path of a file in one arch's shard, with its folders made.
    fn at(&self, path: &str) -> PathBuf {
        let path = GROUPS[1].original(&self.shards(), path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }

    /// Builds, runs `verify`, which must pass if `passes`, and returns the findings that name `name`.
    fn build(&self, name: &str, passes: bool) -> String {
        let output = run(&mut build_of(&self.shards(), &self.out()));
        let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        let verified = told(rockpack().arg("verify").arg(self.out()));
        assert_eq!(verified.contains("V025"), !passes, "{verified}");
        assert_eq!(verified.contains(name), !passes, "{verified}");
        let lines = said.lines().filter(|line| line.contains(name));
        lines.collect::<Vec<_>>().join("\n")
    }
}

#[test]
fn an_index_with_its_solutions_in_one_value_goes_where_they_belong() {
    let arch = GROUPS[1].archs[0];
    for (name, order) in
        [(NAME.to_owned(), ORDER), (NAME.to_owned(), TURNED), (format!("{NAME}.zlib"), TURNED)]
    {
        let built = Built::new();
        let file = built.at(&format!("{LIBRARY}/{name}"));
        write(&file, "2", order, "");
        let shown = run(rockpack().arg("inspect").arg("--json").arg(&file)).stdout;
        let shown: Value = serde_json::from_slice(&shown).unwrap();
        let shown = &shown[0];
        assert_eq!(shown["type"], "index", "{shown}");
        assert_eq!(shown["solutions"], 3);
        assert_eq!(shown["archs"], serde_json::json!([arch]));
        let expected = serde_json::json!(["Contraction_21", "Contraction_3", "Contraction_8"]);
        assert_eq!(shown["operations"], expected);
        assert_eq!(shown["libraries"], serde_json::json!([format!("TensileLibrary_{arch}")]));
        assert_eq!(built.build(&name, true), "");
        assert!(is_installed(&built.out(), &kernels(&GROUPS[1]), &name), "{name} {order}");
        assert!(!is_installed(&built.out(), "rocm-blas", &name), "{name} {order}");
    }
}

#[test]
fn an_index_that_no_library_would_load_is_told_by_build_and_verify() {
    let arch = GROUPS[1].archs[0];
    let name = format!("TensileLibrary_lazy_{arch}.dat");
    let cases = [
        (name.clone(), "2", "outside", "ends outside of the"),
        (name.clone(), "3", "", "format_version 3 is not known, only 1 and 2 are"),
        (name.clone(), "1", "", "but not format_version 2"),
        (name.clone(), "2", "followed", "bytes follow its value"),
        (format!("{name}.zlib"), "2", "followed", "bytes follow its zlib stream"),
    ];
    for (name, version, wrong, reason) in cases {
        let built = Built::new();
        let file = built.at(&format!("{LIBRARY}/{name}"));
        write(&file, version, ORDER, wrong);
        let said = built.build(&name, false);
        assert!(said.contains("R029") && said.contains(reason), "{said}");
        let refused = rockpack().arg("inspect").arg(&file).output().unwrap();
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(refused.status.code() == Some(2) && said.contains(reason), "{said}");
    }
}

/// The file has a header, a map and blocks. It is no zlib stream, despite its name.
#[test]
fn what_hipblaslt_knows_for_compiling_is_a_file_of_its_arch() {
    let arch = GROUPS[1].archs[0];
    let built = Built::new();
    let name = format!("hipblaslt-jit-knowledge-{arch}.dat.zlib");
    let bytes = b"HJKN\x01\0\0\0\x01\0\0\0\x80x\x9c\x03\0\0\0\0\x01x\x9c\x03\0\0\0\0\x01";
    let places = ["", arch].map(|folder| format!("lib/hipblaslt/library/{folder}/{name}"));
    for place in &places {
        fs::write(built.at(place), bytes).unwrap();
    }
    assert_eq!(built.build("jit-knowledge", true), "");
    let root = built.folder.path().join("root");
    let package = support::example::deb_name(&kernels(&GROUPS[1]));
    run(Command::new("dpkg-deb").arg("-x").arg(built.out().join(package)).arg(&root));
    for place in &places {
        assert_eq!(fs::read(root.join("opt/rocm-7.1").join(place)).unwrap(), bytes);
    }
}

/// A file that a rule declares common to all archs may name a single one, if only that was built.
#[test]
fn a_compressed_index_for_all_archs_stays_with_the_host_files() {
    let built = Built::new();
    let name = "TensileLibrary_lazy_fallback.dat.zlib";
    write(&built.at(&format!("{LIBRARY}/{name}")), "2", ORDER, "");
    run(&mut build_of(&built.shards(), &built.out()));
    assert!(installed(&built.out(), "rocm-blas").contains(&format!("/{name}")));
    fs::remove_file(built.out().join("packages.json")).unwrap();
    let verified = told(rockpack().arg("verify").arg(built.out()));
    assert!(!verified.contains("V020"), "{verified}");
}
