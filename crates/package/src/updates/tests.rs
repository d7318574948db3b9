use super::*;
use crate::RelationKind;
use crate::requirement::{Relations, Requirement};
use RelationKind::{Breaks, Conflicts, Depends, Obsoletes, Provides, Recommends, Replaces};

/// Makes a package from `name version` and its relations in `.deb` syntax.
fn package<'a>(text: &'a str, relations: &[(RelationKind, &'a str)]) -> OfferedPackage<'a> {
    let (name, version) = text.split_once(' ').unwrap();
    let relations = Relations::of(relations.iter().flat_map(|(kind, list)| {
        Requirement::of_field(list).into_iter().map(move |requirement| (*kind, requirement))
    }));
    OfferedPackage { name, version: version.into(), arch: "amd64", relations, paths: Vec::new() }
}

fn needs<'a>(text: &'a str, list: &'a str) -> OfferedPackage<'a> {
    package(text, &[(Depends, list)])
}

fn provides<'a>(text: &'a str, list: &'a str) -> OfferedPackage<'a> {
    package(text, &[(Provides, list)])
}

fn excludes<'a>(text: &'a str, list: &'a str) -> OfferedPackage<'a> {
    package(text, &[(Conflicts, list)])
}

fn plain(text: &str) -> OfferedPackage<'_> {
    package(text, &[])
}

/// Reported misfits, each as `name version: relation <- offered`, and the names that are held back.
fn told(
    format: Format,
    before: &[OfferedPackage<'_>],
    after: &[OfferedPackage<'_>],
) -> (Vec<String>, String) {
    let all: Vec<OfferedPackage<'_>> = before.iter().chain(after).cloned().collect();
    changed(format, before, &all)
}

/// The same as [`told`] for a repository that has only the packages of `after`.
fn changed(
    format: Format,
    before: &[OfferedPackage<'_>],
    after: &[OfferedPackage<'_>],
) -> (Vec<String>, String) {
    let effect = Effect::of(format, before, after);
    let told = effect.misfits.iter().map(|it| {
        let Misfit { package, version, relation, offered, .. } = it;
        format!("{package} {version}: {relation} <- {}", offered.join(", "))
    });
    (told.collect(), Vec::from_iter(effect.held_back).join(" "))
}

fn is_silent(before: &[OfferedPackage<'_>], after: &[OfferedPackage<'_>]) {
    for format in Format::ALL {
        assert_eq!(told(format, before, after), (Vec::new(), String::new()));
    }
}

/// All packages of the set need its exact version, and a hotfix covers a part of it.
#[test]
fn a_part_of_a_set_of_exact_versions_holds_itself_back() {
    let first = set_of_version("7.1.0-1", "common (= 7.1.0-1)");
    let [common, blas, sparse] = set_of_version("7.1.0-2", "common (= 7.1.0-2)");
    for format in Format::ALL {
        let (misfits, held) = told(format, &first, &[common.clone(), blas.clone()]);
        let expected = "sparse 7.1.0-1: common = 7.1.0-1 <- common 7.1.0-2";
        assert_eq!((misfits, held.as_str()), (vec![expected.to_owned()], "blas common"));
    }
    is_silent(&first, &[common.clone(), blas.clone(), sparse.clone()]);
    is_silent(&[], &first);
    is_silent(&first, &[]);
    // A fault that existed before is not reported again, and neither is its repair.
    let broken: Vec<_> = first.iter().chain([&common, &blas]).cloned().collect();
    let other = needs("blas 7.1.0-3", "common (>= 7.1.0-2)");
    is_silent(&broken, &[other]);
    is_silent(&broken, &[sparse]);
    // Ranges accept both.
    let range = "common (>= 7.1.0-1), common (<< 7.1.1~)";
    let ranged = [plain("common 7.1.0-1"), needs("sparse 7.1.0-1", range)];
    is_silent(&ranged, &[common.clone(), needs("blas 7.1.0-2", range)]);
    let (misfits, held) = told(Format::Deb, &ranged, &[plain("common 7.1.1-1")]);
    assert_eq!(misfits, ["sparse 7.1.0-1: common < 7.1.1~ <- common 7.1.1-1"]);
    assert_eq!(held, "common");
}

fn set_of_version(version: &str, exact: &'static str) -> [OfferedPackage<'static>; 3] {
    let texts = ["common", "blas", "sparse"].map(|name| format!("{name} {version}").leak());
    let [common, blas, sparse] = texts;
    [plain(common), needs(blas, exact), needs(sparse, exact)]
}

#[test]
fn what_follows_from_a_misfit_is_told_too() {
    let before = [plain("a 1"), needs("b 1", "a (= 1)"), needs("meta 1", "b (= 1)"), plain("x 1")];
    let (misfits, held) = told(Format::Deb, &before, &[plain("a 2"), plain("x 2")]);
    assert_eq!(misfits, ["b 1: a = 1 <- a 2", "meta 1: b = 1 <- "]);
    assert_eq!(held, "a");
    // A new package that cannot be installed, and one that needs it.
    let after = [needs("c 1", "a (>= 3)"), needs("x 2", "c")];
    let (misfits, held) = told(Format::Rpm, &before, &after);
    assert_eq!(misfits, ["c 1: a >= 3 <- a 1", "x 2: c <- "]);
    assert_eq!(held, "x");
    let effect = Effect::of(Format::Deb, &before, &[plain("a 1"), needs("b 1", "a (= 1)")]);
    assert!(effect.misfits.is_empty());
}

#[test]
fn what_leaves_the_repository_stays_on_clients() {
    let before = [plain("a 1"), needs("b 1", "a (= 1)"), plain("c 1")];
    // Withdrawn as a whole, or without any package that needs it.
    let withdrawn = [plain("a 0"), needs("b 0", "a (= 0)")];
    assert_eq!(changed(Format::Deb, &before, &withdrawn).0, Vec::<String>::new());
    assert_eq!(changed(Format::Deb, &before, &before[..2]).0, Vec::<String>::new());
    assert_eq!(changed(Format::Deb, &before, &before[1..]).0, ["b 1: a = 1 <- "]);
    // Its needs did not change.
    let (misfits, held) = changed(Format::Deb, &before, &[plain("a 2"), plain("c 1")]);
    assert_eq!((misfits, held.as_str()), (vec!["b 1: a = 1 <- a 2".to_owned()], "a"));
}

#[test]
fn dependencies_of_the_distribution_are_not_judged() {
    let before = [needs("a 1", "libc6 (>= 2.36)"), plain("b 1")];
    is_silent(&before, &[needs("a 2", "libc6 (>= 9), zlib | b (= 7), b:i386 (= 9)")]);
    let recommends = package("a 2", &[(Recommends, "b (= 9)")]);
    is_silent(&before, &[recommends]);
    let (misfits, held) = told(Format::Deb, &before, &[needs("a 2", "b (= 7) | b (>> 1)")]);
    assert_eq!((misfits.len(), held.as_str()), (1, "a"));
    assert_eq!(misfits, ["a 2: b = 7 or b > 1 <- b 1"]);
}

#[test]
fn capabilities_are_met_by_what_provides_them() {
    let before = [provides("hip 1", "libhip.so.7"), needs("blas 1", "libhip.so.7")];
    is_silent(&before, &[provides("hip 2", "libhip.so.7")]);
    let (misfits, held) = told(Format::Rpm, &before, &[provides("hip 2", "libhip.so.8")]);
    assert_eq!((misfits, held.as_str()), (vec!["blas 1: libhip.so.7 <- ".to_owned()], "hip"));
    is_silent(&before, &[provides("hip 2", "libhip.so.8"), provides("compat 1", "libhip.so.7")]);
    // rpm takes a capability without a version for every version.
    let before = [provides("hip 1", "v (= 1)"), needs("blas 1", "v (>= 1)")];
    let after = [provides("hip 2", "v")];
    assert_eq!(told(Format::Rpm, &before, &after).0.len(), 0);
    assert_eq!(told(Format::Deb, &before, &after).0.len(), 1);
}

#[test]
fn what_is_replaced_is_meant_to_go() {
    let before = [plain("common 1"), needs("old 1", "common (= 1)")];
    let debs = common_and_new(&[(Conflicts, "old"), (Replaces, "old"), (Provides, "old")]);
    assert_eq!(told(Format::Deb, &before, &debs).0, Vec::<String>::new());
    let obsoletes = common_and_new(&[(Obsoletes, "old (<< 2)")]);
    assert_eq!(told(Format::Rpm, &before, &obsoletes).0, [""; 0]);
    let replaces = common_and_new(&[(Replaces, "old")]);
    let breaks = common_and_new(&[(Breaks, "old (<< 1)"), (Replaces, "old")]);
    for other in [replaces, breaks] {
        assert_eq!(told(Format::Deb, &before, &other).0.len(), 1);
    }
    let obsoletes = common_and_new(&[(Obsoletes, "old (<< 1)")]);
    assert_eq!(told(Format::Rpm, &before, &obsoletes).0.len(), 1);
}

fn common_and_new(relations: &[(RelationKind, &'static str)]) -> [OfferedPackage<'static>; 2] {
    [plain("common 2"), package("new 2", relations)]
}

#[test]
fn new_exclusions_hold_back() {
    let before = [plain("a 1"), plain("b 1")];
    for format in Format::ALL {
        let (misfits, held) = told(format, &before, &[excludes("a 2", "b (<< 2)")]);
        assert_eq!((misfits, held.as_str()), (vec!["a 2: b < 2 <- b 1".to_owned()], "a"));
    }
    is_silent(&before, &[excludes("a 2", "b (<< 2)"), plain("b 2")]);
    is_silent(&before, &[excludes("c 2", "b")]);
    is_silent(&[excludes("a 1", "b"), plain("b 1")], &[excludes("a 2", "b"), plain("b 2")]);
    // The old package excludes the new version.
    let (misfits, held) =
        told(Format::Deb, &[excludes("a 1", "b (>= 2)"), plain("b 1")], &[plain("b 2")]);
    assert_eq!((misfits, held.as_str()), (vec!["a 1: b >= 2 <- b 2".to_owned()], "b"));
}

#[test]
fn machines_are_judged_by_themselves() {
    let before = [
        plain("a 1"),
        for_machine("arm64", plain("a 1")),
        for_machine("all", needs("meta 1", "a (= 1), b")),
    ];
    let after = [plain("a 2"), for_machine("all", needs("meta 2", "a (= 2), b"))];
    let (misfits, held) = told(Format::Deb, &before, &after);
    assert_eq!((misfits, held.as_str()), (vec!["meta 2: a = 2 <- a 1".to_owned()], "meta"));
    let only_there =
        [for_machine("arm64", plain("b 1")), for_machine("src", needs("a 3", "a (= 9)"))];
    let (misfits, _) = told(Format::Rpm, &[], &only_there);
    assert_eq!(misfits, Vec::<String>::new());
}

fn for_machine<'a>(arch: &'a str, package: OfferedPackage<'a>) -> OfferedPackage<'a> {
    OfferedPackage { arch, ..package }
}

#[test]
fn epochs_and_releases_count_as_they_do_for_each_format() {
    let before = [plain("a 1-1"), needs("b 1-1", "a (= 1)")];
    assert_eq!(told(Format::Rpm, &before, &[plain("a 1-2")]).0.len(), 0);
    assert_eq!(told(Format::Deb, &before, &[plain("a 1-2")]).0, [""; 0], "it never fitted");
    let before = [plain("a 2-1"), needs("b 1-1", "a (<< 3)")];
    let (misfits, held) = told(Format::Rpm, &before, &[plain("a 1:1-1")]);
    assert_eq!((misfits, held.as_str()), (vec!["b 1-1: a < 3 <- a 1:1-1".to_owned()], "a"));
}

#[test]
fn thousands_of_packages_take_no_time() {
    let names: Vec<String> = (0..4_000).map(|at| format!("p{at} 1")).collect();
    let lists: Vec<String> = (0..4_000).map(|at| format!("p{} (= 1)", (at + 1) % 4_000)).collect();
    let before: Vec<_> = names.iter().zip(&lists).map(|(text, list)| needs(text, list)).collect();
    let (misfits, held) = told(Format::Deb, &before, &[plain("p7 2")]);
    assert_eq!((misfits.len(), held.as_str()), (3_999, "p7"));
}

#[test]
fn an_update_downloads_what_is_newer_and_what_that_needs() {
    let before = [plain("a 1"), needs("b 1", "a (= 1)"), plain("c 1")];
    let after = [needs("a 2", "n"), plain("b 1"), plain("c 1"), needs("n 1", "m"), plain("m 1")];
    assert_eq!(downloaded(Format::Deb, &before, &after), "a m n");
    // The same if it did not fit others before.
    let broken = [plain("a 2"), needs("b 1", "a (= 1)")];
    let fixed = [plain("a 2"), needs("b 2", "a (= 2)"), plain("new 1")];
    assert_eq!(downloaded(Format::Deb, &broken, &fixed), "b");
    assert_eq!(downloaded(Format::Deb, &broken, &broken), "");
    assert_eq!(downloaded(Format::Deb, &[], &fixed), "");
    // rpm installs packages that replace others on the client.
    let replacing = [plain("a 2"), package("z 1", &[(Obsoletes, "b")])];
    assert_eq!(downloaded(Format::Rpm, &broken, &replacing), "z");
    assert_eq!(downloaded(Format::Deb, &broken, &replacing), "");
}

fn downloaded(
    format: Format,
    before: &[OfferedPackage<'_>],
    after: &[OfferedPackage<'_>],
) -> String {
    let effect = Effect::of(format, before, after);
    let names = effect.downloads["amd64"].iter().map(|at| after[*at].name);
    names.collect::<Vec<_>>().join(" ")
}
