//! Samples of text: indexes of repositories, configurations, rules; and of what is packed around
//! artifacts.

use std::path::PathBuf;
use std::sync::LazyLock;

use rockpack::artifact;
use rockpack::config::{Config, Syntax};
use rockpack::content::{Content, hex};
use rockpack::database::{Index, Rules, read_index};
use rockpack::emit::Compression;
use rockpack::error::{Error, Kind, Result};
use rockpack::formats::compression::Encoder;
use rockpack::formats::{apt_index, fatbin, hip_wrapper, spdx};
use rockpack::listing;
use rockpack::receipt::{Part, PartRecord, Receipt};
use rockpack::tree::Node;
use rockpack::verify::{Element, Keys};

use super::samples::{Damage, Sample, of};
use super::{file, tools};

pub fn samples() -> Vec<Sample> {
    let mut samples = vec![
        of("Packages", file("fuzz/seeds/apt_index/packages"), Damage::Endless, packages),
        of("Release", file("fuzz/seeds/apt_index/release"), Damage::Endless, release),
        of("signed Release", signed("Release"), Damage::Noticed, signed_release),
        of("Release.gpg", signed("Release.gpg"), Damage::Noticed, signature),
        of("InRelease", signed("InRelease"), Damage::Noticed, clear_signed),
        of("JSON", json_file(), Damage::Said, json),
        of("TOML", file("fuzz/seeds/config/toml"), Damage::Endless, toml),
        of("rules", rules_file(), Damage::Endless, rules),
        of("receipt of a part", part(), Damage::Said, receipt),
        of("plan", file("fuzz/seeds/package_set/plan"), Damage::Said, plan),
        of("SPDX document", document_file(), Damage::Said, document),
        of("checksum file", file("fuzz/seeds/checksum/binary"), Damage::Endless, checksum),
        of("wrappers", file("fuzz/seeds/hip_wrapper/fat"), Damage::Endless, wrappers),
        of("device code section", file("fuzz/seeds/fatbin/mixed"), Damage::Endless, section),
        of("database index", file("fuzz/seeds/kernel_index/map"), Damage::Said, index),
        of(
            "compressed index",
            file("fuzz/seeds/kernel_index/zlib"),
            Damage::Noticed,
            compressed_index,
        ),
        of("packed artifact", packed(Compression::default()), Damage::Noticed, artifact_zstd),
        of("packed artifact", packed(Compression::XZ), Damage::Noticed, artifact_xz),
    ];
    for name in ["repomd", "primary", "filelists", "other"] {
        samples.push(of("rpm-md", file(&format!("fuzz/seeds/rpm_md/{name}")), Damage::Said, xml));
    }
    samples
}

fn text(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|_| Error::malformed("is not UTF-8"))
}

fn packages(bytes: &[u8]) -> Result<String> {
    Ok(format!("{:?}", apt_index::parse(text(bytes)?)?))
}

fn release(bytes: &[u8]) -> Result<String> {
    Ok(format!("{:?}", apt_index::Release::parse(text(bytes)?)?))
}

/// A file made by gpg with the key beside it, whose private half is gone.
fn signed(name: &str) -> Vec<u8> {
    file(&format!("tests/fixtures/signed/{name}"))
}

static KEYS: LazyLock<Keys> = LazyLock::new(|| {
    let path: PathBuf = tools::repository("tests/fixtures/signed/key.asc");
    Keys::open(&[path]).unwrap()
});

fn signed_release(bytes: &[u8]) -> Result<String> {
    KEYS.check_detached(&signed("Release.gpg"), bytes)?;
    release(bytes)
}

/// There is nothing in it but that the file is right.
fn signature(bytes: &[u8]) -> Result<String> {
    KEYS.check_detached(bytes, &signed("Release"))?;
    Ok("signed".to_owned())
}

fn clear_signed(bytes: &[u8]) -> Result<String> {
    match KEYS.clear_text(text(bytes)?)? {
        (text, true) => Ok(text),
        (_, false) => Err(Error::new(Kind::Verify, "is not signed")),
    }
}

fn xml(bytes: &[u8]) -> Result<String> {
    Ok(format!("{:?}", Element::parse(bytes)?))
}

/// Without the line's end, which the configuration keeps for its messages.
fn json_file() -> Vec<u8> {
    file("fuzz/seeds/config/packaging-config.json").trim_ascii_end().to_vec()
}

fn json(bytes: &[u8]) -> Result<String> {
    Ok(format!("{:?}", Config::parse(text(bytes)?, Syntax::Json)?))
}

fn toml(bytes: &[u8]) -> Result<String> {
    Ok(format!("{:?}", Config::parse(text(bytes)?, Syntax::Toml)?))
}

/// Without the path that the seed asks about.
fn rules_file() -> Vec<u8> {
    let seed = file("fuzz/seeds/database_rules/one-rule");
    seed.split(|byte| *byte == 0).next().unwrap().to_vec()
}

fn rules(bytes: &[u8]) -> Result<String> {
    Ok(format!("{:?}", Rules::parse(text(bytes)?)?))
}

fn part() -> Vec<u8> {
    let mut receipt = Receipt::parse(&file("fuzz/seeds/receipt/two-packages")).unwrap();
    let names = receipt.packages.iter().map(|package| package.file_name.clone());
    receipt.part = Some(PartRecord {
        part: Part { index: 2, of: 3 },
        plan: "5f".repeat(32),
        packages: names.zip(1..).collect(),
    });
    receipt.to_bytes().unwrap()
}

fn receipt(bytes: &[u8]) -> Result<String> {
    Ok(format!("{:?}", Receipt::parse(bytes)?))
}

fn plan(bytes: &[u8]) -> Result<String> {
    Ok(format!("{:?}", listing::parse("x".to_owned(), bytes)?))
}

/// Without the line's end.
fn document_file() -> Vec<u8> {
    file("fuzz/seeds/spdx/kernels").trim_ascii_end().to_vec()
}

fn document(bytes: &[u8]) -> Result<String> {
    let document = spdx::Document::read(bytes);
    Ok(format!("{:?}", document.map_err(|error| Error::malformed("is no document").cause(error))?))
}

fn checksum(bytes: &[u8]) -> Result<String> {
    Ok(hex(&artifact::parse_checksum(bytes, "a.tar.zst")?))
}

fn wrappers(bytes: &[u8]) -> Result<String> {
    Ok(format!("{:?}", hip_wrapper::parse(&Content::of_bytes(bytes))?))
}

fn section(bytes: &[u8]) -> Result<String> {
    let mut text = String::new();
    for found in fatbin::parse(&Content::of_bytes(bytes))? {
        for entry in &found.bundle.entries {
            text.push_str(&format!("{:?} {}\n", entry.id, entry.content.sha256_hex()?));
        }
    }
    Ok(text)
}

/// An index that cannot be read is passed on as it is; nothing is said of it.
fn index(bytes: &[u8]) -> Result<String> {
    match read_index(&Content::of_bytes(bytes))? {
        Index::Described(description) => Ok(format!("{description:?}")),
        Index::Unreadable(why) => Err(Error::malformed(why)),
    }
}

/// The first byte alone is no stream, but a number.
fn compressed_index(bytes: &[u8]) -> Result<String> {
    match bytes.len() {
        1 => Err(Error::malformed("is no stream")),
        _ => index(bytes),
    }
}

fn packed(compression: Compression) -> Vec<u8> {
    use std::io::Write;
    let tar = file("fuzz/seeds/artifact_archive/gnu");
    let mut encoder = Encoder::new(Vec::new(), compression, 1, tar.len() as u64).unwrap();
    encoder.write_all(&tar).unwrap();
    encoder.finish().unwrap()
}

fn artifact_zstd(bytes: &[u8]) -> Result<String> {
    artifact(bytes, "tar.zst")
}

fn artifact_xz(bytes: &[u8]) -> Result<String> {
    artifact(bytes, "tar.xz")
}

/// Without a checksum file: what the compressed stream itself says.
fn artifact(bytes: &[u8], ending: &str) -> Result<String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(format!("x_lib_generic.{ending}"));
    std::fs::write(&path, bytes).unwrap();
    let scan = artifact::scan_artifact(&path, None)?;
    let artifacts = scan.shards.iter().flat_map(|shard| &shard.artifacts);
    let mut text = String::new();
    for prefix in artifacts.flat_map(|artifact| &artifact.prefixes) {
        for (path, node) in &prefix.tree {
            let shown = match node {
                Node::File { data, mode } => format!("{mode:o} {}", hex(&data.sha256()?)),
                other => format!("{other:?}"),
            };
            text.push_str(&format!("{}/{path}: {shown}\n", prefix.path));
        }
    }
    Ok(text)
}
