//! Compiling and bundling device code with the tools of LLVM.

use std::path::Path;
use std::process::Command;

/// Whether all `tools` are installed; if not, says so, or fails where `ROCKPACK_INTEROP=1`
/// demands them.
pub fn have(tools: &[&str]) -> bool {
    let missing: Vec<_> =
        tools.iter().filter(|tool| Command::new(tool).arg("--version").output().is_err()).collect();
    if missing.is_empty() {
        return true;
    }
    let demanded = std::env::var("ROCKPACK_INTEROP").is_ok_and(|value| value == "1");
    assert!(!demanded, "ROCKPACK_INTEROP=1, and {missing:?} are missing");
    eprintln!("skipped: {missing:?} are missing");
    false
}

/// Runs a command line in `dir`; it has to succeed.
pub fn run(dir: &Path, command: &[&str]) {
    let output = Command::new(command[0]).args(&command[1..]).current_dir(dir).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {text}");
}

/// What HIP needs to compile without ROCm.
const HEADER: &str = r#"
#define __global__ __attribute__((global))
typedef unsigned long size_t;
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};
typedef struct ihipStream_t *hipStream_t;
extern "C" int __hipPushCallConfiguration(dim3, dim3, size_t = 0, hipStream_t = 0);
extern "C" int __hipPopCallConfiguration(dim3 *, dim3 *, size_t *, hipStream_t *);
extern "C" int hipLaunchKernel(const void *, dim3, dim3, void **, size_t, hipStream_t);
"#;

/// Compiles `dir/<name>.o` with one kernel named `name`, for `archs` and with further `flags`.
pub fn compile(dir: &Path, name: &str, archs: &[&str], flags: &[&str]) {
    let source = format!(
        "{HEADER}\nextern \"C\" __global__ void {name}(int *p) {{ *p = {}; }}\n\
         extern \"C\" void run_{name}(int *p) {{ {name}<<<1, 1>>>(p); }}\n",
        name.len()
    );
    let file = format!("{name}.hip");
    std::fs::write(dir.join(&file), source).unwrap();
    let object = format!("{name}.o");
    let archs: Vec<String> = archs.iter().map(|a| format!("--offload-arch={a}")).collect();
    let mut command = vec!["clang++-19", "-x", "hip", "-nogpuinc", "-nogpulib", "-O2", "-fPIC"];
    command.extend(archs.iter().map(String::as_str));
    command.extend(flags);
    command.extend(["-c", &file, "-o", &object]);
    run(dir, &command);
}
