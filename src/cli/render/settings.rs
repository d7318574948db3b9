//! Settings in words.

use serde_json::Value;

use super::table::TextTable;
use crate::settings::Resolved;

/// One line for each setting: its key, its value, the origin of the value.
pub fn settings_text(settings: &[Resolved]) -> String {
    let mut table = TextTable::new(["key", "value", "from"]);
    for Resolved { key, value, unset, origin } in settings {
        let value = unset.as_ref().map_or_else(|| text(value), |words| format!("({words})"));
        table.row([key.clone(), value, origin.to_string()]);
    }
    table.render()
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(list) if !list.is_empty() && !list.iter().any(Value::is_object) => {
            list.iter().map(text).collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    }
}
