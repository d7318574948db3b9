use std::collections::BTreeSet;

use rockpack_core::content::Sha256Digest;
use rockpack_core::gfx::BaseArch;
use rockpack_core::tree::TreePath;

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
    Finding::LibraryUnresolved {
        package: text("rocm-blas"),
        library: text("libx.so.1"),
        distribution: text("debian-12"),
        files: files.map(path).to_vec(),
    }
}

#[test]
fn codes_and_names_are_unique() {
    let ids: BTreeSet<_> = Code::ALL.iter().map(|code| code.id()).collect();
    let names: BTreeSet<_> = Code::ALL.iter().map(|code| code.name()).collect();
    assert_eq!([ids.len(), names.len()], [Code::ALL.len(); 2]);
    assert!(Code::ALL.iter().all(|code| Code::of_id(code.id()) == Some(*code)));
}

#[test]
fn json_has_the_text_and_the_fields_and_reads_back() {
    let digest: Sha256Digest = [1; 32].into();
    let finding = Finding::KeptFatDropped {
        file: artifact("one").file(&path("bin/x")),
        provided_by: artifact("two"),
        code_objects: vec![digest],
    };
    assert_eq!(finding.code_objects().len(), 1);
    let json = serde_json::to_value(&finding).unwrap();
    let code = finding.code();
    assert_eq!((&json["code"], &json["name"]), (&code.id().into(), &code.name().into()));
    assert_eq!(json["severity"], code.severity().to_string());
    assert_eq!(json["subject"], finding.subject());
    assert_eq!(json["message"], finding.message());
    assert_eq!(json["file"]["path"], "bin/x");
    assert_eq!(json["code_objects"][0], "01".repeat(32));
    assert_eq!(serde_json::from_value::<Finding>(json).unwrap(), finding);
}

#[test]
fn only_warnings_fail_a_strict_run() {
    let mut findings = Findings::default();
    findings.add(Finding::GroupEmpty { group: text("gfx120X") });
    assert!(findings.refuse_warnings("").is_ok());
    findings.add(Finding::VersionUnset { version: text("0") });
    assert!(findings.refuse_warnings("").is_err());
}

#[test]
fn findings_that_differ_in_what_the_text_leaves_out_are_kept_in_one_order() {
    let first = library_unresolved(["a", "b", "c", "d"]);
    let last = library_unresolved(["a", "b", "c", "e"]);
    assert_eq!(first.to_string(), last.to_string());
    let kept = sorted([last.clone(), first.clone(), last.clone()]);
    assert_eq!(kept.list, [first.clone(), last.clone()]);
    assert_eq!(sorted([first.clone(), last, first]), kept);
}

fn sorted(given: [Finding; 3]) -> Findings {
    let mut findings = Findings { list: given.to_vec(), ..Findings::default() };
    findings.sort();
    findings
}

#[test]
fn accepted_findings_are_no_warnings_and_say_why() {
    let mut findings = Findings::default();
    findings.add(Finding::VersionUnset { version: text("0") });
    findings.add(Finding::ArchMissing { arch: arch("gfx906"), group: text("g") });
    assert_eq!(findings.accept(|finding| finding.code() == Code::VersionUnset, "a test"), 1);
    assert_eq!(findings.accept(|finding| finding.code() == Code::VersionUnset, "again"), 1);
    assert_eq!(findings.accept(|finding| finding.code() == Code::RuntimeUnset, "none"), 0);
    assert_eq!(findings.warnings().list.len(), 1);
    let (mut more, earlier) = (Findings::default(), findings);
    more.extend(earlier);
    more.sort();
    let json = serde_json::to_value(&more).unwrap();
    assert_eq!((&json[0]["code"], &json[0]["accepted"]), (&"R003".into(), &"a test".into()));
    assert_eq!(json[1].get("accepted"), None);
    let lines: Vec<String> = more.remarks().map(|remark| remark.text).collect();
    assert_eq!(
        lines,
        [
            "accepted: R003 version-unset: version: no version was given, so the packages have 0; \
             reason: a test",
            "warning: R013 arch-missing: gfx906: no shard has device code for it (group g)"
        ]
    );
    more.retain(|finding| finding.code() == Code::VersionUnset);
    assert!(more.refuse_warnings("").is_ok());
}

#[test]
fn things_are_subjects_texts_and_paths_of_files() {
    let unresolved = library_unresolved(["bin/a"]);
    assert_eq!(unresolved.named_things(), ["rocm-blas", "debian-12", "libx.so.1", "rocm-blas"]);
    let moved = Finding::ProgramHeadersMoved { file: artifact("one").file(&path("lib/x.so")) };
    assert_eq!(moved.named_things(), ["one/blas_lib_all/lib/x.so", "lib/x.so", "x.so", "x.so"]);
}
