//! Scenarios on a system, the same for every package manager.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use serde_json::json;
use support::example::{GROUPS, Group, PREFIX, kernels, rockpack, shards, tree};
use support::tools;

use crate::install::foreign::{self, Foreign};
use crate::install::sets::{Recipe, SPARSE_LIBRARY, joined};
use crate::install::system::{System, assert_same};

/// The package of the sparse suite, and one of its files.
pub const SPARSE: &str = "rocm-host-suite-sparse";

fn is_of(name: &str, group: &Group) -> bool {
    name.ends_with(group.suffix)
}

/// Fails if the command succeeds; returns its messages.
pub fn fails(command: &mut Command) -> String {
    let told = tools::told(command);
    assert!(!told.ends_with("exit status: 0\n"), "{told}");
    told
}

fn has(system: &dyn System, path: &str) -> bool {
    system.root().join(PREFIX).join(path).exists()
}

/// Invariant 5: an installation brings exactly the plan's packages, and nothing of another group.
pub fn a_group_brings_its_host_and_no_other_group(system: &dyn System) {
    let set = Recipe::new("7.1.0").build();
    let before = system.snapshot();
    system.offer(&[&set.out()]);
    for group in [&GROUPS[0], &GROUPS[2]] {
        tools::run(&mut system.install(&[&kernels(group)]));
        let names = system.names();
        assert_eq!(names, set.planned(group.name, system.format()));
        let others = GROUPS.iter().filter(|other| other.suffix != group.suffix);
        for other in others {
            assert!(!names.iter().any(|name| is_of(name, other)), "{names:?}");
        }
        system.assert_whole();
        let archive = format!("lib/.kpack/blas_lib_{}.kpack", group.archs[0]);
        assert!(has(system, &archive) && has(system, "lib/libexblas.so.1.2"));
        system.purge_all();
        assert_same(&before, &system.snapshot());
    }
}

/// Invariant 4: everything can be installed together, and each group can be removed alone.
pub fn all_groups_stand_side_by_side(system: &dyn System) {
    let set = Recipe::new("7.1.0").build();
    let before = system.snapshot();
    system.offer(&[&set.out()]);
    let [first, second, third] = &GROUPS;
    tools::run(&mut system.install(&[&kernels(first), &kernels(second)]));
    let two = system.snapshot();
    tools::run(&mut system.install(&[&kernels(third)]));
    let three = system.snapshot();
    assert!(two.iter().all(|(path, what)| three.get(path) == Some(what)));
    tools::run(&mut system.purge(&[&kernels(third)]));
    assert_same(&two, &system.snapshot());

    let all = set.packages(system.format());
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    tools::run(&mut system.install(&all));
    assert!(system.names().is_superset(&set.packages(system.format())));
    system.assert_whole();
    system.purge_all();
    assert_same(&before, &system.snapshot());
}

pub fn an_update_leaves_nothing_of_the_earlier_set(system: &dyn System) {
    const OLD: &[(&str, &str)] = &[("share/old.txt", "old\n"), ("share/both.txt", "one\n")];
    const NEW: &[(&str, &str)] = &[("share/new/new.txt", "new\n"), ("share/both.txt", "two\n")];
    let old = Recipe::new("7.1.0").changes(OLD).build();
    let new = Recipe::new("7.1.1").changes(NEW).option("--since", &old.receipt()).build();
    let before = system.snapshot();
    system.offer(&[&old.out()]);
    tools::run(&mut system.install(&[&kernels(&GROUPS[0]), &kernels(&GROUPS[2])]));
    let names = system.names();
    assert!(has(system, "share/old.txt"));
    system.offer(&[&old.out(), &new.out()]);
    tools::run(&mut system.update());
    assert_eq!(system.names(), names, "an update brings no further package");
    let versions: BTreeSet<String> = system.installed().into_values().collect();
    assert_eq!(versions, BTreeSet::from(["7.1.1-1".to_owned()]));
    assert!(!has(system, "share/old.txt") && has(system, "share/new/new.txt"));
    let both = fs::read_to_string(system.root().join(PREFIX).join("share/both.txt")).unwrap();
    assert_eq!(both, "two\n");
    system.assert_whole();
    system.purge_all();
    assert_same(&before, &system.snapshot());
}

/// A removal leaves only configuration, and a purge removes that, too.
pub fn a_removal_leaves_configuration_at_most(system: &dyn System) {
    let set = Recipe::new("7.1.0").build();
    let before = system.snapshot();
    system.offer(&[&set.out()]);
    tools::run(&mut system.install(&["rocm-all-gpus"]));
    let names = system.names();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    tools::run(&mut system.remove(&names));
    let after = system.snapshot();
    let left = after.keys().filter(|path| !before.contains_key(*path));
    let left: Vec<&String> = left.filter(|path| !path.starts_with("etc/")).collect();
    assert!(left.is_empty(), "{left:?}");
    if !system.names().is_empty() {
        system.purge_all();
    }
    assert_same(&before, &system.snapshot());
}

/// A remaining package's paths move to a new one, which is installed first.
pub fn a_path_goes_to_another_package(system: &dyn System) {
    let old = Recipe::new("7.1.0").keys(joined()).build();
    let new = Recipe::new("7.1.1").other_sparse();
    let careless = new.build();
    let new = new.option("--since", &old.receipt()).build();
    let before = system.snapshot();
    system.offer(&[&old.out()]);
    tools::run(&mut system.install(&["rocm-blas"]));

    // dpkg may take either package first: without the earlier set, neither could know.
    let file = format!("{SPARSE}_7.1.1-1_amd64.deb");
    system.offer(&[&old.out(), &careless.out()]);
    if let Some(mut unpack) = system.unpack(&file) {
        let told = fails(&mut unpack);
        assert!(told.contains("trying to overwrite"), "{told}");
    }
    system.offer(&[&old.out(), &new.out()]);
    if let Some(mut unpack) = system.unpack(&file) {
        tools::run(&mut unpack);
        tools::run(&mut system.repair());
    }
    tools::run(&mut system.install(&[SPARSE]));
    let installed = system.installed();
    assert_eq!(installed[SPARSE], "7.1.1-1");
    assert_eq!(installed["rocm-blas"], "7.1.1-1", "the package that had the paths comes along");
    system.assert_whole();
    system.purge_all();
    assert_same(&before, &system.snapshot());
}

/// All paths of a package move to another one, and its name disappears.
pub fn a_package_goes_into_another(system: &dyn System) {
    let old = Recipe::new("7.1.0").build();
    let new = Recipe::new("7.1.1").keys(joined()).option("--since", &old.receipt()).build();
    let before = system.snapshot();
    system.offer(&[&old.out()]);
    tools::run(&mut system.install(&["rocm-blas", SPARSE]));
    system.offer(&[&old.out(), &new.out()]);
    tools::run(&mut system.update());
    let installed = system.installed();
    assert_eq!(installed["rocm-blas"], "7.1.1-1");
    assert!(!installed.contains_key(SPARSE), "{installed:?}");
    system.assert_whole();
    system.purge_all();
    assert_same(&before, &system.snapshot());
}

/// The package under the former name is removed, and packages that need it by that name stay.
pub fn a_legacy_package_is_replaced(system: &dyn System) {
    let keys = json!({ "replaces": { "rocm-blas": ["rocblas < 7.0"] } });
    let set = Recipe::new("7.1.0").keys(keys).build();
    let before = system.snapshot();
    let others = tempfile::tempdir().unwrap();
    let make = |package: &Foreign| system.make(package, others.path());
    [&foreign::LEGACY, &foreign::USER_OF_LEGACY].into_iter().for_each(make);
    system.offer(&[others.path()]);
    tools::run(&mut system.install(&[foreign::USER_OF_LEGACY.name]));
    let legacy = system.root().join(foreign::LEGACY.files[0].0);
    assert!(legacy.exists());
    system.offer(&[others.path(), &set.out()]);
    tools::run(&mut system.install(&[&kernels(&GROUPS[0])]));
    let names = system.names();
    assert!(!names.contains(foreign::LEGACY.name) && !legacy.exists(), "{names:?}");
    assert!(names.contains(foreign::USER_OF_LEGACY.name), "{names:?}");
    system.assert_whole();
    system.purge_all();
    assert_same(&before, &system.snapshot());
}

/// The set is installed beside links, and beside a tree of alternatives; in the latter case also below
/// `/opt/rocm` itself.
pub fn trees_of_other_installers_stay_as_they_are(system: &dyn System) {
    let cases = [
        (foreign::versioned_tree as fn(&Path), "/opt/rocm-7.1"),
        (foreign::tree_of_alternatives, "/opt/rocm-7.1"),
        (foreign::tree_of_alternatives, "/opt/rocm/core-7.1"),
    ];
    for (plant, prefix) in cases {
        let old = recipe("7.1.0", prefix).build();
        let new = recipe("7.1.1", prefix).option("--since", &old.receipt()).build();
        plant(system.root());
        let before = system.snapshot();
        let trees = ["opt/rocm-6.4.0", "opt", "etc/alternatives"];
        let theirs = trees.map(|path| tree(&system.root().join(path)));
        system.offer(&[&old.out()]);
        tools::run(&mut system.install(&["rocm-all-gpus"]));
        system.offer(&[&old.out(), &new.out()]);
        tools::run(&mut system.update());
        system.assert_whole();
        let beside = trees.map(|path| tree(&system.root().join(path)));
        for (theirs, beside) in theirs.iter().zip(&beside) {
            assert!(theirs.iter().all(|(path, entry)| beside.get(path) == Some(entry)));
        }
        system.purge_all();
        assert_same(&before, &system.snapshot());
        foreign::remove_trees(system.root());
    }
}

/// Nothing is written through a link, anywhere in the prefix.
pub fn a_prefix_behind_a_link_is_refused(system: &dyn System) {
    let below = Recipe::new("7.1.0").option("--prefix", Path::new("/opt/rocm/core-7.1")).build();
    foreign::versioned_tree(system.root());
    system.offer(&[&below.out()]);
    let before = tree(&system.root().join("opt"));
    let told = fails(&mut system.install(&["rocm-blas"]));
    let guard = "/opt/rocm is a symbolic link, but the prefix has to be a real directory";
    assert!(told.contains(guard), "{told}");
    assert_eq!(tree(&system.root().join("opt")), before);
    assert!(!has(system, ""));
}

/// `/opt -> var/opt` and `/usr/local -> ../var/usrlocal`, as on image-based systems. The prefix itself may
/// not be a link there either.
pub fn folders_of_the_system_may_be_links(system: &dyn System) {
    for (folder, target, place) in
        [("opt", "var/opt", "var/opt"), ("usr/local", "../var/usrlocal", "var/usrlocal")]
    {
        let [link, place, other] = [folder, place, "foreign"].map(|name| system.root().join(name));
        let prefix = format!("/{folder}/rocm-7.1");
        let old = recipe("7.1.0", &prefix).build();
        let new = recipe("7.1.1", &prefix).option("--since", &old.receipt()).build();
        fs::create_dir_all(&link).unwrap();
        fs::create_dir_all(&place).unwrap();
        fs::rename(&link, &place).unwrap();
        symlink(target, &link).unwrap();
        system.offer(&[&old.out()]);
        let before = system.snapshot();
        tools::run(&mut system.install(&["rocm-all-gpus"]));
        system.offer(&[&old.out(), &new.out()]);
        tools::run(&mut system.update());
        assert!(place.join("rocm-7.1/lib/libexblas.so.1.2").exists());
        system.assert_whole();
        system.purge_all();
        // dpkg removes the link with the last package that lists it, like an empty folder.
        if system.format() == "deb" {
            symlink(target, &link).unwrap();
        }
        assert_same(&before, &system.snapshot());
        assert!(!place.join("rocm-7.1").exists());

        fs::create_dir(&other).unwrap();
        symlink("/foreign", place.join("rocm-7.1")).unwrap();
        let told = fails(&mut system.install(&["rocm-blas"]));
        let guard = "/rocm-7.1 is a symbolic link, but the prefix has to be a real directory";
        assert!(told.contains(guard), "{told}");
        assert_eq!(fs::read_dir(&other).unwrap().count(), 0);
        fs::remove_file(place.join("rocm-7.1")).unwrap();
        fs::remove_dir(&other).unwrap();
        // Packages that came along have no files in the prefix.
        system.purge_all();
    }
}

fn recipe(version: &'static str, prefix: &str) -> Recipe {
    Recipe::new(version).option("--prefix", Path::new(prefix))
}

/// A package manager adds nine bytes to a name while it writes the file. `verify` reports longer names in
/// foreign packages, and builds refuse them.
pub fn the_longest_names_are_unpacked(system: &dyn System) {
    let longest: &'static str = format!("share/{}", "n".repeat(246)).leak();
    let set = Recipe::new("7.1.0").changes(Box::leak(Box::new([(longest, "text\n")]))).build();
    let before = system.snapshot();
    system.offer(&[&set.out()]);
    tools::run(&mut system.install(&["rocm-blas"]));
    assert!(has(system, longest));
    system.assert_whole();
    system.purge_all();
    assert_same(&before, &system.snapshot());

    let longer: &'static str = format!("opt/foreign/{}", "n".repeat(247)).leak();
    let foreign = Foreign {
        name: "foreign",
        version: "1",
        needs: None,
        files: Box::leak(Box::new([(longer, "text\n")])),
        folders: &["opt/foreign"],
    };
    let others = tempfile::tempdir().unwrap();
    system.make(&foreign, others.path());
    let told = tools::told(rockpack().arg("verify").arg(others.path()));
    let found = "the name has 247 bytes, but the package manager unpacks 246 at most";
    assert!(told.contains("V041 path-too-long: foreign") && told.contains(found), "{told}");
    system.offer(&[others.path()]);
    fails(&mut system.install(&["foreign"]));
}

/// Package names include the minor version: two sets in two prefixes, each updated on its own.
pub fn minor_versions_stand_side_by_side(system: &dyn System) {
    let [first, next] =
        ["7.1.0", "7.2.0"].map(|version| Recipe::new(version).scheme("rocm-versioned").build());
    let update = Recipe::new("7.1.1").scheme("rocm-versioned");
    let update = update.option("--since", &first.receipt()).build();
    let before = system.snapshot();
    system.offer(&[&first.out(), &next.out()]);
    tools::run(&mut system.install(&["rocm-blas7.1-gfx110x"]));
    assert_eq!(system.names(), first.planned("gfx110X", system.format()));
    let alone = system.snapshot();
    tools::run(&mut system.install(&["rocm-blas7.2-gfx120x"]));
    system.assert_whole();
    for path in
        ["rocm-7.1/lib/.kpack/blas_lib_gfx1100.kpack", "rocm-7.2/lib/.kpack/blas_lib_gfx1200.kpack"]
    {
        assert!(system.root().join("opt").join(path).exists(), "{path}");
    }
    system.offer(&[&first.out(), &next.out(), &update.out()]);
    tools::run(&mut system.update());
    let installed = system.installed();
    assert_eq!(installed["rocm-blas7.1-gfx110x"], "7.1.1-1");
    assert_eq!(installed["rocm-blas7.2-gfx120x"], "7.2.0-1");
    let later: Vec<&String> = installed.keys().filter(|name| name.contains("7.2")).collect();
    let later: Vec<&str> = later.into_iter().map(String::as_str).collect();
    tools::run(&mut system.purge(&later));
    let [left, alone] =
        [system.snapshot(), alone].map(|snapshot| snapshot.into_keys().collect::<Vec<_>>());
    assert_eq!(left, alone, "the other series is whole");
    system.assert_whole();
    system.purge_all();
    assert_same(&before, &system.snapshot());
}

/// AMD's own names: one kernel package for each target, below `/opt/rocm`.
pub fn a_target_of_amds_names_brings_its_host_and_no_other_target(system: &dyn System) {
    let set = Recipe::new("7.1.0").scheme("amdrocm").build();
    let others = tempfile::tempdir().unwrap();
    system.make(&foreign::RUNTIME, others.path());
    let before = system.snapshot();
    system.offer(&[others.path(), &set.out()]);
    for target in ["gfx1100", "gfx1201"] {
        tools::run(&mut system.install(&[&format!("amdrocm-blas7.1-{target}")]));
        let mut names = system.names();
        assert!(names.remove(foreign::RUNTIME.name), "{names:?}");
        assert_eq!(names, set.planned(target, system.format()));
        system.assert_whole();
        let archive = format!("opt/rocm/core-7.1/lib/.kpack/blas_lib_{target}.kpack");
        assert!(system.root().join(archive).exists());
        system.purge_all();
        assert_same(&before, &system.snapshot());
    }
}

/// A patch release under AMD's names, over two targets, and the next series beside it.
pub fn amds_names_are_updated_in_place(system: &dyn System) {
    const OLD: &[(&str, &str)] = &[("share/old.txt", "old\n"), ("share/both.txt", "one\n")];
    const NEW: &[(&str, &str)] = &[("share/new/new.txt", "new\n"), ("share/both.txt", "two\n")];
    let [old, new] = ["7.1.0", "7.1.1"].map(|version| Recipe::new(version).scheme("amdrocm"));
    let old = old.changes(OLD).build();
    let new = new.changes(NEW).option("--since", &old.receipt()).build();
    let others = tempfile::tempdir().unwrap();
    system.make(&foreign::RUNTIME, others.path());
    let before = system.snapshot();
    system.offer(&[others.path(), &old.out()]);
    let packages = ["amdrocm-blas7.1-gfx1100", "amdrocm-blas7.1-gfx1201", "amdrocm-blas7.1"];
    tools::run(&mut system.install(&packages));
    let names = system.names();
    let prefix = system.root().join("opt/rocm/core-7.1");
    assert!(prefix.join("share/old.txt").exists());
    system.offer(&[others.path(), &old.out(), &new.out()]);
    tools::run(&mut system.update());
    assert_eq!(system.names(), names, "an update brings no further package");
    let mut installed = system.installed();
    installed.remove(foreign::RUNTIME.name);
    let versions: BTreeSet<String> = installed.into_values().collect();
    assert_eq!(versions, BTreeSet::from(["7.1.1-1".to_owned()]));
    assert!(!prefix.join("share/old.txt").exists() && prefix.join("share/new/new.txt").exists());
    assert_eq!(fs::read_to_string(prefix.join("share/both.txt")).unwrap(), "two\n");
    system.assert_whole();
    system.purge_all();
    assert_same(&before, &system.snapshot());
}

/// A program linked to a library of the set, without a path to it.
const PROGRAM: &str = "int exsuitesparse_nonzeros(int, const double *);\n\
    int main(void) { const double x[] = {1, 0, 2}; return exsuitesparse_nonzeros(3, x); }\n";

/// The program runs without `LD_LIBRARY_PATH` as long as the package is installed.
pub fn a_program_finds_the_libraries(system: &dyn System) {
    tools::need(&["gcc"]);
    let set = Recipe::new("7.1.0").build();
    let scratch = tempfile::tempdir().unwrap();
    let source = scratch.path().join("program.c");
    fs::write(&source, PROGRAM).unwrap();
    let library = GROUPS[0].folder(&shards()).join(SPARSE_LIBRARY);
    let program = system.root().join("usr/bin/program");
    fs::create_dir_all(program.parent().unwrap()).unwrap();
    tools::run(Command::new("gcc").arg("-o").arg(&program).arg(&source).arg(&library));
    let mut run = Command::new("chroot");
    run.arg(system.root()).arg("/usr/bin/program").env_remove("LD_LIBRARY_PATH");
    system.offer(&[&set.out()]);
    let told = tools::told(&mut run);
    assert!(told.contains("cannot open shared object file"), "{told}");
    tools::run(&mut system.install(&[SPARSE]));
    let told = tools::told(&mut run);
    assert_eq!(told, "exit status: 2\n", "the number of elements that are not zero");
    system.purge_all();
    let told = tools::told(&mut run);
    assert!(told.contains("cannot open shared object file"), "{told}");
}
