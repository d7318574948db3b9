//! Maps that refuse duplicate keys.
//!
//! serde's maps keep the last of several values. Another reader of the same file may keep the first, so a
//! duplicate could hide a value from one of them.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display};
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, Visitor};

/// A map in the order of the file.
#[derive(Debug, Clone)]
pub struct OrderedMap<T>(pub Vec<(String, T)>);

impl<T> Default for OrderedMap<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for OrderedMap<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(UniqueKeysVisitor(PhantomData)).map(Self)
    }
}

impl<T: JsonSchema> JsonSchema for OrderedMap<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("MapOf{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let value = generator.subschema_for::<T>();
        json_schema!({ "type": "object", "additionalProperties": value })
    }
}

/// Reads a map without duplicate keys, for `deserialize_with`.
pub fn map<'de, D, K, V>(deserializer: D) -> Result<BTreeMap<K, V>, D::Error>
where
    D: Deserializer<'de>,
    K: Deserialize<'de> + Clone + Ord + Display,
    V: Deserialize<'de>,
{
    let entries: Vec<(K, V)> = deserializer.deserialize_map(UniqueKeysVisitor(PhantomData))?;
    Ok(entries.into_iter().collect())
}

/// Refuses a key that occurs twice.
struct UniqueKeysVisitor<K, V>(PhantomData<(K, V)>);

impl<'de, K, V> Visitor<'de> for UniqueKeysVisitor<K, V>
where
    K: Deserialize<'de> + Clone + Ord + Display,
    V: Deserialize<'de>,
{
    type Value = Vec<(K, V)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut entries, mut keys) = (Vec::new(), BTreeSet::new());
        while let Some(key) = map.next_key::<K>()? {
            if !keys.insert(key.clone()) {
                return Err(A::Error::custom(format!("`{key}` is given twice")));
            }
            entries.push((key, map.next_value()?));
        }
        Ok(entries)
    }
}
