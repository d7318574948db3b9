use rockpack_core::error::Result;

use super::*;

const ENTRY: &str = r#"{
    "Package": "amdrocm-blas",
    "Architecture": "amd64",
    "BuildArch": "x86_64",
    "Maintainer": "A <a@example.org>",
    "Gfxarch": "True",
    "Artifactory": [
      { "Artifact": "blas", "Artifact_Subdir": [ { "Name": "rocBLAS", "Components": ["lib"] } ] }
    ]
  }"#;

fn list(text: &str) -> Result<PackageList> {
    PackageList::parse(&format!("[\n  {text}\n]"))
}

#[test]
fn subdirectories_are_parts_of_a_path_in_any_case() {
    let prefix = "math-libs/BLAS/rocBLAS/stage";
    for subdir in ["rocBLAS", "rocblas", "blas/ROCBLAS", "BLAS", "/rocBLAS/"] {
        assert!(taken_part(subdir).fits(prefix), "{subdir}");
    }
    for subdir in ["blas/stage", "ocBLAS", "rocBLA", "rocBLASLt", "a/b/c/d/e/f"] {
        assert!(!taken_part(subdir).fits(prefix), "{subdir}");
    }
}

fn taken_part(subdir: &str) -> file::ListedPart {
    let list = list(&ENTRY.replace("rocBLAS", subdir)).unwrap();
    list.entries[0].parts[0].clone()
}

#[test]
fn what_an_entry_says_is_read() {
    let list = list(ENTRY).unwrap();
    let entry = &list.entries[0];
    assert!(entry.per_target && !entry.is_meta && entry.devel_of().is_none());
    assert_eq!(entry.native, Some(true));
    assert_eq!(file::deb_name("amdrocm-blas-devel"), "amdrocm-blas-dev");
    assert!(list.findings.is_empty());
}

#[test]
fn words_for_true_and_false_are_known_in_any_case() {
    for (word, expected) in [("\"TRUE\"", 0), ("true", 0), ("\"no\"", 1), ("\"\"", 1)] {
        let text =
            ENTRY.replace("\"Gfxarch\"", &format!("\"DisablePackaging\": {word}, \"Gfxarch\""));
        assert_eq!(list(&text).unwrap().entries.len(), expected, "{word}");
    }
}

#[test]
fn unknown_keys_are_findings() {
    let text = ENTRY
        .replace("\"Gfxarch\"", "\"Disable_DWZ\": \"True\", \"Colour\": 1, \"Gfxarch\"")
        .replace("\"Name\"", "\"Shape\": [], \"Name\"");
    let findings = list(&text).unwrap().findings;
    let shown: Vec<String> = findings.iter().map(ToString::to_string).collect();
    assert_eq!(shown.len(), 2, "{shown:?}");
    assert!(shown.iter().any(|finding| finding.contains("`Colour`")), "{shown:?}");
    assert!(shown.iter().any(|finding| finding.contains("`Artifact_Subdir.Shape`")), "{shown:?}");
}

#[test]
fn faults_have_line_and_column() {
    for (what, with, place, why) in [
        ("\"amd64\"", "\"arm64\"", "line 4, column 21", "neither amd64 nor all"),
        ("\"amd64\"", "64", "line 4, column 22", "invalid type"),
        ("\"x86_64\"", "\"noarch\"", "line 5, column 18", "contradicts `Architecture`"),
        ("\"True\"", "\"maybe\"", "line 7, column ", "`maybe` is neither"),
        ("[\"lib\"]", "[\"lob\"]", "line 9, column ", "`lob` is not a component"),
        ("[\"lib\"]", "\"lib\"", "line 9, column ", "invalid type"),
        ("A <a@example.org>", "A", "line 6, column 19", "not a name with an e-mail address"),
        ("amdrocm-blas", "amdrocm_blas", "line 3, column 16", "is not a package name"),
        ("rocBLAS", "", "line 9, column ", "is empty: name a part"),
    ] {
        let error = list(&ENTRY.replacen(what, with, 1)).unwrap_err();
        let shown = format!("{error} {:?}", error.others());
        assert!(shown.contains(place) && shown.contains(why), "{shown}");
    }
    let error = list(&format!("{ENTRY},\n{ENTRY}")).unwrap_err();
    assert!(error.to_string().contains("is also the name of entry 0"), "{error}");
    assert!(PackageList::parse("{}").is_err());
}

#[test]
fn a_list_cut_anywhere_is_an_error() {
    let text = format!("[{ENTRY}]");
    for end in 0..text.len() {
        assert!(PackageList::parse(&text[..end]).is_err(), "{end}");
    }
}
