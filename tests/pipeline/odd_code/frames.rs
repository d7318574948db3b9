//! Compressed bundles of several zstd frames, or with skippable frames.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use support::ccob::{VERSIONS, ccob};
use support::device::run;
use support::example::{contents, rockpack};
use support::tools;

use super::{
    Case, FLAGS, GFX1100, GFX1101, GFX1101_FLAGS, HOST, bundle, code_object, of_device_code, usual,
};

const BUNDLER: &str = "clang-offload-bundler-19";

fn skippable(kind: u8, content: &[u8]) -> Vec<u8> {
    let size = u32::try_from(content.len()).unwrap().to_le_bytes();
    [&[0x50 | kind, 0x2a, 0x4d, 0x18], &size[..], content].concat()
}

/// Compresses `plain` as three frames.
pub(super) fn frames(plain: &[u8]) -> Vec<u8> {
    let parts = plain.chunks(plain.len() / 3 + 1);
    parts.flat_map(|part| zstd::encode_all(part, 3).unwrap()).collect()
}

pub(super) fn skippable_first(plain: &[u8]) -> Vec<u8> {
    [skippable(0, b"words"), frames(plain)].concat()
}

/// Streams that all decompress to `plain`.
fn streams(plain: &[u8]) -> Vec<Vec<u8>> {
    let (half, whole) = (plain.len() / 2, zstd::encode_all(plain, 3).unwrap());
    let [start, end] =
        [&plain[..half], &plain[half..]].map(|part| zstd::encode_all(part, 1).unwrap());
    vec![
        frames(plain),
        skippable_first(plain),
        [&whole[..], &skippable(15, &[0; 70_000])].concat(),
        [start, skippable(3, b"\x28\xb5\x2f\xfd"), skippable(4, b""), end].concat(),
        [zstd::encode_all(&b""[..], 3).unwrap(), whole].concat(),
    ]
}

#[test]
fn several_frames_are_one_stream() {
    let plain =
        bundle(&[(HOST, Vec::new()), (GFX1100, code_object(FLAGS, &"first ".repeat(9000)))]);
    let (case, mut libraries) = (Case::new(), Vec::new());
    for version in VERSIONS {
        for stream in streams(&plain) {
            let (name, bundle) =
                (format!("lib{:02}.so", libraries.len()), ccob(version, 1, &plain, &stream));
            libraries.push(case.library_called(&name, &[bundle, usual("plain")], ""));
        }
    }
    let findings = case.built();
    assert!(of_device_code(&findings).is_empty(), "{findings:?}");
    let reports = tools::succeed(rockpack().arg("inspect").args(&libraries).arg("--json"));
    let reports: Vec<Value> = serde_json::from_str(&reports).unwrap();
    assert_eq!(reports.len(), libraries.len());
    for report in reports {
        assert!(report.to_string().contains(&support::sha256(&entry(&plain))), "{report}");
    }
    extracts(&case, &libraries, &entry(&plain));
}

/// The receipt says how many bytes of a compressed bundle each of its code objects took up.
#[test]
fn code_objects_share_the_bytes_of_their_compressed_bundle() {
    let numbers = |end: u32| (0..end).map(|number| number.to_string()).collect::<String>();
    let plain = bundle(&[
        (HOST, Vec::new()),
        (GFX1100, code_object(FLAGS, &numbers(9000))),
        (GFX1101, code_object(GFX1101_FLAGS, &numbers(3000))),
    ]);
    let (case, mut expected) = (Case::new(), BTreeMap::new());
    for version in VERSIONS {
        let (name, stream) = (format!("lib{version}.so"), zstd::encode_all(&plain[..], 3).unwrap());
        let compressed = ccob(version, 1, &plain, &stream);
        expected.insert(format!("lib/{name}#0"), compressed.len() as u64);
        case.library_called(&name, &[compressed, usual("plain")], "");
    }
    // An artifact of both architectures.
    fs::rename(case.artifact(), case.shards().join("one/odd_lib_gfx110X-dgpu")).unwrap();
    case.built();
    let receipt: Value = serde_json::from_slice(&fs::read(case.receipt()).unwrap()).unwrap();
    let mut shares: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for record in receipt["code_objects"].as_array().unwrap() {
        let key = record["key"].as_str().unwrap().to_owned();
        match record.get("stored_size") {
            Some(stored) => {
                assert!(stored.as_u64() < record["size"].as_u64(), "{record}");
                shares.entry(key).or_default().push(stored.as_u64().unwrap());
            }
            None => assert!(key.ends_with("#1"), "{record}"),
        }
    }
    assert!(shares.keys().eq(expected.keys()), "{shares:?}");
    for (key, shares) in shares {
        let (len, sum) = (expected[&key], shares.iter().sum::<u64>());
        assert!(shares.len() == 2 && shares[0] / 2 > shares[1], "{key}: {shares:?}");
        assert!((len - 2..=len).contains(&sum), "{key}: {sum} of {len} bytes");
    }
}

/// The only code object of a bundle.
fn entry(plain: &[u8]) -> Vec<u8> {
    plain[4096..].to_vec()
}

/// Fails unless `code` is extracted from each of the libraries.
fn extracts(case: &Case, libraries: &[PathBuf], code: &[u8]) {
    let out = case.folder.path().join("extracted");
    tools::run(rockpack().arg("extract").args(libraries).arg("--out").arg(&out));
    let files = contents(&out);
    for library in libraries {
        let name = library.file_name().unwrap().to_str().unwrap();
        let mut own = files.iter().filter(|(file, _)| file.starts_with(name));
        assert!(own.any(|(_, bytes)| bytes == code), "{name}: {:?}", files.keys());
    }
}

/// clang's own tool reads the same from version 2, the only version that it is certain to know.
#[test]
fn the_bundler_reads_them_alike() {
    tools::need(&[BUNDLER]);
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let plain = usual("code");
    for stream in streams(&plain) {
        fs::write(folder.join("ccob"), ccob(2, 1, &plain, &stream)).unwrap();
        let targets = format!("-targets={GFX1100}");
        let unbundle = ["-unbundle", "-type=o", "-input=ccob", "-output=code"];
        run(folder, &[&[BUNDLER, &targets][..], &unbundle].concat());
        assert_eq!(fs::read(folder.join("code")).unwrap(), entry(&plain));
    }
    let garbage = [frames(&plain), b"????".to_vec()].concat();
    fs::write(folder.join("ccob"), ccob(2, 1, &plain, &garbage)).unwrap();
    let mut bundler = Command::new(BUNDLER);
    bundler.args(["-unbundle", "-type=o", "-input=ccob", "-output=code"]).current_dir(folder);
    let said = tools::told(bundler.arg(format!("-targets={GFX1100}")));
    assert!(said.contains("Failed to decompress"), "{said}");
}

#[test]
fn what_is_no_frame_is_refused() {
    let plain = usual("code");
    let whole = zstd::encode_all(&plain[..], 3).unwrap();
    for (behind, expected) in [
        (b"?".to_vec(), "1 bytes follow the compressed stream within the total size"),
        (b"CCOB and more".to_vec(), "13 bytes follow the compressed stream"),
        (vec![0; 8], "8 bytes follow the compressed stream"),
        (skippable(1, b"cut")[..9].to_vec(), "the compressed stream ends early"),
        (zstd::encode_all(&b"more"[..], 3).unwrap(), "the stream yields more than the"),
    ] {
        let case = Case::new();
        case.library(&[ccob(2, 1, &plain, &[&whole[..], &behind].concat())], "");
        let said = case.refusal();
        assert!(said.contains(expected) && said.contains("libodd.so"), "{said}");
    }
    let case = Case::new();
    case.library(&[ccob(1, 1, &plain, &[&whole[..], b"CCOx"].concat())], "");
    assert!(case.refusal().contains("neither zero padding nor the start of an aligned"));
}
