//! Wheels that belong together, and those of other hosts.

use support::device::aks2;

use super::*;

#[test]
fn a_set_passes_as_it_is_made() {
    let wheels = Wheels::new();
    let run = wheels.verify(&[]);
    run.fired(&[]);
    let json: serde_json::Value = serde_json::from_str(&run.text).unwrap();
    assert_eq!((&json["wheels"], &json["packages"]), (&5.into(), &0.into()));
    assert!(json["archive_rows"].as_u64().unwrap() > 0, "{}", run.text);
    // By files, and one of them twice.
    let names = [HOST.to_owned()].into_iter().chain(ARCHS.map(device));
    let paths: Vec<PathBuf> = names.map(|name| wheels.path(&name)).collect();
    let mut paths: Vec<&str> = paths.iter().map(|path| path.to_str().unwrap()).collect();
    paths.push(paths[0]);
    verify(&paths, &[]).fired(&[]);
}

#[test]
fn fat_wheels_and_those_without_device_code_pass() {
    verify(&[fat().to_str().unwrap()], &[]).fired(&[]);
    let folder = tempfile::tempdir().unwrap();
    let mut plain = LooseWheel::new("plain-1-py3-none-any.whl", "Requires-Dist: a == 1\n");
    plain.add("plain.py", "print()\n");
    // What nobody split may have a signature, and files without digests.
    plain.add(&plain.info("RECORD.jws"), "{}");
    plain.record();
    let record = plain.info("RECORD");
    let text = plain.text(&record);
    let rows = text.lines().map(|row| match row.split_once(',') {
        Some(("plain.py", _)) => "plain.py,,\n".to_owned(),
        _ => format!("{row}\n"),
    });
    plain.add(&record, rows.collect::<String>());
    let run = verify(&[plain.write_as_is(folder.path()).to_str().unwrap()], &[]);
    run.fired(&[]);
    assert!(run.text.contains("\"wheels_without_digests\": 1"), "{}", run.text);
}

#[test]
fn v095_extras_and_device_wheels_belong_together() {
    let wheels = Wheels::new();
    wheels.remove(&device("gfx1102"));
    wheels.fires(&["V095"], &["its extra device-gfx1102 needs ex-blas-device-gfx1102"]);
    for (lines, words) in [
        ((pin(&device("gfx1101"), "device-gfx1101"), ""), "brings no device wheel"),
        ((pin(&device("gfx1101"), "device-gfx1101"), ""), "no extra of its host"),
        ((pin(&device("gfx1101"), "device-all"), ""), "must bring all device wheels"),
        (("Provides-Extra: device-gfx1101\n".to_owned(), ""), "but has no such `Provides-Extra`"),
        (("Provides-Extra: device-all\n".to_owned(), ""), "but has no such `Provides-Extra`"),
    ] {
        let wheels = Wheels::new();
        wheels.edit(HOST, |host| host.replace(&host.info("METADATA"), &lines.0, lines.1));
        wheels.fires(&["V095"], &[words]);
    }
}

#[test]
fn v095_a_part_of_a_set_is_said_to_be_one() {
    let wheels = Wheels::new();
    wheels.remove(&device("gfx1102"));
    let run = wheels.verify(&["--partial"]);
    run.fired(&[]);
    assert!(run.text.contains("V095"), "{}", run.text);
    wheels.remove(HOST);
    wheels.fires(&["V097"], &["is a device wheel of ex-blas"]);
    wheels.verify(&["--partial"]).fired(&[]);
}

#[test]
fn v096_pins_are_exact() {
    let exact = format!("== {VERSION}");
    for (old, new) in [(exact.as_str(), "== 1.0"), (&exact, ">= 1.0"), (&exact, "== 1.1+rocm7.1")] {
        let wheels = Wheels::new();
        wheels.edit(&device("gfx1100"), |wheel| {
            wheel.replace(&wheel.info("METADATA"), old, new);
        });
        wheels.fires(&["V096"], &["requires ex-blas", "must require == 1.0+rocm7.1"]);
        let wheels = Wheels::new();
        wheels.edit(HOST, |host| {
            let line = pin(&device("gfx1100"), "device-gfx1100");
            host.replace(&host.info("METADATA"), &line, &line.replace(old, new));
        });
        wheels.fires(&["V096"], &["requires ex-blas-device-gfx1100"]);
    }
    let wheels = Wheels::new();
    wheels.edit(&device("gfx1100"), |wheel| {
        wheel.replace(&wheel.info("METADATA"), &pin(HOST, ""), "");
    });
    wheels.fires(&["V096"], &["does not require ex-blas"]);
}

#[test]
fn v096_spellings_of_a_version_are_one() {
    let wheels = Wheels::new();
    wheels.edit(&device("gfx1100"), |wheel| {
        let line = "Requires-Dist: Ex_Blas (==1.0+rocm7.1)\n";
        wheel.replace(&wheel.info("METADATA"), &pin(HOST, ""), line);
    });
    wheels.fires_nothing();
}

#[test]
fn v094_tags_and_folder_are_those_of_the_host() {
    let wheels = Wheels::new();
    wheels.edit(&device("gfx1100"), |wheel| {
        wheel.replace(&wheel.info("WHEEL"), "Root-Is-Purelib: false", "Root-Is-Purelib: true");
    });
    wheels.fires(&["V094"], &["Root-Is-Purelib: true"]);
    let wheels = Wheels::new();
    let mut other = wheels.read(&device("gfx1100"));
    wheels.remove(&device("gfx1100"));
    other.name = other.name.replace(TAGS, "py3-none-any");
    other.replace(&other.info("WHEEL"), TAGS, "py3-none-any");
    other.write(wheels.0.path());
    wheels.fires(&["V094"], &["is tagged py3-none-any"]);
}

#[test]
fn v040_a_path_is_in_one_wheel_alone() {
    let wheels = Wheels::new();
    let shared = format!("{DATABASE}/TensileLibrary_gfx1101.dat");
    let file = wheels.read(&device("gfx1101")).files[&shared].clone();
    wheels.edit(&device("gfx1100"), |wheel| drop(wheel.files.insert(shared.clone(), file)));
    let run = wheels.verify(&[]);
    assert!(run.codes().contains(&"V040".to_owned()), "{}", run.text);
    says(&run, &[&shared, "is owned by two packages"]);
}

#[test]
fn v065_a_wheel_is_there_once() {
    let wheels = Wheels::new();
    let copy = tempfile::tempdir().unwrap();
    let mut other = wheels.read(&device("gfx1100"));
    let same = other.write(copy.path());
    let folder = wheels.0.path().to_str().unwrap();
    verify(&[folder, same.to_str().unwrap()], &[]).fired(&[]);
    other.add("lib/.kpack/note.txt", "x");
    let changed = other.write(copy.path());
    verify(&[folder, changed.to_str().unwrap()], &[]).fired(&["V065"]);
}

#[test]
fn sets_of_two_versions_and_pythons_lie_in_one_folder() {
    let wheels = Wheels::new();
    let names: Vec<String> = [HOST.to_owned()].into_iter().chain(ARCHS.map(device)).collect();
    for (old, new) in [(VERSION, "1.1+rocm7.1"), ("py3-none", "py2-none")] {
        for name in &names {
            let mut wheel = wheels.read(name);
            let folder = wheel.info("");
            wheel.name = wheel.name.replace(old, new);
            let own = wheel.info("");
            let moved = wheel.files.into_iter().map(|(path, mut file)| {
                if path.starts_with(&folder) {
                    let text = String::from_utf8(file.bytes).unwrap();
                    file.bytes = text.replace(old, new).into_bytes();
                }
                (path.replace(&folder, &own), file)
            });
            wheel.files = moved.collect();
            wheel.write(wheels.0.path());
        }
    }
    let run = wheels.verify(&[]);
    run.fired(&[]);
    assert!(run.text.contains("\"wheels\": 15"), "{}", run.text);
}

#[test]
fn a_folder_of_wheels_and_packages_is_refused() {
    let wheels = Wheels::new();
    fs::write(wheels.0.path().join("a.deb"), "").unwrap();
    let run = wheels.verify(&[]);
    assert_eq!(run.status, 64, "{}", run.text);
    assert!(run.text.contains("contains wheels and packages"), "{}", run.text);
}

/// Moves code of gfx1100, with an index of its own, into a wheel that the extras in `brought_by` bring; the
/// wheel of gfx1100 keeps another index of it.
fn shared(brought_by: &[&str]) -> Wheels {
    let wheels = Wheels::new();
    let (own, common) = (device("gfx1100"), device("gfx1100_gfx1101"));
    let loose = wheels.read(&own);
    let mut wheel = LooseWheel::new(&file_name(&common), &pin(HOST, ""));
    wheel.files.insert(database_file(".co"), loose.files[&database_file(".co")].clone());
    wheel.files.insert(database_file("-xnack-.dat"), loose.files[&database_file(".dat")].clone());
    wheels.edit(&own, |wheel| drop(wheel.files.remove(&database_file(".co"))));
    wheel.write(wheels.0.path());
    for arch in brought_by.iter().filter_map(|extra| extra.strip_prefix("device-gfx")) {
        require(&wheels, &device(&format!("gfx{arch}")), &pin(&common, ""));
    }
    wheels.edit(HOST, |host| {
        let pins = brought_by.iter().map(|extra| pin(&common, extra));
        let metadata = host.info("METADATA");
        host.add(&metadata, host.text(&metadata) + &pins.collect::<String>());
    });
    wheels
}

fn database_file(ending: &str) -> String {
    format!("{DATABASE}/TensileLibrary_gfx1100{ending}")
}

#[test]
fn what_several_groups_read_comes_with_each_of_them() {
    shared(&["device-gfx1100", "device-gfx1101", "device-all"]).fires_nothing();
    let wheels = shared(&["device-gfx1101", "device-all"]);
    let words = ["TensileLibrary_gfx1100.dat", "which its package does not need"];
    wheels.fires(&["V024", "V095"], &words);
}

/// Adds lines to METADATA of a wheel.
fn require(wheels: &Wheels, distribution: &str, lines: &str) {
    wheels.edit(distribution, |wheel| {
        let metadata = wheel.info("METADATA");
        let text = wheel.text(&metadata);
        wheel.add(&metadata, format!("{}\n{lines}", text.trim_end()));
    });
}

/// The folder of the set, in which the host has other lines of METADATA: `edit` gets those of its extras.
fn with_extras(edit: impl FnOnce(String) -> String) -> Wheels {
    let wheels = Wheels::new();
    wheels.edit(HOST, |host| {
        let metadata = host.info("METADATA");
        let text = host.text(&metadata);
        let is_own = |line: &&str| line.starts_with("Provides-Extra") || line.contains("; extra");
        let [others, own] = [false, true].map(|own| -> String {
            let lines = text.lines().filter(|line| is_own(line) == own);
            lines.map(|line| format!("{line}\n")).collect()
        });
        host.add(&metadata, others.trim_end().to_owned() + "\n" + &edit(own));
    });
    wheels
}

/// A set in which gfx1100 and gfx1101 are a group, and the host has its extras as `edit` makes them.
fn grouped(edit: impl FnOnce(String) -> String) -> Wheels {
    let [group, first, second] = ["gfx110x", "gfx1100", "gfx1101"].map(device);
    let wheels = with_extras(|text| {
        let name = |wheel: &str| format!("{} ==", wheel.replace('_', "-"));
        let text =
            text.replace(&name(&first), &name(&group)).replace(&name(&second), &name(&group));
        edit(text + "Provides-Extra: device-gfx110x\n" + &pin(&group, "device-gfx110x"))
    });
    let mut wheel = LooseWheel::new(&file_name(&group), &pin(HOST, ""));
    for own in [first, second] {
        let loose = wheels.read(&own);
        let folder = loose.info("");
        wheel.files.extend(loose.files.into_iter().filter(|(path, _)| !path.starts_with(&folder)));
        wheels.remove(&own);
    }
    wheel.write(wheels.0.path());
    wheels
}

#[test]
fn v095_the_wheel_of_a_group_comes_with_each_of_its_archs() {
    grouped(|text| text).fires_nothing();
    let own = pin(&device("gfx110x"), "device-gfx1101");
    let other = pin(&device("gfx1102"), "device-gfx1101");
    let words = ["ex_blas_device_gfx110x", "device-gfx1101"];
    grouped(|text| text.replace(&own, &other)).fires(&["V095"], &words);
    // The host may offer extras for groups alone.
    let offered = "Provides-Extra: device-gfx1101\n";
    grouped(|text| text.replace(&own, "").replace(offered, "")).fires_nothing();
}

/// Names of families are AMD's, or those of folders.
#[test]
fn v095_families_come_with_each_of_their_archs() {
    let (gfx11, gfx9) = ARCHS.split_at(3);
    for (label, archs) in [
        ("gfx11", gfx11),
        ("gfx11xx", gfx11),
        ("gfx110x", gfx11),
        ("gfx11_0", gfx11),
        ("gfx9", gfx9),
        ("gfx9_0", gfx9),
        ("gfx90x", gfx9),
    ] {
        let family = device(label);
        let wheels = with_extras(|text| text + &device_pins(&family, &[archs, &["all"]].concat()));
        let mut wheel = LooseWheel::new(&file_name(&family), &pin(HOST, ""));
        wheel.add("lib/images/a.bin", "image");
        wheel.write(wheels.0.path());
        archs.iter().for_each(|arch| require(&wheels, &device(arch), &pin(&family, "")));
        wheels.fires_nothing();
        let line = pin(&family, &format!("device-{}", archs[0]));
        wheels.edit(HOST, |host| host.replace(&host.info("METADATA"), &line, ""));
        wheels.fires(&["V095"], &[&family, &format!("device-{}", archs[0])]);
    }
}

#[test]
fn extras_may_name_extras_and_bring_other_packages() {
    let named = ARCHS.map(|arch| format!("device-{arch}")).join(",");
    let all = format!("Requires-Dist: ex-blas[{named}]; extra == \"device-all\"\n");
    with_extras(|text| {
        let lines = text.lines().filter(|line| !line.ends_with("== \"device-all\""));
        lines.map(|line| format!("{line}\n")).collect::<String>() + &all
    })
    .fires_nothing();
    with_extras(|text| {
        text + "Requires-Dist: rocm[libraries] == 7.1; extra == \"device-gfx1100\"\n"
            + "Provides-Extra: device-serial\nRequires-Dist: pyserial; extra == \"device-serial\"\n"
    })
    .fires_nothing();
}

#[test]
fn another_project_may_bring_the_device_wheels() {
    let mut extras = String::new();
    let wheels = with_extras(|text| {
        extras = text;
        String::new()
    });
    let mut meta = LooseWheel::new(&format!("rocm-{VERSION}-py3-none-any.whl"), &extras);
    meta.add("rocm/__init__.py", "");
    meta.write(wheels.0.path());
    wheels.fires_nothing();
    // It is alone where nothing brings it, and there without its host.
    fs::remove_file(wheels.0.path().join(&meta.name)).unwrap();
    wheels.fires(&["V095"], &["no extra of its host"]);
    meta.write(wheels.0.path());
    wheels.remove(HOST);
    wheels.fires(&["V097"], &["is a device wheel of ex-blas"]);
}

#[test]
fn wheels_of_others_are_in_no_set() {
    let folder = tempfile::tempdir().unwrap();
    for (name, fields) in [
        (
            "iot",
            "Provides-Extra: device-serial\nRequires-Dist: pyserial>=3; extra == \"device-serial\"\n",
        ),
        (
            "iot2",
            "Provides-Extra: device-mac\nRequires-Dist: iot2-mac == 1; extra == \"device-mac\"\n",
        ),
        ("my_device_tools", "Requires-Dist: click == 8.0\n"),
        (
            "azure",
            "Provides-Extra: device-azure\n\
             Requires-Dist: azure-iot-device-provisioning>=2; extra == \"device-azure\"\n",
        ),
    ] {
        let mut wheel = LooseWheel::new(&format!("{name}-1.0-py3-none-any.whl"), fields);
        wheel.add(&format!("{name}.py"), "");
        wheel.write(folder.path());
    }
    verify(&[folder.path().to_str().unwrap()], &[]).fired(&[]);
}

#[test]
fn v040_projects_share_what_is_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let wheels = [folder.path().to_str().unwrap()];
    // Two versions, and a namespace of two projects.
    for (name, text) in [("one-1", "old"), ("one-2", ""), ("two-1", "old")] {
        write_namespace(folder.path(), name, text);
    }
    verify(&wheels, &[]).fired(&["V040"]);
    let words = ["/ns/__init__.py", "one-2-py3-none-any.whl and two-1-py3-none-any.whl"];
    says(&verify(&wheels, &[]), &words);
    write_namespace(folder.path(), "one-2", "old");
    verify(&wheels, &[]).fired(&[]);
    // Another content in each version, in both projects alike.
    write_namespace(folder.path(), "one-2", "next");
    write_namespace(folder.path(), "two-2", "next");
    verify(&wheels, &[]).fired(&[]);
    fs::remove_file(folder.path().join("two-2-py3-none-any.whl")).unwrap();
    write_namespace(folder.path(), "one-2", "old");
    write_namespace(folder.path(), "one-1", "new");
    write_namespace(folder.path(), "two-1", "new");
    write_namespace(folder.path(), "one-2", "new");
    verify(&wheels, &[]).fired(&[]);
}

fn write_namespace(folder: &Path, name: &str, text: &str) {
    let mut wheel = LooseWheel::new(&format!("{name}-py3-none-any.whl"), "");
    wheel.add("ns/__init__.py", text);
    wheel.write(folder);
}

/// Installs wheels into a folder.
pub(super) fn installed(wheels: &Wheels, distributions: &[String]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for distribution in distributions {
        for (path, file) in wheels.read(distribution).files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, file.bytes).unwrap();
        }
    }
    folder
}

#[test]
fn some_device_wheels_are_installed() {
    let wheels = Wheels::new();
    for archs in [["gfx906"].as_slice(), &ARCHS] {
        let names: Vec<String> =
            [HOST.to_owned()].into_iter().chain(archs.iter().map(|arch| device(arch))).collect();
        let folder = installed(&wheels, &names);
        let paths = [folder.path().to_str().unwrap()];
        verify(&paths, &["--installed"]).fired(&[]);
        // Where nothing says that more could be installed, code is missing. No RECORD has the host's library.
        let host = LooseWheel::new(&file_name(HOST), "");
        fs::remove_dir_all(folder.path().join(host.info(""))).unwrap();
        let missing: &[&str] = if archs.len() == 1 { &["V024", "V031", "V093"] } else { &["V093"] };
        verify(&paths, &["--installed"]).fired(missing);
    }
}

#[test]
fn v095_and_v096_requirements_that_reach_around_the_extras() {
    let family = device("gfx11xx");
    let wheels = Wheels::new();
    let mut wheel = LooseWheel::new(&file_name(&family), &pin(HOST, ""));
    wheel.add("lib/aotriton.images/amd-gfx11xx/a.aks2", "image");
    wheel.write(wheels.0.path());
    let host = wheels.read(HOST);
    let base = host.text(&host.info("METADATA")).trim_end().to_owned();
    let all = ["gfx1100", "gfx1101", "gfx1102", "all"];
    set_metadata(&wheels, &base, &device_pins(&family, &all));
    for arch in &all[..3] {
        let file = format!("device_{arch}-");
        wheels.fires(&["V095"], &[&file, "does not require ex-blas-device-gfx11xx"]);
        require(&wheels, &device(arch), &pin(&family, ""));
    }
    wheels.fires_nothing();
    set_metadata(&wheels, &base, &device_pins(&family, &["gfx1100", "gfx1102", "all"]));
    wheels.fires(&["V095"], &["device-gfx1101"]);
    // A file of AOTriton says for which members it has code.
    let file = "lib/aotriton.images/amd-gfx11xx/a.aks2";
    wheels.edit(&family, |wheel| wheel.add(file, aks2(&["gfx1100", "gfx1102"])));
    wheels.fires_nothing();
    set_metadata(&wheels, &base, &device_pins(&family, &["gfx1100", "all"]));
    wheels.fires(&["V095"], &["device-gfx1102"]);
    wheels.edit(&family, |wheel| wheel.add(file, "image"));
    for line in [
        "Requires-Dist: ex-blas[device-all] == 1.0+rocm7.1\n".to_owned(),
        pin(&device("gfx1100"), "").trim_end().to_owned() + "; sys_platform == 'linux'\n",
    ] {
        set_metadata(&wheels, &base, &(device_pins(&family, &all) + &line));
        wheels.fires(&["V095"], &[]);
    }
    set_metadata(&wheels, &base, &device_pins(&family, &all));
    for line in ["ex-blas == 2.0; python_version > '3'", "ex-blas-device-gfx1101 == 2.0"] {
        let wheels = Wheels::new();
        wheels.edit(&device("gfx1100"), |wheel| {
            let metadata = wheel.info("METADATA");
            let text = wheel.text(&metadata);
            wheel.add(&metadata, format!("{}\nRequires-Dist: {line}\n", text.trim_end()));
        });
        wheels.fires(&["V096"], &["requires ex-blas"]);
    }
    let wheels = Wheels::new();
    wheels.edit(HOST, |host| {
        let metadata = host.info("METADATA");
        let text = host.text(&metadata);
        host.add(&metadata, format!("{}\nRequires-Dist: foo ==\n", text.trim_end()));
    });
    wheels.fires(&["V094"], &["is not a valid Python requirement"]);
}

fn device_pins(family: &str, archs: &[&str]) -> String {
    archs.iter().map(|arch| pin(family, &format!("device-{arch}"))).collect()
}

/// Gives the host these lines of METADATA, the first of them its own.
fn set_metadata(wheels: &Wheels, own: &str, added: &str) {
    wheels.edit(HOST, |host| host.add(&host.info("METADATA"), format!("{own}\n{added}")));
}

/// Another host with the extras of the set, which it brings by `lines`.
fn other_host(wheels: &Wheels, lines: &str) {
    let mut other = LooseWheel::new(&file_name("ex_sparse"), lines);
    other.add("ex_sparse/__init__.py", "");
    other.write(wheels.0.path());
}

/// METADATA of a host that requires the one of the set, with extras of its own.
fn chained(always: &str, extra: impl Fn(&str) -> String) -> String {
    let extras = ARCHS.into_iter().chain(["all"]).map(|arch| format!("device-{arch}"));
    let lines = extras.map(|name| format!("Provides-Extra: {name}\n{}", extra(&name)));
    format!("Requires-Dist: {always}\n{}", lines.collect::<String>())
}

#[test]
fn v095_extras_bring_those_of_required_hosts() {
    let wheels = Wheels::new();
    let own = |extra: &str| pin("ex_sparse_device_gfx906", extra);
    let asks = |extra: &str| format!("Requires-Dist: ex-blas[{extra}]; extra == \"{extra}\"\n");
    let device_wheel = |lines: &str| {
        let lines = pin("ex_sparse", "") + lines;
        LooseWheel::new(&file_name("ex_sparse_device_gfx906"), &lines).write(wheels.0.path());
    };
    let chain = "Requires-Dist: ex-blas[device-gfx906]\n";
    device_wheel(chain);
    let both = |extra: &str| match extra {
        "device-gfx906" | "device-all" => own(extra) + &asks(extra),
        _ => asks(extra),
    };
    let always = format!("ex-blas == {VERSION}; python_version > '3'");
    other_host(&wheels, &chained(&always, both));
    wheels.fires_nothing();
    // A device wheel that is not complete by its name.
    device_wheel("");
    wheels.fires(&["V095"], &["ex_sparse_device", "does not require ex-blas-device-gfx906"]);
    // An extra for code of its own alone.
    other_host(&wheels, &chained(&always, both).replace(&asks("device-gfx906"), ""));
    let words = ["ex_sparse-", "its extra device-gfx906 does not install ex-blas[device-gfx906]"];
    wheels.fires(&["V095"], &words);
    // Its device wheel may bring it, or the device wheel of the other host, as those of AMD do.
    device_wheel(chain);
    wheels.fires_nothing();
    device_wheel(&pin(&device("gfx906"), ""));
    wheels.fires_nothing();
    // Nothing is expected of extras that it does not have.
    let gone = format!("Provides-Extra: device-gfx1100\n{}", asks("device-gfx1100"));
    other_host(&wheels, &chained(&always, both).replace(&gone, ""));
    wheels.fires_nothing();
    let unknown = format!("Provides-Extra: device-x\n{}", asks("device-x"));
    other_host(&wheels, &(chained(&always, both) + &unknown));
    wheels.fires(&["V095"], &["requires ex-blas[device-x], but ex-blas has no such extra"]);
    // Nothing is expected of other versions, of requirements of extras, and of wheels without device code.
    let extras = ["device-gfx906", "device-all"];
    let alone = extras.map(|extra| format!("Provides-Extra: {extra}\n{}", own(extra)));
    for always in ["ex-blas == 2.0", "ex-blas; extra == 'more'", "numpy"] {
        other_host(&wheels, &format!("Requires-Dist: {always}\n{}", alone.concat()));
        wheels.fires_nothing();
    }
    wheels.remove("ex_sparse_device_gfx906");
    other_host(&wheels, &format!("Requires-Dist: ex-blas == {VERSION}\n"));
    wheels.fires_nothing();
}
