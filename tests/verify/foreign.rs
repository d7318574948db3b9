//! Packages that hold or do what no artifact has and no rule makes.

use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rpm::IndexData;
use support::headers::{Tagged, remade};
use support::tampered::Set;
use support::tools::need;

const SHARDS: &[&str] = &["--against", "examples/shards"];
const PREFIX: &str = "opt/rocm-7.1";

fn add(root: &Path, path: &str, text: &str, mode: u32) {
    let file = root.join(path);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, text).unwrap();
    fs::set_permissions(file, Permissions::from_mode(mode)).unwrap();
}

fn append(file: &Path, text: &str) {
    let mut file = fs::OpenOptions::new().append(true).create(true).open(file).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

/// The receipt agrees with all that was added, as with one that was made anew.
#[test]
fn what_no_artifact_has_is_named_in_a_deb() {
    need(&["dpkg-deb"]);
    let set = Set::of_debs();
    let (host, kernels) = (set.host(), set.kernels("gfx110x"));
    set.edit(&host, |root| {
        add(root, "etc/cron.d/evil", "* * * * * root evil\n", 0o644);
        add(root, &format!("{PREFIX}/bin/helper"), "#!/bin/sh\n", 0o4755);
        add(root, "etc/ld.so.conf.d/evil.conf", "/opt/rocm-7.1/lib\ninclude /tmp/evil\n", 0o644);
        add(root, "usr/share/doc/rocm-blas/run", "#!/bin/sh\n", 0o755);
        fs::create_dir_all(root.join("var/evil")).unwrap();
        std::os::unix::fs::symlink("/bin/sh", root.join(PREFIX).join("lib/evil.so")).unwrap();
        add(root, "DEBIAN/postinst", "#!/bin/sh\nset -e\nevil\n", 0o755);
        add(root, "DEBIAN/config", "#!/bin/sh\nevil\n", 0o755);
    });
    set.edit(&kernels, |root| append(&root.join("DEBIAN/preinst"), "evil\n"));
    let run = set.verify(SHARDS);
    assert_eq!(run.codes(), ["V091", "V100", "V101", "V102"], "{}", run.text);
    for (code, part) in [
        ("V100", "bin/helper"),
        ("V101", "/etc/cron.d/evil"),
        ("V101", "bin/helper"),
        ("V101", "/etc/ld.so.conf.d/evil.conf"),
        ("V101", "/usr/share/doc/rocm-blas/run"),
        ("V101", "/var/evil"),
        ("V101", "lib/evil.so"),
        ("V102", "its postinst is not"),
        ("V102", "the control file config"),
        ("V102", "its preinst is not"),
    ] {
        let found = run.problems();
        let of = |problem: &serde_json::Value| {
            problem["code"] == code && problem.to_string().contains(part)
        };
        assert!(found.iter().any(of), "{code} {part}: {}", run.text);
    }
    // Without the artifacts nobody knows whose the files are; scripts are known where this version
    // made the set.
    set.fires(&[], &["V091", "V100", "V102"]);
    set.remove_receipt();
    set.fires(&[], &["V091", "V100"]);
}

/// Archives, documents and folders have the modes that rules give, whatever the receipt says.
#[test]
fn modes_of_what_rules_make_are_compared() {
    need(&["dpkg-deb"]);
    let set = Set::of_debs();
    let modes = [
        (set.kernels("gfx110x"), format!("{PREFIX}/lib/.kpack/blas_lib_gfx1100.kpack"), 0o666),
        (set.kernels("gfx115x"), format!("{PREFIX}/lib/.kpack"), 0o777),
        (set.host(), "usr/share/doc/rocm-blas/copyright".to_owned(), 0o600),
    ];
    for (package, path, mode) in &modes {
        set.edit(package, |root| {
            fs::set_permissions(root.join(path), Permissions::from_mode(*mode)).unwrap();
        });
    }
    let run = set.verify(SHARDS);
    let found = run.problems();
    for (_, path, mode) in &modes {
        let told = format!("is in a package with mode {mode:o}");
        let of = |problem: &&serde_json::Value| {
            problem["code"] == "V013" && problem.to_string().contains(&told)
        };
        assert!(found.iter().any(|it| of(&it) && it.to_string().contains(path)), "{}", run.text);
    }
}

/// dpkg and apt act on fields and conffiles, and nobody knows who put a hard link into a package.
#[test]
fn what_no_build_writes_is_named_in_a_deb() {
    need(&["dpkg-deb"]);
    let set = Set::of_debs();
    set.remove_receipt();
    let (host, kernels) = (set.host(), set.kernels("gfx110x"));
    let archive = format!("/{PREFIX}/lib/.kpack/blas_lib_gfx1100.kpack");
    set.edit(&host, |root| {
        let fields = "Essential: yes\nProtected: yes\nMulti-Arch: foreign\nX-Note: any\n";
        let control = root.join("DEBIAN/control");
        let text = fs::read_to_string(&control).unwrap();
        fs::write(&control, text.replace("Description:", &format!("{fields}Description:")))
            .unwrap();
        let lib = root.join(PREFIX).join("lib");
        fs::hard_link(lib.join("libexblas.so.1.2"), lib.join("libfurther.so")).unwrap();
    });
    set.edit_without_sums(&kernels, |root| {
        let lines = format!("{archive}\nremove-on-upgrade /{PREFIX}/lib/gone\n");
        fs::write(root.join("DEBIAN/conffiles"), lines).unwrap();
    });
    let run = set.verify(&[]);
    assert_eq!(run.codes(), ["V091"], "{}", run.text);
    let parts = [
        "the field `Essential: yes`",
        "the field `Protected: yes`",
        "the field `Multi-Arch: foreign`",
        "the field `X-Note: any`",
        "is a hard link",
        // The link takes nothing.
        "says that it takes",
        &format!("the line `{archive}`"),
        &format!("the line `remove-on-upgrade /{PREFIX}/lib/gone`"),
    ];
    assert_eq!(run.problems().len(), parts.len(), "{}", run.text);
    for part in parts {
        assert!(run.text.contains(part), "{part}: {}", run.text);
    }
}

/// A kernel package of the set with these changes of its header.
pub fn with_header(set: &Set, name: &str, change: impl FnOnce(Vec<Tagged>) -> Vec<Tagged>) {
    let package = set.path(name);
    let bytes = remade(&fs::read(&package).unwrap(), change, &[]);
    fs::write(&package, bytes).unwrap();
}

pub fn set_tag(tags: &mut Vec<Tagged>, tag: u32, data: IndexData) {
    tags.retain(|(own, _)| *own != tag);
    tags.push((tag, data));
    tags.sort_by_key(|(tag, _)| *tag);
}

#[test]
fn scriptlets_that_no_rule_makes_are_named() {
    let set = Set::of_rpms();
    with_header(&set, &set.kernels("gfx110x"), |mut tags| {
        set_tag(&mut tags, 1026, string_tag("evil"));
        set_tag(&mut tags, 1088, string_tag("/bin/sh"));
        set_tag(&mut tags, 1024, string_tag(""));
        set_tag(&mut tags, 1086, string_tag("/usr/bin/python3"));
        tags
    });
    set.remove_receipt();
    let run = set.verify(SHARDS);
    let problems = run.problems();
    for part in ["its %postun is not", "its %post is run by `/usr/bin/python3`"] {
        let of = |problem: &serde_json::Value| {
            problem["code"] == "V102" && problem.to_string().contains(part)
        };
        assert!(problems.iter().any(of), "{part}: {}", run.text);
    }
}

fn string_tag(text: &str) -> IndexData {
    IndexData::StringTag(text.to_owned())
}

#[test]
fn headers_on_which_rpm_acts_are_named() {
    let set = Set::of_rpms();
    set.remove_receipt();
    set.fires(&[], &[]);
    let name = set.kernels("gfx110x");
    with_header(&set, &name, |mut tags| {
        tags.retain(|(tag, _)| ![5092, 5097].contains(tag));
        set_tag(&mut tags, 1021, string_tag("windows"));
        set_tag(&mut tags, 1065, IndexData::StringArray(vec!["evil".to_owned()]));
        set_tag(&mut tags, 60_000, IndexData::Int32(vec![1]));
        let archive = of_archive(&tags);
        for (tag, data) in &mut tags {
            match (*tag, data) {
                (1037, IndexData::Int32(flags)) => flags[archive] = 2,
                (1097, IndexData::StringArray(langs)) => langs[archive] = "de".to_owned(),
                (1140, IndexData::Int32(colors)) => colors[archive] = 4,
                (1049, IndexData::StringArray(names)) => {
                    let own = names.iter_mut().find(|name| name.starts_with("rpmlib("));
                    *own.unwrap() = "rpmlib(Nothing)".to_owned();
                }
                _ => {}
            }
        }
        tags
    });
    let run = set.verify(&[]);
    assert_eq!(run.codes(), ["V103"], "{}", run.text);
    for part in [
        "states no SHA-256 of the payload",
        "for the system `windows`",
        "tag 1065 (triggers)",
        "tag 60000, on which rpm may act",
        "as a document (%doc)",
        "for one language (%lang)",
        "its colour",
        "needs rpmlib(Nothing)",
    ] {
        assert!(run.text.contains(part), "{part}: {}", run.text);
    }
}

/// The content of a package needs the loader, the guard and ldconfig.
#[test]
fn scripts_that_are_missing_or_say_other_things_are_named() {
    need(&["dpkg-deb"]);
    let set = Set::of_debs();
    set.edit(&set.host(), |root| fs::remove_file(root.join("DEBIAN/triggers")).unwrap());
    set.edit(&set.kernels("gfx115x"), |root| fs::remove_file(root.join("DEBIAN/preinst")).unwrap());
    // The search for links would end where it begins.
    set.edit(&set.kernels("gfx110x"), |root| {
        change_preinst(root, "    /opt) break", "    /opt/rocm-7.1) break");
    });
    let helper = "dpkg-maintscript-helper symlink_to_dir '/opt/rocm-7.1/lib/gone' 'x' 7.1.0-1~ \
                  rocm-blas-gfx120x -- \"$@\"\n";
    set.edit(&set.kernels("gfx120x"), |root| append(&root.join("DEBIAN/preinst"), helper));
    // The kernel would look for an interpreter whose name ends with a carriage return.
    set.edit(&set.host(), |root| change_preinst(root, "\n", "\r\n"));
    let expected = [
        (set.host(), "its preinst is not"),
        (set.host(), "has no triggers, which"),
        (set.kernels("gfx115x"), "has no preinst, which"),
        (set.kernels("gfx110x"), "its preinst is not"),
        (set.kernels("gfx120x"), "its preinst is not"),
    ];
    for receipt in [true, false] {
        if !receipt {
            set.remove_receipt();
        }
        let run = set.verify(SHARDS);
        let found = run.problems();
        for (subject, message) in &expected {
            let of = |it: &serde_json::Value| {
                it["code"] == "V102"
                    && it["subject"] == **subject
                    && it["message"].as_str().unwrap().contains(message)
            };
            assert!(found.iter().any(of), "{subject} {message}: {}", run.text);
        }
        let all = found.iter().filter(|it| it["code"] == "V102").count();
        assert_eq!(all, expected.len(), "{}", run.text);
    }
}

fn change_preinst(root: &Path, from: &str, to: &str) {
    let file = root.join("DEBIAN/preinst");
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains(from), "{text}");
    fs::write(file, text.replace(from, to)).unwrap();
}

/// rpm moves packages, keeps configuration and looks after files as their headers say.
#[test]
fn what_no_build_writes_is_named_in_a_header() {
    let set = Set::of_rpms();
    set.fires(SHARDS, &[]);
    let common = "rocm-common-7.1.0-1.noarch.rpm";
    with_header(&set, common, |mut tags| {
        for (tag, data) in &mut tags {
            if let (1037, IndexData::Int32(flags)) = (*tag, data) {
                flags.fill(0);
            }
        }
        tags
    });
    with_header(&set, &set.kernels("gfx115x"), |mut tags| {
        tags.retain(|(tag, _)| ![1023, 1085, 1098].contains(tag));
        tags
    });
    with_header(&set, &set.kernels("gfx110x"), |mut tags| {
        let archive = of_archive(&tags);
        set_tag(&mut tags, 1098, IndexData::StringArray(vec!["/etc".to_owned()]));
        set_tag(&mut tags, 1009, IndexData::Int32(vec![1]));
        set_tag(&mut tags, 1029, IndexData::Char(vec![0; 1]));
        set_tag(&mut tags, 5096, IndexData::StringTag("other:1".to_owned()));
        for (tag, data) in &mut tags {
            match (*tag, data) {
                (1037, IndexData::Int32(flags)) => flags[archive] = 8,
                (1045, IndexData::Int32(flags)) => flags[archive] = 0,
                (1048, IndexData::Int32(flags)) => flags[0] |= 1 << 19,
                _ => {}
            }
        }
        tags
    });
    set.remove_receipt();
    let run = set.verify(SHARDS);
    for part in [
        "does not mark /etc/ld.so.conf.d/rocm.conf as %config(noreplace)",
        "may be moved from `/etc`, and a build writes `/opt/rocm-7.1`",
        "may be moved from ``, and a build writes `/opt/rocm-7.1`",
        "has no %pre, which",
        "tag 1029 (states of installed files)",
        "tag 5096 (the module",
        "the flags 0x8, and no build",
        "`rpm --verify` pass over what becomes of /opt",
        "says that it takes 1 bytes once it is installed",
        "its header gives the dependency on",
    ] {
        assert!(run.text.contains(part), "{part}: {}", run.text);
    }
}

/// Metapackages have nothing that only rockpack packs; the artifacts say that it made the set.
#[test]
fn fields_of_a_metapackage_are_judged_beside_the_artifacts() {
    need(&["dpkg-deb"]);
    let set = Set::of_debs();
    set.remove_receipt();
    let (meta, common) = (set.named("rocm"), "rocm-common_7.1.0-1_all.deb".to_owned());
    set.edit(&meta, |root| add_field(root, "Essential: yes"));
    set.edit(&common, |root| {
        add_field(root, "Multi-Arch: foreign");
        fs::remove_file(root.join("DEBIAN/conffiles")).unwrap();
    });
    let run = set.verify(SHARDS);
    for part in ["`Essential: yes`", "`Multi-Arch: foreign`", "its conffiles does not list /etc/ld"]
    {
        assert!(run.text.contains(part), "{part}: {}", run.text);
    }
    assert!(run.text.contains("\"relations_unread\": true"), "{}", run.text);
    // Packages of others may say such things.
    set.fires(&[], &[]);
}

fn add_field(root: &Path, field: &str) {
    let file = root.join("DEBIAN/control");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("Description:", &format!("{field}\nDescription:"))).unwrap();
}

/// Relations decide what else is installed, and are in the receipt.
#[test]
fn relations_that_the_receipt_does_not_have_are_named() {
    need(&["dpkg-deb"]);
    let set = Set::of_debs();
    let before = fs::read(set.path("packages.json")).unwrap();
    set.edit_control(&set.kernels("gfx110x"), "Recommends", "evil");
    set.fires(&[], &[]);
    let mut receipt = rockpack::receipt::Receipt::parse(&before).unwrap();
    set.edit_receipt(|edited| {
        for (own, before) in edited.packages.iter_mut().zip(&mut receipt.packages) {
            own.relations = std::mem::take(&mut before.relations);
        }
    });
    let run = set.verify(&[]);
    assert_eq!(run.codes(), ["V002"], "{}", run.text);
    assert!(run.text.contains("states `recommends: evil`, which the receipt"), "{}", run.text);
}

/// The place of a kernel archive in the list of files.
fn of_archive(tags: &[Tagged]) -> usize {
    let names = tags.iter().find(|(tag, _)| *tag == 1117).unwrap();
    let IndexData::StringArray(names) = &names.1 else { panic!("no names") };
    names.iter().position(|name| name.ends_with(".kpack")).unwrap()
}

/// rpm refuses a package for each of these digests.
#[test]
fn digests_of_a_header_are_held_against_it() {
    let set = Set::of_rpms();
    set.remove_receipt();
    let name = set.kernels("gfx110x");
    let good = fs::read(set.path(&name)).unwrap();
    let digest = {
        use sha1::Digest as _;
        let place = rockpack_base::formats::rpm::Front::read(
            &rockpack_base::content::Content::of_bytes(good.as_slice()),
        )
        .unwrap()
        .header;
        let [start, end] = [place.start, place.end].map(|at| usize::try_from(at).unwrap());
        support::hex(&sha1::Sha1::digest(&good[start..end]))
    };
    let at = good.windows(40).position(|window| window == digest.as_bytes()).unwrap();
    let mut bad = good.clone();
    bad[at] = if bad[at] == b'0' { b'1' } else { b'0' };
    fs::write(set.path(&name), bad).unwrap();
    let run = set.verify(&[]);
    assert!(run.codes().contains(&"V001".to_owned()), "{}", run.text);
    assert!(run.text.contains("the header's SHA-1 is not the stated one"), "{}", run.text);
    // MD5 of header and payload, which other tools state.
    let md5 = (1004, IndexData::Bin(vec![0; 16]));
    fs::write(set.path(&name), remade(&good, |tags| tags, &[md5])).unwrap();
    let run = set.verify(&[]);
    assert_eq!(run.codes(), ["V103"], "{}", run.text);
    assert!(run.text.contains("the MD5 of header and payload is not"), "{}", run.text);
}
