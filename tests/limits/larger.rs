//! Runs that succeed with less memory than the length of their input.

use std::fs;
use std::io::Write;
use std::process::Command;

use md5::{Digest, Md5};
use support::sweep::or_all;
use support::tools::{self, repository};

use crate::bombs::{bundle, ccob};
use crate::{Input, inspect, limited, rockpack};

/// MiB of code in each bundle of the library, compressed to some hundred kilobytes.
const EACH: u64 = 260;

/// The number of bundles: slightly more code than the memory of a build, or two gibibytes.
fn bundles() -> u32 {
    or_all(3, 8)
}

/// MiB for `--memory`: a build needs more than the commands that write artifacts. All may use this much in
/// addition.
const BUILD: u32 = 512;
const ARTIFACTS: u32 = 1;
const BESIDE: u32 = 256;

const ID: &str = "hipv4-amdgcn-amd-amdhsa--gfx1100";

/// Bundles of one code object followed by very many zeros and the bundle's number, compressed.
fn large_bundles() -> Vec<Vec<u8>> {
    let object = fs::read(repository("fuzz/seeds/code_object/gfx1100")).unwrap();
    let mut head = bundle(1, &[[4096, EACH << 20]], ID);
    head.resize(4096, 0);
    let zeros: Vec<u8> = vec![0; (EACH << 20) as usize - object.len() - 4];
    let mut md5 = Md5::new();
    [&head[..], &object, &zeros].iter().for_each(|part| md5.update(part));
    let numbered = |number: u32| {
        let number = number.to_le_bytes();
        let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
        for part in [&head[..], &object, &zeros, &number] {
            encoder.write_all(part).unwrap();
        }
        let hash = md5.clone().chain_update(number).finalize();
        ccob(1, 4096 + (EACH << 20), &hash, &encoder.finish().unwrap())
    };
    (0..bundles()).map(numbered).collect()
}

/// A library of such bundles, each with a wrapper.
fn input() -> Input {
    let input = Input::folder();
    let place = input.folder.path();
    let mut source = String::new();
    for (number, bundle) in large_bundles().iter().enumerate() {
        fs::write(place.join(format!("bundle{number}")), bundle).unwrap();
        source.push_str(&format!(
            ".section .hip_fatbin,\"a\",@progbits\n.p2align 12\n1: .incbin \"bundle{number}\"\n\
             .section .hipFatBinSegment,\"aw\",@progbits\n.p2align 3\n\
             .long 0x48495046, 1\n.quad 1b, 0\n"
        ));
    }
    fs::write(place.join("large.s"), source).unwrap();
    let mut link = Command::new("cc");
    link.args(["-shared", "-nostdlib", "-o"]).arg(input.stage().join("lib/liblarge.so"));
    tools::run(link.arg("large.s").current_dir(place));
    input
}

/// Fails unless `command` succeeds with `budget` MiB and the additional memory.
fn succeeds(command: &mut Command, budget: u32) {
    command.args(["--memory", &format!("{budget}M")]);
    tools::run(&mut limited(command, budget + BESIDE));
}

#[test]
fn memory_is_enough_for_code_that_is_larger() {
    tools::need(&["cc", "as"]);
    let input = input();
    let mut build = input.build();
    build.args(["--format", "deb", "--compression", "xz", "--preset", "fast", "--jobs", "1"]);
    succeeds(&mut build, BUILD);
    assert!(input.out().join("rocm-a-gfx110x_1.0-1_amd64.deb").exists());
    let [split, recombined] = ["split", "recombined"].map(|name| input.folder.path().join(name));
    for (command, from, to) in
        [("split", &input.shard(), &split), ("recombine", &split, &recombined)]
    {
        let mut run = rockpack();
        run.args([command, "--artifacts"]).arg(from).arg("--output-dir").arg(to);
        succeeds(&mut run, ARTIFACTS);
    }
    let archive = "a_lib_gfx1100/libs/A/stage/lib/.kpack/a_lib_gfx1100.kpack";
    let [archive, same] = [split.join("shard"), recombined].map(|shard| shard.join(archive));
    for archive in [archive, same] {
        let all = tools::succeed(&mut inspect(&archive));
        assert_eq!(all.matches("(272.62 MB)").count(), bundles() as usize, "{all}");
    }
}
