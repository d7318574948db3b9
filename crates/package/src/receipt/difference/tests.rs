use super::*;
use crate::MemberKind;
use crate::receipt::listing::tests::listed;

type Paths<'a> = &'a [(&'a str, MemberKind)];

const X: Paths<'_> = &[("/x", MemberKind::File)];
const Y: Paths<'_> = &[("/y", MemberKind::File)];

fn package(version: &str, architecture: &str, paths: Paths<'_>) -> ListedPackage {
    let package = listed(Format::Deb, "rocm-blas", version, paths);
    ListedPackage { architecture: architecture.to_owned(), ..package }
}

fn set(prefix: &str, packages: Vec<ListedPackage>) -> Listing {
    let prefix = Some(prefix.to_owned());
    Listing::new("set".to_owned(), prefix, packages).sorted()
}

fn compared(earlier: Vec<ListedPackage>, later: Vec<ListedPackage>) -> Difference {
    let (earlier, later) = (set("/opt", earlier), set("/opt", later));
    for set in [&earlier, &later] {
        assert!(between(set, set).is_empty());
    }
    between(&earlier, &later)
}

fn architectures(packages: &[UnpairedPackage]) -> Vec<&str> {
    packages.iter().map(|package| &*package.architecture).collect()
}

#[test]
fn each_architecture_is_compared_with_its_own() {
    let difference = compared(arm64_and_amd64(), amd64());
    assert_eq!(architectures(&difference.removed), ["arm64"]);
    assert!(difference.changed.is_empty() && difference.added.is_empty());
    assert_eq!(architectures(&compared(amd64(), arm64_and_amd64()).added), ["arm64"]);
    let other = vec![package("1", "amd64", X), package("1", "arm64", X)];
    let difference = compared(arm64_and_amd64(), other);
    assert_eq!(difference.changed.len(), 1, "{difference:?}");
    let both = vec![package("1", "all", X), package("1", "amd64", X)];
    assert_eq!(architectures(&compared(both, amd64()).removed), ["all"]);
}

fn amd64() -> Vec<ListedPackage> {
    vec![package("1", "amd64", X)]
}

fn arm64_and_amd64() -> Vec<ListedPackage> {
    vec![package("1", "arm64", Y), package("1", "amd64", X)]
}

/// Every path that a package loses or gains is reported, even if another package has that path.
#[test]
fn paths_that_did_not_move_are_reported_as_lost() {
    // The other package had the path before, and the other architecture still has it.
    let before = vec![package("1", "amd64", X), package("1", "arm64", X), other_package(X)];
    let after = vec![package("1", "amd64", &[]), package("1", "arm64", X), other_package(X)];
    assert_eq!(lost_paths(before, after), ["/x"]);
    // The other package has a file where this one had a folder.
    let folder = package("1", "amd64", &[("/x", MemberKind::Directory)]);
    let after = vec![package("1", "amd64", &[]), other_package(X)];
    assert_eq!(lost_paths(vec![folder, other_package(&[])], after), ["/x"]);
    // Only an older version of the package had the path that another package has now.
    let before = vec![package("1", "amd64", X), package("2", "amd64", Y)];
    let after = vec![package("2", "amd64", &[]), other_package(X)];
    assert_eq!(lost_paths(before, after), ["/y"]);
}

fn other_package(paths: Paths<'_>) -> ListedPackage {
    listed(Format::Deb, "rocm-other", "1", paths)
}

/// The paths that the first changed package lost. No path may have moved.
fn lost_paths(earlier: Vec<ListedPackage>, later: Vec<ListedPackage>) -> Vec<String> {
    let difference = compared(earlier, later);
    assert!(difference.moved.is_empty(), "{difference:?}");
    difference.changed[0].files_removed.clone()
}

#[test]
fn what_moves_from_an_older_version_for_another_architecture_is_told() {
    let other = listed(Format::Deb, "rocm-other", "1", X);
    let earlier = vec![package("1", "amd64", X), package("2", "arm64", &[])];
    let later = vec![package("1", "amd64", &[]), package("2", "arm64", &[]), other];
    let difference = compared(earlier, later);
    let moved: Vec<_> = difference.moved.iter().map(|moved| (&*moved.from, &*moved.to)).collect();
    assert_eq!(moved, [("rocm-blas", "rocm-other")]);
}

#[test]
fn a_package_may_change_its_architecture() {
    for older in [vec![], vec![package("0", "amd64", Y)]] {
        let earlier = older.into_iter().chain([package("1", "all", X)]).collect();
        let difference = compared(earlier, vec![package("2", "amd64", X)]);
        let changed = &difference.changed[0];
        let architecture = Changed { from: "all".to_owned(), to: "amd64".to_owned() };
        assert_eq!(changed.architecture, Some(architecture));
        assert!(difference.added.is_empty() && difference.removed.is_empty());
    }
    // The last of several versions counts.
    let earlier = vec![package("1", "all", X), package("2", "amd64", X)];
    assert!(compared(earlier, vec![package("2", "amd64", X)]).is_empty());
}

#[test]
fn paths_that_a_change_of_the_prefix_would_make_one_stay_two() {
    let paths = [("/opt/a/bin/x", MemberKind::File), ("/opt/b/bin/x", MemberKind::File)];
    let mut before = package("1", "amd64", &paths);
    before.members[1].mode = 0o4755;
    let earlier = set("/opt/a", vec![before.clone()]);
    for (kept, changes) in [(1, vec![]), (0, vec![ChangedAspect::Mode])] {
        let mut after = package("1", "amd64", &paths[1..]);
        after.members[0].mode = before.members[kept].mode;
        let difference = between(&earlier, &set("/opt/b", vec![after]));
        let changed = &difference.changed[0];
        assert_eq!(changed.files_removed, ["/opt/a/bin/x"]);
        let found = changed.files_changed.iter().flat_map(|file| file.changes.clone());
        assert_eq!(found.collect::<Vec<_>>(), changes);
    }
}

#[test]
fn every_package_that_loses_or_gets_a_path_is_named() {
    assert_eq!(moved(&["a"], &["b"]), ["a b"]);
    assert_eq!(moved(&["a", "z"], &["m"]), ["a m", "z m"]);
    assert_eq!(moved(&["a", "z"], &["z"]), ["a z"]);
    assert_eq!(moved(&["a"], &["a", "z"]), ["a z"]);
    assert!(moved(&["a", "z"], &["a", "z"]).is_empty());
    // Not every pair: a thousand packages on each side would give a million.
    assert_eq!(moved(&["a", "b", "c"], &["x", "y"]), ["a x", "b y", "c y"]);
    assert_eq!(moved(&["a", "b"], &["x", "y", "z"]), ["a x", "b y", "b z"]);
}

/// The moves of `/x`, which the packages of these names have.
fn moved(before: &[&str], after: &[&str]) -> Vec<String> {
    let [before, after] = [before, after]
        .map(|names| names.iter().map(|name| listed(Format::Deb, name, "1", X)).collect());
    let moved = compared(before, after).moved.into_iter();
    moved.map(|moved| format!("{} {}", moved.from, moved.to)).collect()
}
