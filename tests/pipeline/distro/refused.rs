//! Bad sources and tables are refused by their names, and nothing is written.

use std::fs;

use support::example::names;

use super::{FAILED, Room, TABLE, USAGE, refused};

#[test]
fn what_is_no_source_is_refused_and_nothing_is_written() {
    let room = Room::new();
    let root = room.root();
    fs::create_dir(room.path("empty")).unwrap();
    room.write("rpm/usr/lib/sysimage/rpm/rpmdb.sqlite", "");
    room.write("rpm/etc/os-release", "ID=\"rhel\"\nVERSION_ID=\"9.4\"\n");
    room.write("file", "");
    room.write("other/Packages", "Package: a\nVersion: 1\nArchitecture: arm64\n");
    room.write("damaged/Packages", "Package: a\nVersion\n");
    room.write(
        "lonely/Packages",
        "Package: a\nVersion: 1\nArchitecture: all\nFilename: pool/a.deb\n",
    );
    room.write("debs/a.deb", "no package");
    let before = names(room.0.path());
    for (source, code, expected) in [
        ("nothing", USAGE, &["nothing: cannot open: No such file", "check the path"][..]),
        ("file", USAGE, &["file: is not a source", "a package list of apt"]),
        ("empty", USAGE, &["empty: has neither a database of dpkg", "a folder of .deb files"]),
        ("rpm", USAGE, &["rpm: is a system with rpm: an .rpm requires", "name the root itself"]),
        (
            "other/Packages",
            FAILED,
            &["other/Packages: package 1 is not for the architecture amd64"],
        ),
        (
            "damaged/Packages",
            FAILED,
            &["reading paragraph 1 of a package list", "`Version` is not a field"],
        ),
        ("lonely/Packages", USAGE, &["no package file of the list was found", "dists/SUITE/main"]),
        ("debs", FAILED, &["debs/a.deb"]),
    ] {
        refused(&mut room.distro(source, "out.toml"), code, expected);
    }
    for (path, text, expected) in [
        ("var/lib/dpkg/info/dpkg.list", None, "dpkg.list is missing"),
        ("var/lib/dpkg/status", Some("Package\n"), "paragraph 1 of dpkg's status"),
        ("var/lib/dpkg/status", Some(""), "root: does not have the package dpkg"),
    ] {
        let path = root.join(path);
        let good = fs::read(&path).unwrap();
        match text {
            Some(text) => fs::write(&path, text).unwrap(),
            None => fs::remove_file(&path).unwrap(),
        }
        refused(&mut room.distro("root", "out.toml"), FAILED, &[expected]);
        fs::write(&path, good).unwrap();
    }
    assert_eq!(names(room.0.path()), before);
    assert_eq!(room.table("root"), TABLE);
}

#[test]
fn a_table_replaces_no_other_file() {
    let room = Room::new();
    room.root();
    let other = room.write("other.toml", "schema = 1\n");
    fs::create_dir(room.path("folder.toml")).unwrap();
    for (out, code, expected) in [
        ("other.toml", USAGE, "other.toml: already exists with other content"),
        ("folder.toml", USAGE, "folder.toml: already exists, and is not a file"),
        ("absent/own.toml", FAILED, "absent/own.toml: cannot create: No such file"),
    ] {
        refused(&mut room.distro("root", out), code, &[expected]);
    }
    assert_eq!(fs::read_to_string(other).unwrap(), "schema = 1\n");
}

/// What is wrong with a table or a system has a place there, and a wrong value that of the key.
#[test]
fn errors_of_a_distribution_have_a_place() {
    let room = Room::new();
    room.root();
    room.write("own.toml", TABLE);
    room.write("later.toml", TABLE.replace("schema = 1", "schema = 2"));
    room.write("unknown.toml", TABLE.replace("compression =", "level = 9\ncompression ="));
    let (start, _) = TABLE.split_once("minimum").unwrap();
    room.write("cut.toml", start.replace("\"libz1 #MINVER#\"]", ""));
    room.write("amzn/var/lib/rpm/x", "");
    room.write("amzn/etc/os-release", "ID=\"amzn\"\nVERSION_ID=\"2023\"\n");
    let again = "make it again with `rockpack distro`";
    let place = "c.toml: line 2, column 10: distro: ";
    let other = "the distribution has the other package format";
    for (value, expected) in [
        (
            "'later.toml'",
            &["later.toml: is not a table of a distribution: has schema 2", again][..],
        ),
        ("'unknown.toml'", &["unknown.toml: is not a table", "unknown field `level`", again]),
        ("'cut.toml'", &["cut.toml: is not a table", "libz.so.1: unclosed array", again]),
        ("'absent.toml'", &["absent.toml: cannot open: No such file"]),
        ("'./absent'", &["./absent: cannot open: No such file"]),
        (
            "'./amzn'",
            &[
                "./amzn: is a system with rpm, `amzn2023` by its os-release",
                "such as el9 or fedora",
            ],
        ),
        ("'root'", &[place, "unknown distribution `root`", "with a slash: `./root`"]),
        ("{ deb = 'el9' }", &[place, other, "as in `deb=debian-13,rpm=el9`"]),
        ("{ rpm = 'own.toml' }", &[place, other]),
        ("{ rpm = './root' }", &[place, other]),
    ] {
        room.write("c.toml", format!("# first\ndistro = {value}\n"));
        refused(&mut room.plan(&["--config", "c.toml"]), USAGE, expected);
    }
    let later = ["later.toml: is not a table of a distribution", "schema 2", again];
    refused(&mut room.plan(&["--distro", "later.toml"]), USAGE, &later);
    refused(&mut room.plan(&["--distro", "deb=el9,rpm=own.toml"]), USAGE, &["--distro: ", other]);
    let unused = "--distro: `el9` is a distribution with rpm, and no .rpm is made";
    refused(&mut room.plan(&["--distro", "el9", "--format", "deb"]), USAGE, &[unused]);
}
