//! The configuration's keys in other forms: a JSON Schema for editors, and the list of
//! docs/reference/configuration.md.

use std::fmt::Write;

use clap::{Args, Command};
use serde_json::{Map, Value, json};

use rockpack_plan::config::Keys;

const DEFINITIONS: &str = "#/$defs/";

/// A key of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyDocument {
    /// The path of the key: `version`, `validation.untransformable`, `components.*.untransformable`.
    pub path: Vec<String>,
    /// The option for the key, with its dashes.
    pub option: Option<String>,
    pub meaning: String,
    /// The default; `None` if the key has no default.
    pub default: Option<KeyDefault>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyDefault {
    Value(Value),
    /// Words that describe the default.
    Words(String),
}

impl KeyDefault {
    fn text(&self) -> String {
        match self {
            Self::Value(Value::String(text)) => format!("`{text}`"),
            Self::Value(value) => format!("`{value}`"),
            Self::Words(words) => words.clone(),
        }
    }
}

/// The JSON Schema (draft 2020-12) of packaging configurations.
pub fn schema() -> Value {
    let mut typed = schemars::schema_for!(Keys);
    typed.insert("title".to_owned(), "Packaging configuration of rockpack".into());
    let mut schema = typed.to_value();
    simplify(&mut schema);
    schema
}

/// The keys, in the order of their declaration. A list of tables is one key.
pub fn keys() -> Vec<KeyDocument> {
    let schema = schema();
    let options = Keys::augment_args(Command::new("keys"));
    let mut keys = Vec::new();
    collect_keys(&schema, &schema, &[], &mut keys);
    keys.iter_mut().for_each(|key| key.option = option_of(&key.path, &options));
    keys
}

fn option_of(path: &[String], options: &Command) -> Option<String> {
    let [key] = path else { return None };
    let found = options.get_arguments().find(|argument| argument.get_id() == key.as_str());
    found.and_then(|argument| argument.get_long()).map(|name| format!("--{name}"))
}

/// The keys as a list in Markdown, with defaults in brackets.
pub fn key_list() -> String {
    let mut list = String::new();
    for key in keys() {
        let KeyDocument { path, option, meaning, default } = key;
        let option = option.map(|option| format!(", `{option}`")).unwrap_or_default();
        let default = default.map(|it| format!(" [{}]", it.text())).unwrap_or_default();
        let path = path.join(".");
        // Writing to a String cannot fail.
        let _ = writeln!(list, "- `{path}`{option}: {meaning}{default}");
    }
    list
}

/// Splits the words of a final `[default: …]` off a text.
pub(super) fn split_default(text: &str) -> (&str, Option<&str>) {
    let split = text.trim_end().strip_suffix(']').and_then(|rest| rest.rsplit_once("[default: "));
    match split {
        Some((meaning, default)) => (meaning.trim_end(), Some(default)),
        None => (text.trim_end(), None),
    }
}

/// Joins descriptions into single lines, and removes null from optional values.
fn simplify(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            // The format of a number repeats its range.
            map.retain(|keyword, value| match keyword.as_str() {
                "default" => !value.is_null(),
                "format" => value != "uint32",
                _ => true,
            });
            refuse_null(map);
            describe(map);
            map.values_mut().for_each(simplify);
        }
        Value::Array(list) => list.iter_mut().for_each(simplify),
        _ => {}
    }
}

fn describe(map: &mut Map<String, Value>) {
    let Some(Value::String(text)) = map.get_mut("description") else { return };
    *text = text.split_whitespace().collect::<Vec<_>>().join(" ").trim_end_matches('.').to_owned();
}

fn refuse_null(map: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = map.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            map.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(any)) = map.get_mut("anyOf") {
        any.retain(|schema| *schema != json!({ "type": "null" }));
        if let [Value::Object(only)] = any.as_mut_slice() {
            let only = std::mem::take(only);
            map.remove("anyOf");
            map.extend(only);
        }
    }
}

/// Adds the keys of an object, and those of objects in it.
fn collect_keys(root: &Value, schema: &Value, path: &[String], keys: &mut Vec<KeyDocument>) {
    let properties = schema.get("properties").and_then(Value::as_object);
    let required = schema.get("required").and_then(Value::as_array);
    for (name, property) in properties.into_iter().flatten() {
        let path = [path, std::slice::from_ref(name)].concat();
        let value = follow_reference(root, property);
        let of_each = value.get("additionalProperties").filter(|each| each.is_object());
        let each = of_each.map(|each| follow_reference(root, each));
        if value.get("properties").is_none() {
            let is_required = required.is_some_and(|names| names.iter().any(|own| own == name));
            let required = is_required.then(|| KeyDefault::Words("required".to_owned()));
            let key = key_document(&path, property, value);
            keys.push(KeyDocument { default: key.default.or(required), ..key });
        }
        let inner = [path.as_slice(), &["*".to_owned()]].concat();
        match (value.get("properties"), each) {
            (Some(_), _) if path.len() > 2 => keys.push(key_document(&path, property, value)),
            (Some(_), _) => collect_keys(root, value, &path, keys),
            (None, Some(each)) => collect_keys(root, each, &inner, keys),
            (None, None) => {}
        }
    }
}

fn key_document(path: &[String], property: &Value, value: &Value) -> KeyDocument {
    let description = keyword(property, value, "description").and_then(Value::as_str);
    let (meaning, default) = split_default(description.unwrap_or_default());
    let value = keyword(property, value, "default").cloned().map(KeyDefault::Value);
    KeyDocument {
        path: path.to_vec(),
        option: None,
        meaning: meaning.to_owned(),
        default: value.or_else(|| Some(KeyDefault::Words(default?.to_owned()))),
    }
}

fn keyword<'a>(property: &'a Value, value: &'a Value, name: &str) -> Option<&'a Value> {
    property.get(name).or_else(|| value.get(name))
}

/// The definition that a schema refers to, or the schema itself.
fn follow_reference<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    let reference = schema.get("$ref").and_then(Value::as_str);
    let name = reference.and_then(|text| text.strip_prefix(DEFINITIONS));
    let found = name.and_then(|name| root.get("$defs")?.get(name));
    found.unwrap_or(schema)
}
