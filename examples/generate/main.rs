//! Writes a shard of any size for measurements.
//!
//! ```text
//! cargo run --release --example generate -- OUT SIZE [DISTINCT]
//! cargo run --release --example generate -- OUT large
//! OUT/shard/partN_lib_all/partN/stage/lib/libpartN.so       60 %: a fat binary, six wrappers, four archs
//!                               lib/partN/rocblas/library/  30 %: a kernel database file of each arch
//!                               share/partN/                10 %: data of the host, half of it noise
//! ```
//!
//! SIZE and DISTINCT are bytes, or with K, M or G for KiB, MiB or GiB. A part has 50 MiB (all of SIZE, if that is
//! less).
//! Parts beyond DISTINCT (2G) are hard links to earlier ones: a build reads, compresses and writes
//! them all the same, and the disk holds them once. `large` is one component whose device code does not
//! compress: 2.25 GiB of it for each of two architectures, in binaries of 1.5 GiB. The same arguments
//! give the same bytes. Needs gcc.

mod content;

use std::error::Error;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use content::{ARCHS, Numbers, bundle, code_object, noise_object};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const PART: u64 = 50 << 20;
const WRAPPERS: u64 = 6;
const DATA_FILES: u64 = 8;

/// Binaries of the large component, wrappers of each, and bytes of a code object.
const LARGE: (u64, u64, usize) = (3, 12, 64 << 20);

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (out, size, distinct) = match &arguments[..] {
        [out, large] if large == "large" => return large_component(&Path::new(out).join("shard")),
        [out, size] => (out, bytes(size)?, 2 << 30),
        [out, size, distinct] => (out, bytes(size)?, bytes(distinct)?),
        _ => return Err("usage: generate OUT SIZE [DISTINCT]".into()),
    };
    let shard = Path::new(out).join("shard");
    let part_size = size.clamp(1 << 20, PART);
    let parts = size.div_ceil(part_size);
    let distinct = (distinct / part_size).max(1);
    for number in 0..parts {
        match number.checked_sub(distinct) {
            None => part(&shard, number, part_size)?,
            Some(_) => linked(&shard, number % distinct, number)?,
        }
    }
    Ok(())
}

fn bytes(text: &str) -> Result<u64> {
    let (digits, shift) = match text.as_bytes().last() {
        Some(b'K') => (&text[..text.len() - 1], 10),
        Some(b'M') => (&text[..text.len() - 1], 20),
        Some(b'G') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    Ok(digits.parse::<u64>()? << shift)
}

fn artifact(shard: &Path, number: u64) -> PathBuf {
    shard.join(format!("part{number}_lib_all"))
}

/// The paths of a part's files, relative to its artifact: the library, databases, data.
fn paths(number: u64) -> [Vec<String>; 3] {
    let stage = format!("part{number}/stage");
    let database = |(arch, _): &(&str, u8)| {
        format!("{stage}/lib/part{number}/rocblas/library/Kernels.so-000-{arch}.hsaco")
    };
    [
        vec![format!("{stage}/lib/libpart{number}.so")],
        ARCHS.iter().map(database).collect(),
        (0..DATA_FILES).map(|file| format!("{stage}/share/part{number}/{file}.bin")).collect(),
    ]
}

fn begin(shard: &Path, number: u64) -> Result<PathBuf> {
    let artifact = artifact(shard, number);
    for path in paths(number).iter().flatten() {
        fs::create_dir_all(artifact.join(path).parent().ok_or("a path without a folder")?)?;
    }
    fs::write(artifact.join("artifact_manifest.txt"), format!("part{number}/stage\n"))?;
    Ok(artifact)
}

fn part(shard: &Path, number: u64, size: u64) -> Result<()> {
    let artifact = begin(shard, number)?;
    let [library, databases, data] = paths(number);
    let code = usize::try_from(size * 6 / 10 / (WRAPPERS * ARCHS.len() as u64))?;
    let bundles =
        (0..WRAPPERS).map(|wrapper| bundle(&ARCHS, number << 16 | wrapper << 8, code, code_object));
    fat_library(&artifact.join(&library[0]), bundles)?;
    let database = usize::try_from(size * 3 / 10 / ARCHS.len() as u64)?;
    for (index, (path, arch)) in (0..).zip(databases.iter().zip(ARCHS)) {
        let seed = number << 16 | 1 << 15 | index;
        fs::write(artifact.join(path), code_object(arch, seed, database))?;
    }
    let half = usize::try_from(size / 10 / DATA_FILES / 2)?;
    for (index, path) in (0..).zip(&data) {
        let mut bytes = Numbers::new(number << 16 | 1 << 14 | index).noise(half);
        bytes.resize(half * 2, b' ');
        fs::write(artifact.join(path), bytes)?;
    }
    Ok(())
}

fn linked(shard: &Path, from: u64, number: u64) -> Result<()> {
    let (source, artifact) = (artifact(shard, from), begin(shard, number)?);
    for (old, new) in paths(from).iter().flatten().zip(paths(number).iter().flatten()) {
        fs::hard_link(source.join(old), artifact.join(new))?;
    }
    Ok(())
}

fn large_component(shard: &Path) -> Result<()> {
    let artifact = shard.join("large_lib_all");
    fs::create_dir_all(artifact.join("large/stage/lib"))?;
    fs::write(artifact.join("artifact_manifest.txt"), "large/stage\n")?;
    let (binaries, wrappers, code) = LARGE;
    for binary in 0..binaries {
        let seed = |wrapper| binary << 16 | wrapper << 8;
        let bundles =
            (0..wrappers).map(|wrapper| bundle(&ARCHS[..2], seed(wrapper), code, noise_object));
        fat_library(&artifact.join(format!("large/stage/lib/liblarge{binary}.so")), bundles)?;
    }
    Ok(())
}

/// A shared library with a wrapper for each of the bundles.
fn fat_library(path: &Path, bundles: impl Iterator<Item = Vec<u8>>) -> Result<()> {
    let folder = path.with_extension("work");
    fs::create_dir_all(&folder)?;
    let mut fatbin = BufWriter::new(File::create(folder.join("bundles.bin"))?);
    let mut source = String::from(".section .hip_fatbin,\"a\",@progbits\n.p2align 12\nbundles:\n");
    source.push_str(".incbin \"bundles.bin\"\n");
    source.push_str(".section .hipFatBinSegment,\"aw\",@progbits\n.p2align 3\n");
    let mut offset = 0;
    for bundle in bundles {
        source.push_str(&format!(".long 0x48495046, 1\n.quad bundles + {offset}, 0\n"));
        fatbin.write_all(&bundle)?;
        offset += bundle.len();
    }
    fatbin.into_inner()?;
    source.push_str(".text\n.globl run\n.type run, @function\nrun: ret\n.size run, . - run\n");
    source.push_str(".section .note.GNU-stack,\"\",@progbits\n");
    fs::write(folder.join("library.S"), source)?;
    let mut gcc = Command::new("gcc");
    gcc.args(["-shared", "-nostdlib", "-o", "library.so", "library.S"]).current_dir(&folder);
    if !gcc.status()?.success() {
        return Err("gcc failed".into());
    }
    fs::rename(folder.join("library.so"), path)?;
    Ok(fs::remove_dir_all(&folder)?)
}
