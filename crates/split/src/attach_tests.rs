//! Tests of archive rows and the binaries that ask for them; whole artifacts are in
//! `tests/pipeline/directories`.

use rockpack_core::tree::TreePath;
use rockpack_elf::kpack::{self, HSACO, KpackReader, Scheme, Toc, TocRow};

use super::*;
use crate::KernelArchive;
use crate::input::database::DatabaseRules;
use crate::tests::code_object;
use rockpack_report::{Code, Findings, InputArtifact};

/// gfx90a with xnack on and any sramecc, with xnack off and any sramecc.
const XNACK_ON: u32 = 0x73f;
const XNACK_OFF: u32 = 0x63f;

/// An artifact with an archive of `codes` and rows `(key, target, ordinal)`.
fn artifact(family: &str, codes: &[Vec<u8>], rows: &[(&str, &str, u32)]) -> SplitArtifact {
    let mut table: BTreeMap<String, BTreeMap<String, TocRow>> = BTreeMap::new();
    for (key, target, ordinal) in rows {
        let original_size = codes[*ordinal as usize].len() as u64;
        let (kind, ordinal) = (HSACO.to_owned(), *ordinal);
        let row = TocRow { kind, ordinal, original_size, metadata: None };
        table.entry((*key).to_owned()).or_default().insert((*target).to_owned(), row);
    }
    let toc = Toc {
        group_name: "blas_lib".to_owned(),
        gfx_arch_family: family.to_owned(),
        gfx_arches: rows.iter().map(|(_, target, _)| (*target).to_owned()).collect(),
        scheme: Scheme::None,
        rows: table,
    };
    let codes: Vec<Content> = codes.iter().map(|code| Content::of_bytes(code.clone())).collect();
    let content = kpack::write(&toc, &codes).unwrap();
    let path = TreePath::new(format!("lib/.kpack/blas_lib_{family}.kpack")).unwrap();
    let reader = KpackReader::open(content.clone()).unwrap();
    SplitArtifact {
        archives: vec![KernelArchive { path, module: None, mode: 0o644, content, reader }],
        shard: "shard".to_owned(),
        name: format!("blas_lib_{family}").parse().unwrap(),
        sha256: None,
        host: Tree::new(),
        databases: Vec::new(),
        shared: BTreeMap::new(),
        archive_manifests: Vec::new(),
        findings: Findings::default(),
    }
}

fn archive_at(path: &str) -> InputFile {
    InputArtifact::new("shard", &"blas_lib_gfx90a".parse().unwrap())
        .file(&TreePath::new(path).unwrap())
}

fn archived_code(flags: u32, archive: &str) -> ArchivedCode {
    ArchivedCode {
        target: "gfx90a:xnack+".parse().unwrap(),
        content: Content::of_bytes(code_object(flags)),
        archive: archive_at(archive),
        claimed: None,
    }
}

fn of_blas(kernel_name: &str) -> KernelKey {
    (kernel_name.to_owned(), "blas_lib".to_owned())
}

fn targets(artifact: SplitArtifact, key: &str) -> Vec<String> {
    let rows = rows_of(&[artifact]).unwrap();
    let found = &rows[&of_blas(key)][&Some(0)];
    found.iter().map(|row| row.target.to_string()).collect()
}

#[test]
fn rows_for_more_specific_targets_are_not_separate_code_objects() {
    let codes = [code_object(XNACK_ON), code_object(XNACK_OFF)];
    let rows = [
        ("x#0", "gfx90a:xnack+", 0),
        ("x#0", "gfx90a:sramecc+:xnack+", 0),
        ("x#0", "gfx90a:sramecc-:xnack+", 0),
        ("x#0", "gfx90a:xnack-", 1),
        ("x#0", "gfx90a:sramecc+:xnack-", 1),
    ];
    assert_eq!(targets(artifact("gfx90a", &codes, &rows), "x"), ["gfx90a:xnack+", "gfx90a:xnack-"]);
}

#[test]
fn the_code_decides_what_a_row_is_for() {
    let wrong = [("x#0", "gfx906", 0)];
    let rows = rows_of(&[artifact("gfx906", &[code_object(XNACK_ON)], &wrong)]).unwrap();
    let row = &rows[&of_blas("x")][&Some(0)][0];
    assert_eq!(row.target.to_string(), "gfx90a:xnack+");
    assert_eq!(row.claimed.as_ref().unwrap().to_string(), "gfx906");
    let text = artifact("gfx90a", &[b"no code object".to_vec()], &[("x#0", "gfx90a", 0)]);
    assert!(rows_of(&[text]).is_err());
}

#[test]
fn rows_without_a_binary_are_a_finding_with_their_digests() {
    let codes = [code_object(XNACK_ON), code_object(XNACK_OFF)];
    let rows = [("x#0", "gfx90a:xnack+", 0), ("old", "gfx90a:xnack-", 1)];
    let rules = DatabaseRules::builtin().unwrap();
    let options = SplitPolicy::strict(&rules);
    let attached = attach(vec![artifact("gfx90a", &codes, &rows)], &[], &options).unwrap();
    let findings: Vec<&Finding> = attached[0].findings.iter().collect();
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].code(), Some(Code::KernelsUnclaimed));
    assert_eq!(findings[0].code_objects().len(), 2);
}

#[test]
fn one_key_has_one_code_object() {
    let (mut noted, place) = (Vec::new(), archive_at("lib/x"));
    let same = [archived_code(XNACK_ON, "a"), archived_code(XNACK_ON, "b")];
    assert_eq!(joined(&same, 0, &place, &mut noted).unwrap().len(), 1);
    let different = [archived_code(XNACK_ON, "a"), archived_code(XNACK_OFF, "b")];
    let error = joined(&different, 0, &place, &mut noted).unwrap_err();
    assert_eq!(error.kind(), Kind::Conflict);
    assert!(error.message().contains("blas_lib_gfx90a/a and"), "{error}");
}
