//! Indexes of kernel databases that are larger than the run's memory.

use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use support::tools;

use crate::{Input, inspect, limited, rockpack, text};

/// The memory of a run in MiB: for inspecting an index, and the least for a build.
const INSPECT: u32 = 64;
const BUILD: u32 = 512;
const BESIDE: u32 = 256;

/// The bytes of the solutions' value, more than such a run may have; most belong to no solution.
const INSPECTED: u32 = (4 * INSPECT) << 20;
const BUILT: u32 = (BUILD + BESIDE + 32) << 20;

/// The parts of an index around the zeros that fill it: two solutions, with the first and last bytes of their
/// common value. With `turned`, the solutions' offsets come after that value.
fn parts(turned: bool, blob: u32) -> [Vec<u8>; 2] {
    let (first, last) = (solution("gfx1100"), solution("gfx1100"));
    let len = u32::try_from(first.len()).unwrap();
    let mut places = [packed_text("solutions_index"), vec![0x96]].concat();
    for number in [1, 0, len, 2, blob - len, len] {
        places.push(0xce);
        places.extend(number.to_be_bytes());
    }
    let blob = [&packed_text("solutions_blob")[..], &[0xc6], &blob.to_be_bytes(), &first].concat();
    let version = [packed_text("format_version"), vec![2]].concat();
    if turned {
        [[vec![0x83], blob].concat(), [last, places, version].concat()]
    } else {
        [[vec![0x83], version, places, blob].concat(), last]
    }
}

fn solution(arch: &str) -> Vec<u8> {
    [&[0x81][..], &packed_text("name"), &packed_text(arch)].concat()
}

fn packed_text(text: &str) -> Vec<u8> {
    [&[0xa0 | u8::try_from(text.len()).unwrap()], text.as_bytes()].concat()
}

/// Writes such an index with a value of `blob` bytes. In an uncompressed one, the zeros are a hole in the
/// file.
fn write(path: &Path, (turned, compressed): (bool, bool), blob: u32) {
    let [head, tail] = parts(turned, blob);
    let zeros = u64::from(blob) - 2 * solution_len();
    if compressed {
        fs::write(path, zlib(&head, zeros, &tail)).unwrap();
        return;
    }
    let mut file = File::create(path).unwrap();
    file.write_all(&head).unwrap();
    file.seek(SeekFrom::Current(zeros.cast_signed())).unwrap();
    file.write_all(&tail).unwrap();
}

/// A zlib stream of `head`, `zeros` zeros, and `tail`. The zeros are compressed once.
fn zlib(head: &[u8], zeros: u64, tail: &[u8]) -> Vec<u8> {
    let rest = usize::try_from(zeros % CHUNK as u64).unwrap();
    let mut stream = vec![0x78, 0x01];
    stream.extend(deflated(&[head, &vec![0; rest]].concat(), 1));
    let chunk = deflated(&vec![0; CHUNK], 1);
    (0..zeros / CHUNK as u64).for_each(|_| stream.extend(&chunk));
    stream.extend(deflated(tail, 1));
    // An empty final block, and the checksum.
    stream.extend([0x03, 0x00]);
    let mut sums = (1, 0);
    sums = head.iter().fold(sums, next_sums);
    sums.1 = (sums.1 + zeros % 65521 * sums.0) % 65521;
    sums = tail.iter().fold(sums, next_sums);
    stream.extend(u32::try_from((sums.1 << 16) | sums.0).unwrap().to_be_bytes());
    stream
}

/// The two sums of Adler-32 after one more byte.
fn next_sums((a, b): (u64, u64), byte: &u8) -> (u64, u64) {
    ((a + u64::from(*byte)) % 65521, (a + u64::from(*byte) + b) % 65521)
}

const CHUNK: usize = 1 << 20;

/// Blocks of a deflate stream, which others can follow.
pub fn deflated(bytes: &[u8], level: u32) -> Vec<u8> {
    let level = flate2::Compression::new(level);
    let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), level);
    encoder.write_all(bytes).unwrap();
    encoder.flush().unwrap();
    encoder.get_ref().clone()
}

/// The length of a solution in bytes: a map with the text `name` and an arch.
fn solution_len() -> u64 {
    (1 + 5 + 8) as u64
}

#[test]
fn an_index_is_read_in_a_quarter_of_the_memory_that_it_would_take() {
    tools::need(&["dpkg-deb"]);
    for (name, turned) in
        [("T.dat", false), ("T.dat", true), ("T.dat.zlib", false), ("T.dat.zlib", true)]
    {
        let input = Input::folder();
        let library = input.stage().join("lib/rocblas/library");
        fs::create_dir(input.stage().join("lib/rocblas")).unwrap();
        fs::create_dir(&library).unwrap();
        let index = library.join(name);
        write(&index, (turned, name.ends_with("zlib")), INSPECTED);
        let output = limited(inspect(&index).arg("--json"), INSPECT).output().unwrap();
        let said = text(&output);
        assert!(output.status.success(), "{name} {turned}: {said}");
        let shown: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let shown = &shown[0];
        assert_eq!(shown["archs"], serde_json::json!(["gfx1100"]), "{name} {turned}");
        assert_eq!(shown["solutions"], 2);
    }
}

/// The package of its arch has the index, although its name does not state that arch.
#[test]
fn an_index_larger_than_the_memory_is_packed() {
    tools::need(&["dpkg-deb"]);
    let input = Input::folder();
    let library = input.stage().join("lib/rocblas/library");
    fs::create_dir_all(&library).unwrap();
    write(&library.join("T.dat.zlib"), (true, true), BUILT);
    write(&library.join("U.dat"), (true, false), BUILT);
    let mut build = input.build();
    build.args(["--format", "deb", "--compression", "zstd", "--preset", "fast", "--jobs", "1"]);
    build.args(["--memory", &format!("{BUILD}M")]);
    tools::run(&mut limited(&build, BUILD + BESIDE));
    let package = input.out().join("rocm-a-gfx110x_1.0-1_amd64.deb");
    let listed = tools::run(std::process::Command::new("dpkg-deb").arg("-c").arg(package)).stdout;
    let listed = String::from_utf8(listed).unwrap();
    for name in ["/T.dat.zlib", "/U.dat"] {
        assert!(listed.contains(name), "{listed}");
    }
    let mut verify = rockpack();
    verify.arg("verify").arg(input.out());
    tools::run(&mut limited(&verify, BUILD));
}

#[test]
fn a_stream_that_inflates_to_more_than_a_value_can_have_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("T.dat.zlib");
    let head = [&[0x92, 0xc6][..], &u32::MAX.to_be_bytes()].concat();
    fs::write(&path, zlib(&head, u32::MAX.into(), &[0xc0])).unwrap();
    let said = crate::refusal(&mut limited(&inspect(&path), INSPECT));
    assert!(said.contains("inflates to more than 4294967296 bytes"), "{said}");
}
