//! Five components in every shard: those of the examples and three more, small enough to build a set of them
//! quickly.
//!
//! | family | kernels | its library needs |
//! |---|---|---|
//! | `blas` | of code objects and a database | - |
//! | `host-suite-sparse` | - | - |
//! | `fft` | of a database | - |
//! | `solver` | of a database | `blas` |
//! | `utils` | - | `solver`, `host-suite-sparse` |

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use support::example::{GROUPS, Group, shards};
use support::program::scratch;
use support::tools;

use crate::install::sets::SPARSE_LIBRARY;

/// The stage prefix of the new families in an artifact.
const STAGE: &str = "math-libs/example/stage";

/// The folder of the libraries with [`Changed::Function`], below that of the others.
const RENAMED: &str = "renamed";

/// A changed component, and the text appended to its file.
pub type Revision = (Changed, &'static str);

/// A file that a revision changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changed {
    /// The host library of a family, in every shard.
    Library(&'static str),
    /// A family's code object for gfx1100.
    Code(&'static str),
    /// The function of `solver`, which gets another name in its library and in `utils`, its user.
    Function,
}

/// A new family: its name, the source of its libraries, and the directory of its kernels.
struct Family {
    name: &'static str,
    source: &'static str,
    needs: &'static [&'static str],
    database: Option<&'static str>,
}

const FAMILIES: [Family; 3] = [
    Family {
        name: "fft",
        source: "int exfft(int n) { return n + 1; }\n",
        needs: &[],
        database: Some("lib/hipblaslt/library"),
    },
    Family {
        name: "solver",
        source: "int exblas_axpy(int n, float a, const float *x, float *y);\n\
                 int exsolver(int n) { return exblas_axpy(n, 0, 0, 0); }\n",
        needs: &["libexblas.so.1.2"],
        database: Some("lib/hipblaslt/solver/library"),
    },
    Family {
        name: "utils",
        source: "int exsolver(int n);\n\
                 int exsuitesparse_nonzeros(int n, const double *values);\n\
                 int exutils(int n) { return exsolver(n) + exsuitesparse_nonzeros(0, 0); }\n",
        needs: &["libexsolver.so.1", "libexsuitesparse.so.7.8"],
        database: None,
    },
];

impl Family {
    fn artifact(&self, group: &Group, artifacts: &Path) -> PathBuf {
        let label = if self.database.is_some() { group.family } else { "generic" };
        group.folder(artifacts).join(format!("{}_lib_{label}", self.name))
    }

    fn library(&self) -> String {
        format!("libex{}.so.1", self.name)
    }
}

/// The folder of the new libraries, compiled once.
fn libraries() -> &'static Path {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    MADE.get_or_init(|| {
        tools::need(&["gcc"]);
        let folder = scratch("components");
        let known = [GROUPS[0].original(&shards(), "lib/libexblas.so.1.2"), {
            GROUPS[0].folder(&shards()).join(SPARSE_LIBRARY)
        }];
        for file in known {
            fs::copy(&file, folder.join(file.file_name().unwrap())).unwrap();
        }
        FAMILIES.iter().for_each(|family| compile(family, family.source, &folder));
        let renamed = folder.join(RENAMED);
        fs::create_dir_all(&renamed).unwrap();
        for file in support::example::names(&folder).into_iter().filter(|it| it.contains(".so")) {
            fs::copy(folder.join(&file), renamed.join(file)).unwrap();
        }
        for family in &FAMILIES[1..] {
            compile(family, &family.source.replace("exsolver(", "exsolver_new("), &renamed);
        }
        folder
    })
}

fn compile(family: &Family, text: &str, folder: &Path) {
    let name = family.library();
    let source = format!("{}.c", family.name);
    fs::write(folder.join(&source), text).unwrap();
    let mut gcc = Command::new("gcc");
    gcc.current_dir(folder).args(["-shared", "-fPIC", "-O1", "-nostdlib", "-Wl,--build-id=sha1"]);
    gcc.args(["-Wl,-rpath,$ORIGIN", "-Wl,--allow-shlib-undefined", &format!("-Wl,-soname,{name}")]);
    gcc.arg(&source).args(family.needs).args(["-o", &name]);
    tools::run(&mut gcc);
}

/// Adds the new families to a shard, and changes files in it.
pub fn add(revisions: &[Revision], group: &Group, artifacts: &Path) {
    for family in &FAMILIES {
        let artifact = family.artifact(group, artifacts);
        let library = artifact.join(STAGE).join("lib").join(family.library());
        fs::create_dir_all(library.parent().unwrap()).unwrap();
        fs::copy(libraries().join(family.library()), library).unwrap();
        fs::write(artifact.join("artifact_manifest.txt"), format!("{STAGE}\n")).unwrap();
        let folder = family.database.map(|folder| artifact.join(STAGE).join(folder));
        for arch in folder.iter().flat_map(|_| group.archs) {
            put_kernels(group, artifacts, arch, folder.as_deref().unwrap());
        }
    }
    revisions.iter().for_each(|revision| change(*revision, group, artifacts));
}

/// Writes a database of one code object for an arch, like rocBLAS'.
fn put_kernels(group: &Group, artifacts: &Path, arch: &str, folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    for ending in ["co", "dat"] {
        let name = format!("TensileLibrary_{arch}.{ending}");
        let from = group.stage(artifacts, "lib").join("lib/rocblas/library").join(&name);
        fs::copy(from, folder.join(name)).unwrap();
    }
}

/// Appends to a file: bytes after the end of an ELF file are never read.
fn change((changed, text): Revision, group: &Group, artifacts: &Path) {
    let file = match changed {
        Changed::Function => {
            for family in &FAMILIES[1..] {
                let lib = family.artifact(group, artifacts).join(STAGE).join("lib");
                let from = libraries().join(RENAMED).join(family.library());
                fs::copy(from, lib.join(family.library())).unwrap();
            }
            return;
        }
        Changed::Library("blas") => group.original(artifacts, "lib/libexblas.so.1.2"),
        Changed::Library("host-suite-sparse") => group.folder(artifacts).join(SPARSE_LIBRARY),
        Changed::Library(name) => {
            let (family, stage) = stage(name, group, artifacts);
            stage.join("lib").join(family.library())
        }
        Changed::Code(name) => {
            let (family, stage) = stage(name, group, artifacts);
            stage.join(family.database.unwrap()).join("TensileLibrary_gfx1100.co")
        }
    };
    // Only one shard has that code object.
    if matches!(changed, Changed::Code(_)) && !file.exists() {
        return;
    }
    let mut file = fs::File::options().append(true).open(file).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

fn stage(name: &str, group: &Group, artifacts: &Path) -> (&'static Family, PathBuf) {
    let family = FAMILIES.iter().find(|family| family.name == name).unwrap();
    (family, family.artifact(group, artifacts).join(STAGE))
}
