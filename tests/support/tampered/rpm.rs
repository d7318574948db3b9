//! `.rpm` packages that rpm's own tools unpack and rebuild, and one with a false header, which no tool
//! writes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use rockpack_archive::rpm::RpmFront;
use rockpack_package::MemberKind;
use rockpack_package::receipt::MemberRecord;
use sha2::Digest as _;

use super::{hex, sha256};
use crate::queries::rpm_tags;
use crate::tools;

/// The tools that the functions below need.
pub const TOOLS: [&str; 4] = ["rpm", "rpm2cpio", "cpio", "rpmbuild"];

/// The query format that prints a spec file for rebuilding a package.
const SPEC: &str = "Name: %{NAME}\\nVersion: %{VERSION}\\nRelease: %{RELEASE}\\n\
                    BuildArch: %{ARCH}\\nSummary: %{SUMMARY}\\nLicense: %{LICENSE}\\n\
                    [Requires: %{REQUIRENEVRS}\\n][Provides: %{PROVIDENEVRS}\\n]\
                    [Conflicts: %{CONFLICTNEVRS}\\n][Obsoletes: %{OBSOLETENEVRS}\\n]\
                    [Prefix: %{PREFIXES}\\n]";

/// The query format that prints the flags of files.
const FILES: &str = "[%{FILEFLAGS} %{FILENAMES}\\n]";

/// Characters that end the texts of a query, and the program of a scriptlet.
const ENDS: [char; 2] = ['\u{1d}', '\u{1e}'];

/// Scriptlet phases with the tags of their texts.
const SCRIPTLETS: [(&str, &str); 4] =
    [("pretrans", "PRETRANS"), ("pre", "PREIN"), ("post", "POSTIN"), ("postun", "POSTUN")];

/// File flags with their directives in a spec file.
const FLAGS: [(&str, &str); 3] =
    [("17", "%config(noreplace) "), ("2", "%doc "), ("128", "%license ")];

/// Macro settings that keep rpmbuild from adding anything.
const NOTHING_ADDED: [&str; 4] = [
    "_build_id_links none",
    "debug_package %{nil}",
    "__os_install_post %{nil}",
    "_missing_build_ids_terminate_build 0",
];

/// Unpacks a package, and returns the folders that do not belong to it.
pub fn unpack(package: &Path, root: &Path) -> BTreeSet<String> {
    tools::unpack(package, root);
    let own = rpm_tags(package, "[%{FILENAMES}\\n]");
    let own: BTreeSet<&str> = own.lines().collect();
    let mut all = Vec::new();
    super::edit::walk(root, root, &mut all);
    all.into_iter().map(|member| member.path).filter(|path| !own.contains(&path[..])).collect()
}

/// Rebuilds a package in place, with these members of `root`. With `needs`, it requires only these packages.
pub fn build(package: &Path, root: &Path, members: &[MemberRecord], needs: Option<&[String]>) {
    let work = tempfile::tempdir().unwrap();
    let spec = work.path().join("package.spec");
    fs::write(&spec, text(package, root, members, needs)).unwrap();
    let mut rpmbuild = Command::new("rpmbuild");
    rpmbuild.args(["-bb", "--quiet"]);
    let top = work.path().display().to_string();
    let places = [
        format!("_topdir {top}/top"),
        format!("_rpmdir {top}"),
        "_rpmfilename built.rpm".to_owned(),
    ];
    for define in NOTHING_ADDED.map(str::to_owned).iter().chain(&places) {
        rpmbuild.args(["--define", define]);
    }
    tools::run(rpmbuild.arg(&spec));
    fs::copy(work.path().join("built.rpm"), package).unwrap();
}

fn text(package: &Path, root: &Path, members: &[MemberRecord], needs: Option<&[String]>) -> String {
    let [end, of_program] = ENDS;
    let scripts =
        SCRIPTLETS.map(|(_, tag)| format!("%{{{tag}PROG}}{of_program}%{{{tag}}}{end}")).concat();
    let stated = rpm_tags(package, &format!("{SPEC}{end}{FILES}{end}{scripts}"));
    let mut stated = stated.split(end);
    let [spec, flags] = [(); 2].map(|()| stated.next().unwrap());
    let kept = |line: &&str| {
        let own = line.contains("rpmlib(") || line.ends_with(": (none)");
        !own && (needs.is_none() || !line.starts_with("Requires: "))
    };
    let mut text: String = spec.lines().filter(kept).map(|line| format!("{line}\n")).collect();
    for need in needs.into_iter().flatten() {
        text += &format!("Requires: {need}\n");
    }
    text += "AutoReqProv: no\n%description\nTampered with.\n";
    text += &scriptlets(stated);
    text += "%install\n";
    text += &format!("cp -a '{}/.' %{{buildroot}}\n", root.display());
    text += "%files\n%defattr(-,root,root,-)\n";
    let flags: BTreeMap<&str, &str> = flags
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(it, path)| (path, it))
        .collect();
    for MemberRecord { path, kind, .. } in members {
        let own = flags.get(path.as_str()).copied();
        let marked = FLAGS.iter().find(|(flags, _)| own == Some(*flags));
        let directive = match marked {
            _ if *kind == MemberKind::Directory => "%dir ",
            marked => marked.map_or("", |(_, words)| words),
        };
        text += &format!("{directive}\"{path}\"\n");
    }
    text
}

/// The scriptlets of a package in spec file syntax; rpm has stated program and text of each.
fn scriptlets<'a>(stated: impl Iterator<Item = &'a str>) -> String {
    let one = |((phase, _), stated): (&(&str, &str), &str)| {
        let (program, text) = stated.split_once(ENDS[1]).unwrap();
        let text = if text == "(none)" { String::new() } else { text.replace('%', "%%") };
        (program != "(none)").then(|| format!("%{phase} -p {program}\n{text}\n"))
    };
    SCRIPTLETS.iter().zip(stated).filter_map(one).collect()
}

/// Makes the header state another digest for the file whose SHA-256 is `of`, and updates the digests of the
/// header itself.
pub fn misstate(package: &Path, of: &str) {
    let header = RpmFront::read(&crate::fixtures::content(package)).unwrap().header;
    let [start, end] = [header.start, header.end].map(|at| usize::try_from(at).unwrap());
    let mut bytes = fs::read(package).unwrap();
    let before = header_digests(&bytes[start..end]);
    put(&mut bytes[start..end], of, &"0".repeat(64));
    let after = header_digests(&bytes[start..end]);
    put(&mut bytes[..start], &before[0], &after[0]);
    put(&mut bytes[..start], &before[1], &after[1]);
    fs::write(package, bytes).unwrap();
}

fn header_digests(header: &[u8]) -> [String; 2] {
    [sha256(header), hex(&sha1::Sha1::digest(header))]
}

/// Replaces the only `old` in `bytes`.
fn put(bytes: &mut [u8], old: &str, new: &str) {
    let windows = bytes.windows(old.len()).enumerate();
    let places: Vec<usize> =
        windows.filter(|(_, text)| *text == old.as_bytes()).map(|(at, _)| at).collect();
    assert_eq!(places.len(), 1, "{old}");
    bytes[places[0]..][..new.len()].copy_from_slice(new.as_bytes());
}
