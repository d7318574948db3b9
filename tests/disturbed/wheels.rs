//! Wheels of one version made over those of another.

use std::path::Path;
use std::process::Command;

use support::fat_wheels::{WheelSpec, library, of_shard, wheel_command};
use support::tools;

use crate::scenarios::{SET, Scenario};

/// The path of the wheel to split, in the room.
pub const INPUT: &str = "in/x-2.0-py3-none-manylinux_2_17_x86_64.whl";

fn split(room: &Path, out: &Path) -> Command {
    wheel_command(&[&room.join(INPUT)], out)
}

/// The wheel has a deflated library, which goes into a spool, and a stored one.
pub fn scenario() -> Scenario {
    support::kpack::need_python();
    let wheel = |version: &str| {
        let wheel = WheelSpec::new("x", version).text("x/__init__.py", version);
        wheel.file("x/_C.so", &library()).info("LICENSE", "MIT\n")
    };
    let make = |room: &Path| {
        let earlier = wheel("1.0").write(&room.join("old"));
        tools::run(&mut wheel_command(&[&earlier], &room.join("earlier")));
        let other = of_shard(2, "lib/libexblas.so.1.2");
        let new = wheel("2.0").file("x/sub/_C.so", &other).set("x/sub/_C.so", "method", 0);
        assert!(new.write(&room.join("in")).ends_with(INPUT));
    };
    Scenario::over_earlier("wheel", make, (split, SET))
}
