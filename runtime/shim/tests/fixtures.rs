//! Installed libraries with archives, stand-ins for HIP runtimes, and processes that load them: C sources beside
//! this file.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use tempfile::TempDir;

use crate::archives::{Draft, code, digest, marker};

/// The soname of the library.
pub const SHIM: &str = "librocm_kpack_shim.so.0";

/// The soname of the HIP runtime that libraries need by default, `A` in its lines.
pub const RUNTIME: &str = "libamdhip64.so.7";

/// The search path in markers.
const PATTERN: &str = "../.kpack/blas_@GFXARCH@.kpack";

/// A library whose first wrapper is its only one.
pub const ONE_WRAPPER: &str = "-DWRAPPERS={HIPK, 1, marker, 0}";

/// The option for a library with so many wrappers.
pub fn wrappers(count: usize) -> String {
    let list: Vec<String> =
        (0..count).map(|index| format!("{{HIPK, 1, marker, {index}}}")).collect();
    format!("-DWRAPPERS={}", list.join(", "))
}

/// The library that cargo built for this test program, or the one in `ROCKPACK_SHIM_LIBRARY`.
pub fn shim() -> PathBuf {
    let library = std::env::var_os("ROCKPACK_SHIM_LIBRARY").map_or_else(
        || std::env::current_exe().unwrap().with_file_name("librocm_kpack_shim.so"),
        PathBuf::from,
    );
    assert!(library.is_file(), "{} is not there", library.display());
    library
}

/// A path of the repository.
pub fn source(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Runs a command that must succeed, and returns its standard output.
pub fn succeed(command: &mut Command) -> String {
    both(command).0
}

fn both(command: &mut Command) -> (String, String) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let [out, errors] = [stdout, stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(status.success(), "{command:?}: {status}\n{out}{errors}");
    (out, errors)
}

/// The compiler, which makes `output` of a C source.
pub fn cc(name: &str, output: &Path) -> Command {
    let mut cc = Command::new("cc");
    cc.args(["-std=gnu11", "-Wall", "-Werror", "-O1", "-g", "-Wl,--no-as-needed", "-o"]);
    cc.arg(output).arg(source(&format!("tests/{name}.c")));
    cc
}

/// The option by which a stand-in has symbol versions, as ROCm 4.2 and later have them.
pub fn versions() -> String {
    format!("-Wl,--version-script={}", source("tests/hip.map").display())
}

/// Makes the stand-in `name` for a HIP runtime in `folder`.
pub fn runtime(folder: &Path, name: &str, soname: &str, options: &[&str]) -> PathBuf {
    let path = folder.join(soname);
    let mut cc = cc("hip", &path);
    cc.args(["-shared", "-fPIC"]).arg(format!("-DNAME=\"{name}\""));
    succeed(cc.arg(format!("-Wl,-soname,{soname}")).args(options).arg("-ldl"));
    path
}

/// A folder with the shim, the runtime `A` and the driver, made once for each run.
pub fn common() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap().keep();
        symlink(shim(), folder.join(SHIM)).unwrap();
        runtime(&folder, "A", RUNTIME, &[&versions()]);
        succeed(cc("driver", &folder.join("driver")).args(["-ldl", "-lpthread"]));
        folder
    })
}

/// The code objects of the wrappers for a target. Their sizes keep those that are stored aligned.
pub fn contents(target: &str) -> Vec<Vec<u8>> {
    let seed: u32 = target.bytes().map(u32::from).sum();
    (0..2).map(|index| code(seed * 10 + index, 30_016 + 64 * index as usize)).collect()
}

/// The entries of a bundle of code objects, as a stand-in prints them.
pub fn bundle_of(objects: &[(&str, &[u8])]) -> String {
    let words = objects.iter().map(|(target, content)| {
        let (size, digest) = (content.len(), digest(content));
        format!(" {target}={size}:{digest}")
    });
    let mut words: Vec<String> = words.collect();
    words.sort();
    format!("host-x86_64-unknown-linux--{}", words.concat())
}

/// The entries of the bundle for a wrapper if these targets are installed, each by [`contents`].
pub fn bundle(targets: &[&str], index: usize) -> String {
    let contents: Vec<_> = targets.iter().map(|target| (*target, contents(target))).collect();
    let objects = contents.iter().map(|(target, contents)| (*target, contents[index].as_slice()));
    bundle_of(&objects.collect::<Vec<_>>())
}

/// The bundles in the lines of stand-ins.
pub fn bundles(out: &str) -> Vec<&str> {
    out.lines().filter_map(|line| Some(line.split_once(" bundle ")?.1)).collect()
}

/// The difference of the two numbers behind `word` in lines of the driver.
pub fn grew(out: &str, word: &str) -> i64 {
    let numbers =
        out.lines().filter_map(|line| line.strip_prefix(word)?.trim().parse::<i64>().ok());
    let [before, after] = numbers.collect::<Vec<_>>()[..] else { panic!("{out}") };
    after - before
}

/// Checks that no stand-in reports a fault: a bundle of another form, one that changed, or a foreign handle.
pub fn assert_sound(out: &str) {
    let faults = ["MALFORMED", "CHANGED", "999999", "no ordinary wrapper"];
    assert!(faults.iter().all(|fault| !out.contains(fault)), "{out}");
}

/// A folder with libraries in `lib` and archives in `.kpack`.
pub struct World {
    folder: TempDir,
}

impl World {
    /// A folder with an archive for each of these targets.
    pub fn new(targets: &[&str]) -> Self {
        let world = Self { folder: tempfile::tempdir().unwrap() };
        fs::create_dir_all(world.path().join("lib")).unwrap();
        for target in targets {
            Draft::zstd(&[target], &contents(target)).write(world.archive(target));
        }
        marker(world.path(), &[PATTERN]);
        world
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The path of the archive for a target.
    pub fn archive(&self, target: &str) -> PathBuf {
        self.path().join(format!(".kpack/blas_{target}.kpack"))
    }

    /// Links a library with the marker of the folder, for the runtime `A`.
    pub fn library(&self, name: &str, options: &[&str]) -> PathBuf {
        self.library_for(name, Some(&common().join(RUNTIME)), options)
    }

    /// Links a library that needs this runtime.
    pub fn library_for(&self, name: &str, runtime: Option<&Path>, options: &[&str]) -> PathBuf {
        let soname = format!("-Wl,-soname,{name}");
        let options = [&["-shared", "-fPIC", soname.as_str()][..], options].concat();
        self.link(&format!("lib/{name}"), &common().join(SHIM), runtime, &options)
    }

    /// Links a library or program with a shim and a runtime.
    pub fn link(
        &self,
        name: &str,
        shim: &Path,
        runtime: Option<&Path>,
        options: &[&str],
    ) -> PathBuf {
        let (path, marker) = (self.path().join(name), self.path().join("marker"));
        let size = fs::metadata(&marker).unwrap().len();
        let mut cc = cc("library", &path);
        cc.arg(format!("-DMARKER=\"{}\"", marker.display())).arg(format!("-DMARKER_SIZE={size}"));
        cc.args(["-Wl,--section-start=.rocm_kpack_ref=0x100000"]);
        cc.args(["-Wl,--section-start=.beyond=0x200000"]).args(options);
        // In this order, since a runtime has the name of another one in the folder of the shim.
        for library in [runtime, Some(shim)].into_iter().flatten() {
            let folder = library.parent().unwrap().display();
            cc.arg(library).arg(format!("-Wl,-rpath,{folder}"));
        }
        succeed(&mut cc);
        path
    }

    /// A process that takes steps, in which `@` is the folder.
    pub fn steps(&self, list: &[&str]) -> Command {
        let mut command = plain(&common().join("driver"));
        let folder = self.path().to_str().unwrap();
        command.args(list.iter().map(|step| step.replace('@', folder)));
        command
    }

    /// The standard output and error of steps.
    pub fn told(&self, list: &[&str]) -> (String, String) {
        told(&mut self.steps(list))
    }

    /// The command on a machine whose KFD has nodes of these versions, 0 for a processor. `None` where no file
    /// system can be mounted.
    pub fn machine(&self, command: &Command, versions: &[u32]) -> Option<Command> {
        let sys = self.path().join("sys");
        for (number, version) in versions.iter().enumerate() {
            let node = sys.join(format!("class/kfd/kfd/topology/nodes/{number}"));
            fs::create_dir_all(&node).unwrap();
            let (cores, simds) = if *version == 0 { (16, 0) } else { (0, 96) };
            let text = format!(
                "cpu_cores_count {cores}\nsimd_count {simds}\ncapability 0\nvendor_id 4098\n\
                 gfx_target_version {version}\nmax_engine_clk_fcompute 2500\n"
            );
            fs::write(node.join("properties"), text).unwrap();
        }
        on_machine(command, &sys)
    }
}

/// A command without environment variables that affect the library.
pub fn plain(program: &Path) -> Command {
    let mut command = Command::new(program);
    for name in ["PATH", "PATH_PREFIX", "DISABLE", "DEBUG", "QUIET"] {
        command.env_remove(format!("ROCM_KPACK_{name}"));
    }
    for name in ["HSA_OVERRIDE_GFX_VERSION", "LD_LIBRARY_PATH", "LD_PRELOAD", "LD_BIND_NOW"] {
        command.env_remove(name);
    }
    command
}

/// The command with the folder `sys` in place of `/sys`.
fn on_machine(command: &Command, sys: &Path) -> Option<Command> {
    let may_mount = |option: &&str| {
        let output = Command::new("unshare").args([*option, "true"]).output();
        output.is_ok_and(|output| output.status.success())
    };
    let Some(option) = ["-m", "-rm"].into_iter().find(may_mount) else {
        eprintln!("skipped: needs to mount file systems");
        return None;
    };
    let script = r#"mount --bind "$0" /sys && exec "$@""#;
    let mut unshare = Command::new("unshare");
    unshare.args([option, "sh", "-c", script]).arg(sys);
    unshare.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => unshare.env(name, value),
            None => unshare.env_remove(name),
        };
    }
    Some(unshare)
}

/// The standard output and error of a command that succeeds. Its machine has no GPUs, if it can have another
/// one than this.
pub fn told(command: &mut Command) -> (String, String) {
    let is_elsewhere = command.get_program() == "unshare";
    if is_elsewhere || !Path::new("/sys/class/kfd").exists() {
        return both(command);
    }
    let empty = tempfile::tempdir().unwrap();
    let elsewhere = on_machine(command, empty.path());
    elsewhere.map_or_else(|| both(command), |mut command| both(&mut command))
}

/// Checks that the standard error is one line with these parts.
pub fn assert_one_line(errors: &str, parts: &[&str]) {
    let is_one = errors.lines().count() == 1 && errors.ends_with('\n');
    assert!(is_one && errors.starts_with("rocm-kpack"), "{errors}");
    for part in parts {
        assert!(errors.contains(part), "{part}: {errors}");
    }
}
