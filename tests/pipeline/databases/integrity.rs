//! Indexes that contradict the files beside them: judged over several artifacts and shards together.

use std::fs;
use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use rmpv::Value;
use rockpack_plan::config::{Config, Grouping, Syntax};
use rockpack_plan::recombine::recombine;
use rockpack_report::{Code, Finding, Severity, Silent};
use rockpack_split::input::artifact::Artifact;
use rockpack_split::input::database::DatabaseRules;
use rockpack_split::{SplitPolicy, split_artifacts};
use support::example::{GROUPS, build_of, copy_shards, rockpack};
use support::tools::{repository, told};

use crate::databases::tensile::{index, master};
use crate::databases::{Files, artifact, code_object, encoded};

const LIBRARIES: [&str; 2] = ["lib/hipblaslt/library", "lib/hipsparselt/library"];
const HIPBLASLT: &str = LIBRARIES[0];
const TYPE: &str = "TensileLibrary_Type_SS_Contraction_l_Ailk_Bjlk_Cijk_Dijk";

const GFX942: (&str, u8) = ("gfx942", 0x4c);
const GFX950: (&str, u8) = ("gfx950", 0x4f);
const GFX1250: (&str, u8) = ("gfx1250", 0x49);

/// The mapping of an arch, with solutions of one library each.
fn mapping(libraries: &[&str]) -> Vec<u8> {
    let entries = libraries.iter().enumerate();
    encoded(&Value::Map(entries.map(|(at, name)| ((at * 10).into(), (*name).into())).collect()))
}

fn master_of(arch: &str) -> String {
    format!("TensileLibrary_lazy_{arch}.dat")
}

fn mapping_of(arch: &str) -> String {
    format!("TensileLiteLibrary_lazy_{arch}_Mapping.dat")
}

/// A TensileLite library for one arch, in the layout where each arch has a mapping.
fn tensile_lite(folder: &str, (arch, mach): (&str, u8)) -> Files {
    let mut files = Files::new();
    let libraries = [format!("{TYPE}_{arch}"), format!("{TYPE}_fallback_{arch}")];
    files.insert(master_of(arch), master(arch, &libraries));
    files.insert(mapping_of(arch), mapping(&libraries.each_ref().map(String::as_str)));
    for library in &libraries {
        files.insert(format!("{library}.dat"), index("Cijk_Ailk_Bjlk_SB"));
        files.insert(format!("{library}.co"), code_object(mach));
    }
    files.insert(format!("Kernels.so-000-{arch}.hsaco"), code_object(mach));
    files.into_iter().map(|(name, bytes)| (format!("{folder}/{name}"), bytes)).collect()
}

/// `files` with each index compressed and renamed.
fn compressed(files: &Files) -> Files {
    let compress = |(path, bytes): (&String, &Vec<u8>)| {
        if !path.ends_with(".dat") {
            return (path.clone(), bytes.clone());
        }
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        (format!("{path}.zlib"), encoder.finish().unwrap())
    };
    files.iter().map(compress).collect()
}

fn together<const N: usize>(all: [Files; N]) -> Files {
    all.into_iter().flatten().collect()
}

/// The findings about databases in these artifacts (shard, name, files), except those about files that serve
/// all archs: `<code> <path below the libraries' folder>: <text>`.
fn found(artifacts: &[(&str, &str, Files)]) -> Vec<String> {
    let artifact = |(shard, name, files): &(&str, &str, Files)| artifact(shard, name, files);
    let artifacts: Vec<Artifact> = artifacts.iter().map(artifact).collect();
    let rules = DatabaseRules::builtin().unwrap();
    let borrowed: Vec<&Artifact> = artifacts.iter().collect();
    let split = split_artifacts(&borrowed, &SplitPolicy::strict(&rules), &Silent).unwrap();
    let recombined = recombine(split, &Config::defaults().unwrap(), &Grouping::default()).unwrap();
    let told = recombined
        .findings
        .iter()
        .filter(|finding| finding.code().unwrap().severity == Severity::Warning)
        .map(|finding| {
            let subject = finding.subject();
            let below = subject.split("/library/").nth(1).unwrap_or(subject);
            format!("{} {below}: {}", finding.code().unwrap().id, finding.message())
        });
    told.collect()
}

/// The findings about these files as one artifact.
fn found_in(files: &Files) -> Vec<String> {
    found(&[("one", "blas_lib_all", files.clone())])
}

fn is_silent(files: &Files) {
    assert_eq!(found_in(files), Vec::<String>::new());
}

fn without(files: &Files, name: &str) -> Files {
    let mut files = files.clone();
    files.remove(&format!("{HIPBLASLT}/{name}")).unwrap();
    files
}

fn with(files: &Files, name: &str, bytes: Vec<u8>) -> Files {
    let mut files = files.clone();
    files.insert(format!("{HIPBLASLT}/{name}"), bytes);
    files
}

fn lonely_master(folder: &str, arch: &str) -> String {
    let (master, mapping) = (master_of(arch), mapping_of(arch));
    format!("R119 {folder}{master}: is a lazy master index without its mapping {mapping}")
}

#[test]
fn whole_libraries_are_silent() {
    for library in LIBRARIES {
        let flat = together([tensile_lite(library, GFX942), tensile_lite(library, GFX950)]);
        let folders = [("gfx942", GFX942), ("gfx1250", GFX1250), ("gfx1250v0", GFX1250)];
        let nested = together(
            folders.map(|(folder, arch)| tensile_lite(&format!("{library}/{folder}"), arch)),
        );
        for files in [flat, nested] {
            is_silent(&files);
            is_silent(&compressed(&files));
        }
    }
}

#[test]
fn a_master_without_its_mapping_is_a_finding() {
    let flat = together([tensile_lite(HIPBLASLT, GFX942), tensile_lite(HIPBLASLT, GFX950)]);
    assert_eq!(found_in(&without(&flat, &mapping_of("gfx942"))), [lonely_master("", "gfx942")]);
    let both = together(
        ["gfx1250", "gfx1250v0"]
            .map(|folder| tensile_lite(&format!("{HIPBLASLT}/{folder}"), GFX1250)),
    );
    for folder in ["gfx1250/", "gfx1250v0/"] {
        let spoiled = without(&both, &format!("{folder}{}", mapping_of("gfx1250")));
        assert_eq!(found_in(&spoiled), [lonely_master(folder, "gfx1250")]);
    }
    // A compressed index, or one beside its arch's fallback kernels, is from a build with mappings.
    let own = without(&tensile_lite(HIPBLASLT, GFX942), &mapping_of("gfx942"));
    assert_eq!(found_in(&own), [lonely_master("", "gfx942")]);
    let found = found_in(&compressed(&own));
    assert!(found[0].starts_with("R119 TensileLibrary_lazy_gfx942.dat.zlib: "), "{found:?}");
}

#[test]
fn libraries_that_were_built_before_mappings_are_silent() {
    let fallback = format!("{TYPE}_fallback_gfx942");
    let mut early = tensile_lite(HIPBLASLT, GFX942);
    for ending in ["dat", "co"] {
        early.remove(&format!("{HIPBLASLT}/{fallback}.{ending}")).unwrap();
    }
    early.remove(&format!("{HIPBLASLT}/{}", mapping_of("gfx942"))).unwrap();
    let master = master("gfx942", &[format!("{TYPE}_gfx942")]);
    let early = with(&early, &master_of("gfx942"), master);
    is_silent(&early);
    // One mapping for all archs, with names that end in several archs, beside a master for each.
    let archs = together([early.clone(), tensile_lite(HIPBLASLT, GFX950)]);
    let archs = without(&archs, &mapping_of("gfx950"));
    let merged = mapping(&[&format!("{TYPE}_gfx942"), &format!("{TYPE}_gfx950")]);
    is_silent(&with(&archs, "TensileLiteLibrary_lazy_Mapping.dat", merged));
    assert_eq!(found_in(&archs), [lonely_master("", "gfx942"), lonely_master("", "gfx950")]);
}

#[test]
fn a_mapping_without_its_master_is_a_finding() {
    let spoiled = without(&tensile_lite(HIPBLASLT, GFX942), &master_of("gfx942"));
    let (master, mapping) = (master_of("gfx942"), mapping_of("gfx942"));
    let expected = format!("R119 {mapping}: is a mapping without its lazy master index {master}");
    assert_eq!(found_in(&spoiled), [expected]);
}

#[test]
fn a_mapping_with_names_of_another_arch() {
    let files = together([tensile_lite(HIPBLASLT, GFX942), tensile_lite(HIPBLASLT, GFX950)]);
    let own = [format!("{TYPE}_gfx942"), format!("{TYPE}_fallback_gfx942")];
    let foreign = mapping(&[&own[0], &own[1], &format!("{TYPE}_gfx950")]);
    let found = found_in(&with(&files, &mapping_of("gfx942"), foreign));
    let [reference, names] = &found[..] else { panic!("{found:?}") };
    assert!(reference.starts_with("R027 TensileLiteLibrary_lazy_gfx942_Mapping.dat"), "{found:?}");
    let expected = format!(
        "R119 {}: is the mapping for gfx942, but maps to 1 library not named for it ({TYPE}_gfx950)",
        mapping_of("gfx942")
    );
    assert_eq!(*names, expected);
}

#[test]
fn fallback_kernels_that_no_mapping_names() {
    let files = tensile_lite(HIPBLASLT, GFX942);
    let own = format!("{TYPE}_gfx942");
    let spoiled = with(&files, &mapping_of("gfx942"), mapping(&[&own]));
    for (files, ending) in [(spoiled.clone(), ""), (compressed(&spoiled), ".zlib")] {
        let expected = format!(
            "R119 {}{ending}: is a mapping that maps to no fallback library, although \
             {TYPE}_fallback_gfx942.dat{ending} is next to it",
            mapping_of("gfx942")
        );
        assert_eq!(found_in(&files), [expected]);
    }
    // Without such kernels there is nothing to name.
    let mut plain = with(&spoiled, &master_of("gfx942"), master("gfx942", &[own]));
    plain.retain(|path, _| !path.contains("_fallback_"));
    is_silent(&plain);
}

const READ_IN_ITS_PLACE: &str = "which libraries that support compressed indexes read instead";

#[test]
fn a_plain_index_beside_the_compressed_one_is_a_finding() {
    let files = tensile_lite(HIPBLASLT, GFX942);
    let both = together([files.clone(), compressed(&files)]);
    let libraries = ["_fallback_gfx942", "_gfx942"].map(|end| format!("{TYPE}{end}.dat"));
    let names = libraries.into_iter().chain([master_of("gfx942"), mapping_of("gfx942")]);
    let expected =
        names.map(|name| format!("R119 {name}: is next to {name}.zlib, {READ_IN_ITS_PLACE}"));
    assert_eq!(found_in(&both), expected.collect::<Vec<_>>());
}

/// The files of two shards, or of two artifacts, come together only in the packages.
#[test]
fn what_is_spread_over_artifacts_and_shards_is_judged_together() {
    let files = tensile_lite(HIPBLASLT, GFX942);
    let own = [format!("{HIPBLASLT}/{}", mapping_of("gfx942"))];
    let (generic, kernels): (Files, Files) =
        files.clone().into_iter().partition(|(path, _)| own.contains(path));
    assert_eq!(found_in_artifacts(generic, &kernels), Vec::<String>::new());
    let notes = Files::from([("share/doc/notes".to_owned(), b"text".to_vec())]);
    assert_eq!(found_in_artifacts(notes, &kernels), [lonely_master("", "gfx942")]);

    let other = tensile_lite(HIPBLASLT, GFX950);
    let shared = Files::from([(format!("{HIPBLASLT}/T_fallback.dat"), index("one"))]);
    let one = together([files, shared.clone(), fallback_code(GFX942)]);
    let two = together([other, shared, fallback_code(GFX950)]);
    assert_eq!(found_in_shards(one.clone(), two.clone()), Vec::<String>::new());
    let expected = format!("T_fallback.dat: is next to T_fallback.dat.zlib, {READ_IN_ITS_PLACE}");
    let own = "R014 T_fallback.dat.zlib: is not in the primary shard one and comes from two";
    let found = found_in_shards(one, compressed(&two));
    assert_eq!(found, [own.to_owned(), format!("R119 {expected}")]);
}

fn found_in_artifacts(generic: Files, kernels: &Files) -> Vec<String> {
    found(&[("one", "blas_lib_generic", generic), ("one", "blas_lib_gfx942", kernels.clone())])
}

fn found_in_shards(one: Files, two: Files) -> Vec<String> {
    found(&[("one", "blas_lib_all", one), ("two", "blas_lib_all", two)])
}

fn fallback_code((arch, mach): (&str, u8)) -> Files {
    Files::from([(format!("{HIPBLASLT}/T_fallback_{arch}.hsaco"), code_object(mach))])
}

/// Shared files that differ all move to their arch's folder, and are judged there.
#[test]
fn files_that_move_are_judged_where_they_go() {
    let (one, two) = (with_own_fallback(GFX942), with_own_fallback(GFX950));
    let spoiled = without(&two, &mapping_of("gfx950"));
    assert_eq!(found_in_shards(one.clone(), two), Vec::<String>::new());
    assert_eq!(found_in_shards(one, spoiled), [lonely_master("gfx950/", "gfx950")]);
}

fn with_own_fallback((arch, mach): (&str, u8)) -> Files {
    let fallback = Files::from([
        (format!("{HIPBLASLT}/TensileLibrary_T_fallback.dat"), index(arch)),
        (format!("{HIPBLASLT}/TensileLibrary_T_fallback_{arch}.hsaco"), code_object(mach)),
    ]);
    together([tensile_lite(HIPBLASLT, (arch, mach)), fallback])
}

/// rocBLAS has no mappings, even in files with such names, but it has compressed files.
#[test]
fn libraries_of_tensile_have_no_mappings() {
    let library = "lib/rocblas/library";
    let mut files = tensile_lite(library, GFX942);
    files.remove(&format!("{library}/{}", mapping_of("gfx942"))).unwrap();
    is_silent(&files);
    is_silent(&compressed(&files));
    let both = together([files.clone(), compressed(&files)]);
    let found = found_in(&both);
    assert!(found.iter().all(|line| line.starts_with("R119 ") && line.contains(".dat.zlib")));
    assert_eq!(found.len(), 3, "{found:?}");
}

#[test]
fn an_unreadable_mapping_is_there_all_the_same() {
    let files = tensile_lite(HIPBLASLT, GFX942);
    let found = found_in(&with(&files, &mapping_of("gfx942"), b"hello".to_vec()));
    let [finding] = &found[..] else { panic!("{found:?}") };
    assert!(finding.starts_with("R029 "), "{finding}");
}

#[test]
fn a_rule_says_which_indexes_have_mappings() {
    let rule = "[[databases]]\nname = 'mine'\ndirectories = ['**/mine']\nindex = ['*.dat']\n\
                code = ['*.co']\nstandalone = ['*']\n";
    let lazy = "lazy.master = 'All_*'\nlazy.mapping = 'All_*_Map'\n";
    let files = Files::from([
        ("lib/mine/All_gfx942.dat".to_owned(), master("gfx942", &[])),
        ("lib/mine/All_gfx950.dat".to_owned(), master("gfx950", &[])),
        ("lib/mine/All_gfx950_Map.dat".to_owned(), mapping(&[])),
    ]);
    for (text, expected) in [(rule.to_owned(), 0), (format!("{rule}{lazy}"), 1)] {
        let config = Config::parse(&text, Syntax::Toml).unwrap();
        let artifact = artifact("one", "blas_lib_all", &files);
        let split = split_artifacts(&[&artifact], &SplitPolicy::strict(&config.databases), &Silent)
            .unwrap();
        let recombined = recombine(split, &config, &Grouping::default()).unwrap();
        let is_own = |finding: &&Finding| finding.code() == Some(Code::DatabaseInconsistent);
        assert_eq!(recombined.findings.iter().filter(is_own).count(), expected, "{text}");
    }
    let wrong = format!("{rule}lazy.master = 'All'\nlazy.mapping = 'All_*_Map'\n");
    assert!(Config::parse(&wrong, Syntax::Toml).is_err());
}

#[test]
fn every_command_that_joins_shards_tells_it() {
    let folder = tempfile::tempdir().unwrap();
    let (shards, out) = (folder.path().join("shards"), folder.path().join("out"));
    copy_shards(&shards);
    for ending in ["dat", "dat.zlib"] {
        let name = format!("{HIPBLASLT}/TensileLibrary_lazy_gfx1151.{ending}");
        let path = GROUPS[1].original(&shards, &name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, master("gfx1151", &[])).unwrap();
    }
    let config = repository("examples/packaging-config.json");
    let mut recombine = rockpack();
    recombine.arg("recombine").arg("--artifacts").arg(&shards).arg("--config").arg(config);
    recombine.arg("--output-dir").arg(&out);
    let mut plan = rockpack();
    plan.args(["plan", "--version", "7.1.0", "--artifacts"]).arg(&shards);
    for mut command in [plan, recombine] {
        let said = told(&mut command);
        for ending in ["dat", "dat.zlib"] {
            let file = format!("blas_lib/{HIPBLASLT}/TensileLibrary_lazy_gfx1151.{ending}");
            assert!(said.contains(&format!("R119 database-inconsistent: {file}: is")), "{said}");
        }
    }
    let strict = build_of(&shards, &folder.path().join("set")).arg("--strict").output().unwrap();
    assert_eq!(strict.status.code(), Some(2));
}
