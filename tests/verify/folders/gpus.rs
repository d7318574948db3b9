//! Which GPUs of a made-up machine an installed prefix serves.

use serde_json::{Value, json};
use support::tampered::told;

use super::*;

/// The path of a made-up machine.
fn machine(name: &str) -> String {
    tools::repository("tests/machines").join(name).to_str().unwrap().to_owned()
}

/// The report of `prefix` on a machine.
fn on(prefix: &Copy, name: &str) -> (Run, Value) {
    let arguments = ["--installed", "--sysfs", &machine(name)];
    let run = verify(&[prefix.root().to_str().unwrap()], &arguments);
    let report = serde_json::from_str(&run.text).unwrap();
    (run, report)
}

#[test]
fn a_card_is_served_and_the_processor_beside_it_is_not() {
    let prefix = prefix();
    let (run, report) = on(&prefix, "apu-beside-card");
    run.fired(&[]);
    let [card, processor] = report["gpus"].as_array().unwrap().as_slice() else {
        panic!("{}", run.text);
    };
    assert_eq!(
        (&card["product"], &card["target"]),
        (&json!("Radeon RX 7900 XTX"), &json!("gfx1100"))
    );
    assert!(card["served"].as_u64().unwrap() > 0 && card.get("unserved").is_none(), "{card}");
    assert_eq!((&processor["target"], &processor["served"]), (&json!("gfx1036"), &json!(0)));
    let unserved = processor["unserved"].as_array().unwrap();
    assert_eq!(unserved.len() as u64, card["served"].as_u64().unwrap());
    assert!(unserved.contains(&json!({ "library": LIBRARY })), "{processor}");
    let (root, machine) = (prefix.root(), machine("apu-beside-card"));
    let text = told(&[root.to_str().unwrap(), "--installed", "--sysfs", &machine]);
    assert!(text.contains("Radeon RX 7900 XTX (gfx1100): "), "{text}");
    assert!(text.contains("; no known package has it\n"), "{text}");
    assert!(text.ends_with("all checks passed\nexit status: 0\n"), "{text}");
}

#[test]
fn the_package_is_one_that_the_common_package_of_the_root_names() {
    let prefix = prefix();
    for (name, table) in [
        ("rocm-common", "p /copy\nt gfx1036 other\nt gfx1100 rocm-gfx110x\nt gfx11000 another\n"),
        ("rocm-common7.2", "p /copy-7.2\nt gfx1100 rocm7.2-gfx110x\n"),
    ] {
        let common = prefix.0.path().join("usr/share").join(name);
        fs::create_dir_all(&common).unwrap();
        fs::write(common.join("gpu.sh"), table).unwrap();
    }
    // With its code, nothing is to be installed.
    let (_, report) = on(&prefix, "apu-beside-card");
    assert!(report["gpus"][0].get("unserved").is_none(), "{report}");
    // The set has no code for the processor.
    assert!(report["gpus"][1]["unserved"][0].get("packages").is_none(), "{report}");
    fs::remove_file(prefix.root().join(archive("gfx1100"))).unwrap();
    let (run, report) = on(&prefix, "apu-beside-card");
    run.fired(&["V030", "V033"]);
    let lacking = json!({ "library": LIBRARY, "packages": ["rocm-gfx110x"] });
    assert!(report["gpus"][0]["unserved"].as_array().unwrap().contains(&lacking), "{report}");
    // Of a prefix that was moved, nothing is known.
    let moved = prefix.0.path().join("moved");
    fs::rename(prefix.root(), &moved).unwrap();
    let run = verify(
        &[moved.to_str().unwrap()],
        &["--installed", "--sysfs", &machine("apu-beside-card")],
    );
    let report: Value = serde_json::from_str(&run.text).unwrap();
    let unserved = report["gpus"][0]["unserved"].as_array().unwrap();
    assert!(unserved.contains(&json!({ "library": LIBRARY })), "{report}");
}

#[test]
fn machines_without_known_gpus() {
    let prefix = prefix();
    let (run, report) = on(&prefix, "unknown-id");
    run.fired(&[]);
    assert!(report.get("gpus").is_none() && report["skipped_gpus"][0]["why"].is_string());
    let (_, report) = on(&prefix, "empty");
    assert!(report.get("gpus").is_none() && report.get("skipped_gpus").is_none(), "{report}");
}
