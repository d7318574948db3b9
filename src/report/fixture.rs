//! Helpers for the unit tests of both tables, findings and failed checks.

use std::path::Path;

use rockpack_base::once::Ordered;
use serde::Serialize;
use serde_json::Value;

/// Compares the lines with `file`, a path in the repository. With `ROCKPACK_BLESS=1`, writes them there
/// instead.
#[track_caller]
pub(crate) fn compare<T: ToString>(examples: &[T], file: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let shown: Vec<String> = examples.iter().map(T::to_string).collect();
    if std::env::var("ROCKPACK_BLESS").as_deref() == Ok("1") {
        return std::fs::write(path, shown.join("\n") + "\n").unwrap();
    }
    let expected = std::fs::read_to_string(path).unwrap();
    for (shown, expected) in shown.iter().zip(expected.lines()) {
        assert_eq!(shown, expected);
    }
    assert_eq!(shown.len(), expected.lines().count(), "{shown:#?}");
    for line in shown {
        assert!(!line.ends_with('.') && !line.contains("  "), "{line}");
    }
}

/// The fields of the JSON object of `example` after those in `text`, which come first.
#[track_caller]
pub(crate) fn own_fields(example: &impl Serialize, text: &[(&str, &str)]) -> Vec<(String, Value)> {
    let json = serde_json::to_string(example).unwrap();
    // Duplicate names would show here, also those of a text field.
    let Ordered::<Value>(mut fields) = serde_json::from_str(&json).unwrap();
    let own = fields.split_off(text.len());
    let shown = fields.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let expected = text.iter().map(|(name, value)| (*name, Some(*value)));
    assert!(shown.eq(expected), "{json}");
    own
}
