use rockpack_core::error::{Error, Kind};
use rockpack_core::gfx::BaseArch;
use rockpack_core::tree::Node;

use super::fixture::{ArtifactBuilder, join, path, wrapper};
use super::*;
use rockpack_report::{Code, Finding};
use rockpack_split::HostKind;

const GROUPS: &str = "[architecture_groups.gfx110X]\narchitectures = ['gfx1100', 'gfx1101']\n\
                      [architecture_groups.gfx120X]\narchitectures = ['gfx1200']\n";

const LIBRARY: &str = "lib/libx.so.1";

/// Two builds of a library with different orders of units, and a compiler fallback in both.
fn two_shards() -> Vec<ArtifactBuilder> {
    let one = [
        wrapper(&[("gfx1100", "add sub|1"), ("gfx906", "add sub|fallback of one")]),
        wrapper(&[("gfx1100", "mul|1"), ("gfx1101", "mul|2")]),
    ];
    let two = [
        wrapper(&[("gfx1200", "mul|3")]),
        wrapper(&[("gfx1200", "add sub|3"), ("gfx906", "add sub|fallback of two")]),
    ];
    vec![
        ArtifactBuilder::new("one", "x_lib_gfx110X-dgpu").fat(LIBRARY, one.to_vec()),
        ArtifactBuilder::new("two", "x_lib_gfx120X-all").fat(LIBRARY, two.to_vec()),
    ]
}

fn codes(recombined: &Recombined) -> Vec<Code> {
    recombined.findings.iter().filter_map(Finding::code).collect()
}

fn finding(recombined: &Recombined, code: Code) -> &Finding {
    recombined.findings.iter().find(|f| f.code() == Some(code)).unwrap()
}

fn all_messages(error: &Error) -> String {
    let others = error.others().iter().map(|e| format!("\n{e}"));
    std::iter::once(error.to_string()).chain(others).collect()
}

/// Checks that the error names everything in `parts`.
fn assert_refused(result: Result<Recombined>, parts: &[&str]) {
    let error = result.unwrap_err();
    let messages = all_messages(&error);
    for part in parts {
        assert!(messages.contains(part), "{part} is not in: {messages}");
    }
}

#[test]
fn wrappers_get_the_numbers_of_the_primary_shard() {
    let recombined = join(two_shards(), GROUPS).unwrap();
    let kernels: Vec<String> = recombined.components[0]
        .kernels
        .iter()
        .map(|k| format!("{}#{} {} {}", k.binary, k.co_index, k.target, k.shard))
        .collect();
    let expected = [
        "lib/libx.so.1#0 gfx1100 one",
        "lib/libx.so.1#0 gfx1200 two",
        "lib/libx.so.1#1 gfx1100 one",
        "lib/libx.so.1#1 gfx1101 one",
        "lib/libx.so.1#1 gfx1200 two",
    ];
    assert_eq!(kernels, expected);
}

#[test]
fn the_configured_primary_numbers_the_wrappers() {
    let toml = format!("primary_shard = 'two'\n{GROUPS}");
    let recombined = join(two_shards(), &toml).unwrap();
    let kernel = &recombined.components[0].kernels[0];
    assert_eq!((kernel.shard.as_str(), kernel.target.to_string().as_str()), ("one", "gfx1100"));
    assert_eq!(kernel.content.len(), "mul|1".len() as u64);
}

#[test]
fn an_unknown_primary_is_refused_with_the_shards_that_exist() {
    let error = join(two_shards(), "primary_shard = 'three'").unwrap_err();
    assert_eq!(error.kind(), Kind::Config);
    assert_eq!(error.to_string(), "line 1, column 17: primary_shard: there is no shard `three`");
    assert_eq!(error.hint_text(), Some("the shards are one, two"));
    assert_eq!(join(Vec::new(), "").unwrap_err().kind(), Kind::Usage);
}

#[test]
fn code_of_an_arch_in_no_group_is_counted_and_named() {
    let recombined = join(two_shards(), GROUPS).unwrap();
    let not_grouped = finding(&recombined, Code::ArchNotGrouped);
    assert_eq!(not_grouped.subject(), "gfx906");
    assert!(not_grouped.message().starts_with("2 code objects"), "{}", not_grouped.message());
    assert!(not_grouped.message().contains("x_lib/lib/libx.so.1: 2"), "{}", not_grouped.message());
    assert_eq!(not_grouped.code_objects().len(), 2);
}

#[test]
fn without_groups_each_arch_is_a_group() {
    // The fallbacks differ, so the shards can only be joined if gfx906 is in no group.
    let one = vec![two_shards().remove(0)];
    let recombined = join(one, "").unwrap();
    let names: Vec<_> = recombined.groups.iter().map(|g| g.name.as_str()).collect();
    assert_eq!(names, ["gfx1100", "gfx1101", "gfx906"]);
    assert!(recombined.findings.is_empty());
    assert_refused(join(two_shards(), ""), &["gfx906", "one/", "two/"]);
}

#[test]
fn generic_targets_and_spirv_get_groups_of_their_own() {
    let recombined = join(vec![part_with_generic_code()], GROUPS).unwrap();
    let names: Vec<_> = recombined.groups.iter().map(|g| g.name.as_str()).collect();
    assert_eq!(names, ["gfx110X", "gfx120X", "amdgcnspirv", "gfx11-generic"]);
    assert_eq!(recombined.components[0].kernels.len(), 3);
    let toml = "[architecture_groups.GFX11-generic]\narchitectures = ['gfx1100']";
    let error = join(vec![part_with_generic_code()], toml);
    assert_refused(error, &["line 1", "has the name of the arch"]);
}

fn part_with_generic_code() -> ArtifactBuilder {
    let code = [("gfx1100", "a"), ("gfx11-generic", "a|g"), ("amdgcnspirv", "a|s")];
    ArtifactBuilder::new("one", "x_lib_all").fat(LIBRARY, vec![wrapper(&code)])
}

#[test]
fn wrappers_without_a_partner_are_refused() {
    let mut parts = two_shards();
    let unrelated = wrapper(&[("gfx1200", "div|3")]);
    parts[1] = ArtifactBuilder::new("two", "x_lib_gfx120X-all").fat(LIBRARY, vec![unrelated]);
    let expected = [LIBRARY, "one/x_lib", "two/x_lib", "(kernel div", "(kernel add", "(kernel mul"];
    assert_refused(join(parts, GROUPS), &expected);
}

#[test]
fn overlapping_wrappers_are_joined_with_a_finding() {
    let mut parts = two_shards();
    let units = vec![wrapper(&[("gfx1200", "mul div|3")]), wrapper(&[("gfx1200", "add sub|3")])];
    parts[1] = ArtifactBuilder::new("two", "x_lib_gfx120X-all").fat(LIBRARY, units);
    let recombined = join(parts, GROUPS).unwrap();
    assert_eq!(recombined.components[0].kernels.len(), 5);
    let overlap = finding(&recombined, Code::WrapperOverlap);
    assert!(overlap.message().contains("wrapper 1 of one/"), "{}", overlap.message());
    assert!(overlap.message().contains("wrapper 0 of two/"), "{}", overlap.message());
}

#[test]
fn units_with_the_same_kernels_are_joined_only_if_their_code_is_the_same() {
    assert_eq!(join_twins("a|1", "a|1").unwrap().components[0].kernels.len(), 4);
    for (first, second) in [("a|2", "a|1"), ("a|1", "a|2"), ("a|2", "a|2")] {
        let expected = [LIBRARY, "wrappers 0 (kernel a", "one/", "two/"];
        assert_refused(join_twins(first, second), &expected);
    }
}

/// Joins two shards, each with two units of the same kernels: the first has the code `a|1`, the second the code
/// given for its shard.
fn join_twins(first: &str, second: &str) -> Result<Recombined> {
    let parts =
        [("one", "gfx1100", first), ("two", "gfx1200", second)].map(|(shard, arch, code)| {
            let units = vec![wrapper(&[(arch, "a|1")]), wrapper(&[(arch, code)])];
            ArtifactBuilder::new(shard, "x_lib_all").fat(LIBRARY, units)
        });
    join(parts.into(), GROUPS)
}

fn join_same_arch(second: &str, validation: &str) -> Result<Recombined> {
    let parts = [("one", "a|1"), ("two", second)].map(|(shard, code)| {
        let units = vec![wrapper(&[("gfx1100", code)])];
        ArtifactBuilder::new(shard, "x_lib_all").fat(LIBRARY, units)
    });
    join(parts.into(), &format!("{GROUPS}[validation]\n{validation}"))
}

#[test]
fn the_same_code_from_two_shards_is_packed_once() {
    let recombined = join_same_arch("a|1", "").unwrap();
    assert_eq!(recombined.components[0].kernels.len(), 1);
    let duplicate = finding(&recombined, Code::DuplicateCode);
    assert!(duplicate.message().contains("one/x_lib_all and two/x_lib_all"));
}

#[test]
fn different_code_for_one_key_is_refused_or_dropped() {
    assert_refused(
        join_same_arch("a|2", ""),
        &["gfx1100", "one/x_lib_all", "two/x_lib_all", LIBRARY],
    );
    let recombined = join_same_arch("a|2", "error_on_duplicate_device_code = false").unwrap();
    assert_eq!(recombined.components[0].kernels[0].shard, "one");
    let dropped = finding(&recombined, Code::DuplicateDropped);
    assert_eq!(dropped.code_objects().len(), 1);
}

#[test]
fn binaries_without_grouped_code_are_refused() {
    let units = vec![wrapper(&[("gfx90a:xnack+", "a")])];
    let parts = vec![ArtifactBuilder::new("one", "x_lib_all").fat(LIBRARY, units)];
    assert_refused(join(parts, GROUPS), &[LIBRARY, "gfx90a"]);
}

#[test]
fn feature_variants_belong_to_the_group_of_their_arch() {
    let units = vec![wrapper(&[("gfx90a:xnack+", "a|+"), ("gfx90a:xnack-", "a|-")])];
    let parts = vec![ArtifactBuilder::new("one", "x_lib_all").fat(LIBRARY, units)];
    let toml = "[architecture_groups.cdna2]\narchitectures = ['gfx90a']";
    assert_eq!(join(parts, toml).unwrap().components[0].kernels.len(), 2);
}

#[test]
fn configured_archs_without_code_are_reported() {
    let recombined = join(vec![two_shards().remove(0)], GROUPS).unwrap();
    assert_eq!(finding(&recombined, Code::ArchMissing).subject(), "gfx1200");
    let toml = format!("{GROUPS}[validation]\nerror_on_missing_architecture = true");
    let result = join(vec![two_shards().remove(0)], &toml);
    assert_refused(result, &["line 4, column", "gfx1200", "gfx120X"]);
}

#[test]
fn host_files_come_from_the_primary_and_then_from_the_next() {
    let parts = vec![
        ArtifactBuilder::new("one", "x_lib_all").plain("lib/a", "1"),
        ArtifactBuilder::new("two", "x_lib_all").plain("lib/a", "2").plain("lib/b", "2"),
        ArtifactBuilder::new("two", "y_doc_generic").plain("doc/c", "2").plain("doc/d", "2"),
    ];
    let recombined = join(parts, "").unwrap();
    let ids: Vec<_> = recombined.components.iter().map(|it| &*it.id).collect();
    assert_eq!(ids, ["x_lib", "y_doc"]);
    let host = &recombined.components[0].host;
    let Some(Node::File { data, .. }) = host.get(&path("lib/a")) else { panic!() };
    let HostKind::Plain(content) = &data.kind else { panic!() };
    assert_eq!(content.read_array(0).unwrap(), *b"1");
    let found: Vec<_> = recombined.findings.iter().map(|f| f.subject()).collect();
    assert_eq!(found, ["x_lib/lib/b", "y_doc"]);
    assert!(recombined.findings.iter().all(|f| f.code() == Some(Code::HostFromOtherShard)));
}

#[test]
fn host_files_are_compared_when_asked() {
    let verify = "[validation]\nverify_generic_artifacts_match = true";
    let others = [
        ArtifactBuilder::new("two", "x_lib_all").plain("lib/a", "2"),
        ArtifactBuilder::new("two", "x_lib_all").program("lib/a", "1"),
        ArtifactBuilder::new("two", "x_lib_all").link("lib/l", "b"),
        ArtifactBuilder::new("two", "x_lib_all").plain("lib/l", "1"),
    ];
    for other in others {
        let parts = vec![file_and_link("one"), other];
        assert_refused(join(parts, verify), &["one/x_lib_all", "two/x_lib_all"]);
    }
    let same = vec![file_and_link("one"), file_and_link("two")];
    assert!(join(same, verify).unwrap().findings.is_empty());
    let link = ArtifactBuilder::new("two", "x_lib_all").plain("lib/l", "1");
    let recombined = join(vec![file_and_link("one"), link], "").unwrap();
    assert_eq!(codes(&recombined), [Code::HostFilesDiffer]);
}

fn file_and_link(shard: &str) -> ArtifactBuilder {
    ArtifactBuilder::new(shard, "x_lib_all").plain("lib/a", "1").link("lib/l", "a")
}

#[test]
fn different_files_in_one_shard_are_refused() {
    let other =
        vec![file_of_shard_one("x_lib_gfx1100", "1"), file_of_shard_one("x_lib_gfx1101", "2")];
    assert_refused(join(other, ""), &["lib/a", "x_lib_gfx1101"]);
    let same =
        vec![file_of_shard_one("x_lib_gfx1100", "1"), file_of_shard_one("x_lib_gfx1101", "1")];
    assert_eq!(codes(&join(same, "").unwrap()), [Code::FileMerged]);
}

fn file_of_shard_one(artifact: &str, content: &str) -> ArtifactBuilder {
    ArtifactBuilder::new("one", artifact).plain("lib/a", content)
}

#[test]
fn device_code_that_the_chosen_host_cannot_load_is_refused() {
    for first in [
        ArtifactBuilder::new("one", "x_lib_all").plain(LIBRARY, "host"),
        ArtifactBuilder::new("one", "x_lib_all").link(LIBRARY, "other"),
        ArtifactBuilder::new("one", "x_lib_all").folder(LIBRARY),
    ] {
        let units = vec![wrapper(&[("gfx1100", "a")])];
        let fat = ArtifactBuilder::new("two", "x_lib_all").fat(LIBRARY, units);
        assert_refused(join(vec![first, fat], GROUPS), &[LIBRARY, "two/x_lib_all"]);
    }
    let units = vec![wrapper(&[("gfx1100", "a")])];
    let fat = ArtifactBuilder::new("one", "x_lib_all").fat(LIBRARY, units);
    let plain = ArtifactBuilder::new("two", "x_lib_all").plain(LIBRARY, "host");
    assert_eq!(join(vec![fat, plain], GROUPS).unwrap().components[0].kernels.len(), 1);
}

#[test]
fn a_file_with_files_below_it_is_refused() {
    let file = ArtifactBuilder::new("one", "x_lib_all").plain("lib/a", "1");
    let folder = ArtifactBuilder::new("two", "x_lib_all").plain("lib/a/b", "1");
    assert_refused(join(vec![file, folder], ""), &["lib/a", "one/x_lib_all"]);
}

fn join_databases(one: ArtifactBuilder, two: ArtifactBuilder) -> Result<Recombined> {
    join(vec![one, two], GROUPS)
}

fn library_part(name: &str) -> ArtifactBuilder {
    ArtifactBuilder::new(name, "x_lib_all")
}

const DAT: &str = "lib/rocblas/library/T_gfx1100.dat";

#[test]
fn database_files_are_joined_by_path() {
    let two = library_part("two").database(DAT, "gfx1100", "1").database("lib/b", "gfx906", "2");
    let recombined =
        join_databases(library_part("one").database(DAT, "gfx1100", "1"), two).unwrap();
    assert_eq!(recombined.components[0].databases.len(), 1);
    assert_eq!(finding(&recombined, Code::ArchNotGrouped).code_objects().len(), 1);
    assert!(codes(&recombined).contains(&Code::DuplicateCode));
}

#[test]
fn a_database_file_of_several_archs_keeps_the_grouped_ones() {
    let family = library_part("one").database("lib/f", "gfx1100,gfx1101,gfx1102", "1");
    let not_grouped = family.database("lib/g", "gfx900,gfx906", "2");
    let recombined = join_databases(not_grouped, library_part("two")).unwrap();
    let [file] = recombined.components[0].databases.as_slice() else {
        panic!("{recombined:?}");
    };
    let archs: Vec<&str> = file.archs.iter().map(BaseArch::as_str).collect();
    assert_eq!((file.path.as_str(), archs), ("lib/f", vec!["gfx1100", "gfx1101"]));
    let not_grouped: Vec<String> = recombined
        .findings
        .iter()
        .filter(|f| f.code() == Some(Code::ArchNotGrouped))
        .map(|finding| finding.subject().to_owned())
        .collect();
    assert_eq!(not_grouped, ["gfx900", "gfx906"]);
}

#[test]
fn members_of_a_family_are_not_archs_of_their_own() {
    let family = library_part("one").family("lib/f", "gfx1100,gfx1101", "1");
    assert_eq!(group_names(family.database(DAT, "gfx1100", "1")), ["gfx1100"]);
    let family = library_part("one").family("lib/f", "gfx1100,gfx1101", "1");
    let names = group_names(family.database(DAT, "gfx906", "1"));
    assert_eq!(names, ["gfx1100", "gfx1101", "gfx906"]);
    let bundle = library_part("one").database("lib/b", "gfx1100,gfx1101", "1");
    assert_eq!(group_names(bundle.database(DAT, "gfx1100", "1")), ["gfx1100", "gfx1101"]);
}

fn group_names(part: ArtifactBuilder) -> Vec<String> {
    let recombined = join(vec![part], "").unwrap();
    recombined.groups.iter().map(|group| group.name.clone()).collect()
}

#[test]
fn different_database_files_at_one_path_are_refused() {
    let expected = [DAT, "one/x_lib_all", "two/x_lib_all"];
    let other_content = library_part("two").database(DAT, "gfx1100", "2");
    assert_refused(join_databases(one_with_database(), other_content), &expected);
    let other_arch = library_part("two").database(DAT, "gfx1101", "1");
    assert_refused(join_databases(one_with_database(), other_arch), &expected);
    let shared = join_databases(one_with_database(), library_part("two").plain(DAT, "1"));
    assert_refused(shared, &[DAT, "one/x_lib_all", "for all archs in another shard"]);
}

fn one_with_database() -> ArtifactBuilder {
    library_part("one").database(DAT, "gfx1100", "1")
}

#[test]
fn the_order_of_artifacts_does_not_matter() {
    for rotation in 1..4 {
        assert_eq!(join_rotated(0), join_rotated(rotation));
    }
}

fn join_rotated(rotation: usize) -> String {
    let mut parts = two_shards();
    parts.push(ArtifactBuilder::new("two", "y_doc_generic").plain("doc/c", "2"));
    parts.push(ArtifactBuilder::new("one", "y_doc_generic").plain("doc/c", "1"));
    parts.rotate_left(rotation);
    format!("{:?}", join(parts, GROUPS).unwrap())
}
