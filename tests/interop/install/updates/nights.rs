//! Nightly builds: two of them in one repository.

use std::fs;
use std::sync::Arc;

use serde_json::json;
use support::example::names;
use support::tools;
use tempfile::TempDir;

use crate::install::sets::{Built, Recipe};
use crate::install::system::{System, assert_same};
use crate::install::updates::components::{Changed::Library, Revision};
use crate::install::updates::{
    BLAS, ONE_GROUP, Versions, assert_newest, install, offer, updated, upgrade,
};

const NIGHTS: [&str; 2] = ["7.12.0~20261101", "7.12.0~20261102"];
const CHANGED: [Revision; 1] = [(Library("blas"), "second night")];

/// Two nightly builds; the second one reads the first one's receipt.
fn nights(relations: Option<&str>) -> [Arc<Built>; 2] {
    let first = recipe(NIGHTS[0], &[], relations).build();
    let second = recipe(NIGHTS[1], &CHANGED, relations).option("--since", &first.receipt()).build();
    [first, second]
}

fn recipe(night: &'static str, revisions: &[Revision], relations: Option<&str>) -> Recipe {
    let recipe = Recipe::new(night).revisions(revisions);
    match relations {
        Some(relations) => recipe.keys(json!({ "set_relations": relations })),
        None => recipe,
    }
}

fn of_night(night: usize, versions: &Versions) -> Versions {
    versions.keys().map(|name| (name.clone(), format!("{}-1", NIGHTS[night]))).collect()
}

/// Tells whether a package belongs to one family, or is needed by all.
fn some_of(name: &str) -> bool {
    name.starts_with("rocm-blas") || name.starts_with("rocm-common")
}

/// A folder with some packages of a set, as an interrupted publication leaves it.
fn cut_off(set: &Built) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let exists = |name: &&String| name.starts_with("rocm-blas") || name.starts_with("rocm-common");
    for name in names(&set.out()).iter().filter(exists) {
        fs::copy(set.out().join(name), folder.path().join(name)).unwrap();
    }
    folder
}

/// No client takes a night while only one family and its dependencies are there.
pub fn a_night_is_taken_whole(system: &dyn System) {
    let [first, second] = nights(None);
    let before = system.snapshot();
    let old = install(system, &first, &ONE_GROUP);
    assert_eq!(old, of_night(0, &old));
    let some = cut_off(&second);
    system.offer(&[&first.out(), some.path()]);
    let told = tools::told(&mut system.upgrade());
    let signs = ["have been kept back", "Skipping packages", "NOT be installed"];
    assert!(signs.iter().any(|sign| told.contains(sign)), "{told}");
    assert_eq!(system.installed(), old);
    tools::run(&mut system.update());
    if system.format() == "deb" {
        // A command that may remove packages takes the newest ones, and removes those that do not match.
        let mut expected = of_night(1, &old);
        expected.retain(|name, _| some_of(name));
        assert_eq!(system.installed(), expected);
        offer(system, &[&first, &second]);
        tools::run(&mut system.install(&ONE_GROUP));
    }
    upgrade(system, &[&first, &second], &of_night(1, &old));
    assert_newest(system);
    system.purge_all();
    assert_same(&before, &system.snapshot());
}

/// One family of the second night is installed beside the others of the first.
pub fn nights_are_mixed_where_that_is_configured(system: &dyn System) {
    let [first, second] = nights(Some("patch"));
    let old = install(system, &first, &ONE_GROUP);
    let some = cut_off(&second);
    system.offer(&[&first.out(), some.path()]);
    system.upgrade_all();
    let changed = [&BLAS[..], &["rocm-common"]].concat();
    assert_eq!(system.installed(), updated(&old, &changed, &format!("{}-1", NIGHTS[1])));
    system.assert_whole();
    upgrade(system, &[&first, &second], &of_night(1, &old));
}
