use std::io::Read;

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
    let solutions = ["Contraction_a", "Contraction_b"].map(|operation| {
        map(&[("problemType", map(&[("operationIdentifier", operation.into())]))])
    });
    let placeholders = ["T_gfx1100", "T_fallback"]
        .map(|value| map(&[("value", value.into()), ("type", "Placeholder".into())]));
    let library = map(&[
        ("solutions", Value::Array(solutions.into())),
        (
            "library",
            map(&[
                ("type", "Problem".into()),
                ("rows", Value::Array(placeholders.into())),
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
    // Only the mapping itself counts: numbers elsewhere are sizes and the like.
    let deeper = map(&[("x", map(&[("0", "T_a".into())]))]);
    assert!(described(&deeper).libraries.is_empty());
}

#[test]
fn extension_operations_name_their_files() {
    let library = map(&[
        ("gfx1100", map(&[("LayerNorm", kernels_in("extop_gfx1100.co"))])),
        ("gfx1250-strict", map(&[("AMax", kernels_in("extop_gfx1250-strict.co"))])),
    ]);
    let description = described(&library);
    assert_eq!(texts(&description.operations), ["AMax", "LayerNorm"]);
    assert_eq!(
        texts(&description.code_object_files),
        ["extop_gfx1100.co", "extop_gfx1250-strict.co"]
    );
    assert_eq!(archs(&description), ["gfx1100", "gfx1250-strict"]);
}

fn kernels_in(file: &str) -> Value {
    let entries = [("func_name", "LayerNorm_S".into()), ("co_path", file.into())];
    Value::Array(vec![map(&entries)])
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
    // Arrays in one another, maps as values, and maps as keys.
    for bytes in [vec![0x91; 1 << 20], b"\x81\xa0".repeat(1 << 20), vec![0x81; 1 << 20]] {
        assert!(matches!(read(bytes), Index::Unreadable(reason) if reason.contains("256 deep")));
    }
}

/// The three keys of a library with the places of its solutions, in this order.
fn library(order: &[&str], triples: &[u64], blob: &[u8], version: u64) -> Value {
    let entries = order.iter().map(|key| {
        let value = match *key {
            "solutions_index" => Value::Array(triples.iter().map(|n| (*n).into()).collect()),
            "solutions_blob" => Value::Binary(blob.to_vec()),
            "format_version" => version.into(),
            _ => map(&[("type", "Placeholder".into()), ("value", "T_gfx942".into())]),
        };
        (*key, value)
    });
    map(&entries.collect::<Vec<_>>())
}

const KEYS: [&str; 4] = ["solutions_index", "library", "solutions_blob", "format_version"];

fn solution(operation: &str, arch: &str) -> Vec<u8> {
    let problem = map(&[("operationIdentifier", operation.into())]);
    encoded(&map(&[("problemType", problem), ("name", format!("Cijk_{arch}").into())]))
}

/// Two solutions with unused bytes before, between and behind them, and their places.
fn two_solutions() -> (Vec<u8>, Vec<u64>) {
    let solutions = [solution("Contraction_a", "gfx942"), solution("Contraction_b", "gfx90a")];
    let [first, second] = solutions.each_ref().map(|bytes| bytes.len() as u64);
    let gap: &[u8] = &[0xc1, 0xa6, b'g'];
    let blob = [gap, &solutions[0], gap, &solutions[1], gap].concat();
    (blob, vec![17, 6 + first, second, 3, 3, first, 5, 6 + first, second])
}

fn zlib(plain: &[u8]) -> Vec<u8> {
    let mut compressed = Vec::new();
    let mut encoder = flate2::read::ZlibEncoder::new(plain, flate2::Compression::best());
    encoder.read_to_end(&mut compressed).unwrap();
    compressed
}

#[test]
fn solutions_in_one_value_are_read_in_any_order_of_the_keys() {
    let (blob, triples) = two_solutions();
    let mut orders = vec![KEYS.to_vec()];
    for at in 1..24 {
        let mut order = KEYS.to_vec();
        order.swap(0, at % 4);
        order[1..].rotate_left(at % 3);
        order[2..].rotate_left(at % 2);
        orders.push(order);
    }
    for order in orders {
        let value = library(&order, &triples, &blob, 2);
        for bytes in [encoded(&value), zlib(&encoded(&value))] {
            let Index::Described(description) = read(bytes) else {
                panic!("{order:?}");
            };
            assert_eq!(texts(&description.operations), ["Contraction_a", "Contraction_b"]);
            assert_eq!((description.solutions, archs(&description)), (3, vec!["gfx90a", "gfx942"]));
            assert_eq!(texts(&description.libraries), ["T_gfx942"]);
        }
    }
}

/// The reasons for which such a library is refused, in both orders of its keys.
fn refused(triples: &[u64], blob: &[u8], version: u64) -> [String; 2] {
    let mut order = KEYS;
    [false, true].map(|reversed| {
        if reversed {
            order.reverse();
        }
        match read(encoded(&library(&order, triples, blob, version))) {
            Index::Unreadable(reason) => reason,
            Index::Described(description) => panic!("{triples:?} {version}: {description:?}"),
        }
    })
}

#[test]
fn solutions_that_do_not_lie_where_they_should_are_told() {
    let (blob, triples) = two_solutions();
    let len = blob.len() as u64;
    let cases = [
        (vec![1, 3], "solutions_index has 2 values, not a multiple of 3".to_owned()),
        (vec![1, 3, len], format!("of {len} bytes at 3, ends outside of the {len} bytes")),
        (vec![1, len + 1, 0], format!("of 0 bytes at {}, ends outside", len + 1)),
        (vec![1, 1 << 32, 5], "entry 0 of solutions_index, solution 1 of 5 bytes".to_owned()),
        (vec![1 << 31, 3, 0], "has a value out of bounds".to_owned()),
        (vec![1, 3, triples[5], 1, 3, triples[5]], "has solution 1 twice".to_owned()),
        (vec![1, 3, triples[5] - 1], "the solution at 3 of solutions_blob has another".to_owned()),
        (vec![1, 3, triples[5] + 1], "the solution at 3 of solutions_blob has another".to_owned()),
        (vec![1, 3, 0], "the solution at 3 of solutions_blob has another".to_owned()),
        (vec![1, 3, triples[5], 2, 4, 5], "at 3 and 4 of solutions_blob share bytes".to_owned()),
        (vec![1, 0, 3], "the byte 0xc1".to_owned()),
    ];
    for (triples, expected) in cases {
        for reason in refused(&triples, &blob, 2) {
            assert!(reason.contains(&expected), "{triples:?}: {reason}");
        }
    }
    let expected = [
        (3, "format_version 3 is not known"),
        (0, "not format_version 2"),
        (1, "not format_version 2"),
    ];
    for (version, expected) in expected {
        let reasons = refused(&triples, &blob, version);
        assert!(reasons.iter().all(|reason| reason.contains(expected)), "{version}: {reasons:?}");
    }
}

#[test]
fn a_library_of_version_2_has_both_keys() {
    assert!(matches!(read_with_keys(&KEYS), Index::Described(_)));
    for order in [&KEYS[..2], &["format_version", "solutions_blob"], &["format_version"]] {
        let with_version: Vec<&str> = order.iter().copied().chain(["format_version"]).collect();
        assert!(matches!(read_with_keys(&with_version), Index::Unreadable(_)), "{order:?}");
    }
    for key in ["solutions_index", "solutions_blob"] {
        let twice = [&KEYS[..], &[key]].concat();
        let index = read_with_keys(&twice);
        assert!(matches!(index, Index::Unreadable(reason) if reason.contains("twice")));
        let text = map(&[("format_version", 2.into()), (key, "x".into())]);
        assert!(matches!(read(encoded(&text)), Index::Unreadable(_)));
    }
    for version in ["3".into(), 3.5.into(), Value::Nil, Value::Array(vec![2.into()])] {
        let odd = map(&[("format_version", version)]);
        assert!(matches!(read(encoded(&odd)), Index::Unreadable(_)), "{odd}");
    }
    let twice = map(&[("format_version", 1.into()), ("format_version", 1.into())]);
    assert!(matches!(read(encoded(&twice)), Index::Unreadable(reason) if reason.contains("twice")));
    // Elsewhere these keys have no meaning.
    let deeper = map(&[("x", library(&KEYS, &[1, 2, 3], &[], 9))]);
    assert!(matches!(read(encoded(&deeper)), Index::Described(_)));
}

fn read_with_keys(order: &[&str]) -> Index {
    read(encoded(&library(order, &[], &[], 2)))
}

#[test]
fn what_libraries_refuse_of_a_zlib_stream_is_unreadable() {
    let whole = zlib(&encoded(&Value::Array(vec!["gfx906".into(); 1000])));
    assert!(matches!(read(&whole[..]), Index::Described(_)));
    for len in 2..whole.len() {
        assert!(matches!(read(&whole[..len]), Index::Unreadable(_)), "cut to {len}");
    }
    let mut wrong = whole.clone();
    *wrong.last_mut().unwrap() ^= 1;
    assert!(matches!(read(wrong), Index::Unreadable(_)), "its checksum");
    let followed = [&whole[..], &[0]].concat();
    assert!(matches!(read(followed), Index::Unreadable(reason) if reason.contains("zlib stream")));
}

#[test]
fn archs_in_long_texts_are_seen() {
    for before in (65_536 - 10..65_536 + 10).chain([4090, 5000, 200_000]) {
        let text = format!("{} gfx90a:xnack+ gfx1100", "x".repeat(before));
        let description = described(&map(&[("key", text.into())]));
        assert_eq!(archs(&description), ["gfx1100", "gfx90a"], "{before}");
    }
}
