//! The reports of `inspect` and `discover` on archives that a component ships.

use support::example::{GROUPS, rockpack};
use support::{kpack, tools};

use crate::directories::Work;
use crate::directories::shipped::{added, shards_with};

fn json(command: &mut std::process::Command) -> serde_json::Value {
    serde_json::from_slice(&tools::run(command).stdout).unwrap()
}

#[test]
fn they_are_device_code_of_their_archs() {
    kpack::need_python();
    let work = Work::new();
    let added = added();
    let shards = shards_with(&work, &added);
    let artifact = GROUPS[0].folder(&shards).join("blas_lib_gfx110X-dgpu");
    let shown = json(rockpack().args(["inspect", "--json"]).arg(artifact));
    let file = &shown[0]["files"]["lib/foo/apart.kpack"];
    let size = added[0]["lib/foo/apart.kpack"].len();
    assert_eq!(file["what"], "database");
    assert_eq!(file["generic_bytes"], 0);
    assert_eq!(file["device_bytes"], serde_json::json!({"gfx1100": size, "gfx1151": size}));

    let before = databases_for_gfx1101(&support::example::shards());
    assert_eq!(databases_for_gfx1101(&shards), before + 2);
}

fn databases_for_gfx1101(shards: &std::path::Path) -> u64 {
    let shown = json(rockpack().args(["discover", "--json"]).arg(shards));
    let archs = shown["architectures"].as_array().unwrap().clone();
    let arch = archs.into_iter().find(|arch| arch["arch"] == "gfx1101").unwrap();
    arch["databases"]["count"].as_u64().unwrap()
}
