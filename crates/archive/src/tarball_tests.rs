use rockpack_core::run::Budget;

use super::*;

const LONG: &str = "lib/a-name-of-more-than-a-hundred-bytes/which-no-header-of-the-oldest-format-can-have/so-that-another-member-has-it/x";

/// Name, type, link target and content of a member.
type Part = (&'static str, EntryType, &'static str, Vec<u8>);

fn file(name: &'static str, bytes: &[u8]) -> Part {
    (name, EntryType::Regular, "", bytes.to_vec())
}

/// An extended header with one record.
fn pax(kind: EntryType, key: &str, value: &str) -> Part {
    let rest = format!(" {key}={value}\n");
    let len = (rest.len()..).find(|len| len.to_string().len() + rest.len() == *len).unwrap();
    ("pax", kind, "", format!("{len}{rest}").into_bytes())
}

fn pack(parts: &[Part]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, kind, target, bytes) in parts {
        let mut header = Header::new_gnu();
        header.set_entry_type(*kind);
        header.set_mode(0o4755);
        header.set_size(bytes.len() as u64);
        if !target.is_empty() {
            header.set_link_name(target).unwrap();
        }
        let field = &mut header.as_old_mut().name;
        if name.len() > field.len() {
            builder.append_data(&mut header, name, &bytes[..]).unwrap();
            continue;
        }
        // `append_data` would drop `./`.
        field[..name.len()].copy_from_slice(name.as_bytes());
        header.set_cksum();
        builder.append(&header, &bytes[..]).unwrap();
    }
    builder.into_inner().unwrap()
}

fn parts() -> Vec<Part> {
    vec![
        ("label", EntryType::new(b'V'), "", Vec::new()),
        pax(EntryType::XGlobalHeader, "comment", "of all"),
        file("./lib/first", b"aaaa"),
        ("lib/", EntryType::Directory, "", Vec::new()),
        file("lib/b", &[b'b'; 700]),
        ("lib/hard", EntryType::Link, "./lib/b", Vec::new()),
        ("lib/soft", EntryType::Symlink, "b", Vec::new()),
        pax(EntryType::XHeader, "path", "lib/renamed"),
        file("short", b"pax"),
        file(LONG, b"long"),
        ("lib/pipe", EntryType::Fifo, "", Vec::new()),
        file("lib/last", b"z"),
    ]
}

fn open(bytes: Vec<u8>, method: Method) -> Result<Tarball> {
    let store = BlockStore::create(&std::env::temp_dir(), &Budget::unlimited()).unwrap();
    Tarball::read(&Content::of_bytes(bytes), method, Path::new("x.tar"), &store)
}

fn read(parts: &[Part]) -> Tarball {
    open(pack(parts), Method::Stored).unwrap()
}

fn text(content: &Content) -> Vec<u8> {
    content.read_vec(0..content.len(), 1 << 20, "test").unwrap()
}

fn change(parts: &[Part], changes: &[(&str, Option<&[u8]>)]) -> Result<Vec<u8>> {
    let changes: BTreeMap<TreePath, Option<Content>> = changes
        .iter()
        .map(|(path, bytes)| (TreePath::new(*path).unwrap(), bytes.map(Content::of_bytes)))
        .collect();
    read(parts).changed(&changes).map(|tar| text(&tar))
}

#[test]
fn a_tarball_without_changes_is_the_same() {
    let bytes = [pack(&parts()), vec![0; 8192]].concat();
    for method in [Method::Stored, Method::Gzip, Method::Xz, Method::Zstd] {
        let tarball = Tarball { method, ..open(bytes.clone(), Method::Stored).unwrap() };
        let same = tarball.changed(&BTreeMap::new()).unwrap();
        let mut packed = Vec::new();
        tarball.compress(&same, &mut packed, 1).unwrap();
        let again = open(packed, method).unwrap();
        assert_eq!(text(&again.tar), bytes, "{method:?}");
        let tree = again.tree().unwrap();
        let [b, first, hard] = ["lib/b", "lib/first", "lib/hard"];
        let [last, renamed, soft] = ["lib/last", "lib/renamed", "lib/soft"];
        let paths = Vec::from_iter(tree.keys().map(TreePath::as_str));
        assert_eq!(paths, ["lib", LONG, b, first, hard, last, renamed, soft]);
        let data = tree.get(&TreePath::new(hard).unwrap()).and_then(Node::data).unwrap();
        assert_eq!(text(data), [b'b'; 700]);
        let named = (method != Method::Stored).then(|| PathBuf::from("x.tar(lib/hard)"));
        assert_eq!(data.place(0).file, named);
    }
}

/// Compared with an archive that never had the file.
#[test]
fn a_removed_member_goes_with_its_own_headers_alone() {
    for (path, lost) in [
        ("lib/first", 2..3),
        ("lib/hard", 5..6),
        ("lib/soft", 6..7),
        ("lib/renamed", 7..9),
        (LONG, 9..10),
        ("lib/last", 11..12),
    ] {
        let mut left = parts();
        left.drain(lost);
        assert_eq!(change(&parts(), &[(path, None)]).unwrap(), pack(&left), "{path}");
    }
}

/// Compared with an archive that always had the new content.
#[test]
fn a_changed_member_keeps_everything_but_its_size() {
    for (path, at) in [("lib/first", 2), ("lib/renamed", 8), (LONG, 9), ("lib/last", 11)] {
        for len in [0, 1, 512, 513] {
            let mut expected = parts();
            expected[at].3 = vec![b'n'; len];
            let changed = change(&parts(), &[(path, Some(&expected[at].3[..]))]).unwrap();
            assert_eq!(changed, pack(&expected), "{path}, {len} bytes");
        }
    }
}

#[test]
fn hard_links_follow_their_file() {
    let (old, new) = (Some(&b"old"[..]), Some(&b"new!"[..]));
    let mut expected = parts();
    expected[4].3 = b"new!".to_vec();
    let both = [("lib/b", new), ("lib/hard", new)];
    assert_eq!(change(&parts(), &both).unwrap(), pack(&expected));
    expected.drain(4..6);
    assert_eq!(change(&parts(), &[("lib/b", None), ("lib/hard", None)]).unwrap(), pack(&expected));
    for changes in [
        &[("lib/b", None)][..],
        &[("lib/b", None), ("lib/hard", new)],
        &[("lib/b", new)],
        &[("lib/hard", new)],
        &[("lib/b", old), ("lib/hard", new)],
    ] {
        let error = change(&parts(), changes).unwrap_err();
        let message = "x.tar(lib/hard): is a hard link to lib/b, which changes differently";
        assert_eq!(error.to_string(), message);
    }
}

#[test]
fn a_size_in_a_pax_record_is_never_stale() {
    let parts = [pax(EntryType::XHeader, "size", "4"), file("big", b"1234"), file("x", b"x")];
    let error = change(&parts, &[("big", Some(b"12"))]).unwrap_err();
    assert!(error.to_string().starts_with("x.tar(big): has its size in a pax record"), "{error}");
    assert_eq!(change(&parts, &[("big", None)]).unwrap(), pack(&parts[2..]));
}

#[test]
fn ambiguous_archives_are_refused() {
    let other = pax(EntryType::XHeader, "path", "y");
    let global = pax(EntryType::XGlobalHeader, "comment", "of all");
    let link = |target, bytes: &[u8]| ("l", EntryType::Link, target, bytes.to_vec());
    for (parts, message) in [
        (vec![file("x", b""), file("./x", b"")], "x.tar(./x): a file and a file both claim x"),
        (
            vec![file("x", b""), link("y", b"")],
            "x.tar(l): is a hard link to y, which is not an earlier",
        ),
        (vec![file("x", b""), link("x", b"x")], "x.tar(l): has content but is not a file"),
        (vec![other, global, file("x", b"")], "has a header for all members between"),
    ] {
        let error = open(pack(&parts), Method::Stored).err().unwrap();
        assert!(error.to_string().contains(message), "{error}");
    }
}
