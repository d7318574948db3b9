//! Headers of an `.rpm`, rebuilt with other tags.

use rockpack_archive::rpm::RpmFront;
use rockpack_core::content::Content;
use rpm::{Header, HeaderEntry, IndexData, IndexSignatureTag, IndexTag, Tag};
use rpm::{RpmFormat, SignatureHeaderBuilder};

/// A tag and its value.
pub type Tagged = (u32, IndexData);

/// The unsigned `package` with more tags in its header and in its signature, each after existing ones with
/// the same number. All digests and sizes match the result.
pub fn retagged(package: &[u8], header: &[Tagged], signature: &[Tagged]) -> Vec<u8> {
    let added = header.iter().cloned();
    remade(package, |tags| tags.into_iter().chain(added).collect(), signature)
}

/// Rebuilds a package with all tags of its header changed.
pub fn remade(
    package: &[u8],
    change: impl FnOnce(Vec<Tagged>) -> Vec<Tagged>,
    signature: &[Tagged],
) -> Vec<u8> {
    let RpmFront { mut metadata, header: place, .. } =
        RpmFront::read(&Content::of_bytes(package)).unwrap();
    let payload = &package[usize::try_from(place.end).unwrap()..];
    let tags = change(entries(&metadata.header).collect());
    metadata.header = made(tags, IndexTag::RPMTAG_HEADERIMMUTABLE);
    let bytes = metadata.header_bytes().unwrap();
    let builder = SignatureHeaderBuilder::new().format(RpmFormat::V4).reserved_space(None);
    let digests = builder.calculate_digests(&bytes).build().unwrap();
    let size = u32::try_from(bytes.len() + payload.len()).unwrap();
    let old = entries(&metadata.signature).filter_map(|(tag, data)| {
        Some(match tag {
            269 | 273 => (tag, digests.entry(tag).unwrap()),
            1000 => (tag, IndexData::Int32(vec![size])),
            // MD5 of header and payload, which rpm does not need.
            1004 => return None,
            _ => (tag, data),
        })
    });
    let tags: Vec<Tagged> = old.chain(signature.iter().cloned()).collect();
    metadata.signature = made(tags, IndexSignatureTag::HEADER_SIGNATURES);
    let mut front = Vec::new();
    metadata.write(&mut front).unwrap();
    [&front, payload].concat()
}

/// The package without these tags of its signature.
pub fn without_signature_tags(package: &[u8], tags: &[u32]) -> Vec<u8> {
    let RpmFront { mut metadata, header, .. } =
        RpmFront::read(&Content::of_bytes(package)).unwrap();
    let kept = entries(&metadata.signature).filter(|(tag, _)| !tags.contains(tag));
    metadata.signature = made(kept.collect::<Vec<_>>(), IndexSignatureTag::HEADER_SIGNATURES);
    let mut front = Vec::new();
    metadata.write(&mut front).unwrap();
    front.truncate(usize::try_from(metadata.get_package_segment_offsets().header).unwrap());
    [&front, &package[usize::try_from(header.start).unwrap()..]].concat()
}

/// All tags except the region's, which comes with the header.
fn entries<T: Tag>(header: &Header<T>) -> impl Iterator<Item = Tagged> + use<T> {
    let all = header.get_all_entries().unwrap().into_iter();
    all.filter(|(tag, _)| !(61..=63).contains(tag))
}

fn made<T: Tag>(tags: impl IntoIterator<Item = Tagged>, region: T) -> Header<T> {
    Header::from_entries(tags.into_iter().map(|(tag, data)| HeaderEntry::new(tag, data)), region)
}
