use rmpv::Value;

use super::*;
use rockpack_core::content::{Content, WINDOW};

fn tokens(content: &Content) -> TokenReader<BufReader<ContentReader>> {
    TokenReader::new(BufReader::new(content.reader()))
}

fn encoded(value: &Value) -> Content {
    let mut bytes = Vec::new();
    rmpv::encode::write_value(&mut bytes, value).unwrap();
    Content::of_bytes(bytes)
}

/// Lengths and numbers around each border between two encodings.
const BORDERS: [u32; 12] = [0, 15, 16, 31, 32, 127, 128, 255, 256, 65_535, 65_536, 70_000];

#[test]
fn each_encoding_is_the_token_that_another_writer_meant() {
    for len in BORDERS {
        let size = usize::try_from(len).unwrap();
        let cases = [
            (Value::from("x".repeat(size)), Token::Text(len)),
            (Value::Binary(vec![7; size]), Token::Binary(len)),
            (Value::Array(vec![Value::Nil; size]), Token::Array(len)),
            (Value::Map(vec![(Value::Nil, Value::Nil); size]), Token::Map(len)),
            (Value::Ext(3, vec![7; size]), Token::Other(u64::from(len) + 1)),
            (Value::from(len), Token::Integer(len.into())),
            (Value::from(-i64::from(len) - 1), Token::Integer(-i128::from(len) - 1)),
        ];
        for (value, token) in cases {
            let content = encoded(&value);
            assert_eq!(tokens(&content).token().unwrap(), token, "{len}");
            let mut whole = tokens(&content);
            whole.skip_value().unwrap();
            assert_eq!(whole.position(), content.len(), "{token:?}");
        }
    }
    let others = [Value::Nil, true.into(), false.into(), 0.5_f32.into(), 0.5_f64.into()];
    for value in others {
        let content = encoded(&value);
        let mut reader = tokens(&content);
        assert!(matches!(reader.token().unwrap(), Token::Other(_)), "{value}");
        assert_eq!(reader.position(), content.len(), "{value}");
    }
    for number in [i64::MIN, i64::from(i32::MIN), i64::MAX] {
        let token = tokens(&encoded(&number.into())).token().unwrap();
        assert_eq!(token, Token::Integer(number.into()));
    }
    assert_eq!(
        tokens(&encoded(&u64::MAX.into())).token().unwrap(),
        Token::Integer(u64::MAX.into())
    );
}

#[test]
fn an_end_inside_of_a_value_is_told() {
    let value = Value::Map(vec![
        ("text".into(), Value::Array(vec![1.into(), (-70_000).into(), 1.5.into()])),
        (Value::Binary(vec![1; 300]), Value::Ext(7, vec![1; 40])),
    ]);
    let content = encoded(&value);
    for len in 0..content.len() {
        let error = tokens(&content.slice(0..len).unwrap()).skip_value().unwrap_err();
        assert_eq!(error.to_string(), "it ends in the middle of a value", "{len}");
    }
    // This length exceeds the memory of most machines.
    let error = tokens(&Content::of_bytes(*b"\xc6\xff\xff\xff\xffx")).skip_value().unwrap_err();
    assert_eq!(error.to_string(), "it ends in the middle of a value");
    let error = tokens(&Content::of_bytes(*b"\x92\x01\xc1")).skip_value().unwrap_err();
    assert_eq!(error.to_string(), "the byte 0xc1 at 2 begins no value");
}

#[test]
fn nesting_takes_no_stack() {
    let deep = Content::of_bytes([vec![0x91; 4 << 20], vec![0xc0]].concat());
    tokens(&deep).skip_value().unwrap();
}

#[test]
fn bytes_are_passed_over_across_the_buffer() {
    let bytes: Vec<u8> = (0..=250).cycle().take(3 * WINDOW).collect();
    let content = Content::of_bytes(bytes.clone());
    for skip in [0, 1, 8191, 8192, 8193, WINDOW, 2 * WINDOW + 5] {
        let mut reader = tokens(&content);
        reader.read(&mut [0; 3]).unwrap();
        reader.skip(skip as u64).unwrap();
        let mut byte = [0];
        reader.read(&mut byte).unwrap();
        assert_eq!(byte[0], bytes[skip + 3], "{skip}");
        assert_eq!(reader.position(), skip as u64 + 4);
    }
}
