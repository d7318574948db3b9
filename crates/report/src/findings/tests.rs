use std::collections::BTreeSet;

use rockpack_core::content::Sha256Digest;
use rockpack_core::gfx::BaseArch;
use rockpack_core::tree::TreePath;
use serde_json::json;

use super::*;
use crate::InputArtifact;

fn path(text: &str) -> TreePath {
    TreePath::new(text).unwrap()
}

fn arch(text: &str) -> BaseArch {
    text.parse().unwrap()
}

fn text<T: for<'a> From<&'a str>>(text: &str) -> T {
    text.into()
}

fn artifact(shard: &str) -> InputArtifact {
    InputArtifact::new(shard, &"blas_lib_all".parse().unwrap())
}

fn library_unresolved<const N: usize>(files: [&str; N]) -> Finding {
    Finding::from(found::LibraryUnresolved {
        package: text("rocm-blas"),
        library: text("libx.so.1"),
        distribution: text("debian-12"),
        files: files.map(path).to_vec(),
    })
}

#[test]
fn codes_and_names_are_unique() {
    let ids: BTreeSet<_> = Code::ALL.iter().map(|code| code.id).collect();
    let names: BTreeSet<_> = Code::ALL.iter().map(|code| code.name).collect();
    assert_eq!([ids.len(), names.len()], [Code::ALL.len(); 2]);
    assert!(Code::ALL.iter().all(|code| Code::of_id(code.id) == Some(*code)));
}

#[test]
fn json_has_the_text_and_the_fields_and_reads_back() {
    let digest: Sha256Digest = [1; 32].into();
    let finding = Finding::from(found::KeptFatDropped {
        file: artifact("one").file(&path("bin/x")),
        provided_by: artifact("two"),
        code_objects: vec![digest],
    });
    assert_eq!(finding.code_objects().len(), 1);
    let json = serde_json::to_value(&finding).unwrap();
    let code = finding.code().unwrap();
    assert_eq!((&json["code"], &json["name"]), (&code.id.into(), &code.name.into()));
    assert_eq!(json["severity"], code.severity.to_string());
    assert_eq!(json["subject"], finding.subject());
    assert_eq!(json["message"], finding.message());
    assert_eq!(json["file"]["path"], "bin/x");
    assert_eq!(json["code_objects"][0], "01".repeat(32));
    assert_eq!(serde_json::from_value::<Finding>(json).unwrap(), finding);
}

#[test]
fn findings_of_any_version_are_read_and_written_again() {
    let text = |code| {
        json!({
            "code": code, "name": "n", "severity": "note", "subject": "s", "message": "m",
            "colour": "red", "sizes": [1, u64::MAX], "odd": "a \\ \" b", "accepted": "why",
        })
    };
    let other: Finding = serde_json::from_value(json!({
        "code": "R999", "name": "n", "severity": "er\u{1b}ror", "subject": "s", "message": "m",
    }))
    .unwrap();
    assert!(other.is_warning() && other.to_string().starts_with("er\\u{1b}ror: R999"), "{other}");
    for (code, known) in [("R013", Some(Code::ArchMissing)), ("R999", None)] {
        let finding: Finding = serde_json::from_value(text(code)).unwrap();
        assert_eq!(finding.code(), known);
        assert_eq!(finding.field::<String>("colour").unwrap(), "red");
        assert!(finding.field::<u32>("colour").is_none() && finding.code_objects().is_empty());
        assert_eq!(serde_json::to_string(&finding).unwrap(), text(code).to_string());
        let pretty = serde_json::to_string_pretty(&text(code)).unwrap();
        assert_eq!(serde_json::from_str::<Finding>(&pretty).unwrap(), finding);
        assert_eq!(finding.to_string(), format!("accepted: {code} n: s: m; reason: why"));
    }
}

#[test]
fn findings_without_a_text_or_with_a_field_twice_are_refused() {
    let read = |more: &str| {
        let text = r#""code":"R013","name":"n","severity":"note","subject":"s""#;
        serde_json::from_str::<Finding>(&format!("{{{text}{more}}}")).map_err(|it| it.to_string())
    };
    assert!(read(r#","message":"m","severity_of":"x""#).is_ok());
    assert!(read("").unwrap_err().starts_with("missing field `message`"));
    assert!(
        read(r#","message":["m"]"#).unwrap_err().contains("`message` of a finding is not text")
    );
    for twice in [r#""message":"m""#, r#""code_objects":[]"#, r#""accepted":"why""#] {
        let error = read(&format!(r#","message":"m",{twice},{twice}"#)).unwrap_err();
        assert!(error.contains("is given twice"), "{error}");
    }
}

#[test]
fn of_equal_findings_the_accepted_one_stays() {
    let findings = || Findings::of([&sorted([library_unresolved(["a"]), version(), version()])]);
    let mut accepted = findings();
    accepted.accept(|finding| finding.code() == Some(Code::VersionUnset), "why");
    let mut all = Findings::of([&findings(), &accepted, &findings()]);
    all.sort();
    assert_eq!(all, accepted);
}

fn version() -> Finding {
    found::VersionUnset { version: text("0") }.into()
}

#[test]
fn only_warnings_fail_a_strict_run() {
    let mut findings = Findings::default();
    findings.add(found::GroupEmpty { group: text("gfx120X") });
    assert!(findings.refuse_warnings("").is_ok());
    findings.add(found::VersionUnset { version: text("0") });
    assert!(findings.refuse_warnings("").is_err());
}

#[test]
fn findings_that_differ_in_what_the_text_leaves_out_are_kept_in_one_order() {
    let first = library_unresolved(["a", "b", "c", "d"]);
    let last = library_unresolved(["a", "b", "c", "e"]);
    assert_eq!(first.to_string(), last.to_string());
    let kept = sorted([last.clone(), first.clone(), last.clone()]);
    assert_eq!(kept.0, [first.clone(), last.clone()]);
    assert_eq!(sorted([first.clone(), last, first]), kept);
}

fn sorted(given: [Finding; 3]) -> Findings {
    let mut findings = Findings(given.to_vec());
    findings.sort();
    findings
}

#[test]
fn accepted_findings_are_not_warnings_and_say_why() {
    let mut findings = Findings::default();
    findings.add(found::VersionUnset { version: text("0") });
    findings.add(found::ArchMissing { arch: arch("gfx906"), group: text("g") });
    assert_eq!(findings.accept(|finding| finding.code() == Some(Code::VersionUnset), "a test"), 1);
    assert_eq!(findings.accept(|finding| finding.code() == Some(Code::VersionUnset), "again"), 1);
    assert_eq!(findings.accept(|finding| finding.code() == Some(Code::RuntimeUnset), "none"), 0);
    assert_eq!(findings.warnings().len(), 1);
    let (mut more, earlier) = (Findings::default(), findings);
    more.extend(earlier);
    more.sort();
    let json = serde_json::to_value(&more).unwrap();
    assert_eq!((&json[0]["code"], &json[0]["accepted"]), (&"R003".into(), &"a test".into()));
    assert_eq!(json[1].get("accepted"), None);
    let lines: Vec<String> = more.iter().map(|finding| finding.remark().text).collect();
    assert_eq!(
        lines,
        [
            "accepted: R003 version-unset: version: no version was given, so the packages have 0; \
             reason: a test",
            "warning: R013 arch-missing: gfx906: no shard has device code for it (group g)"
        ]
    );
    more.retain(|finding| finding.code() == Some(Code::VersionUnset));
    assert!(more.refuse_warnings("").is_ok());
}

#[test]
fn things_are_subjects_texts_and_paths_of_files() {
    let unresolved = library_unresolved(["bin/a"]);
    assert_eq!(unresolved.matchable_names(), ["rocm-blas", "rocm-blas", "libx.so.1", "debian-12"]);
    let moved =
        Finding::from(found::ProgramHeadersMoved { file: artifact("one").file(&path("lib/x.so")) });
    assert_eq!(moved.matchable_names(), ["one/blas_lib_all/lib/x.so", "lib/x.so", "x.so", "x.so"]);
}
