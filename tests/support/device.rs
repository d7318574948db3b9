//! Compiles device code with LLVM's tools.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use rockpack_core::compression::{Compression, Encoder, Workers};

use crate::tools;

/// The tools for device code: clang, its linker lld, and its tool for bundles.
const TOOLS: [&str; 3] = ["clang++-19", "ld.lld-19", "clang-offload-bundler-19"];

/// Runs a command line in `dir`, which must succeed.
pub fn run(dir: &Path, command: &[&str]) {
    if command.contains(&"-fuse-ld=lld") {
        tools::need(&["ld.lld-19"]);
    }
    tools::run(Command::new(command[0]).args(&command[1..]).current_dir(dir));
}

/// Compiles `dir/<name>.o` with one kernel named `name`, for `archs` and with further `flags`.
pub fn compile(dir: &Path, name: &str, archs: &[&str], flags: &[&str]) {
    tools::need(&TOOLS);
    let source = format!(
        "#include \"hip.h\"\nextern \"C\" __global__ void {name}(int *p) {{ *p = {}; }}\n\
         extern \"C\" void run_{name}(int *p) {{ {name}<<<1, 1>>>(p); }}\n",
        name.len()
    );
    let file = format!("{name}.hip");
    std::fs::write(dir.join(&file), source).unwrap();
    let object = format!("{name}.o");
    let archs: Vec<String> = archs.iter().map(|a| format!("--offload-arch={a}")).collect();
    let include = format!("-I{}", tools::repository("examples/shards/source").display());
    let mut command = vec!["clang++-19", "-x", "hip", "-nogpuinc", "-nogpulib", "-O2", "-fPIC"];
    command.push(&include);
    command.extend(archs.iter().map(String::as_str));
    command.extend(flags);
    command.extend(["-c", &file, "-o", &object]);
    run(dir, &command);
}

/// Links `dir/<name>` with one wrapper for each name, whose code is for its archs; the library needs `libraries`.
pub fn link(dir: &Path, name: &str, wrappers: &[(&str, &[&str])], libraries: &[&Path]) -> PathBuf {
    let library = dir.join(name);
    let mut command = Command::new("clang++-19");
    let soname = format!("-Wl,-soname,{name}");
    command.args(["-shared", "-nostdlib", "-fuse-ld=lld", &soname, "-o"]).arg(&library);
    command.arg("-Wl,--no-as-needed").args(libraries);
    for (wrapper, archs) in wrappers {
        compile(dir, wrapper, archs, &["-mcode-object-version=6"]);
        command.arg(dir.join(format!("{wrapper}.o")));
    }
    tools::run(&mut command);
    library
}

/// An LLVM offload binary of HIP images (triple, arch, bytes): one of version 2, or of version 1 one for each
/// image, each behind the other.
pub fn offload_binary(version: u32, images: &[[&[u8]; 3]]) -> Vec<u8> {
    if version == 1 && images.len() != 1 {
        return images.iter().flat_map(|image| offload_binary(1, &[*image])).collect();
    }
    let (producer, row_len, counted) =
        if version == 1 { (3_u64, 16, 40) } else { (4, 24, images.len()) };
    let strings_at = 32 + images.len() * (40 + 2 * row_len);
    let (mut strings, mut rows) = (b"triple\0arch\0".to_vec(), Vec::new());
    for [triple, arch, _] in images {
        for (key, value) in [(0, triple), (7, arch)] {
            rows.extend([strings_at + key, strings_at + strings.len()]);
            rows.extend((version > 1).then_some(value.len()));
            strings.extend_from_slice(value);
            strings.push(0);
        }
    }
    let (mut entries, mut body) = (Vec::new(), Vec::new());
    let body_at = (strings_at + strings.len()).next_multiple_of(8);
    for (index, [.., bytes]) in images.iter().enumerate() {
        body.resize(body.len().next_multiple_of(8), 0);
        let rows_at = 32 + images.len() * 40 + index * 2 * row_len;
        entries.push(producer << 16);
        entries.extend([rows_at, 2, body_at + body.len(), bytes.len()].map(|word| word as u64));
        body.extend_from_slice(bytes);
    }
    body.resize(body.len().next_multiple_of(8), 0);
    let header = [body_at + body.len(), 32, counted].map(|word| word as u64);
    let rows: Vec<u64> = rows.into_iter().map(|word| word as u64).collect();
    let words = [&header[..], &entries, &rows].concat();
    let mut file = [&b"\x10\xff\x10\xad"[..], &version.to_le_bytes()].concat();
    file.extend(words.into_iter().flat_map(u64::to_le_bytes));
    file.extend(strings);
    file.resize(body_at, 0);
    file.extend(body);
    file
}

/// A file of AOTriton with a kernel for each of `archs`, stored as its packer does.
pub fn aks2(archs: &[&str]) -> Vec<u8> {
    let (mut directory, mut code) = (Vec::new(), Vec::new());
    for arch in archs {
        let name = format!("attn_fwd-Sig-F__bf16@16_F_0_0__P__2_16__CO__stg1--Arch_{arch}\0");
        let image = format!("code for {arch}");
        for number in [8192, 64, code.len(), image.len(), name.len()] {
            directory.extend(u32::try_from(number).unwrap().to_le_bytes());
        }
        directory.extend(name.bytes());
        code.extend(image.bytes());
    }
    let size = directory.len() + code.len();
    let mut file = b"AKS2".to_vec();
    for number in [size, archs.len(), directory.len()] {
        file.extend(u32::try_from(number).unwrap().to_le_bytes());
    }
    let workers = Workers::new(1);
    let mut encoder = Encoder::new(file, Compression::XZ, &workers, size as u64).unwrap();
    encoder.write_all(&[directory, code].concat()).unwrap();
    encoder.finish().unwrap()
}
