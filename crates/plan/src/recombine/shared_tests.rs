use std::collections::BTreeMap;

use rockpack_elf::message_pack;

use super::super::Recombined;
use super::super::fixture::{ArtifactBuilder, join, path};
use super::*;
use rockpack_report::{Code, Finding};
use rockpack_split::input::database::describe_index;

const LIBRARY: &str = "lib/rocblas/library";

fn at(name: &str) -> String {
    format!("{LIBRARY}/{name}")
}

fn shared() -> SharedFile {
    SharedFile { rule: "rocblas".to_owned(), moves: true, cache: false }
}

fn fixed() -> SharedFile {
    SharedFile { moves: false, ..shared() }
}

fn cache() -> SharedFile {
    SharedFile { cache: true, ..fixed() }
}

fn text(text: &str) -> Content {
    Content::of_bytes(text.as_bytes())
}

/// A shard with kernels of `archs`, whose library looks into directories of archs first.
fn shard(name: &str, archs: &[&str]) -> ArtifactBuilder {
    let part = ArtifactBuilder::new(name, "blas_lib_all");
    let kernels = archs.iter().fold(part, |part, arch| {
        part.database(&at(&format!("T_{arch}.co")), arch, &format!("kernels of {arch}"))
    });
    kernels.moving()
}

/// A shard with kernels of `arch` and a file for all archs with this content.
fn shard_with_fallback(name: &str, arch: &str, content: &str) -> ArtifactBuilder {
    shard(name, &[arch]).shared(&at("T_fallback.dat"), shared(), text(content))
}

/// The paths of the host files and of the database files of the only component.
fn paths(recombined: &Recombined) -> (Vec<String>, Vec<String>) {
    let component = &recombined.components[0];
    let files = component.host.iter().filter(|(_, node)| matches!(node, Node::File { .. }));
    let host = files.map(|(path, _)| path.to_string()).collect();
    (host, component.databases.iter().map(|file| file.path.to_string()).collect())
}

fn codes(recombined: &Recombined) -> Vec<Code> {
    let mut codes: Vec<Code> = recombined.findings.iter().filter_map(Finding::code).collect();
    codes.dedup();
    codes
}

fn bytes(content: &Content) -> Vec<u8> {
    content.read_vec(0..content.len(), 1 << 20, "x").unwrap()
}

fn host<'a>(recombined: &'a Recombined, at: &str) -> &'a Content {
    plain_content(recombined.components[0].host.get(&path(at)).unwrap()).unwrap()
}

fn assert_refused(parts: Vec<ArtifactBuilder>, expected: &[&str]) {
    let error = join(parts, "").unwrap_err();
    let others = error.others().iter().map(|e| format!("\n{e}"));
    let shown: String = std::iter::once(error.to_string()).chain(others).collect();
    for part in expected {
        assert!(shown.contains(part), "{part} is not in: {shown}");
    }
}

fn map(entries: &[(&str, &str)]) -> Content {
    let entries: BTreeMap<_, _> = entries.iter().copied().collect();
    let entries = entries.into_iter().map(|(key, value)| (key.into(), value.into())).collect();
    Content::of_bytes(message_pack::encode(&rmpv::Value::Map(entries)).unwrap())
}

#[test]
fn the_same_file_everywhere_stays_where_it_is() {
    let one = shard_with_fallback("one", "gfx906", "1");
    let two = shard_with_fallback("two", "gfx1100", "1");
    let recombined = join(vec![one, two], "").unwrap();
    assert_eq!(paths(&recombined).0, [at("T_fallback.dat")]);
    assert_eq!(codes(&recombined), [Code::DatabaseShared]);
}

#[test]
fn maps_that_differ_are_merged() {
    let name = at("hipblasltExtOpLibrary.dat");
    let one = shard_with_map("one", "gfx906", &name);
    let two = shard_with_map("two", "gfx1100", &name);
    let recombined = join(vec![one, two], "").unwrap();
    let archs = describe_index(host(&recombined, &name)).unwrap().archs;
    assert_eq!(archs.len(), 2);
    let finding =
        recombined.findings.iter().find(|f| f.code() == Some(Code::DatabaseMerged)).unwrap();
    assert_eq!(finding.subject(), format!("blas_lib/{name}"));
    for (shard, arch) in [("one", "gfx906"), ("two", "gfx1100")] {
        let digest = map(&[(arch, "operations")]).digest().unwrap();
        assert!(finding.message().contains(&format!("{shard}/blas_lib_all ({digest})")));
    }
    // The order of shards does not matter.
    let two = shard_with_map("two", "gfx906", &name);
    let one = shard_with_map("one", "gfx1100", &name);
    let turned = join(vec![two, one], "").unwrap();
    assert_eq!(bytes(host(&turned, &name)), bytes(host(&recombined, &name)));
}

/// A shard with kernels of `arch`, and with a map of the arch at `path`.
fn shard_with_map(name: &str, arch: &str, path: &str) -> ArtifactBuilder {
    shard(name, &[arch]).shared(path, fixed(), map(&[(arch, "operations")]))
}

#[test]
fn files_without_a_union_move_to_the_directories_of_their_archs() {
    let one = shard("one", &["gfx906", "gfx1100"])
        .shared(&at("T_fallback.dat"), shared(), text("of one"))
        .shared(&at("U_fallback.dat"), shared(), text("same"))
        .shared(&at("X.dat"), fixed(), text("same"));
    let two = shard("two", &["gfx1200"])
        .shared(&at("T_fallback.dat"), shared(), text("of two"))
        .shared(&at("U_fallback.dat"), shared(), text("same"))
        .shared(&at("X.dat"), fixed(), text("same"));
    let recombined = join(vec![one, two], "").unwrap();
    let (host, databases) = paths(&recombined);
    assert_eq!(host, [at("X.dat")]);
    let expected = ["gfx1100", "gfx1200", "gfx906"].map(|arch| {
        let names =
            ["T_fallback.dat".to_owned(), format!("T_{arch}.co"), "U_fallback.dat".to_owned()];
        names.map(|name| at(&format!("{arch}/{name}")))
    });
    assert_eq!(databases, expected.concat());
    for file in &recombined.components[0].databases {
        let arch = file.archs[0].as_str();
        assert!(file.path.as_str().contains(arch) && file.archs.len() == 1);
        let whose = if arch == "gfx1200" { "two" } else { "one" };
        assert_eq!(file.shard, whose);
        if file.path.name() == "T_fallback.dat" {
            assert_eq!(bytes(&file.content), format!("of {whose}").into_bytes());
        }
    }
    let moved = recombined.findings.iter().find(|f| f.code() == Some(Code::DatabaseMoved)).unwrap();
    assert_eq!(moved.subject(), format!("blas_lib/{LIBRARY}"));
    assert!(moved.message().starts_with("7 files") && moved.message().contains("T_fallback.dat"));
    // Only files that stay with the host files are reported as shared.
    let stays = recombined.findings.iter().filter(|f| f.code() == Some(Code::DatabaseShared));
    assert!(stays.map(|f| f.subject()).all(|subject| subject.ends_with("X.dat")));
}

/// A directory with nothing but a shared file would hide the others from the library.
#[test]
fn an_arch_none_of_whose_files_move_gets_no_directory() {
    let parts = [("one", "gfx906", "1"), ("two", "gfx1100", "2")].map(|(name, arch, content)| {
        let part = shard_with_fallback(name, arch, content);
        part.database(&at("extop_gfx950.co"), "gfx950", "operations")
    });
    let recombined = join(parts.into(), "").unwrap();
    let (_, databases) = paths(&recombined);
    let expected = [
        "extop_gfx950.co",
        "gfx1100/T_fallback.dat",
        "gfx1100/T_gfx1100.co",
        "gfx906/T_fallback.dat",
        "gfx906/T_gfx906.co",
    ];
    assert_eq!(databases, expected.map(at));
}

#[test]
fn a_shared_file_of_a_shard_without_archs_is_not_lost() {
    let alone = ArtifactBuilder::new("three", "blas_lib_all")
        .database(&at("extop_gfx950.co"), "gfx950", "operations")
        .shared(&at("T_fallback.dat"), shared(), text("3"));
    let one = shard_with_fallback("one", "gfx906", "1");
    let two = shard_with_fallback("two", "gfx1100", "2");
    let parts = vec![one, two, alone];
    let expected = ["T_fallback.dat", "three/blas_lib_all has no files of single archs next to it"];
    assert_refused(parts, &expected);
    // A file that another shard has, too, is not lost.
    let alone = ArtifactBuilder::new("three", "blas_lib_all").shared(
        &at("T_fallback.dat"),
        shared(),
        text("2"),
    );
    let one = shard_with_fallback("one", "gfx906", "1");
    let two = shard_with_fallback("two", "gfx1100", "2");
    let parts = vec![one, two, alone];
    let (host, databases) = paths(&join(parts, "").unwrap());
    assert!(host.is_empty() && databases.contains(&at("gfx1100/T_fallback.dat")));
}

/// A library with lazily loaded indexes looks into the directory of an arch only if its master index is
/// there.
#[test]
fn files_do_not_move_to_where_the_library_would_not_look() {
    let one = shard_with_fallback("one", "gfx906", "1");
    let two = shard_with_fallback("two", "gfx1100", "2").without_lead();
    let expected = ["blas_lib/", LIBRARY, "those for gfx1100 of two cannot move"];
    assert_refused(vec![one, two], &expected);
}

#[test]
fn an_arch_of_two_shards_cannot_have_both_their_files() {
    let one = shard_with_fallback("one", "gfx906", "1");
    let two = shard_with_fallback("two", "gfx906", "2");
    let expected = ["gfx906/T_fallback.dat", "one/blas_lib_all", "two/blas_lib_all"];
    assert_refused(vec![one, two], &expected);
}

#[test]
fn archs_of_a_shard_may_be_in_other_artifacts() {
    let parts = vec![
        generic_fallback("one", "1"),
        shard("one", &["gfx906"]),
        generic_fallback("two", "2"),
        shard("two", &["gfx1100"]),
    ];
    let recombined = join(parts, "").unwrap();
    let (host, databases) = paths(&recombined);
    assert!(host.is_empty());
    assert!(databases.contains(&at("gfx906/T_fallback.dat")));
    assert!(databases.contains(&at("gfx1100/T_fallback.dat")));
    assert_eq!(databases.len(), 4);
}

fn generic_fallback(shard: &str, content: &str) -> ArtifactBuilder {
    let part = ArtifactBuilder::new(shard, "blas_lib_generic");
    part.shared(&at("T_fallback.dat"), shared(), text(content))
}

#[test]
fn a_file_of_several_archs_cannot_move() {
    let one = shard_with_fallback("one", "gfx906", "1");
    let both = one.database(&at("B.co"), "gfx906,gfx908", "b").moving();
    let two = shard_with_fallback("two", "gfx1100", "2");
    assert_refused(vec![both, two], &[&at("B.co"), "one/blas_lib_all"]);
}

#[test]
fn files_that_cannot_move_are_refused() {
    let one = shard("one", &["gfx906"]).shared("share/db", fixed(), text("1"));
    let two = shard("two", &["gfx1100"]).shared("share/db", fixed(), text("2"));
    let expected = ["share/db", "serves all archs", "one/blas_lib_all", "two/blas_lib_all"];
    assert_refused(vec![one, two], &expected);
    // Files beside a library's, without a rule.
    let one = shard("one", &["gfx906"]).plain(&at("notes"), "1");
    let two = shard("two", &["gfx1100"]).plain(&at("notes"), "2");
    assert_refused(vec![one, two], &["library/notes", "no rule says"]);
}

#[test]
fn a_cache_is_the_first_shards() {
    let one = shard("one", &["gfx906"]).shared("lib/rocfft/cache.db", cache(), text("1"));
    let two = shard("two", &["gfx1100"]).shared("lib/rocfft/cache.db", cache(), text("2"));
    let recombined = join(vec![one, two], "").unwrap();
    assert_eq!(bytes(host(&recombined, "lib/rocfft/cache.db")), b"1");
    let dropped = recombined.findings.iter().find(|f| f.code() == Some(Code::DatabaseCacheDropped));
    assert!(dropped.unwrap().message().contains("two/blas_lib_all"));
}
