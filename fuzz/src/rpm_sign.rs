//! Packages that are signed anew: header and payload stay, lists can be made of the result, and a second
//! signature gives the same bytes.

use std::sync::Arc;

use rockpack_verify::Element;
use rockpack_core::content::Content;
use rockpack_archive::rpm::{RpmFront, HeaderSignature, HeaderSigner, SignatureTag, signed};
use rockpack_archive::rpm_md::{LISTS, ListedValues, RepositoryRpm, RpmPackage, document};

pub fn run(bytes: &[u8]) {
    let sign = |_: &[u8]| Ok(HeaderSignature { tag: SignatureTag::Dsa, packet: vec![0xc2; 119] });
    let signer = HeaderSigner { sign: Arc::new(sign) };
    let package = Content::of_bytes(bytes);
    let made = match signed(&package, &signer) {
        Ok(made) => made,
        Err(error) => return super::refuse_bug(&error),
    };
    let (before, after) = (RpmFront::read(&package).unwrap(), RpmFront::read(&made).unwrap());
    let rest = |content: &Content, front: &RpmFront| {
        let range = front.header.start..content.len();
        content.read_vec(range, u64::MAX, "rest").unwrap()
    };
    assert_eq!(rest(&package, &before), rest(&made, &after));
    assert!(signed(&made, &signer).unwrap().same_bytes(&made).unwrap());
    match RpmPackage::of_front(&after) {
        Ok((package, listed)) => check_lists(&package, &listed, made.len()),
        Err(error) => super::refuse_bug(&error),
    }
}

fn check_lists(package: &RpmPackage, listed: &ListedValues, size: u64) {
    assert!(package.signed);
    let path = format!("packages/{}", package.file_name());
    assert_eq!(path.split('/').count(), 2, "{path}");
    let rpm = RepositoryRpm { package, listed, path: &path, size, sha256: "aa" };
    for list in LISTS {
        let root = Element::parse(&document(list, 1, Some(&rpm)).unwrap().concat()).unwrap();
        assert_eq!(root.all("package").count(), 1);
    }
}
