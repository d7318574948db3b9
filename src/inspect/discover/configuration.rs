//! The text of a proposed packaging configuration.

use rockpack_core::error::{Error, Result};
use rockpack_core::gfx::{self, BaseArch, Group};
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::Proposal;
use rockpack_plan::config::{Syntax, Validation};

/// The configuration as its file has it.
#[derive(serde::Serialize)]
struct Configuration<'a> {
    primary_shard: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    additional_architectures: Vec<&'a str>,
    architecture_groups: Groups<'a>,
    validation: Checks,
}

/// Groups by name, in their order.
struct Groups<'a>(&'a [Group]);

#[derive(serde::Serialize)]
struct ConfigurationGroup<'a> {
    display_name: &'a str,
    architectures: &'a [BaseArch],
}

#[derive(serde::Serialize)]
struct Checks {
    error_on_duplicate_device_code: bool,
    verify_generic_artifacts_match: bool,
    error_on_missing_architecture: bool,
}

impl Serialize for Groups<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for group in self.0 {
            let (display_name, architectures) = (&group.display_name, &group.archs);
            let value = ConfigurationGroup { display_name, architectures };
            map.serialize_entry(&group.name, &value)?;
        }
        map.end()
    }
}

/// The archs that a configuration has to declare.
fn unknown(groups: &[Group]) -> Vec<&str> {
    let archs = groups.iter().flat_map(|group| &group.archs);
    archs.filter(|arch| !gfx::is_known(arch)).map(BaseArch::as_str).collect()
}

impl Proposal {
    /// The configuration file. Its checks are those that apply without one, written out so that
    /// they can be changed.
    pub fn configuration(&self, syntax: Syntax) -> Result<String> {
        let Validation {
            error_on_duplicate_device_code,
            verify_generic_artifacts_match,
            error_on_missing_architecture,
            ..
        } = Validation::default();
        let configuration = Configuration {
            primary_shard: &self.primary_shard.name,
            additional_architectures: unknown(&self.groups),
            architecture_groups: Groups(&self.groups),
            validation: Checks {
                error_on_duplicate_device_code,
                verify_generic_artifacts_match,
                error_on_missing_architecture,
            },
        };
        match syntax {
            Syntax::Json => serde_json::to_string_pretty(&configuration)
                .map(|text| text + "\n")
                .map_err(|cause| unwritten(&cause)),
            Syntax::Toml => toml::to_string(&configuration).map_err(|cause| unwritten(&cause)),
        }
    }
}

fn unwritten(cause: &dyn std::fmt::Display) -> Error {
    Error::bug("a proposed configuration cannot be written").cause(cause)
}
