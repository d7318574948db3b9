//! Samples of text: repository indexes, configurations and rules; and samples of packed artifacts.

use rockpack_archive::apt_index;
use rockpack_archive::spdx;
use rockpack_core::compression::{Encoder, Workers};
use rockpack_core::content::{Content, hex};
use rockpack_core::error::{Error, Result};
use rockpack_core::run::Budget;
use rockpack_core::tree::Node;
use rockpack_elf::fatbin;
use rockpack_elf::hip_wrapper;
use rockpack_emit::Compression;
use rockpack_package::receipt::listing;
use rockpack_package::receipt::{PartRecord, Receipt, SetPart};
use rockpack_plan::PackageList;
use rockpack_plan::config::{Config, Grouping, Syntax};
use rockpack_split::input::artifact;
use rockpack_split::input::database::{DatabaseRules, Index, read_index};
use rockpack_verify::Element;

use super::file;
use super::samples::{Damage, Sample, of};

pub fn samples() -> Vec<Sample> {
    let mut samples = vec![
        of("Packages", file("fuzz/seeds/apt_index/packages"), Damage::Lines, packages),
        of("Release", file("fuzz/seeds/apt_index/release"), Damage::Lines, release),
        of("JSON", json_file(), Damage::Said, json),
        of("package.json", package_list_file(), Damage::Said, package_list),
        of("TOML", file("fuzz/seeds/config/toml"), Damage::Items, toml),
        of("rules", rules_file(), Damage::Items, rules),
        of("receipt of a part", part(), Damage::Said, receipt),
        of("plan", file("fuzz/seeds/package_set/plan"), Damage::Said, plan),
        of("SPDX document", document_file(), Damage::Said, document),
        of("checksum file", file("fuzz/seeds/checksum/binary"), Damage::Items, checksum),
        of("wrappers", file("fuzz/seeds/hip_wrapper/fat"), Damage::Items, wrappers),
        of("device code section", file("fuzz/seeds/fatbin/mixed"), Damage::Items, section),
        of("database index", file("fuzz/seeds/kernel_index/map"), Damage::Said, index),
        of(
            "compressed index",
            file("fuzz/seeds/kernel_index/zlib"),
            Damage::Noticed(95),
            compressed_index,
        ),
        of("packed artifact", packed(Compression::default()), Damage::Noticed(95), artifact_zstd),
        of("packed artifact", packed(Compression::XZ), Damage::Noticed(100), artifact_xz),
    ];
    for name in ["repomd", "primary", "filelists", "other"] {
        samples.push(of("rpm-md", file(&format!("fuzz/seeds/rpm_md/{name}")), Damage::Said, xml));
    }
    samples
}

pub fn text(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|_| Error::malformed("is not UTF-8"))
}

/// The fields of all paragraphs.
fn packages(bytes: &[u8]) -> Result<String> {
    let text = text(bytes)?;
    let mut items = Vec::new();
    for (read, paragraph) in apt_index::paragraphs(text).zip(text.split("\n\n")) {
        let read = read?;
        items.push("paragraph".to_owned());
        items.extend(in_order(read.to_map().iter(), paragraph));
    }
    Ok(items.join("\n"))
}

/// The fields, then the rows of both lists.
fn release(bytes: &[u8]) -> Result<String> {
    let release = apt_index::Release::parse(text(bytes)?)?;
    let fields = release.fields.iter().map(|(name, value)| (name, value));
    let mut items = in_order(fields, text(bytes)?);
    // The reader sorts them by path.
    let mut files = release.files.clone();
    files.sort_by_key(|file| text(bytes).ok().and_then(|text| text.find(&file.sha256)));
    items.extend(files.iter().map(|file| format!("{} {} {}", file.sha256, file.size, file.path)));
    let long = files.iter().filter_map(|file| Some((file.sha512.as_ref()?, file)));
    items.extend(long.map(|(sha512, file)| format!("{sha512} {} {}", file.size, file.path)));
    Ok(items.join("\n"))
}

/// The fields in the order of `paragraph`; the reader sorts them by name.
fn in_order<'a>(
    fields: impl Iterator<Item = (&'a String, &'a String)>,
    paragraph: &str,
) -> Vec<String> {
    let lines: Vec<_> = paragraph.lines().collect();
    let is = |line: &str, name: &str| line.split(':').next() == Some(name);
    let mut fields: Vec<_> = fields.collect();
    fields.sort_by_key(|(name, _)| lines.iter().position(|line| is(line, name)));
    fields.iter().map(|(name, value)| format!("{name}: {}", value.escape_debug())).collect()
}

fn xml(bytes: &[u8]) -> Result<String> {
    Ok(format!("{:?}", Element::parse(bytes)?))
}

/// A sample without the final line end, which the configuration keeps for its messages.
fn json_file() -> Vec<u8> {
    file("fuzz/seeds/config/packaging-config.json").trim_ascii_end().to_vec()
}

fn json(bytes: &[u8]) -> Result<String> {
    Ok(format!("{:?}", Config::parse(text(bytes)?, Syntax::Json)?))
}

/// A sample without the final line end.
fn package_list_file() -> Vec<u8> {
    file("fuzz/seeds/config/package.json").trim_ascii_end().to_vec()
}

fn package_list(bytes: &[u8]) -> Result<String> {
    Ok(format!("{:?}", PackageList::parse(text(bytes)?)?))
}

/// The unset values, which are the same for any beginning of the file, then the values that the file sets.
fn toml(bytes: &[u8]) -> Result<String> {
    let mut config = Config::parse(text(bytes)?, Syntax::Toml)?;
    let Grouping { groups, primary_shard } = std::mem::take(&mut config.grouping);
    let unsaid = format!("{config:?}");
    // The last field is the text itself, for messages.
    let mut items = vec![unsaid.split(", document: ").next().unwrap().to_owned()];
    items.extend(primary_shard);
    items.extend(groups.iter().map(|group| format!("{group:?}")));
    Ok(items.join("\n"))
}

/// A sample without the path that the seed asks about.
fn rules_file() -> Vec<u8> {
    let seed = file("fuzz/seeds/database_rules/one-rule");
    seed.split(|byte| *byte == 0).next().unwrap().to_vec()
}

/// The keys that the file sets, in the order of a rule's fields, which is also the sample's order.
fn rules(bytes: &[u8]) -> Result<String> {
    let rules = format!("{:#?}", DatabaseRules::parse(text(bytes)?)?);
    let unset = [": [],", ": {},", ": Word,", ": false,", ": \"\",", ": None,"];
    let is_set = |line: &&str| !unset.iter().any(|end| line.ends_with(end));
    let says = |line: &&str| line.contains(char::is_alphanumeric);
    Ok(rules.lines().filter(is_set).filter(says).collect::<Vec<_>>().join("\n"))
}

fn part() -> Vec<u8> {
    let mut receipt = Receipt::parse(&file("fuzz/seeds/receipt/two-packages")).unwrap();
    let names = receipt.packages.iter().map(|package| package.file_name.clone());
    receipt.part = Some(PartRecord {
        part: SetPart { index: 2, of: 3 },
        plan_sha256: "5f".repeat(32),
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

/// A sample without the final line end.
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
    let wrappers = hip_wrapper::parse(&Content::of_bytes(bytes))?;
    Ok(wrappers.iter().map(|one| format!("{one:?}")).collect::<Vec<_>>().join("\n"))
}

fn section(bytes: &[u8]) -> Result<String> {
    let mut items = Vec::new();
    for found in fatbin::parse(&Content::of_bytes(bytes))? {
        for entry in &found.bundle.entries {
            items.push(format!("{:?} {}", entry.id, entry.content.digest()?));
        }
    }
    Ok(items.join("\n"))
}

/// An index that cannot be read is passed on unchanged, without a value.
fn index(bytes: &[u8]) -> Result<String> {
    match read_index(&Content::of_bytes(bytes))? {
        Index::Described(description) => Ok(format!("{description:?}")),
        Index::Unreadable(why) => Err(Error::malformed(why)),
    }
}

/// The first byte alone is a number, not a stream.
fn compressed_index(bytes: &[u8]) -> Result<String> {
    match bytes.len() {
        1 => Err(Error::malformed("is no stream")),
        _ => index(bytes),
    }
}

fn packed(compression: Compression) -> Vec<u8> {
    use std::io::Write;
    let tar = file("fuzz/seeds/artifact_archive/gnu");
    let mut encoder =
        Encoder::new(Vec::new(), compression, &Workers::new(1), tar.len() as u64).unwrap();
    encoder.write_all(&tar).unwrap();
    encoder.finish().unwrap()
}

fn artifact_zstd(bytes: &[u8]) -> Result<String> {
    artifact(bytes, "tar.zst")
}

fn artifact_xz(bytes: &[u8]) -> Result<String> {
    artifact(bytes, "tar.xz")
}

/// An artifact without a checksum file: only the compressed stream itself can show damage.
fn artifact(bytes: &[u8], ending: &str) -> Result<String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(format!("x_lib_generic.{ending}"));
    std::fs::write(&path, bytes).unwrap();
    let scan =
        artifact::scan_artifact(&path, None, &artifact::ScanOptions::within(&Budget::unlimited()))?;
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
