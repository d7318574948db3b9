//! Repository indexes, the configuration that `discover` proposes, and cache entries give the same values
//! when they are read back.

use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::{btree_map, btree_set, vec};
use proptest::prelude::*;
use rockpack::inspect::discover::{PrimaryShard, Proposal};
use rockpack_archive::apt_index::{DebPackage, Stanza, paragraphs};
use rockpack_archive::ar;
use rockpack_archive::rpm;
use rockpack_archive::rpm_md;
use rockpack_archive::rpm_md::{
    Changelog, DataFile, FileKind, ListedValues, Repomd, RepositoryRpm, RpmFile, RpmPackage,
};
use rockpack_core::content::Content;
use rockpack_core::gfx::Group;
use rockpack_files::cache::{Cache, KeyBuilder};
use rockpack_plan::config::{Config, Syntax};
use rockpack_split::input::artifact::ArtifactManifest;
use rockpack_verify::Element;

use super::file;

/// A value in a control file: a line, and continuation lines.
fn value() -> impl Strategy<Value = Vec<String>> {
    vec("[!-~ä-ö]([ -~ä-ö]{0,30}[!-~])?", 1..4)
}

/// Fields whose names differ in more than case; otherwise one field would appear twice.
fn fields() -> impl Strategy<Value = BTreeMap<String, Vec<String>>> {
    btree_map("X-[A-Za-z]{1,8}", value(), 0..6).prop_map(|mut fields| {
        let mut names = BTreeSet::new();
        fields.retain(|name, _| names.insert(name.to_lowercase()));
        fields
    })
}

fn control(fields: &BTreeMap<String, Vec<String>>) -> String {
    let field = |(name, lines): (&String, &Vec<String>)| format!("{name}: {}\n", lines.join("\n "));
    let rest: String = fields.iter().map(field).collect();
    format!("Package: x\nVersion: 1:2-3\nArchitecture: amd64\n{rest}")
}

/// The child elements of `element` with this name.
fn children<'a>(element: &'a Element, name: &str) -> Vec<&'a Element> {
    element.children.iter().filter(|child| child.name == name).collect()
}

fn attribute<'a>(element: &'a Element, name: &str) -> &'a str {
    element.attribute(name)
}

fn number(file: &Element, name: &str) -> u64 {
    children(file, name)[0].text.parse().unwrap()
}

/// The element of a package in a list that is read back.
fn listed(list: &str, rpm: &RepositoryRpm<'_>) -> Element {
    let mut root = Element::parse(&rpm_md::document(list, 1, Some(rpm)).unwrap().concat()).unwrap();
    assert_eq!((root.attribute("packages"), root.children.len()), ("1", 1));
    root.children.remove(0)
}

/// A package of the seeds with other texts.
fn rpm_package() -> (RpmPackage, ListedValues) {
    let front =
        rpm::RpmFront::read(&Content::of_bytes(file("fuzz/seeds/package/meta.rpm"))).unwrap();
    rpm_md::RpmPackage::of_front(&front).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn artifact_manifests_are_read_back(names in btree_set("[!-.0-~]{1,12}", 1..8), windows in any::<bool>()) {
        let end = if windows { "\r\n" } else { "\n" };
        let prefixes: BTreeSet<_> = names.iter().map(|name| format!("x{name}/stage")).collect();
        let text: String = prefixes.iter().map(|prefix| format!("{prefix}{end}")).collect();
        let read: Vec<_> = ArtifactManifest::parse(text.as_bytes()).unwrap().prefixes.iter().map(ToString::to_string).collect();
        prop_assert_eq!(read, prefixes.into_iter().collect::<Vec<_>>());
    }

    /// Every field of several paragraphs, with the fields that the index adds.
    #[test]
    fn paragraphs_of_packages_are_read_back(
        packages in vec(fields(), 1..4),
        size in any::<u64>(),
    ) {
        let mut text = String::new();
        for fields in &packages {
            let package = &DebPackage::of_control(&control(fields)).unwrap();
            Stanza { package, path: "pool/x", size, sha256: "aa", sha512: Some("bb") }.render(&mut text);
        }
        let read: Vec<_> = paragraphs(&text).collect::<Result<_, _>>().unwrap();
        prop_assert_eq!(read.len(), packages.len());
        for (read, fields) in read.iter().zip(packages) {
            let size = size.to_string();
            let fixed = [
                ("Package", "x"), ("Version", "1:2-3"), ("Architecture", "amd64"),
                ("Filename", "pool/x"), ("Size", &size), ("SHA256", "aa"), ("SHA512", "bb"),
            ];
            let mut expected: BTreeMap<String, String> =
                fixed.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
            // A line with only a point means an empty line.
            let line = |line: &String| if line == "." { String::new() } else { line.clone() };
            expected.extend(fields.into_iter().map(|(name, lines)| {
                let rest = lines[1..].iter().map(line);
                (name, std::iter::once(lines[0].clone()).chain(rest).collect::<Vec<_>>().join("\n"))
            }));
            prop_assert_eq!(read.to_map(), expected);
        }
    }

    #[test]
    fn lists_of_rpm(
        summary in "[!-~ä-ö]{1,20}",
        paths in btree_map("/(etc|opt)/[!-~ä-ö ]{0,20}[!-~]", 0..3_usize, 0..8),
        log in vec(("[!-~]{1,20}", any::<u32>(), "[!-~ä-ö]{1,30}"), 0..4),
    ) {
        let kinds = [FileKind::Plain, FileKind::Dir, FileKind::Ghost];
        let files = paths.iter().map(|(path, kind)| RpmFile { path: path.clone(), kind: kinds[*kind] });
        let entries = log.iter().map(|(author, date, text)| {
            Changelog { author: author.clone(), date: (*date).into(), text: text.clone() }
        });
        let (package, values) = rpm_package();
        let values = ListedValues {
            summary: summary.clone(),
            files: files.collect(),
            changelog: entries.collect(),
            ..values
        };
        let rpm = RepositoryRpm { package: &package, listed: &values, path: "x/y.rpm", size: 7, sha256: "aa" };
        let read = &listed("primary", &rpm);
        prop_assert_eq!(&children(read, "name")[0].text, &package.name);
        prop_assert_eq!(&children(read, "summary")[0].text, &summary);
        prop_assert_eq!(attribute(children(read, "location")[0], "href"), "x/y.rpm");
        prop_assert_eq!(attribute(children(read, "size")[0], "package"), "7");
        let read = &listed("filelists", &rpm);
        let shown = |kind: usize| ["", "dir", "ghost"][kind].to_owned();
        let found: Vec<_> = children(read, "file").into_iter()
            .map(|file| (file.text.clone(), attribute(file, "type").to_owned())).collect();
        let expected: Vec<_> = paths.iter().map(|(path, kind)| (path.clone(), shown(*kind))).collect();
        prop_assert_eq!(found, expected);
        let read = &listed("other", &rpm);
        let found: Vec<_> = children(read, "changelog").into_iter()
            .map(|entry| (attribute(entry, "author").to_owned(), attribute(entry, "date").parse().unwrap(), entry.text.clone()))
            .collect();
        prop_assert_eq!(found, log);
    }

    #[test]
    fn lists_of_lists(
        revision in any::<u32>(),
        data in btree_map("[a-z]{1,9}", ("[!-~]{1,30}", any::<u64>(), any::<u64>()), 0..5),
    ) {
        let files = data.iter().map(|(kind, (path, size, open_size))| DataFile {
            kind: kind.clone(),
            path: path.clone(),
            sha256: "aa".to_owned(),
            size: *size,
            open_sha256: "bb".to_owned(),
            open_size: *open_size,
        });
        let written = Repomd { revision: revision.into(), keys: Vec::new(), data: files.collect() }.render().unwrap();
        let read = Element::parse(&written).unwrap();
        prop_assert_eq!(&children(&read, "revision")[0].text, &revision.to_string());
        let found: BTreeMap<_, _> = children(&read, "data").into_iter().map(|file| {
            let path = attribute(children(file, "location")[0], "href").to_owned();
            (attribute(file, "type").to_owned(), (path, number(file, "size"), number(file, "open-size")))
        }).collect();
        prop_assert_eq!(found, data);
    }

    #[test]
    fn members_of_ar_are_read_back(members in vec(("[!-.0-~&&[^#]]{1,16}", vec(any::<u8>(), 0..99)), 0..9)) {
        let mut bytes = ar::MAGIC.to_vec();
        for (name, content) in &members {
            bytes.extend(ar::header(name, 1, content.len() as u64).unwrap());
            bytes.extend(content);
            bytes.resize(bytes.len().next_multiple_of(2), b'\n');
        }
        let archive = Content::of_bytes(bytes);
        let found = ar::members(&archive).unwrap().into_iter().map(|member| {
            (member.name, super::bytes(&archive.slice(member.range).unwrap()))
        });
        prop_assert_eq!(found.collect::<Vec<_>>(), members);
    }

    #[test]
    fn proposed_configurations_are_read_back(
        shard in "\\PC{1,20}",
        names in btree_map("[A-Za-z][A-Za-z0-9]{0,8}", "[!-~ä-ö]{1,20}", 1..5),
        json in any::<bool>(),
    ) {
        let archs = ["gfx1100", "gfx1101", "gfx1200", "gfx906", "gfx90a"];
        // Package names are lower-case: groups that differ only in case are refused.
        let names: BTreeMap<_, _> =
            names.into_iter().map(|(name, shown)| (name.to_lowercase(), (name, shown))).collect();
        let groups = names.into_values().zip(archs).map(|((name, display_name), arch)| {
            Group { name, display_name, archs: vec![arch.parse().unwrap()] }
        });
        let primary_shard = PrimaryShard { name: shard, reason: String::new() };
        let proposal = Proposal { primary_shard, groups: groups.collect(), left_out: Vec::new() };
        let syntax = if json { Syntax::Json } else { Syntax::Toml };
        let read = Config::parse(&proposal.configuration(syntax).unwrap(), syntax).unwrap();
        prop_assert_eq!(read.grouping.primary_shard, Some(proposal.primary_shard.name));
        prop_assert_eq!(read.grouping.groups, proposal.groups);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn entries_of_a_cache_are_read_back(facts in vec(any::<u8>(), 0..200), body in vec(any::<u8>(), 0..5000)) {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(folder.path(), 1 << 20).unwrap();
        let mut key = KeyBuilder::new("test");
        key.bytes(&facts).bytes(&body);
        let key = key.finish();
        prop_assert!(cache.find(&key).is_none());
        cache.keep(&key, &facts, body.len() as u64, &mut &body[..]);
        let entry = cache.find(&key).unwrap();
        let mut copied = Vec::new();
        prop_assert!(cache.copy(&entry, &mut copied).unwrap());
        prop_assert_eq!((entry.facts(), copied), (&facts[..], body));
        prop_assert!(cache.findings().is_empty());
    }
}
