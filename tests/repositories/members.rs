//! Members of a `.deb` that no packer of today makes: what dpkg installs is published, shown and verified,
//! and what it refuses is named. dpkg is the judge.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::example::rockpack;
use support::raw_deb::{END, RawMember, control, deb, members};
use support::repo_fixture::{failed_checks, publish, refused, repo, verify};
use support::roots::dpkg_database;
use support::tools::{need, need_root, run, succeed, told};

use crate::others::lines_with;

/// The bytes of an archive behind the members that each one has, by the name of its package.
type Archive = fn(&str) -> Vec<u8>;

fn ended(all: &[RawMember]) -> Vec<u8> {
    [members(all), END.to_vec()].concat()
}

/// The control archive as dpkg-deb makes it.
fn plain_control(name: &str) -> Vec<u8> {
    let root = RawMember::new("./", b'5', b"");
    ended(&[root, RawMember::file("./control", &control(name))])
}

/// Data of a package: a file of its own, and one member more.
fn data(name: &str, more: &[RawMember]) -> Vec<u8> {
    let own = RawMember::file(&format!("./{name}.own"), "own\n");
    members(&[&[RawMember::new("./", b'5', b""), own], more].concat())
}

fn with(name: &str, more: RawMember) -> Vec<u8> {
    [data(name, &[more]), END.to_vec()].concat()
}

/// A member of another kind, called after its package.
fn of_kind(name: &str, kind: u8) -> Vec<u8> {
    with(name, RawMember::link(&format!("./{name}.kind"), kind, &format!("{name}.own")))
}

fn numbered(name: &str, at: usize, number: &[u8]) -> Vec<u8> {
    let blank = vec![0; if at < 124 { 8 } else { 12 }];
    let member = RawMember::file(&format!("./{name}.number"), "");
    with(name, member.with(at, &blank).with(at, number))
}

/// Two members of these types at one path.
fn twice(name: &str, kinds: [u8; 2]) -> Vec<u8> {
    let member = |kind| {
        let end = if kind == b'5' { "/" } else { "" };
        RawMember::link(&format!("./{name}.twice{end}"), kind, &format!("{name}.own"))
    };
    [data(name, &kinds.map(member)), END.to_vec()].concat()
}

/// A file below a member of a type.
fn below(name: &str, kind: u8) -> Vec<u8> {
    let above = RawMember::link("./x", kind, &format!("{name}.own"));
    [data(name, &[above, RawMember::file("./x/y", "")]), END.to_vec()].concat()
}

/// A hard link to `d/f`, with another separator in its target.
fn hard_to(name: &str, separator: &str) -> Vec<u8> {
    let folder = RawMember::new("./d/", b'5', b"");
    let link = RawMember::link("./l", b'1', &format!("d{separator}f"));
    [data(name, &[folder, RawMember::file("./d/f", ""), link]), END.to_vec()].concat()
}

/// Data that dpkg installs.
const INSTALLED: &[(&str, Archive)] = &[
    ("bare", |name| with(name, RawMember::file(&format!("{name}.more"), ""))),
    ("absolute", |name| with(name, RawMember::file(&format!("//{name}.more"), ""))),
    ("dotted", |name| with(name, RawMember::file(&format!("././/{name}.more"), ""))),
    ("control-char", |name| with(name, RawMember::file(&format!("./{name}\u{1}"), ""))),
    ("slashed", |name| with(name, RawMember::file(&format!("./{name}.folder/"), "a file"))),
    ("slashed-old", |name| with(name, RawMember::new(&format!("./{name}.folder/"), 0, b"a file"))),
    ("hard-spelt", |name| {
        let file = RawMember::file(&format!("././{name}.f"), "");
        let links = ["//", ".//./"].map(|front| {
            let own = format!("./{name}.{}", front.len());
            RawMember::link(&own, b'1', &format!("{front}{name}.f"))
        });
        [data(name, &[&[file][..], &links].concat()), END.to_vec()].concat()
    }),
    ("hard-as-spelt", |name| {
        let folder = RawMember::new(&format!("./{name}/"), b'5', b"");
        let file = RawMember::file(&format!("./{name}//f"), "");
        let link = RawMember::link(&format!("./{name}.l"), b'1', &format!("{name}//f"));
        [data(name, &[folder, file, link]), END.to_vec()].concat()
    }),
    ("longest", |name| {
        let long = RawMember::new("././@LongLink", b'L', &[b'l'; 246]);
        [data(name, &[long, RawMember::file("./short", "")]), END.to_vec()].concat()
    }),
    ("twice-link", |name| twice(name, [b'0', b'2'])),
    ("twice-pipe", |name| twice(name, [b'6', b'3'])),
    ("twice-folder", |name| twice(name, [b'6', b'5'])),
    ("twice-folders", |name| twice(name, [b'5', b'5'])),
    ("folder-file", |name| twice(name, [b'5', b'0'])),
    ("old-type", |name| of_kind(name, 0)),
    ("hard", |name| of_kind(name, b'1')),
    ("hard-absolute", |name| {
        with(name, RawMember::link(&format!("./{name}.h"), b'1', &format!("/{name}.own")))
    }),
    ("soft", |name| of_kind(name, b'2')),
    ("characters", |name| of_kind(name, b'3')),
    ("blocks", |name| of_kind(name, b'4')),
    ("pipe", |name| of_kind(name, b'6')),
    ("oldest", |name| with(name, RawMember::file(&format!("./{name}.x"), "").with(257, &[0; 8]))),
    ("padded", |name| with(name, RawMember::file(&format!("./{name}.x"), "x").padded(7))),
    ("endless", |name| data(name, &[])),
    ("one-block", |name| [data(name, &[]), vec![0; 512]].concat()),
    ("behind", |name| [data(name, &[]), END.to_vec(), b"more".to_vec()].concat()),
    ("two-names", |name| {
        let named = |text: String| RawMember::new("././@LongLink", b'L', text.as_bytes());
        let [one, two] = ["one", "two"].map(|word| named(format!("./{name}.{word}\0")));
        [data(name, &[one, two, RawMember::file("./short", "")]), END.to_vec()].concat()
    }),
    ("no-mode", |name| numbered(name, 100, b"x")),
    ("early", |name| numbered(name, 136, &[0xff; 12])),
    ("blank-owner", |name| numbered(name, 108, b"       ")),
    ("blank-size", |name| numbered(name, 124, b"")),
    ("blank-time", |name| numbered(name, 136, b"           \0")),
];

/// Data that dpkg refuses, and what is said of it.
const REFUSED: &[(&str, Archive, &str)] = &[
    ("pax", |name| with(name, RawMember::pax(b'x', "mtime", "1")), "of type `x`"),
    ("global", |name| with(name, RawMember::pax(b'g', "comment", "x")), "of type `g`"),
    ("contiguous", |name| of_kind(name, b'7'), "of type `7` has a type that dpkg does not install"),
    ("volumes", |name| of_kind(name, b'M'), "of type `M`"),
    ("sparse", |name| of_kind(name, b'S'), "of type `S`"),
    ("solaris", |name| of_kind(name, b'X'), "of type `X`"),
    ("label", |name| of_kind(name, b'V'), "of type `V`"),
    ("unknown", |name| of_kind(name, b'Z'), "of type `Z`"),
    ("unseen", |name| of_kind(name, 0x80), "of type `\\u{80}`"),
    ("line", |name| with(name, RawMember::file("./a\nb", "")), "has a line break in its name"),
    ("nameless", |name| with(name, RawMember::file("", "")), "has an empty name"),
    ("root", |name| with(name, RawMember::file(".", "")), "is the root, but not a directory"),
    (
        "hard-lost",
        |name| with(name, RawMember::link("./l", b'1', "./lost")),
        "leads to `./lost`, which is not an earlier file",
    ),
    ("soft-lost", |name| with(name, RawMember::link("./l", b'2', "")), "has no target"),
    ("user-text", |name| numbered(name, 108, b"x"), "has an invalid user"),
    ("user-late", |name| numbered(name, 108, b"1 1"), "has an invalid user"),
    ("group-large", |name| numbered(name, 116, &[0x80, 0, 0, 1]), "has an invalid group"),
    ("size-below", |name| numbered(name, 124, &[0xff; 12]), "has an invalid size"),
    ("blanks-owner", |name| numbered(name, 108, &[b' '; 8]), "has an invalid user"),
    ("blanks-size", |name| numbered(name, 124, &[b' '; 12]), "has an invalid size"),
    ("blanks-time", |name| numbered(name, 136, &[b' '; 12]), "has an invalid time"),
    ("hard-inner", |name| hard_to(name, "//"), "which is not an earlier file"),
    ("hard-dotted", |name| hard_to(name, "/./"), "which is not an earlier file"),
    (
        "hard-slashed",
        |name| with(name, RawMember::link("./l", b'1', &format!("{name}.own/"))),
        "which is not an earlier file",
    ),
    (
        "link-slashed",
        |name| with(name, RawMember::link("./l/", b'2', "x")),
        "has a slash at the end",
    ),
    ("dotted-end", |name| with(name, RawMember::file("./l/.", "")), "that ends with `/.`"),
    ("over-file", |name| twice(name, [b'0', b'5']), "has the path of an earlier file"),
    ("over-hard", |name| twice(name, [b'1', b'6']), "has the path of an earlier file"),
    ("below-file", |name| below(name, b'0'), "is below `x`, which is not a folder"),
    ("below-link", |name| below(name, b'2'), "is below `x`, which is not a folder"),
    ("below-pipe", |name| below(name, b'6'), "is below `x`, which is not a folder"),
    (
        "two-spellings",
        |name| {
            let folder = RawMember::new("./d/", b'5', b"");
            let files = ["./d/f", "./d//f"].map(|path| RawMember::file(path, ""));
            [data(name, &[&[folder][..], &files].concat()), END.to_vec()].concat()
        },
        "is there twice, spelt in two ways",
    ),
    (
        "long-part",
        |name| {
            let long = RawMember::new("././@LongLink", b'L', &[b'l'; 247]);
            [data(name, &[long, RawMember::file("./short", "")]), END.to_vec()].concat()
        },
        "has a name of 247 bytes",
    ),
    ("time-text", |name| numbered(name, 136, b"-1"), "has an invalid time"),
    (
        "content",
        |name| with(name, RawMember::new("./l", b'2', b"text").with(157, b"x")),
        "has a wrong checksum",
    ),
    ("short", |name| [data(name, &[]), vec![1; 100]].concat(), "the archive ends too early"),
];

/// Names out of the folder that they name, by which dpkg installs beside its root.
const ABOVE: &[(&str, &str)] =
    &[("above", "./../above"), ("above-bare", ".."), ("within", "./a/../b")];

/// Control archives that GNU tar unpacks for dpkg.
const CONTROLS: &[(&str, Archive)] = &[
    ("control-pax", |name| {
        let pax = [RawMember::pax(b'g', "comment", "x"), RawMember::pax(b'x', "mtime", "1.5")];
        ended(&[&pax[..], &[RawMember::file("./control", &control(name))]].concat())
    }),
    ("control-path", |name| {
        let pax = RawMember::pax(b'x', "path", "./control");
        ended(&[pax, RawMember::file("./other", &control(name))])
    }),
    ("control-bare", |name| ended(&[RawMember::file("control", &control(name))])),
    ("control-absolute", |name| ended(&[RawMember::file("/control", &control(name))])),
    ("control-dotted", |name| ended(&[RawMember::file("././/control", &control(name))])),
    ("control-root", |name| {
        ended(&[RawMember::new(".", b'5', b""), RawMember::file("./control", &control(name))])
    }),
    ("control-seven", |name| ended(&[RawMember::new("./control", b'7', control(name).as_bytes())])),
    ("control-oldest", |name| {
        ended(&[RawMember::file("control", &control(name)).with(257, &[0; 8]).padded(1)])
    }),
    ("control-owner", |name| {
        ended(&[RawMember::file("control", &control(name)).with(108, b"x\0\0\0\0\0\0\0")])
    }),
    ("control-last", |name| {
        let pax = ["./md5sums", "./control"].map(|path| RawMember::pax(b'x', "path", path));
        ended(&[&pax[..], &[RawMember::file("./s", &control(name))]].concat())
    }),
    ("control-pax-first", |name| {
        let pax = RawMember::pax(b'x', "path", "./control");
        let long = RawMember::new("././@LongLink", b'L', b"./md5sums\0");
        ended(&[pax, long, RawMember::file("./s", &control(name))])
    }),
    ("control-pax-last", |name| {
        let pax = RawMember::pax(b'x', "path", "./control");
        let long = RawMember::new("././@LongLink", b'L', b"./md5sums\0");
        ended(&[long, pax, RawMember::file("./s", &control(name))])
    }),
    ("control-solaris", |name| {
        let pax = RawMember::pax(b'X', "path", "./control");
        ended(&[pax, RawMember::file("./s", &control(name))])
    }),
    ("control-unknown", |name| {
        ended(&[RawMember::new("./control", b'Z', control(name).as_bytes())])
    }),
    ("control-dumped", |name| {
        ended(&[RawMember::new("./", b'D', b"x\0"), RawMember::file("./control", &control(name))])
    }),
    ("control-time", |name| {
        ended(&[RawMember::file("./control", &control(name)).with(136, b"-0000000001\0")])
    }),
    ("control-endless", |name| members(&[RawMember::file("control", &control(name))])),
];

fn write(folder: &Path, name: &str, control: &[u8], data: &[u8]) -> PathBuf {
    let file = folder.join(format!("{name}_1_all.deb"));
    fs::write(&file, deb(control, data)).unwrap();
    file
}

/// Writes packages with these archives.
fn packages(folder: &Path) {
    for (name, archive) in INSTALLED {
        write(folder, name, &plain_control(name), &archive(name));
    }
    for (name, archive, _) in REFUSED {
        write(folder, name, &plain_control(name), &archive(name));
    }
    for (name, archive) in CONTROLS {
        write(folder, name, &archive(name), &[data(name, &[]), END.to_vec()].concat());
    }
}

/// The names of the packages in a folder that dpkg does not unpack.
fn unpacked_by_dpkg_not(folder: &Path) -> BTreeSet<String> {
    let room = tempfile::tempdir().unwrap();
    dpkg_database(room.path(), "");
    let mut dpkg = Command::new("dpkg");
    dpkg.arg(format!("--root={}", room.path().display())).args(["--force-not-root", "--unpack"]);
    dpkg.args(["--abort-after=1000", "--recursive"]).arg(folder);
    dpkg.env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    let said = dpkg.env("LC_ALL", "C").output().unwrap().stderr;
    let said = String::from_utf8_lossy(&said).into_owned();
    let (_, failed) = said.split_once("Errors were encountered while processing:").expect(&said);
    let name = |line: &str| Some(line.trim().rsplit('/').next()?.split('_').next()?.to_owned());
    failed.lines().filter(|line| line.ends_with(".deb")).filter_map(name).collect()
}

#[test]
fn what_dpkg_refuses_is_named_and_what_it_installs_is_not() {
    need(&["dpkg", "dpkg-deb"]);
    need_root();
    let room = tempfile::tempdir().unwrap();
    let folder = room.path().join("packages");
    fs::create_dir(&folder).unwrap();
    packages(&folder);
    let expected: BTreeSet<String> = REFUSED.iter().map(|(name, ..)| (*name).to_owned()).collect();
    assert_eq!(unpacked_by_dpkg_not(&folder), expected);
    for (name, path) in ABOVE {
        write(&folder, name, &plain_control(name), &with(name, RawMember::file(path, "")));
    }
    let out = room.path().join("repo");
    let (said, checked) = (publish(&mut repo(&[&folder], &out)), verify(&out));
    let (warned, failed) = (lines_with(&said, "R056"), lines_with(&checked, "V073"));
    let all: Vec<_> = REFUSED
        .iter()
        .map(|(name, _, part)| (*name, *part))
        .chain(ABOVE.iter().map(|(name, _)| (*name, "has `..` in its path")))
        .collect();
    assert_eq!((warned.len(), failed.len()), (all.len(), all.len()), "{said}\n{checked}");
    for (name, part) in all {
        for lines in [&warned, &failed] {
            let line = lines
                .iter()
                .find(|line| line.contains(&format!("{name}_1_all.deb")))
                .unwrap_or_else(|| panic!("{name}: {lines:?}"));
            assert!(line.contains(part) && line.contains("at its byte 0x"), "{part}: {line}");
        }
    }
    assert_eq!(failed_checks(&checked), ["V073"], "{checked}");
}

#[test]
fn packages_of_others_are_shown_and_verified_as_dpkg_installs_them() {
    need(&["dpkg-deb"]);
    let room = tempfile::tempdir().unwrap();
    let name = "odd";
    let more = [
        RawMember::link("odd.hard", b'1', "odd.own"),
        RawMember::link("/odd.characters", b'3', "odd.own"),
        RawMember::link("./odd.blocks", b'4', "odd.own"),
        RawMember::link("./odd.pipe", b'6', "odd.own"),
        RawMember::file("odd.bare", "bare\n"),
        RawMember::file("//odd.absolute", "absolute\n"),
    ];
    let sums = succeed(Command::new("sh").args([
        "-c",
        "for word in own bare absolute; do printf '%s\\n' $word | md5sum | sed s,-,odd.$word,; done",
    ]));
    let control = ended(&[
        RawMember::pax(b'g', "comment", "x"),
        RawMember::file("control", &(control(name) + "Essential: yes\nMulti-Arch: foreign\n")),
        RawMember::file("/md5sums", &(sums.clone() + &sums[..34] + "odd.hard\n")),
    ]);
    let file = write(room.path(), name, &control, &data(name, &more));
    run(Command::new("dpkg-deb").arg("--info").arg(&file));
    let shown = succeed(rockpack().arg("inspect").arg(&file));
    for part in [
        "/odd.hard -> /odd.own (hard link)",
        "/odd.characters (character device)",
        "/odd.blocks (block device)",
        "/odd.pipe (named pipe)",
        "/odd.bare",
        "/odd.absolute",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let json = succeed(rockpack().arg("inspect").arg("--json").arg(&file));
    assert!(json.contains("\"character-device\"") && json.contains("\"hard-link\""), "{json}");
    // Devices and pipes belong into no package.
    let said = told(rockpack().arg("verify").arg(&file));
    assert_eq!(failed_checks(&said), ["V101"], "{said}");
    let file = write(room.path(), name, &control, &data(name, &[&more[..1], &more[4..]].concat()));
    assert!(verify(&file).contains("all checks passed"));
    // A file in place of the one that a sum is of is told all the same.
    let swapped = [&[RawMember::file("odd.bare", "other\n")], &more[..1]].concat();
    let file = write(room.path(), name, &control, &data(name, &swapped));
    assert_eq!(failed_checks(&told(rockpack().arg("verify").arg(&file))), ["V004"]);
}

/// Packages from which tar would unpack another control file than apt or this reader sees, or on which dpkg fails.
#[test]
fn control_files_that_two_readers_see_differently_are_refused() {
    let room = tempfile::tempdir().unwrap();
    let name = "two";
    let own = || RawMember::file("./control", &control(name));
    for (more, part) in [
        (RawMember::file("control", &control("other")), "has control twice"),
        (RawMember::link("./real", b'2', "control"), "not a file in ./ itself"),
        (RawMember::link("./real", b'1', "./control"), "not a file in ./ itself"),
        (RawMember::new("./folder", b'5', b""), "not a file in ./ itself"),
        (RawMember::link("./pipe", b'6', ""), "not a file in ./ itself"),
        (RawMember::file("./../control", &control(name)), "not a file in ./ itself"),
        (RawMember::pax(b'g', "path", "./control"), "names or sizes all members at once"),
        (RawMember::file("./md5sums", "").with(100, &[b' '; 8]), "has no mode"),
        (RawMember::file("./md5sums", "").with(108, &[b' '; 8]), "has an invalid user"),
        (RawMember::file("./md5sums", "").with(136, &[b' '; 12]), "has an invalid time"),
    ] {
        let archive = ended(&[own(), more]);
        let file = write(room.path(), name, &archive, &[data(name, &[]), END.to_vec()].concat());
        let (said, _) = refused(&mut repo(&[&file], &room.path().join("repo")));
        assert!(said.contains(part), "{part}: {said}");
    }
}
