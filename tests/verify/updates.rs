//! Scripts of packages that take the place of others: what they say of earlier versions fits what the
//! packages have, or is named.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rpm::IndexData;
use support::program::{repository, rockpack};
use support::tampered::Set;
use support::tools::{self, need};
use tempfile::TempDir;

use crate::foreign::{set_tag, with_header};

const PREFIX: &str = "/opt/amd/rocm";

const CONFIGURATION: &str = r#"{ "alternatives": "programs", "architecture_groups": { "gfxX": {
    "display_name": "X", "architectures": ["gfx90a", "gfx1030", "gfx1100"] } } }"#;

/// An artifact with a library, a program, and what `add` puts below its stage.
fn shards(root: &Path, name: &str, add: impl FnOnce(&Path)) -> PathBuf {
    let artifact = root.join(name).join("one/blas_lib_gfx90a");
    let stage = artifact.join("math-libs/stage");
    for folder in ["lib", "bin", "share"] {
        fs::create_dir_all(stage.join(folder)).unwrap();
    }
    fs::write(artifact.join("artifact_manifest.txt"), "math-libs/stage\n").unwrap();
    let library = repository("tests/fixtures/binaries/sub_page");
    fs::copy(library, stage.join("lib/libx.so.1")).unwrap();
    fs::write(stage.join("bin/tool"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(stage.join("bin/tool"), fs::Permissions::from_mode(0o755)).unwrap();
    add(&stage.join("share"));
    root.join(name)
}

/// A set in which a folder became a link and a link a folder, and the artifacts of it.
fn updated(root: &TempDir) -> (Set, String) {
    let before = shards(root.path(), "before", |share| {
        fs::create_dir_all(share.join("a's/b")).unwrap();
        fs::write(share.join("a's/b/c"), "text\n").unwrap();
        symlink("x", share.join("link")).unwrap();
    });
    let after = shards(root.path(), "after", |share| {
        symlink("x", share.join("a's")).unwrap();
        fs::create_dir_all(share.join("link")).unwrap();
        fs::write(share.join("link/file"), "text\n").unwrap();
    });
    let configuration = root.path().join("configuration.json");
    fs::write(&configuration, CONFIGURATION).unwrap();
    let build = |artifacts: &Path, version: &str, out: &Path| {
        let mut build = rockpack();
        build.args(["build", "--format", "deb,rpm", "--prefix", PREFIX, "--version", version]);
        build.arg("--config").arg(&configuration).arg("--artifacts").arg(artifacts);
        build.arg("--out").arg(out);
        build
    };
    let earlier = root.path().join("earlier");
    tools::run(&mut build(&before, "7.0.0", &earlier));
    let set = Set::empty();
    tools::run(build(&after, "7.1.0", &set.path("")).arg("--since").arg(&earlier));
    (set.reopen(), after.to_str().unwrap().to_owned())
}

#[test]
fn v102_what_scripts_say_of_an_earlier_version() {
    need(&["dpkg-deb"]);
    let root = tempfile::tempdir().unwrap();
    let (set, artifacts) = updated(&root);
    let against = ["--against", artifacts.as_str()];
    set.fires(&against, &[]);
    let deb = set.host();
    let original = fs::read(set.path(&deb)).unwrap();
    for (script, from, to) in [
        (
            "preinst",
            "symlink_to_dir '/opt/amd/rocm/share/link'",
            "symlink_to_dir '/opt/amd/rocm/share'",
        ),
        ("preinst", "symlink_to_dir '/opt/amd/rocm/share/link'", "symlink_to_dir '/etc'"),
        ("preinst", "share/a'\\''s' 'x'", "share/a'\\''s' '/etc'"),
        ("preinst", " 7.1.0-1~ ", " 9 "),
        ("postrm", "symlink_to_dir", "dir_to_symlink"),
        ("postinst", "/opt/amd/rocm/bin/tool 70100", "/opt/amd/rocm/bin/tool 99999"),
        ("postinst", "--install /usr/bin/tool tool", "--install /usr/bin/sh sh"),
    ] {
        set.edit(&deb, |root| {
            let file = root.join("DEBIAN").join(script);
            let text = fs::read_to_string(&file).unwrap();
            assert!(text.contains(from), "{text}");
            fs::write(file, text.replace(from, to)).unwrap();
        });
        let run = set.verify(&against);
        assert_eq!(run.codes(), ["V102"], "{to}: {}", run.text);
        fs::write(set.path(&deb), &original).unwrap();
    }
    set.edit(&deb, |root| fs::remove_file(root.join("DEBIAN/prerm")).unwrap());
    let run = set.verify(&against);
    assert!(run.text.contains("has no prerm, which"), "{}", run.text);
}

#[test]
fn v102_what_a_pretrans_scriptlet_removes() {
    let root = tempfile::tempdir().unwrap();
    let (set, artifacts) = updated(&root);
    let rpm = "rocm-blas-7.1.0-1.x86_64.rpm";
    let original = fs::read(set.path(rpm)).unwrap();
    for (from, to) in [
        ("  \"b/c\",", "  \"../../../../etc/passwd\","),
        ("clear(prefix .. \"/share/a's\"", "clear(prefix .. \"/share\""),
        ("clear(prefix .. \"/share/a's\"", "clear(prefix .. \"/../../../etc\""),
        ("os.remove(prefix .. \"/share/link\")", "os.remove(prefix .. \"/lib/libx.so.1\")"),
        ("/etc/ld.so.conf.d/", "/tmp/"),
        ("local prefix = \"/opt/amd/rocm\"", "local prefix = \"\""),
    ] {
        with_header(&set, rpm, |mut tags| {
            let old = tags.iter().find(|(tag, _)| *tag == 1151);
            let Some((_, IndexData::StringTag(text))) = old else { panic!("no %pretrans") };
            assert!(text.contains(from), "{text}");
            let text = text.replace(from, to);
            set_tag(&mut tags, 1151, IndexData::StringTag(text));
            tags
        });
        let run = set.verify(&["--against", &artifacts]);
        assert!(run.text.contains("its %pretrans is not"), "{to}: {}", run.text);
        fs::write(set.path(rpm), &original).unwrap();
    }
}
