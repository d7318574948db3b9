//! File capabilities: an installation would give away a part of root's rights.

use std::fs;
use std::process::Command;

use support::archives::{Handmade, Packing, tar};
use support::tools::{self, need, need_root};

use crate::hostile_packages::{deb, rpm};
use crate::{Input, STAGE, inspect, refusal, text};

const REFUSED: &str = "has file capabilities";

/// A folder with a file that has capabilities.
fn folder() -> Input {
    need(&["setcap"]);
    need_root();
    let input = Input::folder();
    let file = input.stage().join("lib/tool");
    fs::write(&file, "x").unwrap();
    let setcap = tools::find("setcap").unwrap();
    let given = Command::new(setcap).arg("cap_net_raw=ep").arg(&file).output().unwrap();
    if !given.status.success() {
        tools::skip("needs a file system of temporary files that keeps capabilities");
    }
    input
}

#[test]
fn capabilities_in_a_folder_are_refused() {
    let input = folder();
    input.refused(&["stage/lib/tool", REFUSED]);
    let copied = input.stage().join("lib/copied");
    fs::write(&copied, "x").unwrap();
    fs::remove_file(input.stage().join("lib/tool")).unwrap();
    tools::run(&mut input.build());
}

#[test]
fn capabilities_in_an_archive_are_refused() {
    let value = b"\x01\0\0\x02\0\x20\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    for key in ["SCHILY.xattr.security.capability", "LIBARCHIVE.xattr.security.capability"] {
        // The length of a record includes its own digits.
        let len = key.len() + value.len() + 5;
        let record = [format!("{len} {key}=").as_bytes(), value, b"\n"].concat();
        assert_eq!(record.len(), len);
        for (kind, said) in [(b'x', REFUSED), (b'g', "gives all members capabilities")] {
            let input = Input::handmade(|archive| {
                archive.member("PaxHeaders/tool", kind, "", 0o644, &record);
                archive.file(&format!("{STAGE}/tool"), b"x");
            });
            input.refused(&["a_lib_generic.tar.zst", said]);
        }
    }
    let input = folder();
    let artifact = input.shard().join("a_lib_generic");
    let bytes = tar(&artifact, &["--format=pax", "--xattrs", "--xattrs-include=*"]);
    Input::packed(Packing::Zstd, &Packing::Zstd.compress(&bytes))
        .refused(&["a_lib_generic.tar.zst(libs/A/stage/lib/tool)", REFUSED]);
}

#[test]
fn extended_headers_in_a_deb_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let package = deb(folder.path(), |data: &mut Handmade| {
        data.member("./x", b'x', "", 0o644, b"47 SCHILY.xattr.security.capability=0123456789\n");
        data.file("./tool", b"x");
    });
    let said = refusal(&mut inspect(&package));
    assert!(said.contains("of type `x` has a type that dpkg does not install"), "{said}");
}

#[test]
fn capabilities_in_an_rpm_are_refused() {
    need(&["rpmbuild"]);
    let folder = tempfile::tempdir().unwrap();
    tools::run(&mut inspect(&rpm(folder.path(), &specification(""))));
    let package = rpm(folder.path(), &specification("%caps(cap_net_raw=ep)"));
    let said = refusal(&mut inspect(&package));
    assert!(said.contains("/opt/tool has file capabilities"), "{said}");
    let output = support::example::rockpack().arg("verify").arg(&package).output().unwrap();
    let said = text(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("V001 unreadable") && said.contains(REFUSED), "{said}");
}

fn specification(caps: &str) -> String {
    format!(
        "Name: odd\nVersion: 1\nRelease: 1\nSummary: x\nLicense: MIT\nBuildArch: noarch\n\
         %description\nx\n%install\nmkdir -p %{{buildroot}}/opt\n\
         echo x > %{{buildroot}}/opt/tool\necho x > %{{buildroot}}/opt/other\n\
         %files\n/opt/other\n{caps} /opt/tool\n"
    )
}
