//! Our `.rpm` compared tag by tag with rpmbuild's for the same tree, with a list of intended differences.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use rockpack_archive::rpm::RpmReader;
use rockpack_core::content::Content;
use rockpack_package::{Package, RelationKind, Treatment};
use rpm::IndexData;
use support::packages::{CONTENT_DATE, EPOCH, Tree, emit_one, package, relation};
use support::tools::{need, succeed};

/// Tags that differ, and why.
const MEANT: [(u32, &str); 10] = [
    (63, "the region's size follows the number of tags"),
    (1064, "RPMVERSION names the writer"),
    (1122, "OPTFLAGS: nothing is compiled here"),
    (1132, "PLATFORM names the building distribution"),
    (1141, "FILECLASS: libmagic's wording differs between its versions"),
    (1142, "CLASSDICT: as FILECLASS"),
    (1143, "FILEDEPENDSX: dependencies are found per package, not per file"),
    (1144, "FILEDEPENDSN: as FILEDEPENDSX"),
    (1145, "DEPENDSDICT: as FILEDEPENDSX"),
    (5092, "PAYLOADDIGEST: another window and long-distance matching"),
];

/// Signature tags that differ, and why.
const MEANT_SIGNATURE: [(u32, &str); 5] = [
    (62, "the region's size follows the number of tags"),
    (269, "the header differs"),
    (273, "the header differs"),
    (1000, "header and payload differ in size"),
    (1004, "MD5 over header and payload cannot be known in one pass"),
];

fn sample() -> Package<Content> {
    let tree = Tree::default()
        .deb_directory("etc")
        .file("etc/rocm.conf", Content::of_bytes(*b"/opt\n"), 0o644, Treatment::Config)
        .deb_directory("opt")
        .directory("opt/rocm-7.1")
        .directory("opt/rocm-7.1/lib")
        .text("opt/rocm-7.1/lib.txt", "sorts between the directory and what it holds\n")
        .file(
            "opt/rocm-7.1/lib/true",
            support::fixtures::content("/bin/true"),
            0o755,
            Treatment::Plain,
        )
        .text("opt/rocm-7.1/lib/empty", "")
        .link("opt/rocm-7.1/lib/link", "empty")
        .file("opt/rocm-7.1/lib/README", Content::of_bytes(*b"read\n"), 0o644, Treatment::Doc)
        .file("opt/rocm-7.1/lib/LICENSE", Content::of_bytes(*b"may\n"), 0o644, Treatment::License);
    let mut sample = package("rocm-blas", tree.entries());
    let rpm = sample.rpm.as_mut().unwrap();
    rpm.epoch = Some(1);
    rpm.version = "7.1.0~rc1".to_owned();
    rpm.relations = vec![
        relation(RelationKind::Depends, "rocm-common", Some("7.1.0-1")),
        relation(RelationKind::Depends, "(a or b)", None),
        relation(RelationKind::Provides, "librocblas.so.5()(64bit)", None),
        relation(RelationKind::Conflicts, "rocblas", None),
        relation(RelationKind::Obsoletes, "rocblas-old", None),
        relation(RelationKind::Recommends, "r", None),
        relation(RelationKind::Suggests, "s", None),
        relation(RelationKind::Supplements, "u", None),
        relation(RelationKind::Enhances, "e", None),
    ];
    let scripts = [
        ("%post", "/bin/sh", "echo post\n"),
        ("%preun", "/bin/sh", "echo preun\n"),
        ("%postun", "/sbin/ldconfig", ""),
        ("%pretrans", "<lua>", "-- nothing\n"),
        ("%transfiletriggerin -- /opt/rocm-7.1/lib", "/bin/sh", "echo trigger\n"),
    ];
    rpm.scripts = scripts
        .map(|(phase, program, text)| (phase.to_owned(), (program.to_owned(), text.to_owned())))
        .into();
    sample
}

const SPEC: &str = "\
Name: rocm-blas
Epoch: 1
Version: 7.1.0~rc1
Release: 1
Summary: Basic linear algebra for GPUs
License: MIT
Group: System Environment/Libraries
URL: https://example.org/
Vendor: Vendor
Packager: Packager <packager@example.org>
Prefix: /opt/rocm-7.1
Requires: rocm-common = 7.1.0-1
Requires: (a or b)
Provides: librocblas.so.5()(64bit)
Conflicts: rocblas
Obsoletes: rocblas-old
Recommends: r
Suggests: s
Supplements: u
Enhances: e
%description
First paragraph.

Second paragraph.
%install
mkdir -p %{buildroot}
cp -a %{tree}/. %{buildroot}
find %{buildroot} -exec touch -h -d @%{mtime} {} +
%post
echo post
%preun
echo preun
%postun -p /sbin/ldconfig
%pretrans -p <lua>
-- nothing
%transfiletriggerin -- /opt/rocm-7.1/lib
echo trigger
%files
%config(noreplace) /etc/rocm.conf
%dir /opt/rocm-7.1
%dir /opt/rocm-7.1/lib
/opt/rocm-7.1/lib.txt
/opt/rocm-7.1/lib/true
/opt/rocm-7.1/lib/empty
/opt/rocm-7.1/lib/link
%doc /opt/rocm-7.1/lib/README
%license /opt/rocm-7.1/lib/LICENSE
";

fn rpmbuild(work: &Path, deb: &Path) -> PathBuf {
    let tree = work.join("tree");
    succeed(Command::new("dpkg-deb").arg("-x").arg(deb).arg(&tree));
    std::fs::write(work.join("blas.spec"), SPEC).unwrap();
    let defines = [
        format!("_topdir {}", work.join("top").display()),
        format!("tree {}", tree.display()),
        format!("mtime {CONTENT_DATE}"),
        "_binary_payload w9.zstdio".to_owned(),
        "_buildhost rockpack".to_owned(),
        "use_source_date_epoch_as_buildtime 1".to_owned(),
        "clamp_mtime_to_source_date_epoch 0".to_owned(),
        // The plan determines what ELF files need and provide.
        "__elf_requires /bin/sed d".to_owned(),
        "__elf_provides /bin/sed d".to_owned(),
        "_build_id_links none".to_owned(),
        "debug_package %{nil}".to_owned(),
        "__os_install_post %{nil}".to_owned(),
    ];
    let mut command = Command::new("rpmbuild");
    command.env("SOURCE_DATE_EPOCH", EPOCH.to_string()).args(["-bb", "--quiet"]);
    for define in defines {
        command.args(["--define", &define]);
    }
    succeed(command.arg(work.join("blas.spec")));
    work.join("top/RPMS/x86_64/rocm-blas-7.1.0~rc1-1.x86_64.rpm")
}

type Tags = BTreeMap<u32, IndexData>;

fn tags(path: &Path) -> (Tags, Tags) {
    let reader = RpmReader::open(support::fixtures::content(path)).unwrap();
    reader.visit(&mut |_, _| Ok(())).unwrap();
    let metadata = &reader.metadata;
    let header = metadata.header.get_all_entries().unwrap();
    let signature = metadata.signature.get_all_entries().unwrap();
    (header.into_iter().collect(), signature.into_iter().collect())
}

fn assert_differ_only(ours: &Tags, theirs: &Tags, meant: &[(u32, &str)]) {
    let all: std::collections::BTreeSet<u32> = ours.keys().chain(theirs.keys()).copied().collect();
    for tag in all {
        let (ours, theirs) = (ours.get(&tag), theirs.get(&tag));
        match meant.iter().find(|(known, _)| *known == tag) {
            None => assert_eq!(ours, theirs, "tag {tag}"),
            Some((_, reason)) => assert_ne!(ours, theirs, "tag {tag} is equal after all: {reason}"),
        }
    }
}

/// The payloads are the same before compression: PAYLOADDIGESTALT (5097) and PAYLOADSIZE (1007) are in
/// neither list.
#[test]
fn tags_equal_those_of_rpmbuild_but_for_the_list() {
    need(&["rpmbuild", "dpkg-deb"]);
    let work = tempfile::tempdir().unwrap();
    let (deb, ours) = emit_one(&work.path().join("out"), &sample());
    let theirs = rpmbuild(work.path(), &deb);
    let (ours, theirs) = (tags(&ours), tags(&theirs));
    assert_differ_only(&ours.0, &theirs.0, &MEANT);
    assert_differ_only(&ours.1, &theirs.1, &MEANT_SIGNATURE);
}
