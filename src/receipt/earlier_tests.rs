//! Texts as version 2 wrote them.

use super::*;
use crate::receipt::SCHEMA as PRESENT;

const FILE: &str = "one/blas_lib_all/lib/rocblas/library/T_gfx906.dat";
const BELOW: &str = "blas_lib/lib/libx.so";

/// Code, subject and message of findings that `verify` has to know, and the message that the
/// present version gives them.
const READ: &[(&str, &str, &str, &str)] = &[
    (
        "R012",
        "gfx906",
        "21 code objects or database files (20 different) are in no package, because no group has \
         this arch (x_lib/a: 15, x_lib/b: 1, x_lib/c: 1, x_lib/d: 2, x_lib/e: 1 and 1 more)",
        "21 code objects or database files (20 distinct) are in no package, because no group has \
         this arch (x_lib/a: 15, x_lib/b: 1, x_lib/c: 1, x_lib/d: 2, x_lib/e: 1)",
    ),
    (
        "R018",
        "one/blas_lib_all/lib/libx.so",
        "no wrapper points to the bundle 0x1000 bytes into .hip_fatbin; its 1 code objects are left \
         out",
        "no wrapper points to the bundle 0x1000 bytes into .hip_fatbin; it is left out with its 1 \
         code object",
    ),
    ("R020", FILE, "names gfx906 and lies in the directory of gfx908, gfx90a", ""),
    (
        "R020",
        FILE,
        "is placed for all archs, and holds gfx908; it is treated like any other file of its kind",
        "",
    ),
    ("R020", FILE, "is placed for gfx906, and holds gfx908; it stays with the host files", ""),
    ("R020", FILE, "is placed for gfx906, and holds gfx908, gfx90a; the content decides", ""),
    ("R021", FILE, "serves several archs (rocblas) and stays with the host files", ""),
    ("R021", FILE, "is a cache for all archs (rocfft) and stays with the host files", ""),
    ("R022", FILE, "has no index of its name beside it", ""),
    ("R022", FILE, "has no code object of its name beside it", ""),
    (
        "R022",
        FILE,
        "is an index for gfx906, gfx908, and the code of its name is for gfx1100; it goes with the \
         code",
        "",
    ),
    (
        "R023",
        BELOW,
        "2 code objects of gfx906 differ between one/blas_lib_all and two/blas_lib_all (wrapper 3, \
         gfx906:xnack- is the first); those of one/blas_lib_all are packed",
        "2 code objects of gfx906 differ between one/blas_lib_all and two/blas_lib_all (wrapper 3, \
         gfx906:xnack- is the first); the code of one/blas_lib_all is packed",
    ),
    (
        "R024",
        BELOW,
        "is the union of the files of one/blas_lib_all (aa) and two/blas_lib_all (bb)",
        "is the union of one/blas_lib_all (aa), two/blas_lib_all (bb)",
    ),
    (
        "R025",
        "blas_lib/lib/rocblas/library",
        "7 files are moved to directories of their archs: T.dat differs: the key `k` differs",
        "7 files are moved to the directories of their archs, because T.dat differs: the key `k` \
         differs",
    ),
    ("R027", FILE, "refers to S.dat, which is not beside it", ""),
    ("R027", FILE, "is for gfx906, and refers to S.dat, which is for gfx908", ""),
    ("R028", FILE, "is for gfx906 as a whole, and stays as it is", ""),
    ("R033", FILE, "entry hipv4-amdgcn-amd-amdhsa--gfx906 is empty and is left out", ""),
    (
        "R037",
        "one/blas_lib_all/bin/x",
        "cannot be transformed and keeps its 1 code objects (gfx1100, gfx906:xnack-): no room (none)",
        "cannot be transformed and keeps its 1 code object (gfx1100, gfx906:xnack-): no room (none)",
    ),
    (
        "R038",
        "one/blas_lib_all/bin/x",
        "keeps its device code, but two/blas_lib_all provides the file: 1 of its code objects are in \
         no package",
        "keeps its device code, but two/blas_lib_all provides the file, so 1 code object of it is in \
         no package",
    ),
    (
        "R040",
        "one/blas_lib_all/lib/.kpack/x.kpack",
        "no binary of the shard asks for 1 code objects, so no package has them (they are under a, \
         b, c)",
        "no binary of the shard asks for 1 code object, so no package has it (kernel names: a, b, c)",
    ),
    (
        "R045",
        "blas gfx906",
        "1 code objects or database files (1 different) are in no package, because components.blas \
         leaves this arch out (blas_lib/lib/libx.so: 1)",
        "1 code object or database file is in no package, because components.blas \
         leaves this arch out (blas_lib/lib/libx.so: 1)",
    ),
    (
        "R045",
        "rocm-blas gfx906",
        "2 code objects or database files (2 different) are in no package, because \
         packages.rocm-blas leaves this arch out (lib/libx.so: 2)",
        "2 code objects or database files are in no package, because packages.rocm-blas leaves this \
         arch out (lib/libx.so: 2)",
    ),
    (
        "R046",
        "gfx906",
        "2 code objects or database files (2 different) are in no package, because no group has this \
         arch (x: 2)",
        "2 code objects or database files are in no package, because no group has this arch (x: 2)",
    ),
    (
        "R055",
        "blas_lib",
        "2 files and 1 different code objects are in no package, because --only leaves them out",
        "--only leaves out 2 files and 1 distinct code object of it",
    ),
    (
        "R070",
        "rocm-blas",
        "needs libx.so.1, which neither the set nor debian-12 has (bin/a, bin/b, bin/c and 3 more)",
        "needs libx.so.1, which neither the set nor debian-12 has (bin/a, bin/b, bin/c)",
    ),
    ("R072", BELOW, "its search path /opt/rocm/lib becomes `$ORIGIN`", ""),
    (
        "R078",
        "blas_lib",
        "no listed package takes 6 paths of it (a, b, c, d, e, …), with 1 different code objects",
        "no listed package takes 5 paths of it (a, b, c, d, e), with 1 distinct code object",
    ),
    (
        "R093",
        BELOW,
        "the libraries that it needs are no dependencies: the part that `test` goes into does not \
         say `programs = true`",
        "",
    ),
    (
        "R094",
        "rocm-blas",
        "needs libx.so.1, for which the configuration names no dependency (bin/a and b)",
        "",
    ),
];

fn old(code: &str, subject: &str, message: &str) -> UnreadFinding {
    UnreadFinding {
        code: code.to_owned(),
        name: "name".to_owned(),
        severity: "note".to_owned(),
        subject: subject.to_owned(),
        message: message.to_owned(),
        code_objects: vec!["0".repeat(64)],
    }
}

#[test]
fn texts_of_version_2_become_fields() {
    for (code, subject, message, now) in READ {
        let old = old(code, subject, message);
        let finding = upgraded(&old).unwrap_or_else(|| panic!("{old:?}"));
        let now = if now.is_empty() { message } else { now };
        assert_eq!((finding.code().id(), &*finding.subject()), (*code, *subject));
        assert_eq!(finding.message(), *now);
        let digests = finding.code_objects();
        assert!(digests.is_empty() || digests == old.code_objects, "{finding:?}");
    }
}

#[test]
fn another_text_is_kept_and_means_nothing() {
    for (code, subject, message) in [
        ("R012", "gfx906", "code objects are left out"),
        (
            "R021",
            "one/blas_lib_all",
            "serves several archs (rocblas) and stays with the host files",
        ),
        ("R028", "one/blas_lib_all/../x", "is for gfx906 as a whole, and stays as it is"),
        ("R070", "rocm-blas", "needs libx.so.1"),
        ("R004", "one/build.log", "is no artifact and is left out"),
        ("R999", "x", "is of a later version"),
    ] {
        assert_eq!(upgraded(&old(code, subject, message)), None);
    }
}

#[test]
fn a_receipt_of_version_2_is_one_of_the_present() {
    let receipt = |schema, findings: &[UnreadFinding]| {
        let findings = serde_json::to_string(findings).unwrap();
        let text = format!(
            r#"{{"schema":{schema},"generator":"","version":"","release":"","prefix":"",
            "content_date":0,"packages":[],"code_objects":[],"findings":{findings}}}"#
        );
        Receipt::parse(text.as_bytes()).unwrap()
    };
    let findings = [
        old("R004", "one/build.log", "is no artifact and is left out"),
        old("R028", FILE, "is for gfx906 as a whole, and stays as it is"),
    ];
    let upgraded = receipt(SCHEMA, &findings);
    assert_eq!(upgraded.schema, PRESENT);
    let [FindingRecord::Unread(text), FindingRecord::Known(known)] = &*upgraded.findings else {
        panic!("{upgraded:?}");
    };
    assert_eq!((text, known.code()), (&findings[0], Code::DatabaseHostCode));
    assert_eq!(Receipt::parse(&upgraded.to_bytes().unwrap()).unwrap(), upgraded);
    let present = receipt(PRESENT, &findings);
    assert!(present.findings.iter().all(|record| matches!(record, FindingRecord::Unread(_))));
}
