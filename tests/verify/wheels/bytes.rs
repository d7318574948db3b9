//! One byte of any member, with a RECORD that fits: the comparison with the fat wheel finds it.

use std::collections::BTreeSet;

use rockpack_core::run::Budget;
use rockpack_report::Silent;
use rockpack_signing::Trust;
use rockpack_verify::{Extent, Options};
use support::sweep;

use super::against::written;
use super::*;
use crate::signed::Signer;

/// The checks that fail in this process.
fn failing(folder: &Path) -> BTreeSet<&'static str> {
    let options = Options {
        installed: false,
        against: None,
        binaries: Vec::new(),
        wheels: vec![fat()],
        extent: Extent::Whole,
        trust: Trust::default(),
        budget: Budget::unlimited(),
        sysfs: PathBuf::new(),
    };
    let report = rockpack_verify::verify(&[folder.to_owned()], &options, &Silent).unwrap();
    report.problems.iter().map(|problem| problem.code().id()).collect()
}

/// Texts of device wheels are new: nothing says what they have to be, word for word.
fn is_compared(wheel: &LooseWheel, path: &str) -> bool {
    let is_text = path.starts_with(&wheel.info(""));
    let is_host = wheel.name == file_name(HOST);
    path != wheel.info("RECORD") && (is_host || !is_text)
}

#[test]
fn a_byte_of_any_member_is_found() {
    let (_folder, out) = written();
    fs::remove_file(out.join("wheels.json")).unwrap();
    assert_eq!(failing(&out), BTreeSet::new());
    let samples = sweep::or_all(6, 60);
    for distribution in [HOST.to_owned(), device("gfx1100")] {
        let wheel = LooseWheel::read(&out.join(file_name(&distribution)));
        for (path, file) in wheel.files.iter().filter(|(path, _)| is_compared(&wheel, path)) {
            let step = file.bytes.len().div_ceil(samples).max(1);
            for at in (0..file.bytes.len()).step_by(step) {
                let mut changed = wheel.clone();
                changed.files.get_mut(path).unwrap().bytes[at] ^= 0x10;
                changed.write(&out);
                assert!(!failing(&out).is_empty(), "{path} at {at}");
            }
        }
        wheel.write_as_is(&out);
    }
    assert_eq!(failing(&out), BTreeSet::new());
}

#[test]
fn v107_and_single_bytes_of_signed_wheels() {
    let own = Signer::new("own");
    let (_folder, out) = written();
    let (folder, receipt) = ([out.to_str().unwrap()], out.join("wheels.json"));
    verify(&folder, &own.option()).fired(&["V107"]);
    own.sign(&receipt);
    verify(&folder, &own.option()).fired(&[]);
    let wheel = out.join(file_name(&device("gfx1100")));
    let original = fs::read(&wheel).unwrap();
    let changed = |at: usize| {
        let mut bytes = original.clone();
        bytes[at] ^= 0x20;
        bytes
    };
    own.finds_single_bytes(&wheel, changed, original.len());
    fs::write(&receipt, fs::read_to_string(&receipt).unwrap() + "\n").unwrap();
    verify(&folder, &own.option()).fired(&["V108"]);
}
