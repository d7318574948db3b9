//! Extras of wheels that require other wheels with device code.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use support::device::link;
use support::fat_wheels::{Made, WheelSpec, library, metadata, of_shard, read_one, wheel_command};
use support::tampered::verify;
use support::tools::{run, told};

/// A wheel that others require, with code for gfx1151 as well; its name sorts after theirs.
fn pjrt(lines: &str) -> WheelSpec {
    WheelSpec::new("z-pjrt", "1.0")
        .file("z_pjrt/_C.so", &library())
        .file("z_pjrt/_D.so", &of_shard(1, "lib/libexblas.so.1.2"))
        .info("METADATA", &metadata("z-pjrt", "1.0", lines))
}

/// A wheel with these further lines of METADATA.
fn plugin(lines: &str) -> WheelSpec {
    WheelSpec::new("a-plugin", "1.0")
        .file("a_plugin/_C.so", &library())
        .info("METADATA", &metadata("a-plugin", "1.0", lines))
}

/// Splits wheels in one run.
fn split(first: &WheelSpec, second: &WheelSpec, options: &[&str]) -> Made {
    let made = Made::of(first, options);
    let input = made.room.path().join("in");
    second.write(&input);
    run(wheel_command(&[&input], &made.out()).args(options));
    made
}

fn passes(made: &Made) {
    let (out, input) = (made.out(), made.room.path().join("in"));
    let against = ["--against", input.to_str().unwrap()];
    verify(&[out.to_str().unwrap()], &against).fired(&[]);
}

#[test]
fn extras_bring_those_of_required_wheels() {
    support::kpack::need_python();
    let made = split(&pjrt(""), &plugin("Requires-Dist: Z.pjrt (==1.0)\n"), &[]);
    let (host, other) = (made.wheel("a-plugin"), made.wheel("z-pjrt"));
    assert_eq!(host.requires(""), ["Z.pjrt (==1.0)"].into());
    let own = "a-plugin-device-gfx1100 == 1.0";
    assert_eq!(host.requires("device-gfx1100"), [own, "z-pjrt[device-gfx1100]==1.0"].into());
    // The other wheel alone has code for it.
    assert_eq!(host.requires("device-gfx1151"), ["z-pjrt[device-gfx1151]==1.0"].into());
    assert!(host.requires("device-all").contains("z-pjrt[device-all]==1.0"));
    let extras = |fields: Vec<&str>| fields.into_iter().map(str::to_owned).collect();
    let offered: BTreeSet<String> = extras(host.fields("Provides-Extra"));
    assert_eq!(offered, extras(other.fields("Provides-Extra")));
    assert_eq!(host.fields("Provides-Extra").last(), Some(&"device-all"));
    // Who asks for a device wheel by its name gets the same.
    let device = made.wheel("a-plugin-device-gfx1100");
    assert_eq!(device.requires(""), ["a-plugin == 1.0", "z-pjrt[device-gfx1100]==1.0"].into());
    passes(&made);
    // The required wheel is what it is alone.
    let alone = Made::of(&pjrt(""), &[]);
    for name in alone.wheels().keys() {
        let [one, other] = [&alone, &made].map(|made| fs::read(made.out().join(name)).unwrap());
        assert!(one == other, "{name}");
    }
}

/// A run may have several versions of a wheel. The one that installers take decides which extras it has.
#[test]
fn extras_are_those_of_the_version_that_installers_take() {
    support::kpack::need_python();
    let later = WheelSpec::new("z-pjrt", "2.0").file("z_pjrt/_C.so", &library());
    let made = split(&pjrt(""), &later, &[]);
    let input = made.room.path().join("in");
    for (versions, expected) in [(">=1.0", false), ("==1.0", true)] {
        let plugin = plugin(&format!("Requires-Dist: z-pjrt {versions}\n")).write(&input);
        run(&mut wheel_command(&[&input], &made.out()));
        let host = read_one(&made.out().join(plugin.file_name().unwrap()));
        let other = format!("z-pjrt[device-gfx906]{versions}");
        assert!(host.requires("device-gfx906").contains(&*other), "{versions}");
        assert_eq!(host.requires("device-gfx1151").is_empty(), !expected, "{versions}");
        passes(&made);
    }
}

/// Either wheel may have code for a GPU of the other by a generic target alone.
#[test]
fn generic_code_comes_with_the_extras_of_its_gpus() {
    support::kpack::need_python();
    let room = tempfile::tempdir().unwrap();
    let library = |name: &str, archs: &[&str]| link(room.path(), name, &[("one", archs)], &[]);
    let other = library("z.so", &["gfx11-generic", "gfx1030"]);
    let other = WheelSpec::new("z-pjrt", "1.0").file("z_pjrt/_C.so", &other);
    let own = library("a.so", &["gfx1100", "gfx10-3-generic"]);
    let own = WheelSpec::new("a-plugin", "1.0").file("a_plugin/_C.so", &own);
    let lines = metadata("a-plugin", "1.0", "Requires-Dist: z-pjrt\n");
    let made = split(&other, &own.info("METADATA", &lines), &[]);
    let host = made.wheel("a-plugin");
    let [own, other] = ["a-plugin-device-gfx1100 == 1.0", "z-pjrt[device-gfx11-generic]"];
    assert_eq!(host.requires("device-gfx1100"), [own, other].into());
    let device = made.wheel("a-plugin-device-gfx1100");
    assert_eq!(device.requires(""), ["a-plugin == 1.0", other].into());
    let own = "a-plugin-device-gfx10-3-generic == 1.0";
    assert_eq!(host.requires("device-gfx1030"), [own, "z-pjrt[device-gfx1030]"].into());
    assert_eq!(host.requires("device-gfx10-3-generic"), [own].into());
    assert_eq!(host.requires("device-gfx11-generic"), [other].into());
    passes(&made);
}

#[test]
fn markers_of_environments_are_kept() {
    support::kpack::need_python();
    let lines = "Requires-Dist: z-pjrt == 1.0; python_version >= '3' or os_name == 'nt'\n";
    let made = split(&pjrt(""), &plugin(lines), &[]);
    let line = "z-pjrt[device-gfx906]==1.0; (python_version >= '3' or os_name == 'nt') and extra == \
                \"device-gfx906\"";
    let host = made.wheel("a-plugin");
    assert!(host.fields("Requires-Dist").contains(&line), "{}", host.metadata());
    passes(&made);
}

#[test]
fn what_is_no_chain_changes_nothing() {
    support::kpack::need_python();
    let alone = Made::of(&pjrt(""), &[]);
    for lines in [
        "Requires-Dist: z-pjrt == 2.0\n",
        "Provides-Extra: more\nRequires-Dist: z-pjrt == 1.0; extra == \"more\"\n",
        "Provides-Extra: more\nRequires-Dist: a-plugin[more]; python_version > '3'\n",
    ] {
        let made = split(&pjrt(""), &plugin(lines), &[]);
        let own = "a-plugin-device-gfx1100 == 1.0";
        assert_eq!(made.wheel("a-plugin").requires("device-gfx1100"), [own].into(), "{lines}");
    }
    // A wheel without device code stays as it is.
    let pure = WheelSpec::new("a-pure", "1.0").text("a/__init__.py", "");
    let lines = metadata("a-pure", "1.0", "Requires-Dist: z-pjrt == 1.0\n");
    let made = split(&pjrt(""), &pure.info("METADATA", &lines), &[]);
    let name = "a_pure-1.0-py3-none-manylinux_2_17_x86_64.whl";
    let [one, other] =
        ["in", "out"].map(|it| fs::read(made.room.path().join(it).join(name)).unwrap());
    assert!(one == other);
    assert_eq!(made.wheels().len(), alone.wheels().len() + 1);
}

/// A wheel that another run split has extras of the same names; one that is given along is looked into.
#[test]
fn other_runs_split_wheels_as_well() {
    support::kpack::need_python();
    let wheel = plugin("Requires-Dist: z-pjrt == 1.0\n");
    let made = Made::of(&wheel, &["--split-elsewhere", "Z_Pjrt"]);
    let host = made.wheel("a-plugin");
    assert!(host.requires("device-gfx906").contains("z-pjrt[device-gfx906]==1.0"));
    assert!(host.requires("device-all").contains("z-pjrt[device-all]==1.0"));
    assert_eq!(host.requires("device-gfx1151"), BTreeSet::new());
    let other = Made::of(&pjrt(""), &[]);
    let out = made.room.path().join("again");
    run(&mut wheel_command(&[&made.fat, &other.out()], &out));
    let host = read_one(&out.join(made.fat.file_name().unwrap()));
    assert_eq!(host.requires("device-gfx1151"), ["z-pjrt[device-gfx1151]==1.0"].into());
    // Groups of this run are none of the other wheel, which has extras of their archs.
    let config = made.room.path().join("config.toml");
    fs::write(&config, "[architecture_groups.Pair]\narchitectures = [\"gfx906\", \"gfx1100\"]\n")
        .unwrap();
    run(wheel_command(&[&made.fat, &other.out()], &out).arg("--config").arg(&config));
    let host = read_one(&out.join(made.fat.file_name().unwrap()));
    let [one, two] = ["z-pjrt[device-gfx906]==1.0", "z-pjrt[device-gfx1100]==1.0"];
    let own = "a-plugin-device-pair == 1.0";
    assert_eq!(host.requires("device-pair"), [own, one, two].into());
    assert_eq!(host.requires("device-gfx906"), [own, one].into());
    // A group that only the other wheel has brings the code for the archs in its name.
    fs::write(&config, "[architecture_groups.gfx110X]\narchitectures = [\"gfx1100\"]\n").unwrap();
    let grouped = made.room.path().join("grouped");
    let library = link(made.room.path(), "z.so", &[("one", &["gfx1100"])], &[]);
    let pjrt = WheelSpec::new("z-pjrt", "1.0").file("z_pjrt/_C.so", &library);
    let fat = pjrt.write(&made.room.path().join("pjrt"));
    run(wheel_command(&[&fat], &grouped).arg("--config").arg(&config));
    run(&mut wheel_command(&[&made.fat, &grouped], &out));
    let host = read_one(&out.join(made.fat.file_name().unwrap()));
    let [own, other] = ["a-plugin-device-gfx1100 == 1.0", "z-pjrt[device-gfx110x]==1.0"];
    assert!(host.requires("device-gfx110x").is_superset(&[own, other].into()));
    let said = told(wheel_command(&[&made.fat], &out).args(["--split-elsewhere", "z==1"]));
    assert!(said.contains("not a name of a distribution"), "{said}");
}

#[test]
fn wheels_that_require_each_other_are_split_apart() {
    support::kpack::need_python();
    let room = tempfile::tempdir().unwrap();
    let (input, out) = (room.path().join("in"), room.path().join("out"));
    plugin("Requires-Dist: z-pjrt == 1.0\n").write(&input);
    pjrt("Requires-Dist: a-plugin; os_name == 'posix'\n").write(&input);
    let said = told(&mut wheel_command(&[&input], &out));
    assert!(said.ends_with("exit status: 2\n"), "{said}");
    assert!(said.contains("require each other") && said.contains("--split-elsewhere"), "{said}");
    run(wheel_command(&[&input], &out).args(["--split-elsewhere", "z-pjrt"]));
    verify(&[out.to_str().unwrap()], &[]).fired(&[]);
    // A wheel without device code may require one that requires it.
    let room = tempfile::tempdir().unwrap();
    let (input, out) = (room.path().join("in"), room.path().join("out"));
    let pure = WheelSpec::new("z-pure", "1.0").text("z/__init__.py", "");
    pure.info("METADATA", &metadata("z-pure", "1.0", "Requires-Dist: a-plugin\n")).write(&input);
    plugin("Requires-Dist: z-pure\n").write(&input);
    run(&mut wheel_command(&[&input], &out));
}

/// Requirements of the configuration are for one distribution or for all, and never for the wheel itself.
#[test]
fn no_wheel_requires_itself() {
    support::kpack::need_python();
    let room = tempfile::tempdir().unwrap();
    let config = room.path().join("config.toml");
    let text = "[wheels]\nhost_requires = [\"z-pjrt >= 1.0\"]\n[wheels.device_requires]\n\
                Z_pjrt = [\"z-pjrt-device-{group} >= 1\", \"z-pjrt\", \"sdk-{group} == 7\"]\n\
                absent = [\"other\"]\n";
    fs::write(&config, text).unwrap();
    let made = split(&pjrt(""), &plugin(""), &["--config", config.to_str().unwrap()]);
    let other = made.wheel("z-pjrt");
    assert_eq!(other.requires(""), BTreeSet::new());
    assert_eq!(other.requires("device-gfx906"), ["z-pjrt-device-gfx906 == 1.0"].into());
    let device = made.wheel("z-pjrt-device-gfx906");
    assert_eq!(device.requires(""), ["z-pjrt == 1.0", "sdk-gfx906 == 7"].into());
    let host = made.wheel("a-plugin");
    assert_eq!(host.requires(""), ["z-pjrt >= 1.0"].into());
    assert!(host.requires("device-gfx906").contains("z-pjrt[device-gfx906]>=1.0"));
    let device = made.wheel("a-plugin-device-gfx906");
    assert_eq!(device.requires(""), ["a-plugin == 1.0", "z-pjrt[device-gfx906]>=1.0"].into());
    // Beside the fat wheels, only a signed receipt explains requirements of the configuration.
    verify(&[made.out().to_str().unwrap()], &[]).fired(&[]);
    located(&config, "[wheels.device_requires]\nx = [\"y\", \"= 1\"]\n", "line 2, column 11");
}

/// A configuration is refused with the position of its fault.
fn located(config: &Path, text: &str, place: &str) {
    fs::write(config, text).unwrap();
    let out = config.with_file_name("out");
    let mut command = wheel_command(&[Path::new("absent.whl")], &out);
    let said = told(command.arg("--config").arg(config));
    assert!(said.ends_with("exit status: 64\n") && said.contains(place), "{said}");
}
