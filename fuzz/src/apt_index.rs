//! Indexes of apt: the fields read from a control file are one paragraph of an index again, without fields of
//! the index itself, and a `Release` that is read survives being written.

use rockpack_signing::Trust;
use rockpack_archive::apt_index::{DebPackage, Release, Stanza, paragraphs, parse_date};

pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    super::read(paragraphs(text).collect::<Result<Vec<_>, _>>());
    super::read(parse_date(text));
    if let Some((inside, _)) = super::read(Trust::default().clear_text(text)) {
        super::read(Release::parse(&inside));
    }
    super::read(Trust::default().check_detached(bytes, bytes));
    if let Some(package) = super::read(DebPackage::of_control(text)) {
        check_stanza(&package);
    }
    let Some(release) = super::read(Release::parse(text)) else {
        return;
    };
    if let Some(written) = super::read(release.render()) {
        assert_eq!(Release::parse(&written).unwrap(), release);
    }
}

fn check_stanza(package: &DebPackage) {
    let stanza = Stanza { package, path: "pool/x", size: 7, sha256: "aa", sha512: Some("bb") };
    let mut text = String::new();
    stanza.render(&mut text);
    let body = text.strip_suffix("\n\n").unwrap();
    assert!(body.lines().all(|line| !line.trim().is_empty()), "an empty line ends a paragraph");
    let read: Vec<_> = paragraphs(&text).collect::<Result<_, _>>().unwrap();
    let [read] = &read[..] else {
        panic!("not one paragraph: {text:?}");
    };
    let field = |name| read.get(name).unwrap().as_str();
    assert_eq!((field("Package"), field("Version")), (&*package.name, &*package.version));
    assert_eq!((field("Filename"), field("SHA512")), ("pool/x", "bb"));
    assert!(!package.file_name().contains('/'));
}
