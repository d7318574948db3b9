//! Packages of other tools, as far as dpkg and rpm take them: what is published of them, and what is
//! said of the rest.

use std::fs;
use std::path::Path;
use std::process::Command;

use support::example::rockpack;
use support::foreign_deb::{ForeignDeb, TOOLS};
use support::raw_header::{RawTag, header, numbers, package, text, texts};
use support::repo_fixture::{
    contents, deb, failed_checks, plain_spec, publish, refused, repo, repo_at, rpm, verify,
};
use support::tools::{need, need_root, run, succeed, told};

use crate::owners::dpkg_installs;

/// The fields that dpkg-deb sees of a package.
fn fields_of(package: &Path) -> String {
    succeed(Command::new("dpkg-deb").arg("-f").arg(package))
}

/// The lines of a run's output that name `code`.
pub fn lines_with(said: &str, code: &str) -> Vec<String> {
    said.lines().filter(|line| line.contains(code)).map(str::to_owned).collect()
}

fn all_passes(path: &Path) {
    let said = verify(path);
    assert!(said.contains("all checks passed"), "{said}");
}

#[test]
fn members_that_dpkg_passes_over_are_passed_over() {
    need(&TOOLS);
    need(&["dpkg-deb"]);
    let room = tempfile::tempdir().unwrap();
    let plain = ForeignDeb::new("plain", "");
    let variants = [
        ForeignDeb { name: "origin", members: [&[], &[], &["_gpgorigin"]], ..plain.clone() },
        ForeignDeb { name: "between", members: [&[], &["_own", "_more"], &[]], ..plain.clone() },
        ForeignDeb {
            name: "behind",
            members: [&[], &[], &["any", "data.tar.sig"]],
            ..plain.clone()
        },
        ForeignDeb { name: "minor", version: "2.7\nmore\n", ..plain.clone() },
    ];
    for variant in variants {
        let name = variant.name;
        let variant = ForeignDeb { control: ForeignDeb::new(name, "").control, ..variant };
        let (packages, out) = (room.path().join(name), room.path().join(format!("{name}-repo")));
        let file = packages.join(format!("{name}_1_all.deb"));
        variant.write(&file);
        assert!(fields_of(&file).contains(&format!("Package: {name}\n")));
        run(Command::new("dpkg-deb").arg("-x").arg(&file).arg(room.path().join("unpacked")));
        let said = publish(&mut repo(&[&packages], &out));
        assert!(!said.contains("R05"), "{said}");
        let pooled = format!("pool/main/{}/{name}/{name}_1_all.deb", &name[..1]);
        assert_eq!(contents(&out)[&pooled], fs::read(&file).unwrap());
        all_passes(&out);
        all_passes(&file);
        let shown = succeed(rockpack().arg("inspect").arg(&file));
        assert!(shown.contains(&format!("/usr/share/{name}/file")), "{shown}");
    }
}

#[test]
fn members_of_which_two_readers_take_two_are_refused() {
    need(&TOOLS);
    need(&["dpkg-deb"]);
    let room = tempfile::tempdir().unwrap();
    let (file, out) = (room.path().join("odd_1_all.deb"), room.path().join("repo"));
    let plain = ForeignDeb::new("odd", "");
    for (members, version, part) in [
        ([&[][..], &[], &["data.tar.xz"]], "2.0\n", "has a second data.tar.xz after its data"),
        ([&[], &[], &["_sig", "control.tar.gz"]], "2.0\n", "has a second control.tar.gz"),
        ([&["_first"], &[], &[]], "2.0\n", "does not begin with debian-binary"),
        ([&[], &["odd"], &[]], "2.0\n", "member odd is in the place of control.tar"),
        ([&[], &[], &[]], "3.0\n", "has format 3.0"),
        ([&[], &[], &[]], "2.0", "has no version of its format"),
    ] {
        ForeignDeb { members, version, ..plain.clone() }.write(&file);
        let (said, _) = refused(&mut repo(&[&file], &out));
        assert!(said.contains(part) && said.contains("odd_1_all.deb"), "{said}");
        let said = told(rockpack().arg("verify").arg(&file));
        assert!(said.contains(part) && said.contains("V001"), "{said}");
    }
    assert!(!out.join("dists").exists());
}

#[test]
fn a_package_whose_data_cannot_be_unpacked_is_published_with_a_word() {
    need(&TOOLS);
    need(&["dpkg-deb"]);
    let room = tempfile::tempdir().unwrap();
    for (data, is_read) in
        [(".lzma", true), (".xz", true), ("", true), (".bz2", false), (".br", false)]
    {
        let name = format!("z{}", data.trim_start_matches('.'));
        let (file, out) = (room.path().join(format!("{name}_1_all.deb")), room.path().join(&name));
        ForeignDeb { data, ..ForeignDeb::new(&name, "") }.write(&file);
        assert!(fields_of(&file).contains("Version: 1"));
        let said = publish(&mut repo(&[&file], &out));
        let index = fs::read_to_string(out.join("dists/stable/main/binary-all/Packages")).unwrap();
        assert!(index.contains(&format!("Package: {name}\n")), "{index}");
        let shown = succeed(rockpack().arg("inspect").arg(&file));
        assert!(shown.contains("Version: 1"), "{shown}");
        let checked = verify(&file);
        if is_read {
            assert!(lines_with(&said, "R056").is_empty(), "{said}");
            assert!(shown.contains(&format!("/usr/share/{name}/file")), "{shown}");
            assert!(checked.contains("all checks passed"), "{checked}");
        } else {
            let warned = lines_with(&said, "R056").join("\n");
            let member = format!("data.tar{data}");
            assert!(warned.contains(&name) && warned.contains(&member), "{said}");
            assert!(shown.contains(&format!("not known, {member} cannot be unpacked")), "{shown}");
            assert_eq!(failed_checks(&checked), ["V001"], "{checked}");
            assert!(checked.contains(&format!("{member} is compressed")), "{checked}");
            // The next run says it again, though it does not read the package.
            assert!(!lines_with(&publish(&mut repo(&[&file], &out)), "R056").is_empty());
        }
        let checked = verify(&out);
        assert!(checked.contains("all checks passed"), "{checked}");
        assert_eq!(checked.contains("were not checked: data.tar"), !is_read, "{checked}");
    }
    // A stem with something else behind it is no archive, for dpkg neither.
    let file = room.path().join("odd_1_all.deb");
    ForeignDeb { data: "gz", ..ForeignDeb::new("odd", "") }.write(&file);
    let (said, _) = refused(&mut repo(&[&file], &room.path().join("out")));
    assert!(said.contains("member data.targz is in the place of data.tar"), "{said}");
}

#[test]
fn a_volume_label_is_skipped_where_tar_unpacks() {
    need(&TOOLS);
    need(&["dpkg", "dpkg-deb"]);
    need_root();
    let room = tempfile::tempdir().unwrap();
    let (file, out) = (room.path().join("label_1_all.deb"), room.path().join("repo"));
    let label: &[&str] = &["--label=volume"];
    let plain = ForeignDeb::new("label", "");
    ForeignDeb { options: [label, &[]], ..plain.clone() }.write(&file);
    assert!(fields_of(&file).contains("Package: label"));
    publish(&mut repo(&[&file], &out));
    all_passes(&file);
    all_passes(&out);
    // dpkg unpacks the data by itself, and knows no label.
    ForeignDeb { options: [&[], label], ..plain }.write(&file);
    let said = verify(&file);
    assert!(said.contains("V001") && said.contains("is a volume label"), "{said}");
    assert!(!dpkg_installs(&[&[&file]]));
    let out = room.path().join("labelled");
    let warned = lines_with(&publish(&mut repo(&[&file], &out)), "R056").join("\n");
    assert!(warned.contains("volume label"), "{warned}");
    let said = verify(&out);
    assert!(!failed_checks(&said).is_empty() && said.contains("volume label"), "{said}");
}

/// The index has what apt-ftparchive and dpkg-scanpackages have, less what either leaves out.
#[test]
fn fields_that_say_nothing_are_left_out() {
    need(&TOOLS);
    need(&["apt-ftparchive", "dpkg-scanpackages"]);
    let room = tempfile::tempdir().unwrap();
    let (packages, out) = (room.path().join("packages"), room.path().join("repo"));
    let fields = "Depends:\nX-Empty: \t\nConffiles:\n /etc/x 00\n";
    let mut odd = ForeignDeb::new("odd", fields);
    odd.write(&packages.join("odd_1_all.deb"));
    odd = ForeignDeb::new("lead", "Tag: x\n");
    odd.control = format!("\n\n{}\n", odd.control);
    odd.write(&packages.join("lead_1_all.deb"));
    publish(&mut repo(&[&packages], &out));
    let index = fs::read_to_string(out.join("dists/stable/main/binary-all/Packages")).unwrap();
    for absent in ["Depends", "X-Empty"] {
        assert!(!index.contains(absent), "{index}");
    }
    assert!(index.contains("\nConffiles:\n /etc/x 00\n") && index.contains("Tag: x\n"), "{index}");
    assert!(index.starts_with("Package: lead\n"), "{index}");
    all_passes(&out);
    // Indexes of others say either.
    let suite = out.join("dists/stable/main/binary-all");
    for tool in [&["apt-ftparchive", "packages"][..], &["dpkg-scanpackages", "--multiversion"]] {
        let mut scan = Command::new(tool[0]);
        let text = told(scan.args(&tool[1..]).arg("pool").current_dir(&out));
        let named = text.contains("Package: odd\n");
        assert!(named, "{text}");
        let mut texts: Vec<&str> = text.split("\n\n").collect();
        texts.retain(|text| text.contains("Package: odd\n"));
        let room = tempfile::tempdir().unwrap();
        let other = room.path();
        run(Command::new("cp").arg("-r").args([out.join("pool"), out.join("dists")]).arg(other));
        fs::remove_dir_all(other.join("dists")).unwrap();
        fs::remove_dir_all(other.join("pool/main/l")).unwrap();
        let binary = other.join("dists/stable/main/binary-all");
        fs::create_dir_all(&binary).unwrap();
        fs::write(binary.join("Packages"), format!("{}\n\n", texts[0].trim())).unwrap();
        let release =
            succeed(Command::new("apt-ftparchive").arg("release").arg(other.join("dists/stable")));
        fs::write(other.join("dists/stable/Release"), release).unwrap();
        all_passes(other);
    }
    assert!(suite.exists());
}

/// Tags of a package without files.
fn tags(more: impl IntoIterator<Item = RawTag>) -> Vec<RawTag> {
    let mut tags = vec![
        text(1000, "odd"),
        text(1001, "1"),
        text(1002, "1"),
        text(1014, "MIT"),
        text(1021, "linux"),
        text(1022, "noarch"),
        text(1044, "odd-1-1.src.rpm"),
    ];
    tags.extend(more);
    tags.sort_by_key(|(tag, ..)| *tag);
    tags
}

/// Strings of bytes.
fn bytes(tag: u32, kind: u32, strings: &[&[u8]]) -> RawTag {
    let bytes = strings.iter().flat_map(|string| [string, &b"\0"[..]].concat()).collect();
    (tag, kind, strings.len(), bytes)
}

#[test]
fn texts_of_an_rpm_that_are_replaced_are_named() {
    let room = tempfile::tempdir().unwrap();
    for (name, tags, fields) in [
        ("summary", tags([bytes(1004, 9, &[b"Gr\xfc\xdfe"])]), "its summary:"),
        ("control", tags([bytes(1005, 9, &[b"a\x01b"])]), "its description:"),
        ("log", tags(change_log(b"- \xe4", 9)), "its change log:"),
        ("names", tags(file_named(b"\xe4")), "its file names:"),
        // Which says that all texts are UTF-8.
        (
            "told",
            tags([bytes(1004, 9, &[b"Gr\xfc\xdfe"]), bytes(5062, 6, &[b"utf-8"])]),
            "its summary:",
        ),
        (
            "both",
            tags([
                bytes(1011, 6, &[b"\xff"]),
                bytes(1049, 8, &[b"lib\xe4"]),
                numbers(1048, [0]),
                texts(1050, [String::new()]),
            ]),
            "its requires, vendor:",
        ),
    ] {
        let said = replaced_texts(room.path(), name, &tags);
        assert!(said.contains(&format!("{name}.rpm")) && said.contains(fields), "{name}: {said}");
    }
    // Indexes keep UTF-8, older entries and other languages unchanged.
    for (name, tags) in [
        ("plain", tags([bytes(1004, 9, &["Grüße \u{fffd}".as_bytes()])])),
        ("old", tags(change_log(b"- \xe4", 10))),
        ("language", tags([bytes(1004, 9, &[b"Regards", b"Gr\xfc\xdfe"])])),
        ("lines", tags([bytes(1005, 9, &[b"a\n\tb"])])),
        ("name", tags(file_named("ä".as_bytes()))),
    ] {
        assert_eq!(replaced_texts(room.path(), name, &tags), "", "{name}");
    }
    // What cannot be replaced is refused.
    let file = room.path().join("refused.rpm");
    let odd =
        tags([bytes(1049, 8, &[b"lib\x01"]), numbers(1048, [0]), texts(1050, [String::new()])]);
    fs::write(&file, package(&header(&odd))).unwrap();
    let (said, _) = refused(&mut repo(&[&file], &room.path().join("out")));
    assert!(said.contains("`lib\\u{1}` has characters that XML lacks"), "{said}");
}

/// Publishes a package of these tags: what is said of its texts.
fn replaced_texts(room: &Path, name: &str, tags: &[RawTag]) -> String {
    let file = room.join(format!("{name}.rpm"));
    fs::write(&file, package(&header(tags))).unwrap();
    let out = room.join(name);
    let said = publish(&mut repo(&[&file], &out));
    let again = publish(&mut repo(&[&file], &out));
    assert_eq!(lines_with(&said, "R057"), lines_with(&again, "R057"));
    all_passes(&out);
    lines_with(&said, "R057").join("\n")
}

fn change_log(text: &[u8], at: usize) -> [RawTag; 3] {
    let mut entries = vec![&b"- plain"[..]; 12];
    entries[at] = text;
    [
        numbers(1080, (0..12).map(|n| 1_600_000_000 - n * 86_400)),
        texts(1081, vec!["A <a@example.org>".to_owned(); 12]),
        bytes(1082, 8, &entries),
    ]
}

fn file_named(name: &[u8]) -> Vec<RawTag> {
    vec![
        bytes(1117, 8, &[name]),
        bytes(1118, 8, &[b"/usr/share/"]),
        numbers(1116, [0]),
        numbers(1037, [0]),
        (1030, 3, 1, 0o100_644_u16.to_be_bytes().to_vec()),
    ]
}

#[test]
fn no_package_of_a_folder_is_passed_over_in_silence() {
    need(&["dpkg-deb", "rpmbuild"]);
    let room = tempfile::tempdir().unwrap();
    let (packages, out) = (room.path().join("packages"), room.path().join("repo"));
    let made = |name: &str, to: &str| {
        let file = deb(&room.path().join("made"), (name, "1", "amd64"), "");
        fs::create_dir_all(packages.join(to).parent().unwrap()).unwrap();
        fs::copy(file, packages.join(to)).unwrap();
    };
    for (name, to) in [
        ("debug", "debug.ddeb"),
        ("large", "LARGE.DEB"),
        ("below", "below/mixed.Deb"),
        ("installer", "installer.udeb"),
        ("hidden", ".hidden.deb"),
        ("old", "old.deb.1"),
    ] {
        made(name, to);
    }
    let plain = rpm(&room.path().join("made"), &plain_spec("plain", "1", ""));
    fs::copy(&plain, packages.join("PLAIN.RPM")).unwrap();
    fs::copy(&plain, packages.join("plain.rpm.bak")).unwrap();
    std::os::unix::fs::symlink(room.path().join("made"), packages.join("linked")).unwrap();
    // Neither packages nor worth a word.
    std::os::unix::fs::symlink("below", packages.join("latest")).unwrap();
    fs::write(packages.join("lib.a"), "!<arch>\nlib.o/          0           ").unwrap();
    fs::write(packages.join("notes.txt"), "deb\n").unwrap();
    fs::write(packages.join(".notes"), "deb\n").unwrap();
    let said = publish(&mut repo(&[&packages], &out));
    let index = fs::read_to_string(out.join("dists/stable/main/binary-amd64/Packages")).unwrap();
    let named: Vec<&str> =
        index.lines().filter_map(|line| line.strip_prefix("Package: ")).collect();
    assert_eq!(named, ["below", "debug", "large"]);
    assert!(out.join("packages/p/plain-1-1.noarch.rpm").exists());
    let warned = lines_with(&said, "R058");
    for (file, reason) in [
        ("installer.udeb", "Debian's installer"),
        (".hidden.deb", "begins with a dot"),
        ("old.deb.1", "it is a .deb"),
        ("plain.rpm.bak", "it is a .rpm"),
        ("linked", "a link to a folder"),
    ] {
        let is_it = |line: &&String| line.contains(&format!("/{file}:")) && line.contains(reason);
        assert!(warned.iter().any(|line| is_it(&line)), "{file}: {said}");
    }
    assert_eq!(warned.len(), 5, "{said}");
    all_passes(&out);
    // A file that is named itself is what its content says.
    publish(&mut repo(&[&packages.join("installer.udeb")], &out));
    // `verify` of the folder has all of them.
    let said = told(rockpack().arg("verify").arg(&packages));
    assert!(said.contains("5 packages"), "{said}");
    // Where all is left out, the reason is there, too.
    let only = room.path().join("only");
    fs::create_dir(&only).unwrap();
    fs::copy(packages.join("installer.udeb"), only.join("x.udeb")).unwrap();
    let (said, _) = refused(&mut repo(&[&only], &out));
    assert!(said.contains("there is no package in this folder") && said.contains("R058"), "{said}");
}

/// Only one of two names of a package is published, and not in silence.
#[test]
fn a_package_under_two_names_is_named() {
    need(&["dpkg-deb"]);
    let room = tempfile::tempdir().unwrap();
    let [packages, more, out] = ["packages", "more", "repo"].map(|name| room.path().join(name));
    let one = deb(&packages, ("one", "1", "amd64"), "");
    fs::copy(&one, packages.join("RENAMED.DEB")).unwrap();
    let (said, _) = refused(repo(&[&packages], &out).arg("--strict"));
    assert!(said.contains("R058"), "{said}");
    // Also in a run over the same folder again.
    for after in [0, 1] {
        let warned = lines_with(&publish(&mut repo_at(&[&packages], &out, after)), "R058");
        assert_eq!(warned.len(), 1, "{warned:?}");
        let same = "the same package as pool/main/o/one/one_1_amd64.deb";
        assert!(warned[0].contains("RENAMED.DEB: is left out"), "{warned:?}");
        assert!(warned[0].contains(same), "{warned:?}");
    }
    // A new name alone leaves nothing out.
    let renamed = packages.join("RENAMED.DEB");
    assert!(!publish(&mut repo_at(&[&renamed], &out, 2)).contains("R058"));
    // The same file in two folders, and another package with such a name, are no mistakes.
    fs::create_dir(&more).unwrap();
    fs::copy(&one, more.join("one_1_amd64.deb")).unwrap();
    fs::rename(deb(&more, ("two", "1", "amd64"), ""), packages.join("RENAMED.DEB")).unwrap();
    let said = publish(&mut repo_at(&[&packages, &more], &room.path().join("good"), 3));
    assert!(lines_with(&said, "R058").is_empty(), "{said}");
}
