//! Files that are packed but useless after installation: thin static archives, and MIOpen's files for a
//! single user.

use std::fs;
use std::process::Command;

use support::tools;

use crate::rules::{Case, library, write};
use crate::text;

/// A thin archive made by ar.
fn thin(case: &Case) -> Vec<u8> {
    let folder = case.folder.path().join("build");
    write(&folder.join("x.o"), b"an object");
    tools::run(Command::new("ar").args(["rcST", "libx.a", "x.o"]).current_dir(&folder));
    let thin = fs::read(folder.join("libx.a")).unwrap();
    assert!(thin.starts_with(b"!<thin>\n"));
    thin
}

fn messages(case: &Case, code: &str) -> Vec<(String, String)> {
    let said = case.findings(code).into_iter();
    said.map(|finding| (text(&finding["subject"]), text(&finding["message"]))).collect()
}

#[test]
fn thin_archives_are_named() {
    tools::need(&["ar"]);
    let case = Case::new();
    let thin = thin(&case);
    write(&case.file(0, "lib/libthin.a"), &thin);
    write(&case.file(0, "lib/libwrapped.a"), &library(&[("libthin.a/", thin)]));
    write(&case.file(0, "lib/libwhole.a"), &library(&[("x.o/", b"an object".to_vec())]));
    let case = case.built("");
    let artifact = "gfx110X-build/blas_lib_gfx110X-dgpu";
    let words = "a thin static archive, which refers to object files of the build tree and contains none: \
                 nothing can be linked with it elsewhere; make it without `T` (`ar rcs`), or leave \
                 it out of the artifact";
    let expected = [
        (format!("{artifact}/lib/libthin.a"), format!("is {words}")),
        (format!("{artifact}/lib/libwrapped.a"), format!("has a member that is {words}")),
    ];
    assert_eq!(messages(&case, "R047"), expected);
}

#[test]
fn files_of_miopen_for_one_user_are_named_unless_a_rule_claims_them() {
    let case = Case::new();
    let names = [
        "gfx110048.ukdb",
        "gfx1100_48.ukdb",
        "gfx1100_48.ukdb.bz2",
        "gfx1100_48.HIP.3_6_0_baa93758.ufdb.txt",
        "gfx1100_48.udb.txt",
        "gfx1100_48.kdb.bz2",
        "gfx1100_48.HIP.fdb.txt.bz2",
    ];
    let database = "share/miopen/db";
    for name in names {
        write(&case.file(0, &format!("{database}/{name}")), b"SQLite format 3\0");
    }
    let cache = "lib/test/.cache/miopen/3.6.0/gfx1100_48.ukdb";
    write(&case.file(0, cache), b"SQLite format 3\0");
    // Files that MIOpen reads are in the kernel package, without a finding.
    write(&case.file(0, "share/miopen/db/gfx1100_48.kdb"), b"SQLite format 3\0");
    write(&case.file(0, "share/other/gfx1100_48.ukdb"), b"no file of MIOpen");
    let case = case.built("");
    let found = messages(&case, "R048");
    let subjects: Vec<&str> =
        found.iter().map(|(subject, _)| subject.split_once("-dgpu/").unwrap().1).collect();
    let mut expected: Vec<String> = names.map(|name| format!("{database}/{name}")).to_vec();
    expected.push(cache.to_owned());
    expected.sort();
    assert_eq!(subjects, expected);
    let message = "is left over from a run or a build, and no library reads it from a package \
                   (miopen-user); it is in the host package for all archs: leave it out of the \
                   artifact, or assign it to its arch as `data` by a rule under `databases`";
    assert!(found.iter().all(|(_, said)| said == message), "{found:?}");
    let host = case.members("rocm-blas");
    assert!(expected.iter().all(|path| host.contains(path.as_str())));
    assert!(case.members("rocm-blas-gfx110x").contains("share/miopen/db/gfx1100_48.kdb"));

    let rule = "[[databases]]\nname = 'kept'\ndirectories = ['share/miopen/db']\nnames = 'start'\n\
                data = ['gfx*']\n";
    let case = case.built(rule);
    assert_eq!(messages(&case, "R048").len(), 1);
    let kernels = case.members("rocm-blas-gfx110x");
    assert!(expected[1..].iter().all(|path| kernels.contains(path.as_str())));
}
