//! Inputs that are no trees, and trees that no package can be made of.

use std::fs;
use std::process::Command;

use serde_json::json;
use support::archives::{self, Handmade};
use support::fat_wheels::{linked, shim};
use support::tools::{self, need};
use support::trees::{Trees, library, named, native, text};

use crate::refusals::{FAILED, USAGE, patch, refused};
use crate::trees::assert_has;

#[test]
fn inputs_of_other_kinds_are_named() {
    let trees = Trees::default();
    for name in ["a.deb", "a.rpm", "a.whl", "a.zip", "blas_lib_all.tar.xz", "a.txt", "other/x"] {
        trees.put(name, text("text"));
    }
    fs::create_dir(trees.path("empty")).unwrap();
    let mut artifact = Handmade::with_manifest();
    artifact.file("libs/A/stage/lib/libhiprtc.so.7", b"text");
    fs::write(trees.path("a.tar"), artifact.finish()).unwrap();
    for (name, expected) in [
        ("a.deb", "dpkg-deb -x"),
        ("a.rpm", "rpm2cpio"),
        ("a.tar", "or an install tree"),
        ("a.txt", "is neither an ELF file nor a tarball"),
        ("a.whl", "`rockpack wheel`"),
        ("a.zip", "is neither an ELF file nor a tarball"),
        ("blas_lib_all.tar.xz", "is one artifact, not a folder of artifacts"),
        ("empty", "or an install tree"),
        ("missing", "No such file"),
        ("missing.tar.gz", "No such file"),
        ("other", "or an install tree"),
    ] {
        let path = trees.path(name);
        let expected = [path.to_str().unwrap(), expected];
        refused(&mut trees.build(&[&path], &[]), USAGE, &expected);
        refused(&mut trees.build(&[named("own", &path)], &[]), USAGE, &expected);
        assert!(!trees.out().exists());
    }
}

#[test]
fn members_that_no_package_can_have_are_named() {
    let trees = Trees::default();
    let path = trees.path("rocm.tar");
    for (name, kind, target, mode, message) in [
        ("/lib/x", b'0', "", 0o644, "has an absolute path"),
        ("../x", b'0', "", 0o644, "is not a path inside the archive"),
        ("lib/x", b'3', "", 0o644, "is a device"),
        ("lib/x", b'6', "", 0o644, "is a named pipe"),
        ("lib/x", b'0', "", 0o4755, "has the setuid or setgid bit"),
        ("lib/x", b'2', "/etc/x", 0o777, "the link leads to `/etc/x`"),
        ("lib/x", b'2', "../../x", 0o777, "the link leads to `../../x`"),
        ("lib/libhiprtc.so.7", b'0', "", 0o644, "occurs twice"),
    ] {
        let mut tar = Handmade::new();
        tar.file("lib/libhiprtc.so.7", b"text");
        tar.member(name, kind, target, mode, b"");
        fs::write(&path, tar.finish()).unwrap();
        let member = format!("{}({name})", path.display());
        refused(&mut trees.build(&[&path], &[]), FAILED, &[&member, message]);
    }
}

/// What lies outside of the prefix is in no package, whatever it is.
#[test]
fn special_files_outside_of_the_prefix_are_passed_over() {
    let trees = Trees::default();
    let mut tar = Handmade::new();
    tar.file("usr/lib/libhiprtc.so.7", b"text");
    tar.member("dev/null", b'3', "", 0o644, b"");
    tar.member("etc/x", b'2', "/etc/y", 0o777, b"");
    fs::write(trees.path("root.tar"), tar.finish()).unwrap();
    trees.packages(&[trees.path("root.tar")], &[]);
    assert_eq!(trees.findings("R005")[0]["files"], json!(["dev/null", "etc/x"]));
}

#[test]
fn damaged_tarballs_are_named() {
    need(&archives::TOOLS);
    let trees = Trees::default();
    trees.put("tree/lib/libhiprtc.so.7", native());
    let whole = trees.tarball("rocm.tar.gz", "tree", &["."]);
    let bytes = fs::read(&whole).unwrap();
    let plain = fs::read(trees.tarball("rocm.tar", "tree", &["."])).unwrap();
    for (name, bytes, message) in [
        ("cut.tar.gz", &bytes[..bytes.len() / 2], "copied only in part"),
        ("cut.tar", &plain[..1800], "ends inside a member"),
        ("empty.tar.zst", &[][..], "cannot decode the compressed stream"),
        ("other.tar.xz", &bytes[..], "cannot decode the compressed stream"),
        ("other.tar", &bytes[..], "has no checksum"),
    ] {
        let path = trees.path(name);
        fs::write(&path, bytes).unwrap();
        refused(&mut trees.build(&[&path], &[]), FAILED, &[path.to_str().unwrap(), message]);
    }
    let sum = archives::sum(&whole);
    trees.packages(&[&whole], &[]);
    fs::write(sum, support::sha256(b"other")).unwrap();
    let expected = [whole.to_str().unwrap(), "has the SHA-256", "fetch it again"];
    refused(&mut trees.build(&[&whole], &[]), FAILED, &expected);
}

#[test]
fn files_that_no_package_can_have_are_named() {
    need(&["sh", "mkfifo"]);
    for (script, message) in [
        ("mkfifo $0", "is a named pipe"),
        ("touch $0; chmod 4755 $0", "has the setuid or setgid bit"),
        ("ln -s /etc/x $0", "the link leads to `/etc/x`"),
        ("ln -s ../../x $0", "the link leads to `../../x`"),
        // Where the tree will lie, it would be right.
        ("ln -s /usr/lib/libhiprtc.so.7 $0", "the link leads to `/usr/lib/libhiprtc.so.7`"),
    ] {
        let trees = Trees::default();
        trees.put("root/usr/lib/libhiprtc.so.7", native());
        let place = trees.path("root/usr/lib/x");
        tools::run(Command::new("sh").args(["-c", script]).arg(place));
        let mut build = trees.build(&[trees.path("root")], &[]);
        refused(&mut build, FAILED, &["root/usr/lib/x: ", message]);
    }
}

#[test]
fn libraries_that_cannot_be_split_are_named() {
    let trees = Trees::default();
    let path = trees.put("rocm/lib/librocsparse.so.1", library());
    let whole = fs::read(&path).unwrap();
    let refuses = |message: &str| {
        for input in [trees.path("rocm"), path.clone()] {
            let expected = ["lib/librocsparse.so.1: ", message];
            refused(&mut trees.build(&[input], &[]), FAILED, &expected);
        }
    };
    // ELF's e_machine, and e_shoff with the two numbers about its table.
    patch(&path, |bytes| bytes[18] = 183);
    refuses("is an ELF file for AArch64");
    fs::write(&path, &whole).unwrap();
    patch(&path, |bytes| {
        bytes[0x28..0x30].fill(0);
        bytes[0x3c..0x40].fill(0);
    });
    refuses("has no section table, and an offload bundle");
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    refuses("end outside of the file");
    need(&["objcopy"]);
    fs::write(&path, &whole).unwrap();
    tools::run(Command::new("objcopy").args(["--remove-section", ".hip_fatbin"]).arg(&path));
    refuses("has wrappers, but no section .hip_fatbin");
}

#[test]
fn a_runtime_in_the_tree_has_to_read_archives() {
    let trees = Trees::default();
    trees.put("rocm/lib/librocsparse.so.1", library());
    let runtime = linked(&trees.path(""), "libamdhip64.so.7", "", &[]);
    fs::rename(runtime, trees.path("rocm/lib/libamdhip64.so.7")).unwrap();
    let input = [trees.path("rocm")];
    let expected = ["R143", "core-hip_lib/lib/libamdhip64.so.7", "does not read kernel archives"];
    refused(&mut trees.build(&input, &[]), FAILED, &expected);
    let config = trees.path("any.toml");
    let shim = shim(&trees.path(""), "");
    let keys = format!("hip_runtime = 'any'\nhip_shim = '{}'\n", shim.display());
    fs::write(&config, keys).unwrap();
    let packages = trees.packages(&input, &["--config", config.to_str().unwrap()]);
    assert_has(&packages, "rocm-kpack-shim");
}
