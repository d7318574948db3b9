//! From the schema to a checked configuration. All faults are gathered.

use super::architectures::{components, groups, packages};
use super::databases;
use super::origin::Origin;
use super::schema::{Ordered, Schema, Selector, ValidationSchema};
use super::{Config, Validation};
use crate::artifact::ComponentKind;
use crate::error::{Faults, Result};

pub(super) fn checked(schema: Schema, origin: Origin) -> Result<Config> {
    let mut faults = Faults::default();
    single_lines(&schema, &origin, &mut faults);
    let groups = groups(schema.architecture_groups, &origin, &mut faults);
    let components = components(schema.components, &origin, &mut faults);
    let packages = packages(schema.packages, &origin, &mut faults);
    selectors(&schema.selectors, &origin, &mut faults);
    databases::check(&schema.databases, &origin, &mut faults);
    let default = Config::default();
    let date = schema.content_date.as_deref();
    let date = date.map_or(Ok(default.content_date), |text| content_date(text, &origin));
    let content_date = faults.keep(date).unwrap_or_default();
    faults.finish()?;
    Ok(Config {
        primary_shard: schema.primary_shard,
        groups,
        validation: validation(&schema.validation),
        components,
        packages,
        version: schema.version,
        release: schema.release,
        prefix: schema.prefix,
        content_date,
        maintainer: schema.maintainer.unwrap_or(default.maintainer),
        vendor: schema.vendor,
        homepage: schema.homepage,
        license: schema.license.unwrap_or(default.license),
        distro: schema.distro,
        runpath: schema.runpath,
        libraries: schema.libraries.0,
        runtime_relation: schema.runtime_relation,
        relations: schema.relations.0,
        selectors: schema.selectors.0,
        databases: schema.databases,
        origin,
    })
}

fn validation(schema: &ValidationSchema) -> Validation {
    let default = Validation::default();
    Validation {
        error_on_duplicate_device_code: schema
            .error_on_duplicate_device_code
            .unwrap_or(default.error_on_duplicate_device_code),
        verify_generic_artifacts_match: schema
            .verify_generic_artifacts_match
            .unwrap_or(default.verify_generic_artifacts_match),
        error_on_missing_architecture: schema
            .error_on_missing_architecture
            .unwrap_or(default.error_on_missing_architecture),
        unassigned_architectures: schema
            .unassigned_architectures
            .unwrap_or(default.unassigned_architectures),
        untransformable: schema.untransformable.unwrap_or(default.untransformable),
    }
}

/// These end up in fields of one line: a line break would start another field.
fn single_lines(schema: &Schema, origin: &Origin, faults: &mut Faults) {
    let fields = [
        ("maintainer", &schema.maintainer),
        ("vendor", &schema.vendor),
        ("homepage", &schema.homepage),
        ("license", &schema.license),
    ];
    for (key, value) in fields {
        let Some(value) = value else { continue };
        if value.trim().is_empty() || value.contains(char::is_control) {
            let message = "has to be one line of text that is not empty";
            faults.add(origin.fault(&[key], message));
        }
    }
    if let Some(maintainer) = &schema.maintainer
        && !is_address(maintainer)
    {
        let error = origin.fault(&["maintainer"], "is no name with an address");
        faults.add(error.hint("it is written as in `ROCm packagers <rocm@example.org>`"));
    }
}

fn is_address(text: &str) -> bool {
    let Some((name, address)) = text.split_once(" <") else {
        return false;
    };
    let address = address.strip_suffix('>').unwrap_or_default();
    !name.trim().is_empty() && address.contains('@') && !address.contains(['<', '>', ' '])
}

/// Seconds since 1970; RPM stores the time of a file in 32 bits.
fn content_date(text: &str, origin: &Origin) -> Result<u32> {
    let fault = |message: &str| origin.fault(&["content_date"], message);
    let time: jiff::Timestamp = text.parse().map_err(|error: jiff::Error| {
        fault("is no date in RFC 3339")
            .cause(error)
            .hint("it is written as in `2025-01-01T00:00:00Z`")
    })?;
    u32::try_from(time.as_second())
        .map_err(|_| fault("lies outside of 1970 to 2106, the times that RPM can store"))
}

fn selectors(selectors: &Ordered<Vec<Selector>>, origin: &Origin, faults: &mut Faults) {
    for (package, selectors) in &selectors.0 {
        for (index, selector) in selectors.iter().enumerate() {
            let index = index.to_string();
            for kind in selector.components.iter().flatten() {
                if let Err(error) = kind.parse::<ComponentKind>() {
                    let keys = ["selectors", package, &index, "components"];
                    let fault = origin.fault(&keys, error.message());
                    faults.add(fault.hint(error.hint_text().unwrap_or_default()));
                }
            }
        }
    }
}
