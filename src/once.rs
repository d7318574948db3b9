//! Maps with every key once.
//!
//! serde's maps take the last of several values. In what others wrote that would hide the ones before
//! it from everybody but those who read the file in another way.

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, Visitor};

/// Reads a map, for `deserialize_with`. Refused: a key twice.
pub fn map<'de, D, K, V>(deserializer: D) -> Result<BTreeMap<K, V>, D::Error>
where
    D: Deserializer<'de>,
    K: Deserialize<'de> + Ord + Display,
    V: Deserialize<'de>,
{
    deserializer.deserialize_map(OnceVisitor(PhantomData))
}

struct OnceVisitor<K, V>(PhantomData<(K, V)>);

impl<'de, K, V> Visitor<'de> for OnceVisitor<K, V>
where
    K: Deserialize<'de> + Ord + Display,
    V: Deserialize<'de>,
{
    type Value = BTreeMap<K, V>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entries = BTreeMap::new();
        while let Some(key) = map.next_key::<K>()? {
            if entries.contains_key(&key) {
                return Err(A::Error::custom(format!("`{key}` is given twice")));
            }
            entries.insert(key, map.next_value()?);
        }
        Ok(entries)
    }
}
