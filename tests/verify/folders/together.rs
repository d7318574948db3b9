//! Faults that only several files show together: pairs, references, owners.

use super::*;

#[test]
fn v024_an_index_without_its_code() {
    for (lost, found) in [("co", "dat"), ("dat", "co")] {
        let copy = Copy::split();
        let file = format!("{DATABASE}/TensileLibrary_gfx1100.{lost}");
        fs::remove_file(copy.at("blas_lib_gfx1100", &file)).unwrap();
        let run = copy.verify();
        run.fired(&["V024"]);
        assert!(run.text.contains(&format!("TensileLibrary_gfx1100.{found}")), "{}", run.text);
    }
}

#[test]
fn v024_an_index_without_the_code_of_its_own_arch() {
    let group = recombined();
    for (lost, found) in [("co", "dat"), ("dat", "co")] {
        let file = format!("{DATABASE}/TensileLibrary_gfx1101.{lost}");
        let spoiled = Copy::of(&group.root());
        fs::remove_file(spoiled.find(&file)).unwrap();
        let run = spoiled.verify();
        run.fired(&["V024"]);
        assert!(run.text.contains(&format!("TensileLibrary_gfx1101.{found}")), "{}", run.text);
        assert!(run.text.contains("for gfx1101 next to it"), "{}", run.text);
        let prefix = prefix();
        let other = split().join("split").join(SHARD).join("blas_lib_gfx1101").join(STAGE);
        tools::run(Command::new("cp").arg("-r").arg(other.join(".")).arg(prefix.root()));
        prefix.verify().fired(&[]);
        fs::remove_file(prefix.root().join(&file)).unwrap();
        prefix.verify().fired(&["V024"]);
    }
}

#[test]
fn v024_an_index_that_refers_to_what_is_not_there() {
    // {"0": "TensileLibrary_x_gfx1100"}: solutions from 0 on are in the library of that name.
    let mut lazy = vec![0x81, 0xa1, b'0', 0xb8];
    lazy.extend(b"TensileLibrary_x_gfx1100");
    let copy = Copy::split();
    let database = copy.at("blas_lib_gfx1100", DATABASE);
    fs::write(database.join("TensileLibrary_lazy_gfx1100.dat"), lazy).unwrap();
    let run = copy.verify();
    run.fired(&["V024"]);
    assert!(run.text.contains("refers to TensileLibrary_x_gfx1100.dat"), "{}", run.text);
    for ending in ["co", "dat"] {
        let from = database.join(format!("TensileLibrary_gfx1100.{ending}"));
        fs::copy(from, database.join(format!("TensileLibrary_x_gfx1100.{ending}"))).unwrap();
    }
    copy.verify().fired(&[]);
}

#[test]
fn v025_database_files_that_are_not_what_their_names_say() {
    let code = fs::read(Copy::split().at("blas_lib_gfx1100", &database("co"))).unwrap();
    let cases: [(&str, &[u8]); 5] = [
        ("co", b""),
        ("co", b"hello"),
        ("co", &code[..code.len() - 1]),
        ("dat", b"hello"),
        ("dat", b""),
    ];
    for (ending, bytes) in cases {
        let copy = Copy::split();
        fs::write(copy.at("blas_lib_gfx1100", &database(ending)), bytes).unwrap();
        copy.verify().fired(&["V025"]);
        let prefix = prefix();
        fs::write(prefix.root().join(database(ending)), bytes).unwrap();
        prefix.verify().fired(&["V025"]);
    }
    let generic = format!("{DATABASE}/TensileLibrary_fallback.dat");
    let copy = Copy::split();
    fs::write(copy.at("blas_lib_generic", &generic), "hello").unwrap();
    copy.verify().fired(&["V025"]);
}

#[test]
fn v030_archives_that_are_gone() {
    let copy = Copy::split();
    for arch in ["gfx1100", "gfx1101", "gfx1102", "gfx906"] {
        let artifact = format!("blas_lib_{arch}");
        let archive = copy.at(&artifact, &archive(arch));
        fs::remove_file(archive).unwrap();
    }
    copy.verify().fired(&["V030", "V033"]);
    copy.without_manifests().verify().fired(&["V030"]);
}

#[test]
fn v031_a_wrapper_without_rows() {
    let copy = Copy::split().without_manifests();
    for arch in ["gfx1100", "gfx1101", "gfx1102"] {
        let file = copy.at(&format!("blas_lib_{arch}"), &archive(arch));
        Archive::edit(&file, |archive| archive.drop_row(&format!("{LIBRARY}#1"), arch));
    }
    copy.verify().fired(&["V031"]);
}

#[test]
fn v032_a_wrapper_with_another_index() {
    for copy in [Copy::split(), prefix()] {
        let generic = copy.at("blas_lib_generic", LIBRARY);
        let library = if generic.exists() { generic } else { copy.root().join(LIBRARY) };
        patch(&library, wrapper_section(&library) + 24 + 16, &[0]);
        copy.verify().fired(&["V032"]);
    }
}

#[test]
fn v040_a_path_of_two_artifacts() {
    let copy = Copy::split();
    for artifact in ["blas_lib_generic", "blas_lib_gfx1100"] {
        fs::write(copy.at(artifact, "lib/README"), "text").unwrap();
    }
    copy.verify().fired(&["V040"]);
}

#[test]
fn what_is_for_several_archs_is_the_same_in_each_of_their_artifacts() {
    let file = "lib/aotriton.images/amd-gfx11xx/x.aks2";
    let archs = ["gfx1100", "gfx1101", "gfx1102"];
    let copy = Copy::split();
    let files = archs.map(|arch| copy.at(&format!("blas_lib_{arch}"), file));
    for file in &files {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, "image").unwrap();
    }
    copy.verify().fired(&[]);
    fs::write(&files[1], "other").unwrap();
    let run = copy.verify();
    run.fired(&["V040"]);
    assert!(run.text.contains("differs in the artifacts of two archs"), "{}", run.text);
    fs::remove_file(&files[1]).unwrap();
    fs::create_dir(&files[1]).unwrap();
    copy.verify().fired(&["V040"]);
}
