use super::*;
use crate::input::database::describe_index;

fn bytes(content: &Content) -> Vec<u8> {
    content.read_vec(0..content.len(), 1 << 20, "x").unwrap()
}

fn merged(files: &[Content]) -> Content {
    match union(files).unwrap() {
        Ok(content) => content,
        Err(why) => panic!("{why}"),
    }
}

fn assert_none(files: &[Content], expected: &str) {
    match union(files).unwrap() {
        Ok(content) => panic!("merged to {:?}", bytes(&content)),
        Err(why) => assert!(why.to_string().contains(expected), "{why}"),
    }
}

fn bundle(entries: &[(&str, &str)]) -> Content {
    let entries: Vec<_> = entries
        .iter()
        .map(|(id, text)| (id.to_string(), Content::of_bytes(text.as_bytes())))
        .collect();
    Content::of_bytes(bytes(&offload_bundle::write(&entries).unwrap()))
}

const HOST: (&str, &str) = ("host-x86_64-unknown-linux-gnu-", "");
const GFX906: (&str, &str) = ("hipv4-amdgcn-amd-amdhsa--gfx906", "code for 906");
const GFX1100: (&str, &str) = ("hipv4-amdgcn-amd-amdhsa--gfx1100", "code for 1100");

#[test]
fn bundles_are_merged_by_entry_in_any_order() {
    let one = bundle(&[HOST, GFX906]);
    let two = bundle(&[HOST, GFX1100, GFX906]);
    let both = merged(&[one.clone(), two.clone()]);
    assert_eq!(bytes(&both), bytes(&merged(&[two.clone(), one.clone()])));
    assert_eq!(bytes(&both), bytes(&merged(&[both.clone(), one.clone()])));
    let parsed = offload_bundle::parse(&both).unwrap();
    let entries: Vec<_> =
        parsed.entries.iter().map(|e| (e.id.text.clone(), bytes(&e.content))).collect();
    let expected = [HOST, GFX1100, GFX906].map(|(id, text)| (id.to_owned(), text.into()));
    assert_eq!(entries, expected);
    assert_eq!(parsed.len, both.len());
    assert!(parsed.entries.iter().all(|entry| entry.offset % 4096 == 0));
    assert_none(&[one, bundle(&[(GFX906.0, "other code")])], "gfx906");
}

#[test]
fn a_file_of_several_bundles_is_not_merged() {
    let one = bundle(&[HOST, GFX906]);
    let mut twice = bytes(&one);
    twice.resize(twice.len().next_multiple_of(4096), 0);
    twice.extend(bytes(&one));
    assert_none(&[Content::of_bytes(twice), one], "several bundles");
}

fn map(entries: &[(Value, Value)]) -> Content {
    Content::of_bytes(encode(&Value::Map(entries.to_vec())).unwrap())
}

fn zlib(content: &Content) -> Content {
    Content::of_bytes(deflated(&bytes(content)).unwrap())
}

#[test]
fn maps_are_merged_by_key() {
    let one = map(&[operations("gfx1100"), operations("gfx906")]);
    let two = map(&[operations("gfx1200"), operations("gfx1100")]);
    let both = merged(&[one.clone(), two.clone()]);
    assert_eq!(bytes(&both), bytes(&merged(&[two.clone(), one.clone()])));
    let description = describe_index(&both).unwrap();
    let files: Vec<_> = description.code_object_files.iter().map(String::as_str).collect();
    assert_eq!(files, ["extop_gfx1100.co", "extop_gfx1200.co", "extop_gfx906.co"]);

    let compressed = merged(&[zlib(&one), two]);
    assert!(is_zlib(&compressed).unwrap());
    assert_eq!(describe_index(&compressed).unwrap(), description);

    let other = map(&[("gfx1100".into(), "other".into())]);
    assert_none(&[one, other], "gfx1100");
}

fn operations(arch: &str) -> (Value, Value) {
    let path = format!("extop_{arch}.co");
    let kernel = Value::Map(vec![("co_path".into(), path.into())]);
    (Value::from(arch), Value::Map(vec![("AMax".into(), Value::Array(vec![kernel]))]))
}

#[test]
fn maps_of_ranges_are_not_merged() {
    let text = [map(&[("0".into(), "a".into())]), map(&[("17".into(), "b".into())])];
    assert_none(&text, "range");
    let number = [map(&[(0.into(), "a".into())]), map(&[(17.into(), "b".into())])];
    assert_none(&number, "range");
}

#[test]
fn what_has_no_union() {
    let one = map(&[("a".into(), 1.into())]);
    assert_none(&[one.clone(), Content::of_bytes(*b"text")], "neither");
    assert_none(&[one.clone(), bundle(&[GFX906])], "some of them");
    assert_none(
        &[one.clone(), Content::of_bytes(encode(&Value::Array(vec![])).unwrap())],
        "neither",
    );
    let whole = bytes(&one);
    for len in 0..whole.len() {
        assert_none(&[one.clone(), Content::of_bytes(&whole[..len])], "neither");
    }
    let cut = bytes(&zlib(&one));
    assert_none(&[one, Content::of_bytes(&cut[..cut.len() - 5])], "neither");
}

/// Found by fuzzing: rmpv decodes such a string and encodes it as binary data.
#[test]
fn strings_that_are_not_utf_8_are_not_made_binary_data() {
    let plain = map_of_bytes(b"a", b"x");
    assert!(matches!(union(&[plain.clone(), map_of_bytes(b"b", b"y")]), Ok(Ok(_))));
    assert_none(&[plain.clone(), map_of_bytes(b"b", b"\xf4")], "not UTF-8");
    assert_none(&[map_of_bytes(b"\xf4", b"y"), plain], "not UTF-8");
}

/// A map of one entry, whose key and value are encoded as strings.
fn map_of_bytes(key: &[u8], value: &[u8]) -> Content {
    let [key, value] =
        [key, value].map(|text| [&[0xa0 | u8::try_from(text.len()).unwrap()], text].concat());
    Content::of_bytes([vec![0x81], key, value].concat())
}

#[test]
fn equal_nans_merge() {
    let one = map(&[("a".into(), Value::F64(f64::NAN))]);
    let two = map(&[("a".into(), Value::F64(f64::NAN)), ("b".into(), 1.into())]);
    assert_eq!(bytes(&merged(&[one, two.clone()])), bytes(&two));
}
