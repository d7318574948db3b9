use rmpv::Value;

use super::*;

fn read(bytes: impl Into<Vec<u8>>) -> Index {
    read_index(&Content::of_bytes(bytes)).unwrap()
}

fn described(value: &Value) -> IndexDescription {
    describe_index(&Content::of_bytes(encoded(value))).unwrap()
}

fn encoded(value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    rmpv::encode::write_value(&mut bytes, value).unwrap();
    bytes
}

fn map(entries: &[(&str, Value)]) -> Value {
    let entries = entries.iter().map(|(key, value)| (Value::from(*key), value.clone()));
    Value::Map(entries.collect())
}

fn texts(set: &BTreeSet<String>) -> Vec<&str> {
    set.iter().map(String::as_str).collect()
}

fn archs(description: &IndexDescription) -> Vec<&str> {
    description.archs.iter().map(BaseArch::as_str).collect()
}

#[test]
fn archs_in_strings_anywhere_are_seen() {
    let value = Value::Map(vec![
        ("gfx906:xnack-".into(), Value::Array(vec![1.into(), Value::Nil, 1.5.into()])),
        (Value::Binary(vec![1]), map(&[("x", "for gfx90a".into())])),
        (Value::Array(vec!["gfx803".into()]), Value::Nil),
        (true.into(), Value::Ext(7, b"gfx908".to_vec())),
        ("ISA900".into(), "gfx000".into()),
    ]);
    assert_eq!(archs(&described(&value)), ["gfx803", "gfx906", "gfx90a"]);
}

#[test]
fn a_library_names_operations_and_the_libraries_it_loads_lazily() {
    let solution = |operation: &str| {
        map(&[("problemType", map(&[("operationIdentifier", operation.into())]))])
    };
    let placeholder = |value: &str| map(&[("value", value.into()), ("type", "Placeholder".into())]);
    let library = map(&[
        ("solutions", Value::Array(vec![solution("Contraction_a"), solution("Contraction_b")])),
        (
            "library",
            map(&[
                ("type", "Problem".into()),
                ("rows", Value::Array(vec![placeholder("T_gfx1100"), placeholder("T_fallback")])),
                ("predicate", map(&[("type", "TruePred".into()), ("value", "T_other".into())])),
            ]),
        ),
    ]);
    let description = described(&library);
    assert_eq!(texts(&description.operations), ["Contraction_a", "Contraction_b"]);
    assert_eq!(texts(&description.libraries), ["T_fallback", "T_gfx1100"]);
    assert_eq!((description.solutions, archs(&description)), (2, vec!["gfx1100"]));
}

#[test]
fn a_mapping_names_libraries() {
    let mapping = map(&[("0", "T_a_gfx1100".into()), ("17", "T_b_gfx1100".into())]);
    assert_eq!(texts(&described(&mapping).libraries), ["T_a_gfx1100", "T_b_gfx1100"]);
    let numbers = Value::Map(vec![(0.into(), "T_a".into()), (Value::from(-1), "T_b".into())]);
    assert_eq!(texts(&described(&numbers).libraries), ["T_a", "T_b"]);
    // Only the mapping itself: numbers elsewhere are sizes and the like.
    let deeper = map(&[("x", map(&[("0", "T_a".into())]))]);
    assert!(described(&deeper).libraries.is_empty());
}

#[test]
fn extension_operations_name_their_files() {
    let kernel = |file: &str| {
        let entries = [("func_name", "LayerNorm_S".into()), ("co_path", file.into())];
        Value::Array(vec![map(&entries)])
    };
    let library = map(&[
        ("gfx1100", map(&[("LayerNorm", kernel("extop_gfx1100.co"))])),
        ("gfx1250-strict", map(&[("AMax", kernel("extop_gfx1250-strict.co"))])),
    ]);
    let description = described(&library);
    assert_eq!(texts(&description.operations), ["AMax", "LayerNorm"]);
    assert_eq!(
        texts(&description.code_object_files),
        ["extop_gfx1100.co", "extop_gfx1250-strict.co"]
    );
    assert_eq!(archs(&description), ["gfx1100", "gfx1250-strict"]);
}

#[test]
fn a_compressed_index_is_read_as_the_plain_one() {
    let plain = encoded(&Value::Array(vec!["gfx906".into()]));
    let mut zlib = flate2::read::ZlibEncoder::new(&plain[..], flate2::Compression::best());
    let mut compressed = Vec::new();
    zlib.read_to_end(&mut compressed).unwrap();
    assert_ne!(compressed, plain);
    assert_eq!(read(compressed), read(plain));
}

#[test]
fn an_index_cut_anywhere_is_unreadable() {
    let value = Value::Array(vec!["gfx906".into(), 7.into(), Value::Map(vec![])]);
    let bytes = encoded(&value);
    for len in 0..bytes.len() {
        assert!(matches!(read(&bytes[..len]), Index::Unreadable(_)), "cut to {len}");
        assert!(describe_index(&Content::of_bytes(&bytes[..len])).is_err());
    }
}

#[test]
fn what_follows_the_value_is_not_passed_over() {
    let mut bytes = encoded(&Value::Array(vec!["gfx906".into()]));
    bytes.push(0);
    assert!(matches!(read(bytes), Index::Unreadable(_)));
    // The first letter alone would be a number.
    assert!(matches!(read(*b"text about gfx906"), Index::Unreadable(_)));
}

#[test]
fn deep_nesting_is_unreadable_rather_than_a_crash() {
    assert!(matches!(read(vec![0x91; 1 << 20]), Index::Unreadable(_)));
}
