//! The text of a proposed packaging configuration.

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::{Proposal, ProposedGroup};
use crate::config::{Syntax, Validation};
use crate::error::{Error, Result};

/// The configuration as its file has it.
#[derive(serde::Serialize)]
struct Configuration<'a> {
    primary_shard: &'a str,
    architecture_groups: Groups<'a>,
    validation: Checks,
}

/// Groups by name, in their order.
struct Groups<'a>(&'a [ProposedGroup]);

#[derive(serde::Serialize)]
struct ConfigurationGroup<'a> {
    display_name: &'a str,
    architectures: Vec<&'a str>,
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
            let architectures = group.architectures.iter().map(|arch| arch.as_str()).collect();
            let value = ConfigurationGroup { display_name: &group.display_name, architectures };
            map.serialize_entry(&group.name, &value)?;
        }
        map.end()
    }
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
            architecture_groups: Groups(&self.groups),
            validation: Checks {
                error_on_duplicate_device_code,
                verify_generic_artifacts_match,
                error_on_missing_architecture,
            },
        };
        let fault = |cause: &dyn std::fmt::Display| {
            Error::bug("a proposed configuration cannot be written").cause(cause)
        };
        match syntax {
            Syntax::Json => serde_json::to_string_pretty(&configuration)
                .map(|text| text + "\n")
                .map_err(|cause| fault(&cause)),
            Syntax::Toml => toml::to_string(&configuration).map_err(|cause| fault(&cause)),
        }
    }
}
