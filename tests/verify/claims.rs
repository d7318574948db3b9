//! Statements of a receipt about more than bytes: each field that packages or artifacts prove is compared
//! with them.

use std::fs;

use rockpack::package::{Format, RoleKind};
use rockpack::receipt::{PackageRecord, Receipt};
use support::tampered::Set;

const SHARDS: &[&str] = &["--against", "examples/shards"];

fn record<'a>(receipt: &'a mut Receipt, id: &str, format: Format) -> &'a mut PackageRecord {
    let mut records = receipt.packages.iter_mut();
    records.find(|record| record.id == id && record.format == format).unwrap()
}

/// Lies that do not hide each other, each with what is said of it.
#[test]
fn v002_fields_that_packages_and_artifacts_prove() {
    let set = Set::of_both_formats();
    set.edit_receipt(|receipt| {
        let (deb, rpm) = (Format::Deb, Format::Rpm);
        record(receipt, "rocm-blas-gfx110x", deb).version = "7.1.0-2".to_owned();
        record(receipt, "rocm-blas-gfx110x", rpm).version = "1:7.1.0-1".to_owned();
        record(receipt, "rocm-blas-gfx115x", deb).group = Some("other".to_owned());
        record(receipt, "rocm-blas-gfx120x", rpm).group = None;
        record(receipt, "rocm-blas-gfx120x", rpm).archs.pop();
        let host = record(receipt, "rocm-blas", deb);
        (host.role, host.id) = (RoleKind::Meta, "rocm-other".to_owned());
        record(receipt, "rocm-host-suite-sparse", deb).role = RoleKind::KernelsCommon;
        let moved = record(receipt, "rocm-common", deb);
        moved.format = rpm;
        moved.id = "rocm-uncommon".to_owned();
        receipt.release = "3".to_owned();
        receipt.left_out.push("/opt/rocm-7.1/lib/nothing.so".to_owned());
        let object = receipt.code_objects.iter_mut().find(|it| it.shard.is_some()).unwrap();
        object.shard = Some("elsewhere".to_owned());
    });
    let run = set.verify(SHARDS);
    let (deb, rpm) = ("_7.1.0-1_amd64.deb", "-7.1.0-1.x86_64.rpm");
    for (code, subject, message) in [
        (
            "V002",
            format!("rocm-blas-gfx110x{deb}"),
            "its version is `7.1.0-1`, and the receipt says `7.1.0-2`",
        ),
        (
            "V002",
            format!("rocm-blas-gfx110x{rpm}"),
            "its version is `7.1.0-1`, and the receipt says `1:7.1.0-1`",
        ),
        ("V002", format!("rocm-blas-gfx115x{deb}"), "says another group of it than of"),
        (
            "V002",
            format!("rocm-blas-gfx120x{rpm}"),
            "its number of groups is `1`, and the receipt says `0`",
        ),
        ("V002", format!("rocm-blas-gfx120x{deb}"), "says another archs of it than of"),
        (
            "V002",
            format!("rocm-blas{deb}"),
            "its name is `rocm-blas`, and the receipt says `rocm-other`",
        ),
        (
            "V002",
            "rocm-common_7.1.0-1_all.deb".to_owned(),
            "its format is `deb`, and the receipt says `rpm`",
        ),
        (
            "V002",
            format!("rocm-blas{rpm}"),
            "its version of the set is `7.1.0-1`, and the receipt says `7.1.0-3`",
        ),
        ("V002", "packages.json:/opt/rocm-7.1/lib/nothing.so".to_owned(), "no artifact has it"),
        ("V010", String::new(), "and the receipt says in elsewhere"),
    ] {
        let found = run.problems();
        let of = |problem: &&serde_json::Value| {
            problem["code"] == code
                && problem["subject"].as_str().unwrap().contains(&subject)
                && problem["message"].as_str().unwrap().contains(message)
        };
        assert!(found.iter().any(|it| of(&it)), "{code} {subject} {message}: {}", run.text);
    }
}

/// The metadata of a package agree with its file name.
#[test]
fn v002_a_package_for_another_machine_than_its_name_says() {
    support::tools::need(&["dpkg-deb"]);
    let set = Set::of_debs();
    set.edit_control(&set.kernels("gfx110x"), "Architecture", "all");
    let run = set.verify(&[]);
    assert!(run.codes().contains(&"V002".to_owned()), "{}", run.text);
    assert!(
        run.text.contains("its file name is `rocm-blas-gfx110x_7.1.0-1_all.deb`"),
        "{}",
        run.text
    );
}

/// Shards may lie in folders of other names by now, and of these nothing is said.
#[test]
fn artifacts_in_other_folders_are_those_of_the_receipt() {
    let set = Set::of_debs();
    let shards = tempfile::tempdir().unwrap();
    let root = support::program::repository("examples/shards");
    for (number, shard) in fs::read_dir(root).unwrap().enumerate() {
        let to = shards.path().join(format!("copy-{number}"));
        std::os::unix::fs::symlink(shard.unwrap().path(), to).unwrap();
    }
    let run = set.verify(&["--against", shards.path().to_str().unwrap()]);
    assert!(!run.text.contains("and the receipt says in"), "{}", run.text);
}
