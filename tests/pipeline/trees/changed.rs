//! Trees that change during the run.

use std::fs;
use std::process::Stdio;

use support::trees::{Trees, named, native, text};
use support::waiting::{Process, until};

use crate::main_job::killed::{noise, staged, visible};
use crate::refusals::FAILED;

/// Builds a DESTDIR, a tarball and a library, changes them once the first package is being written, and
/// returns the run's error.
fn changed(change: impl FnOnce(&Trees)) -> String {
    let trees = Trees::default();
    trees.put("root/usr/lib/libhiprtc.so.7", native());
    trees.put("root/etc/conf", text("text"));
    fs::write(trees.path("root/usr/lib/noise.bin"), noise()).unwrap();
    trees.put("packed/lib/libpacked.so", native());
    let packed = named("packed", &trees.tarball("packed.tar.gz", "packed", &["."]));
    let file = named("file", &trees.put("libfile.so", native()));
    let mut command = trees.build(&[trees.path("root").display().to_string(), packed, file], &[]);
    let build = Process::start(command.stdout(Stdio::null()).stderr(Stdio::piped()));
    until("the run writes", || (!staged(&trees.out()).is_empty()).then_some(()));
    change(&trees);
    let output = build.output();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(FAILED), "{said}");
    assert!(said.contains("during the run") && said.contains("run again once"), "{said}");
    assert_eq!(visible(&trees.out()).len(), 0);
    said
}

#[test]
fn a_folder_that_changes_fails_the_run() {
    for folder in ["root/usr/lib", "root/etc", "root"] {
        let said = changed(|trees| fs::write(trees.path(folder).join("new"), "new").unwrap());
        assert!(said.contains(&format!("{folder}: a file was added to or removed")), "{said}");
    }
}

#[test]
fn a_tarball_and_a_file_that_change_fail_the_run() {
    for name in ["packed.tar.gz", "libfile.so"] {
        let said = changed(|trees| {
            let bytes = fs::read(trees.path(name)).unwrap();
            fs::write(trees.path(name), [&bytes[..], b"\n"].concat()).unwrap();
        });
        assert!(said.contains(&format!("{name}: the input file had")), "{said}");
    }
}
