//! Packages larger than 4 GiB, with a hundred thousand files, and with compressed files, and sets of very
//! many packages, judged by dpkg and rpm. Large input is sparse; large incompressible input is tested by
//! `benches/large.py`.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

use rockpack_core::compression::LongMatches;
use rockpack_core::content::Content;
use rockpack_emit::{Compression, EmittedPackage};
use rockpack_package::{Format, Treatment};
use support::packages::{Tree, emit_set, options, package};
use support::program::rockpack;
use support::queries::rpm_tags;
use support::sweep::or_all;
use support::tools::{need, succeed};

/// One byte more than 32 bits can state.
const LARGE: u64 = (1 << 32) + 1;

const FILES: usize = 100_000;

/// The cheapest compression: these tests are not about it.
const QUICK: Compression = Compression::Zstd { level: 1, window_log: 20, long: LongMatches::Off };

fn sparse(path: &Path, len: u64) -> Content {
    File::create(path).unwrap().set_len(len).unwrap();
    support::fixtures::content(path)
}

fn named(emitted: &[EmittedPackage], format: Format) -> &str {
    &emitted.iter().find(|emitted| emitted.format == format).unwrap().file_name
}

/// The content of an rpm's payload as tar lists it, unpacked by rpm itself.
fn listed(package: &Path) -> String {
    let mut rpm = Command::new("rpm2archive");
    let rpm = rpm.args(["-n", "-"]).stdin(File::open(package).unwrap());
    let mut rpm = rpm.stdout(Stdio::piped()).spawn().unwrap();
    let mut tar = Command::new("tar");
    let listed = succeed(tar.arg("-tv").stdin(rpm.stdout.take().unwrap()));
    assert!(rpm.wait().unwrap().success());
    listed
}

#[test]
#[ignore = "more than 4 GiB: .ci/nightly"]
fn a_file_beyond_4_gib_is_in_both_formats_whole() {
    need(&["rpm", "rpm2archive", "dpkg-deb", "tar"]);
    let scratch = tempfile::tempdir().unwrap();
    let (large, small) = (sparse(&scratch.path().join("large"), LARGE), Content::of_bytes(*b"end"));
    let entries = Tree::default()
        .directory("opt")
        .file("opt/large", large, 0o644, Treatment::Plain)
        .file("opt/small", small, 0o644, Treatment::Plain);
    let out = scratch.path().join("out");
    let emitted = emit_set(&out, &[package("large", entries.entries())], &options(2, QUICK));
    let listing =
        succeed(Command::new("dpkg-deb").arg("-c").arg(out.join(named(&emitted, Format::Deb))));
    assert!(listing.contains(&format!(" {LARGE} ")) && listing.contains("opt/small"), "{listing}");
    let rpm = out.join(named(&emitted, Format::Rpm));
    let total = LARGE + 3;
    assert_eq!(rpm_tags(&rpm, "%{LONGSIZE} [%{LONGFILESIZES} ]"), format!("{total} 0 {LARGE} 3 "));
    assert_eq!(rpm_tags(&rpm, "%{SIZE}|%{FILESIZES}"), "(none)|(none)", "they would not hold it");
    let archive: u64 = rpm_tags(&rpm, "%{LONGARCHIVESIZE}").parse().unwrap();
    assert!(archive > total);
    let listing = listed(&rpm);
    assert!(listing.contains(&format!(" {LARGE} ")) && listing.contains("opt/small"), "{listing}");
    succeed(Command::new("rpm").args(["-K", "--nosignature"]).arg(&rpm));
}

#[test]
#[ignore = "more than 4 GiB: .ci/nightly"]
fn a_package_beyond_4_gib_of_smaller_files_is_whole() {
    need(&["rpm", "rpm2cpio", "cpio"]);
    let scratch = tempfile::tempdir().unwrap();
    let half = sparse(&scratch.path().join("half"), LARGE / 2 + 1);
    let entries = Tree::default()
        .directory("opt")
        .file("opt/one", half.clone(), 0o644, Treatment::Plain)
        .file("opt/two", half.clone(), 0o644, Treatment::Plain);
    let out = scratch.path().join("out");
    let emitted = emit_set(&out, &[package("halves", entries.entries())], &options(2, QUICK));
    let rpm = out.join(named(&emitted, Format::Rpm));
    assert_eq!(rpm_tags(&rpm, "%{LONGSIZE}"), (half.len() * 2).to_string());
    // Members that fit keep the form that every cpio reads.
    let mut archive = Command::new("rpm2cpio").arg(&rpm).stdout(Stdio::piped()).spawn().unwrap();
    let mut cpio = Command::new("cpio");
    let listing = succeed(cpio.args(["-tv", "--quiet"]).stdin(archive.stdout.take().unwrap()));
    assert!(archive.wait().unwrap().success());
    assert_eq!(listing.matches(&format!(" {} ", half.len())).count(), 2, "{listing}");
}

/// `packages_set` makes a package of ten thousand files in every run.
#[test]
#[ignore = "a hundred thousand files: .ci/nightly"]
fn a_hundred_thousand_files_are_all_there() {
    need(&["rpm", "dpkg-deb"]);
    let mut entries = Tree::default().directory("opt");
    for index in 0..FILES {
        entries = entries.text(&format!("opt/{index:06}"), "text");
    }
    let scratch = tempfile::tempdir().unwrap();
    let emitted =
        emit_set(scratch.path(), &[package("many", entries.entries())], &options(2, QUICK));
    let [deb, rpm] =
        [Format::Deb, Format::Rpm].map(|format| scratch.path().join(named(&emitted, format)));
    let listing = succeed(Command::new("dpkg-deb").arg("-c").arg(deb));
    assert_eq!(lines_below_opt(&listing), FILES + 1);
    assert_eq!(lines_below_opt(&rpm_tags(&rpm, "[%{FILENAMES}\n]")), FILES);
}

fn lines_below_opt(listing: &str) -> usize {
    listing.lines().filter(|line| line.contains("opt/")).count()
}

/// Bytes that no compressor makes smaller.
fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        state.to_be_bytes()[0]
    };
    (0..len).map(|_| next()).collect()
}

/// Compressed files between others: their order makes a frame change its level several times. Each has a part
/// of its own, and two thirds have a common part, at odd offsets.
fn compressed_files() -> Vec<(String, Vec<u8>)> {
    let common = noise(1, 2 << 20);
    let archive = |index: u64| {
        let own = noise(index + 2, (1 << 20) + usize::try_from(index).unwrap() * 1001);
        ["KPAK".as_bytes(), &own, &common].concat()
    };
    let text = |index: usize| format!("line {index} of a text\n").repeat(100_000).into_bytes();
    let file = |index: usize| match index % 3 {
        0 => text(index),
        _ => archive(index as u64),
    };
    (0..6).map(|index| (format!("opt/x/{index}"), file(index))).collect()
}

#[test]
fn what_is_compressed_already_is_kept_once_and_read_by_the_tools_of_both_formats() {
    need(&["dpkg-deb", "rpm", "rpm2cpio", "cpio", "ar", "zstd"]);
    let files = compressed_files();
    let mut tree = Tree::default().deb_directory("opt").directory("opt/x");
    for (path, bytes) in &files {
        tree = tree.file(path, Content::of_bytes(bytes.clone()), 0o644, Treatment::Plain);
    }
    let package = package("a", tree.entries());
    let (usual, of_copies) = (LongMatches::On, LongMatches::NearCopies);
    for (level, long) in [(1, usual), (9, usual), (13, usual), (9, of_copies)] {
        let compression = Compression::Zstd { level, window_log: 27, long };
        let out = tempfile::tempdir().unwrap();
        let out = out.path();
        let emitted = emit_set(out, std::slice::from_ref(&package), &options(2, compression));
        // Four parts of their own, the common part once, and little else.
        let least = 4 * ((1 << 20) + 2002) + (2 << 20);
        for package in &emitted {
            let size = usize::try_from(package.size).unwrap();
            assert!(size < least + least / 20, "{} bytes at level {level}", package.size);
        }
        let [deb, rpm] = [0, 1].map(|index| emitted[index].file_name.as_str());
        let script = format!(
            "set -e; ar p {deb} data.tar.zst >data.zst; zstd -qt data.zst; zstd -l data.zst; \
             dpkg-deb -x {deb} deb; rpm -K --nosignature {rpm} >&2; mkdir rpm; \
             rpm2cpio {rpm} | (cd rpm && cpio -idu --quiet)"
        );
        let listed = succeed(Command::new("sh").args(["-c", &script]).current_dir(out));
        let frames = listed.lines().nth(1).and_then(|line| line.split_whitespace().next());
        assert_eq!(frames, Some("1"), "dpkg reads one frame: {listed}");
        for (path, bytes) in &files {
            for root in ["deb", "rpm"] {
                let read = fs::read(out.join(root).join(path)).unwrap();
                assert!(read == *bytes, "{path} of the {root} at level {level}");
            }
        }
    }
}

#[test]
fn a_set_of_many_packages_is_whole() {
    let components: usize = or_all(100, 500);
    need(&["rpm", "dpkg-scanpackages"]);
    let scratch = tempfile::tempdir().unwrap();
    let names: BTreeSet<String> =
        (0..components).map(|index| format!("rocm-p{index:03}")).collect();
    for name in &names {
        let name = &name["rocm-".len()..];
        let artifact = scratch.path().join(format!("artifacts/shard/{name}_lib_generic"));
        let folder = artifact.join(name).join("stage/share").join(name);
        fs::create_dir_all(&folder).unwrap();
        fs::write(artifact.join("artifact_manifest.txt"), format!("{name}/stage\n")).unwrap();
        fs::write(folder.join("text"), name).unwrap();
    }
    let out = scratch.path().join("out");
    let mut build = rockpack();
    build
        .args(["build", "--version", "7.1.0", "--artifacts"])
        .arg(scratch.path().join("artifacts"));
    succeed(build.arg("--out").arg(&out));
    let index = succeed(Command::new("dpkg-scanpackages").arg("--multiversion").arg(&out));
    assert_eq!(numbered_packages(&index.replace("Package: ", "")), names);
    let files = fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().path());
    let rpms = files.filter(|path| path.extension().is_some_and(|ending| ending == "rpm"));
    let mut rpm = Command::new("rpm");
    rpm.args(["-qp", "--nosignature", "--qf", "%{NAME}\n"]).args(rpms);
    assert_eq!(numbered_packages(&succeed(&mut rpm)), names);
}

fn numbered_packages(listed: &str) -> BTreeSet<String> {
    let names = listed.lines().filter(|name| name.starts_with("rocm-p"));
    names.map(str::to_owned).collect()
}
