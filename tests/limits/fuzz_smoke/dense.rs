//! Dense inputs: as many values, entries or rows as fit into their length. The bounds of the targets are
//! about the cost of such inputs, which mutations of small seeds do not show.

#![allow(
    clippy::cast_possible_truncation,
    reason = "counts of this file fit, and the rest is meant to be cut"
)]

use std::io::Write;

use md5::{Digest as _, Md5};

use crate::fuzz_smoke::{dense_elf, dense_verify, dense_wheels, rpms};

/// The approximate length of an input in bytes.
pub const LEN: usize = 64 << 10;

/// The dense inputs of a target, if it has any.
pub fn inputs(target: &str) -> Vec<Vec<u8>> {
    match target {
        "kernel_index" => [message_pack(), vec![bomb(8)]].concat(),
        // The first byte states where the second file starts.
        "shared_files" => {
            let files = message_pack().into_iter().chain([bomb(3), bomb(8)]);
            files.map(|map| [&[0xff], &map[..]].concat()).collect()
        }
        "kpm" | "marker" => message_pack(),
        "kpack" => message_pack().iter().map(|toc| archive(toc)).collect(),
        "config" => [toml(), json()].concat(),
        "database_rules" => toml(),
        "distribution" => distributions(),
        "receipt" => [json(), receipts()].concat(),
        "package_set" => [json(), receipts(), vec![plan()]].concat(),
        "spdx" => [json(), vec![document()]].concat(),
        "checksum" => vec![text("\n"), numbered(&"0".repeat(61), "  a\n")],
        "repo_state" => json().iter().map(|json| [&[1], &json[..]].concat()).collect(),
        "rpm_md" => vec![xml("<a/>"), xml("<a b='c' d=''/>"), xml("<a>b</a>")],
        "apt_index" => vec![text("A: b\n\n"), text("A: b\n"), numbered("A", ":\n"), release()],
        "manifest" => vec![numbered("", "/stage\n"), text("a\n")],
        "offload_bundle" | "fatbin" | "inspect" => vec![bundle(4096)],
        "package" => [packages(), rpms::packages()].concat(),
        "rpm_sign" => rpms::signed(),
        "artifact_archive" => vec![members()],
        "linking" | "relocations" | "host_binary" | "verify_file" | "code_object" => {
            [vec![elf()], dense_elf::inputs(target), dense_verify::inputs(target)].concat()
        }
        "ccob" => compressed_bundles(),
        "hip_wrapper" => vec![wrappers(), vec![0; LEN]],
        "static_archive" => static_archives(),
        "zip" | "wheel_texts" => dense_wheels::inputs(target),
        _ => Vec::new(),
    }
}

pub fn text(unit: &str) -> Vec<u8> {
    unit.repeat(LEN / unit.len()).into_bytes()
}

/// Numbered units, all different, so that all of them count.
pub fn numbered(before: &str, behind: &str) -> Vec<u8> {
    (0..LEN / (before.len() + behind.len() + 4))
        .map(|n| format!("{before}{n:x}{behind}"))
        .collect::<String>()
        .into()
}

fn release() -> Vec<u8> {
    let rows = (0..LEN / 8).map(|n| format!(" a 1 {n:x}\n"));
    format!("Suite: x\nSHA256:\n{}", rows.collect::<String>()).into()
}

/// Lists and maps of the shortest values, deeply nested lists, and lists that announce too much.
fn message_pack() -> Vec<Vec<u8>> {
    let count = u32::try_from(LEN).unwrap().to_be_bytes();
    let list = [&[0xdd], &count[..], &vec![0xc0; LEN]].concat();
    let keys = (0..LEN / 4).flat_map(|n| [0xa2, (n % 128) as u8, (n / 128 % 128) as u8, 0xc0]);
    let count = u32::try_from(LEN / 4).unwrap().to_be_bytes();
    let map = [&[0xdf], &count[..], &keys.collect::<Vec<u8>>()].concat();
    let nested = vec![0x91; LEN];
    let announced = vec![0xdd, 0xff, 0xff, 0xff, 0xff, 0xc0];
    let names = [&[0xdd, 0, 0, 0x80, 0][..], &[0xa1, b'x'].repeat(1 << 15)].concat();
    vec![list, map, nested, announced, names]
}

/// A list of `mib` MiB of the shortest values, compressed with zlib.
fn bomb(mib: u32) -> Vec<u8> {
    let count = mib << 20;
    let list = [&[0xdd], &count.to_be_bytes()[..], &vec![0xc0; count as usize]].concat();
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(&list).unwrap();
    encoder.finish().unwrap()
}

/// A kernel archive with only a table of contents.
fn archive(toc: &[u8]) -> Vec<u8> {
    let mut bytes = [&b"KPAK"[..], &1_u32.to_le_bytes(), &64_u64.to_le_bytes()].concat();
    bytes.resize(64, 0);
    [bytes, toc.to_vec()].concat()
}

fn toml() -> Vec<Vec<u8>> {
    let tables = numbered("[architecture_groups.", "]\n");
    let keys = numbered("a", "=1\n");
    let nested = format!("a = {}", "[".repeat(LEN)).into_bytes();
    let dotted = format!("a{} = 1", ".a".repeat(LEN / 2)).into_bytes();
    let rules = text("[[rule]]\n");
    let [any, known] = ["a", "primary_shard"]
        .map(|key| format!("{key} = [{}]", "0,".repeat(LEN / 2)).into_bytes());
    vec![any, known, tables, keys, nested, dotted, rules]
}

/// Tables with many keys and many libraries, and files of dpkg with many lines. The first byte states which.
fn distributions() -> Vec<Vec<u8>> {
    let libraries = numbered("[libraries.\"", "\"]\ndepends = [\"\"]\n");
    let head = "schema=1\nformat=\"deb\"\nname=\"\"\ncompression=\"xz\"\nversion_references=true\n";
    let tables = toml().into_iter().chain([[head.as_bytes(), &libraries].concat()]);
    let tables = tables.map(|table| [b"0", &table[..]].concat());
    let symbols = [b"2libz.so.1 z\n", &numbered(" ", " 1\n")[..]].concat();
    let lines = [("1A: b\n\n", "P", ": b\n"), ("2", "", " z\n"), ("3", "z ", " z\n")];
    let lines =
        lines.map(|(start, before, behind)| [start.as_bytes(), &numbered(before, behind)].concat());
    tables.chain([symbols]).chain(lines).collect()
}

fn json() -> Vec<Vec<u8>> {
    let list = |key: &str| format!("{{\"{key}\":[{}0]}}", "0,".repeat(LEN / 2)).into_bytes();
    let keys = (0..LEN / 8).map(|n| format!("\"{n:x}\":0,"));
    let keys = |name: &str| {
        format!("{{\"{name}\":{{{}\"\":0}}}}", keys.clone().collect::<String>()).into_bytes()
    };
    let nested = "[".repeat(LEN).into_bytes();
    let groups = format!("[{}{{}}]", "{},".repeat(LEN / 3)).into_bytes();
    let names = ["packages", "records", "findings", "architecture_groups", "left_out", "x"];
    let mut all: Vec<_> = names.iter().flat_map(|name| [list(name), keys(name)]).collect();
    all.extend([nested, groups]);
    all
}

/// A package with as many paths as fit.
fn plan() -> Vec<u8> {
    let paths = (0..LEN / 34).map(|n| format!("{{\"path\":\"{n:x}\",\"kind\":\"\",\"mode\":0}}"));
    let paths: Vec<String> = paths.collect();
    let package = "\"format\":\"deb\",\"name\":\"\",\"version\":\"\",\"architecture\":\"\",\
                   \"file_name\":\"\",\"download\":{\"bytes\":0},\"installed\":{\"bytes\":0}";
    let head = "\"kind\":\"plan\",\"schema\":1,\"prefix\":\"\"";
    format!("{{{head},\"packages\":[{{{package},\"members\":[{}]}}]}}", paths.join(",")).into()
}

fn receipts() -> Vec<Vec<u8>> {
    let text = r#""code":"","name":"","severity":"","subject":"","message":"""#;
    let fields = (0..LEN / 8).map(|n| format!(",\"{n:x}\":0")).collect::<String>();
    let objects = format!(",\"x\":[{}0]", "{\"\":0},".repeat(LEN / 7));
    let findings = [fields, objects].map(|more| receipt("/", 1, &format!("{{{text}{more}}}")));
    let folders = [100, LEN / 2].map(|length| receipt(&"x".repeat(length), LEN / 18, ""));
    findings.into_iter().chain(folders).collect()
}

/// A receipt with these findings and so many entries, all in one folder.
fn receipt(folder: &str, entries: usize, findings: &str) -> Vec<u8> {
    let names: Vec<String> = (0..entries).map(|n| format!("\"{n:x}\":[0,\"\",0]")).collect();
    let names = names.join(",");
    let package = "\"id\":\"a\",\"format\":\"deb\",\"file_name\":\"a_1_all.deb\",\"size\":0,\
                   \"installed_size\":0,\"sha256\":\"\",\"role\":\"host\",\"version\":\"1\",\
                   \"relations\":[]";
    let head = "\"schema\":1,\"rockpack_version\":\"\",\"version\":\"1\",\"release\":\"1\",\
                \"prefix\":\"/x\",\"content_date\":0,\"code_objects\":[]";
    let package = format!("{package},\"folders\":{{\"/{folder}/\":{{{names}}}}}");
    format!("{{{head},\"findings\":[{findings}],\"packages\":[{{{package}}}]}}").into()
}

/// A document with the shortest relationships.
fn document() -> Vec<u8> {
    let one = "{\"spdxElementId\":\"\",\"relationshipType\":\"\",\"relatedSpdxElement\":\"\"}";
    let all = vec![one; LEN / one.len()].join(",");
    let head = "\"spdxVersion\":\"\",\"dataLicense\":\"\",\"SPDXID\":\"\",\"name\":\"\",\
                \"documentNamespace\":\"\",\"creationInfo\":{\"created\":\"\",\"creators\":[]},\
                \"packages\":[],\"files\":[]";
    format!("{{{head},\"relationships\":[{all}]}}").into()
}

fn xml(unit: &str) -> Vec<u8> {
    [&b"<x>"[..], &text(unit), b"</x>"].concat()
}

/// A bundle of empty entries; readers accept at most 4,096.
pub fn bundle(count: usize) -> Vec<u8> {
    bundle_of(count, 0)
}

/// A bundle of entries that have this many bytes of its start.
pub fn bundle_of(count: usize, size: u64) -> Vec<u8> {
    let mut bytes = b"__CLANG_OFFLOAD_BUNDLE__".to_vec();
    bytes.extend((count as u64).to_le_bytes());
    for n in 0..count {
        let id = format!("hip-x--gfx906:{n}");
        for number in [0, size, id.len() as u64] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(id.bytes());
    }
    bytes
}

/// Compressed bundles of zeros: a correct one; two with a wrong hash, within and above the memory limit; one
/// longer than declared; and one shorter, with a stream of a few bytes.
fn compressed_bundles() -> Vec<Vec<u8>> {
    vec![
        compressed_bundle(0, 32 << 20, &hash_of_zeros(32), &zlib_of_zeros(32)),
        compressed_bundle(1, 32 << 20, &hash_of_zeros(32), &zstd_of_zeros(32)),
        compressed_bundle(1, 250 << 20, &[0; 8], &zstd_of_zeros(250)),
        compressed_bundle(1, 300 << 20, &[0; 8], &zstd_of_zeros(300)),
        compressed_bundle(0, 1 << 10, &[0; 8], &zlib_of_zeros(64)),
        compressed_bundle(1, 16 << 30, &[0; 8], &zstd_of_zeros(1)),
    ]
}

fn zlib_of_zeros(mib: usize) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(&zeros(mib)).unwrap();
    encoder.finish().unwrap()
}

fn zstd_of_zeros(mib: usize) -> Vec<u8> {
    zstd::encode_all(&zeros(mib)[..], 1).unwrap()
}

fn hash_of_zeros(mib: usize) -> Vec<u8> {
    Md5::digest(zeros(mib)).to_vec()
}

fn zeros(mib: usize) -> Vec<u8> {
    vec![0; mib << 20]
}

/// A compressed bundle of version 3, with method zlib (0) or zstd (1).
fn compressed_bundle(method: u16, declared: u64, hash: &[u8], stream: &[u8]) -> Vec<u8> {
    let total = 32 + stream.len() as u64;
    let words = [total.to_le_bytes(), declared.to_le_bytes()].concat();
    [b"CCOB\x03\0", &method.to_le_bytes()[..], &words, &hash[..8], stream].concat()
}

/// Wrappers of both kinds, up to [`LEN`].
fn wrappers() -> Vec<u8> {
    [b"FPIH", b"HIPK"]
        .map(|magic| [magic, &[1, 0, 0, 0][..], &[7; 16]].concat())
        .concat()
        .repeat(LEN / 48)
}

/// Archives without their magic, which the target adds: of empty members, of objects that are only sections,
/// and of one object with many bundles in a section.
fn static_archives() -> Vec<Vec<u8>> {
    // Not linked; its sections have another name than those with device code.
    let mut object = elf();
    object[16] = 1;
    let name = object.len() - b".hip_fatbin\0".len();
    let fat = object.clone();
    object[name] = b'x';
    let small = &object[..64];
    vec![
        ar_member(b"").repeat(LEN / 60),
        ar_member(&object).repeat(8),
        ar_member(small).repeat(LEN / 128),
        [ar_member(&object), ar_member(&fat)].concat(),
        [ar_member(b""), ar_member(&bundle(4096))].concat(),
    ]
}

fn ar_member(content: &[u8]) -> Vec<u8> {
    let header =
        format!("x.o/            0           0     0     644     {:<10}`\n", content.len());
    let mut bytes = [header.as_bytes(), content].concat();
    bytes.resize(bytes.len().next_multiple_of(2), b'\n');
    bytes
}

/// Empty files of an archive; the target corrects the checksums.
fn members() -> Vec<u8> {
    let mut archive = bare_member("artifact_manifest.txt", b"x/stage\n");
    for n in 0..LEN / 512 {
        archive.extend(bare_member(&format!("x/stage/{n}"), b""));
    }
    archive.extend([0; 1024]);
    archive
}

/// A member of a tar archive, without its checksum.
fn bare_member(name: &str, content: &[u8]) -> Vec<u8> {
    let mut bytes = [member_header(name, content.len()), content.to_vec()].concat();
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

/// Packages of a few kilobytes that decode to megabytes: a field with a long name and many lines, many
/// fields, many control files with long names, empty conffiles lines, and many real ones beside many members.
fn packages() -> Vec<Vec<u8>> {
    let fields = "Package: a\nVersion: 1\nArchitecture: all\n";
    let lines = format!("{fields}{}: b\n{}", "a".repeat(1 << 20), " c\n".repeat(1 << 19));
    let many: String = (0..1 << 19).map(|n| format!("{n:x}:\n")).collect();
    let name = |n: usize| format!("./{n:a>4000}\0");
    let long =
        |n: usize| [tar(b'L', "././@LongLink", name(n).as_bytes()), tar_file("./a", b"")].concat();
    let files = (0..4000).map(long).collect::<Vec<_>>().concat();
    let paths: String = (0..1 << 20).map(|n| format!("/{n:x}\n")).collect();
    let sums: String = (0..1 << 16).map(|n| format!("{}  {n:x}\n", "0".repeat(32))).collect();
    let members = (0..1000).map(|n| tar_file(&format!("./a{n}"), b"")).collect::<Vec<_>>();
    vec![
        deb(tar_file("./control", lines.as_bytes()), Vec::new()),
        deb(tar_file("./control", format!("{fields}{many}").as_bytes()), Vec::new()),
        deb([tar_file("./control", fields.as_bytes()), files].concat(), Vec::new()),
        deb(controlled(fields, "./conffiles", &"\n".repeat(17 << 20)), Vec::new()),
        deb(controlled(fields, "./conffiles", &paths), members.concat()),
        deb(controlled(fields, "./md5sums", &sums), Vec::new()),
    ]
}

/// A control archive of these fields and another file.
fn controlled(fields: &str, name: &str, text: &str) -> Vec<u8> {
    [tar_file("./control", fields.as_bytes()), tar_file(name, text.as_bytes())].concat()
}

fn deb(control: Vec<u8>, data: Vec<u8>) -> Vec<u8> {
    let mut bytes = b"!<arch>\n".to_vec();
    for (name, content) in [
        ("debian-binary", b"2.0\n".to_vec()),
        ("control.tar.zst", packed(control)),
        ("data.tar.zst", packed(data)),
    ] {
        let size = content.len();
        bytes.extend(format!("{name:<16}0           0     0     100644  {size:<10}`\n").bytes());
        bytes.extend(content);
        bytes.resize(bytes.len().next_multiple_of(2), b'\n');
    }
    bytes
}

fn packed(mut archive: Vec<u8>) -> Vec<u8> {
    archive.extend([0; 1024]);
    zstd::encode_all(&archive[..], 3).unwrap()
}

fn tar_file(name: &str, content: &[u8]) -> Vec<u8> {
    tar(b'0', name, content)
}

/// A member of a tar archive, with its checksum.
fn tar(kind: u8, name: &str, content: &[u8]) -> Vec<u8> {
    let mut block = member_header(name, content.len());
    block[156] = kind;
    block[148..156].fill(b' ');
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let mut bytes = [&block[..], content].concat();
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

/// A member's header without its checksum.
fn member_header(name: &str, size: usize) -> Vec<u8> {
    let mut block = vec![0; 512];
    block[..name.len()].copy_from_slice(name.as_bytes());
    for (at, number) in [(100, 0o644), (108, 0), (116, 0), (136, 0)] {
        block[at..at + 7].copy_from_slice(format!("{number:07o}").as_bytes());
    }
    block[124..135].copy_from_slice(format!("{size:011o}").as_bytes());
    block[156] = b'0';
    block[257..265].copy_from_slice(b"ustar\x0000");
    block
}

/// A library with as many empty sections as fit, all named like those with device code.
fn elf() -> Vec<u8> {
    let count = (LEN / 64) as u16;
    let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
    bytes.resize(16, 0);
    for number in [3_u16, 62] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend(1_u32.to_le_bytes());
    for number in [0_u64, 0, 64] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend(0_u32.to_le_bytes());
    for number in [64_u16, 56, 0, 64, count, 1] {
        bytes.extend(number.to_le_bytes());
    }
    let names = b"\0.hip_fatbin\0";
    let names_at = 64 + 64 * u64::from(count);
    for index in 0..count {
        let (kind, offset, size) = match index {
            0 => (0_u32, 0, 0),
            1 => (3, names_at, names.len() as u64),
            _ => (1, names_at, 1),
        };
        bytes.extend(1_u32.to_le_bytes());
        bytes.extend(kind.to_le_bytes());
        for number in [0, 0, offset, size, 0, 1, 0] {
            bytes.extend(u64::to_le_bytes(number));
        }
    }
    bytes.extend(names);
    bytes
}
