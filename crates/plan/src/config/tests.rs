use rockpack_core::error::{Error, Kind};

use super::*;
use rockpack_split::input::artifact::ComponentKind;
use rockpack_split::input::database::DatabaseRules;

const TUTORIAL: &str = r#"{ "primary_shard": "gfx110X-build",
  "architecture_groups": {
    "gfx110X": { "display_name": "ROCm gfx110X (RDNA3)", "architectures": ["gfx1100", "gfx1101", "gfx1102"] },
    "gfx115X": { "display_name": "ROCm gfx115X (RDNA3.5)", "architectures": ["gfx1151"] },
    "gfx120X": { "display_name": "ROCm gfx120X (RDNA4)", "architectures": ["gfx1200", "gfx1201"] } },
  "validation": { "error_on_duplicate_device_code": true, "verify_generic_artifacts_match": false, "error_on_missing_architecture": false } }"#;

fn refusal(text: &str, syntax: Syntax) -> Error {
    Config::parse(text, syntax).unwrap_err()
}

/// Message and place, as the user sees them.
fn shown(text: &str, syntax: Syntax) -> String {
    refusal(text, syntax).to_string()
}

#[test]
fn the_tutorials_json_is_accepted_as_it_is() {
    let config = Config::parse(TUTORIAL, Syntax::Json).unwrap();
    assert_eq!(config.grouping.primary_shard.as_deref(), Some("gfx110X-build"));
    let names: Vec<_> = config.grouping.groups.iter().map(|g| g.name.as_str()).collect();
    assert_eq!(names, ["gfx110X", "gfx115X", "gfx120X"]);
    assert_eq!(config.grouping.groups[0].display_name, "ROCm gfx110X (RDNA3)");
    assert_eq!(config.grouping.groups[2].archs[1].as_str(), "gfx1201");
    assert_eq!(config.keys.validation, Validation::default());
}

#[test]
fn groups_keep_the_order_of_the_file_in_both_syntaxes() {
    let toml = "[architecture_groups.zeta]\narchitectures = ['gfx90a']\n\
                [architecture_groups.alpha]\narchitectures = ['gfx942']\n";
    let json = r#"{"architecture_groups": {"zeta": {"architectures": ["gfx90a"]},
                   "alpha": {"architectures": ["gfx942"]}}}"#;
    for (text, syntax) in [(toml, Syntax::Toml), (json, Syntax::Json)] {
        let groups = Config::parse(text, syntax).unwrap().grouping.groups;
        assert_eq!((groups[0].name.as_str(), groups[1].name.as_str()), ("zeta", "alpha"));
        assert_eq!(groups[0].display_name, "zeta");
    }
}

#[test]
fn an_empty_configuration_is_the_default() {
    for (text, syntax) in [("{}", Syntax::Json), ("", Syntax::Toml)] {
        let config = Config::parse(text, syntax).unwrap();
        assert_eq!(config.grouping, Grouping::default());
        // 2025-01-01T00:00:00Z.
        assert_eq!(config.content_date, 1_735_689_600);
    }
}

#[test]
fn a_typo_has_line_column_and_a_suggestion() {
    let error = refusal("{\n  \"primry_shard\": \"x\"\n}", Syntax::Json);
    assert_eq!(error.place().structure.as_deref(), Some("line 2, column 16"));
    assert_eq!(error.hint_text(), Some("did you mean `primary_shard`?"));
    let error = refusal("version = '1'\n[validatoin]\n", Syntax::Toml);
    assert_eq!(error.place().structure.as_deref(), Some("line 2, column 2"));
    assert_eq!(error.hint_text(), Some("did you mean `validation`?"));
}

#[test]
fn broken_syntax_has_line_and_column() {
    assert!(shown("{\n\"version\": }", Syntax::Json).contains("line 2, column 12"));
    assert!(shown("version = \n", Syntax::Toml).contains("line 1, column"));
    assert!(shown("{\"version\": 7}", Syntax::Json).contains("line 1, column 13"));
}

#[test]
fn groups_that_make_no_package_are_refused_with_their_place() {
    let json = "{\"architecture_groups\": {\n \"a\": {\"architectures\": []},\n \
                \"b\": {\"architectures\": [\"gfx1100\"]},\n \
                \"c\": {\"architectures\": [\"gfx1101\", \"gfx1100\"]},\n \
                \"B\": {\"architectures\": [\"rdna3\", \"gfx90a:xnack+\"]},\n \
                \"d_e\": {\"architectures\": [\"gfx942\"]}}}";
    let error = refusal(json, Syntax::Json);
    let mut all = vec![error.to_string()];
    all.extend(error.others().iter().map(ToString::to_string));
    let expected = [
        "line 2, column 7: architecture_groups.a: has no architectures",
        "line 4, column 37: architecture_groups.c.architectures.1: gfx1100 is already in the group b",
        "line 5, column 7: architecture_groups.B: results in the same package names as the group b",
        "line 5, column 26: architecture_groups.B.architectures.0: `rdna3` is not a GPU arch",
        "line 5, column 35: architecture_groups.B.architectures.1: `gfx90a:xnack+` is not a GPU arch",
        "line 6, column 9: architecture_groups.d_e: `d_e` cannot be part of a package name",
    ];
    assert_eq!(all, expected);
}

#[test]
fn places_are_found_in_toml_too() {
    let toml = "[architecture_groups.a]\narchitectures = [\n  'gfx1100',\n  'gfx1100',\n]\n";
    let shown = shown(toml, Syntax::Toml);
    assert!(shown.starts_with("line 4, column 3:"), "{shown}");
    let config = Config::parse("\nprimary_shard = 'x'\n", Syntax::Toml).unwrap();
    let fault = config.fault(&["primary_shard"], "no such shard");
    assert_eq!(fault.to_string(), "line 2, column 17: primary_shard: no such shard");
}

#[test]
fn a_key_is_given_once() {
    let json = r#"{"architecture_groups": {"a": {"architectures": ["gfx1100"]},
                   "a": {"architectures": ["gfx1101"]}}}"#;
    assert!(shown(json, Syntax::Json).contains("`a` is given twice"));
    let json = r#"{"databases": [{"name": "x", "directories": ["x"], "code": ["*.co"],
        "directory_archs": {"navi": ["gfx1100"], "navi": ["gfx1030"]}}]}"#;
    assert!(shown(json, Syntax::Json).contains("`navi` is given twice"));
    assert!(shown("{\"version\": \"1\", \"version\": \"2\"}", Syntax::Json).contains("duplicate"));
    let toml = "version = '1'\nversion = '2'\n";
    assert!(shown(toml, Syntax::Toml).contains("line 2"));
}

#[test]
fn fields_of_one_line_stay_on_one_line() {
    for (key, value) in [
        ("maintainer", "someone"),
        ("maintainer", "A <a@b.example>\\nX: y"),
        ("license", ""),
        ("content_date", "yesterday"),
        ("content_date", "1969-01-01T00:00:00Z"),
        ("content_date", "2107-01-01T00:00:00Z"),
    ] {
        let json = format!("{{\"{key}\": \"{value}\"}}");
        assert!(shown(&json, Syntax::Json).contains(key), "{json}");
    }
}

#[test]
fn every_prefix_of_a_configuration_is_refused_without_a_panic() {
    for end in 0..TUTORIAL.len() {
        assert!(Config::parse(&TUTORIAL[..end], Syntax::Json).is_err(), "{end}");
        // TOML may be cut at any place; it must not panic.
        let _ = Config::parse(&TUTORIAL[..end], Syntax::Toml);
    }
}

#[test]
fn the_ending_chooses_the_syntax() {
    let open = |path: &Path| {
        let mut faults = Faults::default();
        let config = Config::of(Some(path), &mut faults);
        faults.settle(config)
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("packaging.yaml");
    std::fs::write(&path, "{}").unwrap();
    assert_eq!(open(&path).unwrap_err().kind(), Kind::Usage);
    let path = folder.path().join("packaging.json");
    std::fs::write(&path, "{\"release\": \"2\"}").unwrap();
    assert_eq!(open(&path).unwrap().keys.release, PerFormat::from("2"));
}

#[test]
fn rules_of_one_component_win_over_its_artifacts_and_these_over_all() {
    let toml = "[validation]\nuntransformable = 'keep-fat'\n\
                [components.blas]\nunassigned_architectures = 'drop'\nuntransformable = 'error'\n\
                [components.blas_lib]\nunassigned_architectures = 'error'\n\
                exclude_architectures = ['gfx906']\n";
    let json = r#"{"validation": {"untransformable": "keep-fat"}, "components": {
        "blas": {"unassigned_architectures": "drop", "untransformable": "error"},
        "blas_lib": {"unassigned_architectures": "error", "exclude_architectures": ["gfx906"]}}}"#;
    for (text, syntax) in [(toml, Syntax::Toml), (json, Syntax::Json)] {
        let config = Config::parse(text, syntax).unwrap();
        let (lib, run) = (ComponentKind::Lib, ComponentKind::Run);
        for (artifact, kind, expected) in [
            ("blas", lib, (UnassignedArchitectures::Error, Untransformable::Error)),
            ("blas", run, (UnassignedArchitectures::Drop, Untransformable::Error)),
            ("rand", lib, (UnassignedArchitectures::Warn, Untransformable::KeepFat)),
        ] {
            let validation = config.validation_of(artifact, kind);
            let rules = (validation.unassigned_architectures, validation.untransformable);
            assert_eq!(rules, expected, "{artifact} {kind}");
        }
        let filter = &config.components[1].1.architectures;
        assert!(!filter.has(&"gfx906".parse().unwrap()) && filter.has(&"gfx90a".parse().unwrap()));
    }
}

#[test]
fn an_include_list_leaves_out_everything_else() {
    let toml = "[packages.rocm-x]\ninclude_architectures = ['gfx90a']\n";
    let config = Config::parse(toml, Syntax::Toml).unwrap();
    let filter = &config.packages[0].1;
    assert!(filter.has(&"gfx90a".parse().unwrap()) && !filter.has(&"gfx906".parse().unwrap()));
}

#[test]
fn rules_that_mean_nothing_are_refused_with_their_place() {
    for (text, expected) in [
        ("[components.x]\nuntransformed = 'error'\n", "line 2, column 1: unknown field"),
        ("[validation]\nuntransformable = 'keep'\n", "line 2, column 19: unknown variant `keep`"),
        ("[packages.x]\nexclude = []\n", "line 2, column 1: unknown field"),
        (
            "[packages.x]\nexclude_architectures = ['gfx90a:xnack+']\n",
            "line 2, column 26: packages.x.exclude_architectures.0: `gfx90a:xnack+` is not a GPU arch",
        ),
        (
            "[packages.x]\ninclude_architectures = []\n",
            "line 2, column 25: packages.x.include_architectures: lists no architectures",
        ),
        (
            "[components.x]\ninclude_architectures = ['gfx90a']\nexclude_architectures = ['gfx90a']\n",
            "line 3, column 25: components.x.exclude_architectures: gfx90a is also included",
        ),
    ] {
        let shown = shown(text, Syntax::Toml);
        assert!(shown.starts_with(expected), "{shown}");
    }
}

#[test]
fn each_wrong_kind_of_a_selector_is_told_with_its_place() {
    let text = "[selectors]\nx = [\n  { artifact = 'a', kinds = ['bin', 'lib', 'man'] },\n  \
                { artifact = 'b', kinds = ['etc'] },\n]\n";
    let error = refusal(text, Syntax::Toml);
    let faults: Vec<_> = error.flattened().map(ToString::to_string).collect();
    let places =
        [("line 3, column 29", "bin"), ("line 3, column 29", "man"), ("line 4, column 29", "etc")];
    assert_eq!(faults.len(), places.len(), "{faults:?}");
    for (fault, (place, word)) in faults.iter().zip(places) {
        assert!(fault.starts_with(place) && fault.contains(word), "{fault}");
    }
}

#[test]
fn database_rules_have_the_schema_of_the_shipped_ones() {
    let toml = "[[databases]]\nname = 'mine'\ndirectories = ['share/mine']\ndata = ['*.bin']\n";
    let json =
        r#"{"databases": [{"name": "mine", "directories": ["share/mine"], "data": ["*.bin"]}]}"#;
    for (text, syntax) in [(toml, Syntax::Toml), (json, Syntax::Json)] {
        let rules = Config::parse(text, syntax).unwrap().databases;
        assert_eq!(claiming_rule(&rules, "share/mine/x_gfx1100.bin").as_deref(), Some("mine"));
        assert_eq!(claiming_rule(&rules, "lib/rocblas/library/x.co").as_deref(), Some("rocblas"));
    }
    for (text, expected) in [
        (toml.replace("\ndata", "\ndate"), ["line 4, column 1", "date"]),
        (toml.replace("['*.bin']", "'*.bin'"), ["line 4, column 8", "sequence"]),
        (format!("{toml}names = 'end'\n"), ["line 5, column 9", "end"]),
        (toml.replace("'mine'", "''"), ["line 2, column 8", "databases.0.name"]),
        (toml.replace("['share/mine']", "[]"), ["line 3, column 15", "databases.0.directories"]),
        (format!("{toml}{toml}"), ["line 6, column 8", "databases.1.name"]),
    ] {
        let shown = shown(&text, Syntax::Toml);
        assert!(expected.iter().all(|part| shown.contains(part)), "{expected:?}: {shown}");
    }
}

fn claiming_rule(rules: &DatabaseRules, path: &str) -> Option<String> {
    let path = rockpack_core::tree::TreePath::new(path).unwrap();
    rules.claim(&path).map(|claim| claim.rule.name.clone())
}

#[test]
fn former_packages_are_checked_with_their_place() {
    let toml = "[replaces]\nrocm-blas = ['rocblas', 'hipblas < 7.0']\n\
                rocm-dev = { deb = ['x-dev'], rpm = ['x_devel < 2'] }\n";
    let config = Config::parse(toml, Syntax::Toml).unwrap();
    let (package, former) = &config.replaces[0];
    assert_eq!((package.as_str(), former.deb.len()), ("rocm-blas", 2));
    assert_eq!(former.deb, former.rpm);
    assert_eq!(former.deb[1].before.as_deref(), Some("7.0"));
    assert_eq!(config.replaces[1].1.rpm[0].name, "x_devel");

    let json = r#"{"moved": {"rocm-blas": ["rocm-blas-dev"]}}"#;
    let text = shown(json, Syntax::Json);
    assert!(text.starts_with("line 1, column 26: moved.rocm-blas.0: "), "{text}");
    for (value, expected) in [
        ("['a b']", "`a b` is not a package name"),
        ("['rocBLAS']", "`rocBLAS` is not a package name"),
        ("['rocblas <']", "has no valid version after `<`"),
        ("['rocblas < new']", "has no valid version after `<`"),
        ("{ dbe = ['x'] }", "unknown field `dbe`"),
        ("'rocblas'", "expected a list of texts, or a map"),
        ("[1]", "expected a string"),
    ] {
        let text = shown(&format!("[replaces]\nrocm-blas = {value}\n"), Syntax::Toml);
        assert!(text.contains(expected) && text.contains("line 2, column "), "{text}");
    }
}
