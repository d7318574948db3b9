//! pip and uv remove wheels with thinned libraries, which Python still imports.

use std::fs;
use std::process::Command;

use support::example::{files, rockpack};
use support::fat_wheels::WheelSpec;
use support::fixtures;
use support::installers::{CLIENTS, Environment};
use support::tools::{need, said, succeed};

/// An extension module, with the fields of a `PyModuleDef` as words.
const EXTENSION: &str = "\
void *PyModule_Create2(void *, int);
static const void *definition[13] = {(void *)1, 0, 0, 0, 0, \"_C\", 0, (void *)-1};
void *PyInit__C(void) { return PyModule_Create2(definition, 1013); }
";

#[test]
fn thinned_libraries_are_imported_and_removed() {
    need(&CLIENTS);
    need(&["gcc", "clang-offload-bundler-19"]);
    support::kpack::need_python();
    let room = tempfile::tempdir().unwrap();
    let source = room.path().join("extension.c");
    fs::write(&source, EXTENSION).unwrap();
    let library = fixtures::bundled("extension", &["--compress"], &[source.to_str().unwrap()]);
    let wheel = WheelSpec::new("x", "1.0").text("x/__init__.py", "").file("x/_C.so", &library);
    let wheel = wheel.write(room.path());
    for client in CLIENTS {
        let environment = Environment::new(&room.path().join(client));
        said(environment.client(client, "install").arg("--no-index").arg(&wheel));
        let import = || {
            let mut python = Command::new(environment.python());
            python.args(["-B", "-c", "import x._C"]).env("LD_LIBRARY_PATH", fixtures::runtime());
            let registered = succeed(&mut python);
            let kinds = registered.lines().map(|line| line.rsplit_once("bundle=").unwrap().1);
            assert_eq!(kinds.collect::<Vec<_>>(), ["CCOB", "__CL"], "{client}: {registered}");
        };
        import();
        let installed = environment.site().join("x/_C.so");
        let mut thin = rockpack();
        thin.arg("thin").arg(environment.site()).args(["--target", "gfx1100", "--in-place"]);
        said(&mut thin);
        // Three of four code objects go, which are 15 kB each when compressed.
        let [before, after] = [&library, &installed].map(|file| fs::metadata(file).unwrap().len());
        assert!(after + 40_000 < before, "{client}: {before} bytes became {after}");
        import();
        said(&mut environment.client(client, "check"));
        environment.uninstall(client, &["x"]);
        let left = files(&environment.site());
        assert!(left.is_empty(), "{client}: {:?}", left.keys());
    }
}
