//! Values of the configuration that are one list for all, or a map of lists.

use std::fmt;
use std::marker::PhantomData;

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};

/// A list, or a map of lists.
#[derive(Debug, Clone, JsonSchema)]
#[schemars(untagged)]
pub enum ListOr<M> {
    /// One list for all.
    One(Vec<String>),
    /// A list for each.
    Each(M),
}

/// The lists of a map.
pub trait Lists {
    /// The form of the map, in words.
    const FORM: &str;
}

impl<M> Default for ListOr<M> {
    fn default() -> Self {
        Self::One(Vec::new())
    }
}

impl<'de, M: Deserialize<'de> + Lists> Deserialize<'de> for ListOr<M> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ListVisitor(PhantomData))
    }
}

/// Reads the schema by hand, because serde's untagged enums lose the fault and its position.
struct ListVisitor<M>(PhantomData<M>);

impl<'de, M: Deserialize<'de> + Lists> Visitor<'de> for ListVisitor<M> {
    type Value = ListOr<M>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of texts, or {}", M::FORM)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<ListOr<M>, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(list)).map(ListOr::One)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ListOr<M>, A::Error> {
        M::deserialize(MapAccessDeserializer::new(map)).map(ListOr::Each)
    }
}
