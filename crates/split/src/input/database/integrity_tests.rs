use super::*;

const LIBRARY: &str = "lib/hipblaslt/library";
const MASTER: &str = "TensileLibrary_lazy_gfx942.dat";
const MAPPING: &str = "TensileLiteLibrary_lazy_gfx942_Mapping.dat";
const MERGED: &str = "TensileLiteLibrary_lazy_Mapping.dat";
const FALLBACK: &str = "TensileLibrary_A_fallback_gfx942.dat";
const SHARD: &str = "TensileLibrary_A_gfx942.dat";

/// The contradictions among files below [`LIBRARY`], whose mappings map to `libraries`, as `<file>: <fault>`.
fn judged(files: &[&str], libraries: &[&str], reaches: AlwaysTogether<'_>) -> Vec<String> {
    let rules = DatabaseRules::builtin().unwrap();
    let parsed = files.iter().map(|name| {
        let path = TreePath::new(format!("{LIBRARY}/{name}")).unwrap();
        let mut index = LibraryIndex::of(&rules, &path).unwrap();
        if index.is_mapping() {
            index.mapped = Some(libraries.iter().map(|name| (*name).to_owned()).collect());
        }
        index
    });
    let indexes: Vec<LibraryIndex<'_>> = parsed.collect();
    let texts = inconsistencies(&indexes, reaches).into_iter().map(|(at, fault)| {
        let fault = serde_json::to_value(fault).unwrap();
        let kind = fault.as_object().unwrap().keys().next().unwrap();
        format!("{}: {kind}", files[at])
    });
    let mut found: Vec<String> = texts.collect();
    found.sort();
    found
}

fn together(files: &[&str], libraries: &[&str]) -> Vec<String> {
    judged(files, libraries, &|_, _| true)
}

#[test]
fn a_master_needs_its_mapping_where_the_build_makes_some() {
    let other = "gfx950/TensileLiteLibrary_lazy_gfx950_Mapping.dat";
    let pair = [other, "gfx950/TensileLibrary_lazy_gfx950.dat"];
    for (files, expected) in [
        (&[MASTER][..], vec![]),
        (&[MASTER, SHARD], vec![]),
        (&[MASTER, "TensileLibrary_A_fallback.dat"], vec![]),
        (&[MASTER, MAPPING], vec![]),
        (&[MASTER, MERGED], vec![]),
        (&[MASTER, MERGED, pair[0], pair[1]], vec![]),
        (&[MASTER, FALLBACK], lonely(MASTER)),
        // Evidence in one folder holds for the whole library.
        (
            &[MASTER, "gfx950/TensileLibrary_A_fallback_gfx950.dat", pair[1]],
            [lonely(MASTER), lonely(pair[1])].concat(),
        ),
        (&[MASTER, pair[0], pair[1]], lonely(MASTER)),
        (&["TensileLibrary_lazy_gfx942.dat.zlib"], lonely("TensileLibrary_lazy_gfx942.dat.zlib")),
        (&["TensileLibrary_lazy_gfx942.dat.zlib", MAPPING], vec![]),
        (&[MASTER, "TensileLiteLibrary_lazy_gfx942_Mapping.dat.zlib"], vec![]),
    ] {
        assert_eq!(together(files, &[]), expected, "{files:?}");
    }
}

fn lonely(file: &str) -> Vec<String> {
    vec![format!("{file}: master-without-mapping")]
}

#[test]
fn each_folder_is_judged_by_itself() {
    let (master, mapping) = (MASTER.replace("942", "1250"), MAPPING.replace("942", "1250"));
    let early = format!("gfx1250v0/{master}");
    let paths = [format!("gfx1250/{master}"), format!("gfx1250/{mapping}"), early.clone()];
    let files: Vec<&str> = paths.iter().map(String::as_str).collect();
    assert_eq!(together(&files, &[]), [format!("{early}: master-without-mapping")]);
    let whole = format!("gfx1250v0/{mapping}");
    assert!(together(&[files.as_slice(), &[whole.as_str()]].concat(), &[]).is_empty());
}

#[test]
fn a_mapping_needs_its_master() {
    assert_eq!(together(&[MAPPING], &[]), [format!("{MAPPING}: mapping-without-master")]);
    let foreign = "TensileLibrary_lazy_gfx950.dat";
    assert_eq!(
        together(&[MAPPING, foreign], &[]),
        [
            format!("{foreign}: master-without-mapping"),
            format!("{MAPPING}: mapping-without-master")
        ]
    );
    assert!(together(&[MERGED], &[]).is_empty());
}

#[test]
fn a_mapping_names_libraries_of_its_arch_alone() {
    let fault = vec![format!("{MAPPING}: foreign-names")];
    for (libraries, expected) in [
        (&["A_gfx942"][..], vec![]),
        (&["A_gfx942", "A_gfx950"], fault.clone()),
        (&["A_gfx942-xnack+", "B_gfx942-sramecc+-xnack-"], vec![]),
        (&["A_gfx942-strict"], fault.clone()),
        (&["A"], fault.clone()),
        (&["Agfx942"], fault),
    ] {
        assert_eq!(together(&[MASTER, MAPPING], libraries), expected, "{libraries:?}");
    }
}

#[test]
fn a_mapping_names_fallbacks_where_there_are_some() {
    let fault = vec![format!("{MAPPING}: fallback-unmapped")];
    let compressed = format!("{FALLBACK}.zlib");
    for (files, libraries, expected) in [
        (&[MASTER, MAPPING][..], &["A_gfx942"][..], vec![]),
        (&[MASTER, MAPPING, FALLBACK], &["A_gfx942"], fault.clone()),
        (&[MASTER, MAPPING, &compressed], &["A_gfx942"], fault),
        (&[MASTER, MAPPING, FALLBACK], &["A_gfx942", "A_fallback_gfx942"], vec![]),
        (&[MASTER, MAPPING, FALLBACK], &["A_fallback_gfx942-xnack+"], vec![]),
        (&[MASTER, MAPPING, "TensileLibrary_A_fallback_gfx950.dat"], &["A_gfx942"], vec![]),
    ] {
        assert_eq!(together(files, libraries), expected, "{files:?}");
    }
}

#[test]
fn a_plain_index_has_no_compressed_one_beside_it() {
    let compressed = format!("{SHARD}.zlib");
    assert_eq!(together(&[SHARD, &compressed], &[]), [format!("{SHARD}: plain-and-compressed")]);
    let nested = format!("gfx942/{SHARD}.zlib");
    assert!(together(&[SHARD, &nested], &[]).is_empty());
    // A machine with both packages has both files.
    let apart: AlwaysTogether<'_> = &|_, _| false;
    assert_eq!(judged(&[SHARD, &compressed], &[], apart).len(), 1);
}

#[test]
fn what_nobody_has_together_is_not_there() {
    let apart: AlwaysTogether<'_> = &|_, _| false;
    assert_eq!(
        judged(&[MASTER, MAPPING, FALLBACK], &["A_gfx942"], apart),
        [format!("{MASTER}: master-without-mapping"), format!("{MAPPING}: mapping-without-master")]
    );
}

#[test]
fn libraries_without_mappings_have_none() {
    let rules = DatabaseRules::builtin().unwrap();
    for name in [MASTER, MAPPING] {
        let rocblas = index_at(&rules, &format!("lib/rocblas/library/{name}")).unwrap();
        assert!(rocblas.role().is_none(), "{name}");
        let hipsparselt = index_at(&rules, &format!("lib/hipsparselt/library/{name}")).unwrap();
        assert!(hipsparselt.role().is_some(), "{name}");
    }
    for path in ["lib/hipblaslt/library/A.co", "lib/x/A.dat", "lib/hipblaslt/library/notes"] {
        assert!(index_at(&rules, path).is_none(), "{path}");
    }
}

fn index_at<'a>(rules: &'a DatabaseRules, path: &str) -> Option<LibraryIndex<'a>> {
    LibraryIndex::of(rules, &TreePath::new(path).unwrap())
}

#[test]
fn names_of_masters_and_mappings() {
    let names = LazyNames {
        master: "TensileLibrary_lazy_*".to_owned(),
        mapping: "TensileLiteLibrary_lazy_*_Mapping".to_owned(),
        merged: Some("TensileLiteLibrary_lazy_Mapping".to_owned()),
    };
    for (stem, expected) in [
        ("TensileLibrary_lazy_gfx942", Some(LazyRole::Master("gfx942"))),
        ("TensileLibrary_lazy_gfx1250-strict", Some(LazyRole::Master("gfx1250-strict"))),
        ("TensileLiteLibrary_lazy_gfx942_Mapping", Some(LazyRole::Mapping("gfx942"))),
        ("TensileLiteLibrary_lazy_Mapping", Some(LazyRole::MergedMapping)),
        ("TensileLiteLibrary_lazy__Mapping", None),
        ("TensileLibrary_lazy_", None),
        ("TensileLibrary_Type_SS_gfx942", None),
    ] {
        assert_eq!(names.role(stem), expected, "{stem}");
    }
    assert!(names.is_master("TensileLibrary_lazy_gfx942"));
    assert!(!names.is_master("TensileLibrary_lazy_gfx942_x") && !names.is_master("gfx942"));
    assert_eq!(file_name(&names.master, "gfx942"), MASTER);
    assert_eq!(file_name(&names.mapping, "gfx942"), MAPPING);
    assert_eq!(names.fault(), None);
    for (master, mapping) in [("x", "*"), ("*", "x"), ("*_*", "*")] {
        let (master, mapping) = (master.to_owned(), mapping.to_owned());
        assert!(LazyNames { master, mapping, merged: None }.fault().is_some());
    }
}
