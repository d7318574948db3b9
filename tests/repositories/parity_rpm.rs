//! `repodata` beside that of createrepo_c.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use support::example::Set;
use support::repo_fixture::{accepted, plain_spec, publish, repo, rpm};
use support::tools::{need, run};

/// Everything rpmbuild can put into a header that an index has.
const RICH: &str = r#"
Name: rich
Epoch: 3
Version: 1.0~rc1
Release: 2
Summary: A package & its <relations>
License: MIT
URL: https://example.org/?a=b&c
Vendor: Vendor
Packager: Packager <packager@example.org>
Group: System/Libraries
Provides: capability = 1:2.0-3, bare
Requires: (first or second), third >= 1.2, fourth < 2:1.0-1, bare
Requires(pre): before
Requires(post): after
Recommends: recommended = 1
Suggests: suggested
Supplements: (a and b)
Enhances: enhanced > 3
Conflicts: conflicting <= 4
Obsoletes: obsolete < 5
%description
A text with several lines,
"quotes" & 'others'.
%install
mkdir -p %{buildroot}/etc/rich.d %{buildroot}/usr/bin %{buildroot}/usr/share/rich
echo a >%{buildroot}/etc/rich.d/conf
cp /bin/true %{buildroot}/usr/bin/rich
echo b >"%{buildroot}/usr/share/rich/a & b"
ln -s rich %{buildroot}/usr/bin/link
%post
true
%files
%config(noreplace) /etc/rich.d/conf
%dir /etc/rich.d
/usr/bin/*
%dir /usr/share/rich
"/usr/share/rich/a & b"
%ghost /var/lib/rich.state
%changelog
* Fri Jan 05 2024 Packager <packager@example.org> - 1.0-2
- Second of a day
* Fri Jan 05 2024 Packager <packager@example.org> - 1.0-1
- First of a day & more
* Mon Jan 01 2024 Packager <packager@example.org> - 0.9-1
- Before
"#;

fn packages(folder: &Path) {
    let set = Set::build();
    fs::create_dir_all(folder).unwrap();
    for entry in fs::read_dir(set.out()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "rpm") {
            fs::copy(&path, folder.join(path.file_name().unwrap())).unwrap();
        }
    }
    rpm(folder, RICH);
    rpm(folder, &plain_spec("plain", "1.0", ""));
}

/// Elements of a list of packages: by package, one line per element with its attributes and text.
fn lines(xml: &[u8]) -> BTreeMap<String, Vec<String>> {
    let mut reader = Reader::from_str(std::str::from_utf8(xml).unwrap());
    let (mut all, mut lines, mut path) = (BTreeMap::new(), Vec::<String>::new(), Vec::new());
    loop {
        match reader.read_event().unwrap() {
            Event::Start(element) => {
                path.push(element.name().0.to_owned());
                if path.len() > 1 {
                    lines.push(line(&path, &element));
                }
            }
            Event::Empty(element) => {
                path.push(element.name().0.to_owned());
                lines.push(line(&path, &element));
                path.pop();
            }
            Event::Text(text) => {
                // The indentation behind an element, too; it is taken away below.
                if let Some(line) = lines.last_mut() {
                    line.push_str(&text);
                }
            }
            Event::GeneralRef(name) => {
                let character = quick_xml::escape::resolve_predefined_entity(&name).unwrap();
                lines.last_mut().unwrap().push_str(character);
            }
            Event::End(_) => {
                let closed = path.pop().unwrap();
                if closed == "package" {
                    let package: Vec<String> =
                        lines.drain(..).map(|line| line.trim_end().to_owned()).collect();
                    let named = |line: &String| line.starts_with("metadata/package/name:");
                    let key = package.iter().find(|line| named(line)).unwrap_or(&package[0]);
                    all.insert(key.clone(), package);
                }
            }
            Event::Eof => return all,
            _ => {}
        }
    }
}

fn line(path: &[String], element: &BytesStart<'_>) -> String {
    let attributes = element.attributes().map(|attribute| {
        let attribute = attribute.unwrap();
        format!(" {}={}", attribute.key.0, attribute.value)
    });
    format!("{}:{}", path.join("/"), attributes.collect::<String>())
}

/// The list of a kind.
fn list(folder: &Path, kind: &str) -> Vec<u8> {
    let names = fs::read_dir(folder.join("repodata")).unwrap();
    let file = names
        .map(|entry| entry.unwrap().path())
        .find(|path| path.to_str().unwrap().ends_with(&format!("-{kind}.xml.gz")));
    run(Command::new("gzip").arg("-dc").arg(file.unwrap())).stdout
}

/// The differences, in the words of the list of differences.
fn kinds_of(differ: &BTreeSet<String>) -> BTreeSet<String> {
    let kind = |line: &String| {
        let kinds = [
            ("package/time: file=", "time file"),
            ("package/location: href=", "location href"),
            ("rpm:requires/rpm:entry: name=libc.so.6", "requires libc.so.6"),
        ];
        let found = kinds.iter().find(|(part, _)| line.contains(part));
        found.map_or_else(|| line.clone(), |(_, kind)| (*kind).to_owned())
    };
    differ.iter().map(kind).collect()
}

#[test]
fn the_lists_say_what_createrepo_c_says() {
    need(&["createrepo_c", "rpmbuild", "gzip"]);
    let room = tempfile::tempdir().unwrap();
    let (rpms, out) = (room.path().join("rpms"), room.path().join("repo"));
    packages(&rpms);
    publish(&mut repo(&[&rpms], &out));
    let mut createrepo = Command::new("createrepo_c");
    run(createrepo.args(["--quiet", "--no-database", "--general-compress-type=gz"]).arg(&rpms));
    let mut differ = BTreeSet::new();
    for kind in ["primary", "filelists", "other"] {
        let (ours, theirs) = (lines(&list(&out, kind)), lines(&list(&rpms, kind)));
        assert!(ours.keys().eq(theirs.keys()), "{kind}: {:?} {:?}", ours.keys(), theirs.keys());
        for (package, ours) in &ours {
            let [ours, theirs] = [ours, &theirs[package]]
                .map(|lines| lines.iter().cloned().collect::<BTreeSet<_>>());
            differ.extend(ours.symmetric_difference(&theirs).cloned());
        }
    }
    let expected: BTreeSet<String> = accepted("createrepo_c").into_iter().collect();
    assert_eq!(kinds_of(&differ), expected);
}

#[test]
fn several_architectures_share_a_repository_and_lists_can_be_zstd() {
    need(&["rpmbuild", "zstd"]);
    let room = tempfile::tempdir().unwrap();
    let (rpms, out) = (room.path().join("rpms"), room.path().join("repo"));
    rpm(&rpms, &plain_spec("plain", "1.0", ""));
    rpm(&rpms, RICH);
    publish(repo(&[&rpms], &out).args(["--set", "rpm_md_compression=zstd"]));
    let names = fs::read_dir(out.join("repodata")).unwrap();
    let primary = names.map(|entry| entry.unwrap().path());
    let primary = primary.into_iter().find(|p| p.to_str().unwrap().ends_with("primary.xml.zst"));
    let text = run(Command::new("zstd").arg("-dc").arg(primary.unwrap())).stdout;
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains("<arch>noarch</arch>") && text.contains("<arch>x86_64</arch>"));
}
