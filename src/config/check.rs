//! From the schema to a checked configuration. All faults are gathered.

use std::collections::BTreeMap;

use super::origin::Origin;
use super::schema::{GroupSchema, Ordered, Schema, Selector, ValidationSchema};
use super::{ArchitectureGroup, Config, Validation};
use crate::artifact::ComponentKind;
use crate::error::{Error, Faults, Result};
use crate::gfx::BaseArch;

/// The key of the groups, for the place of a fault.
const GROUPS: &str = "architecture_groups";

pub(super) fn checked(schema: Schema, origin: Origin) -> Result<Config> {
    let mut faults = Faults::default();
    single_lines(&schema, &origin, &mut faults);
    let groups = groups(schema.architecture_groups, &origin, &mut faults);
    selectors(&schema.selectors, &origin, &mut faults);
    let default = Config::default();
    let date = schema.content_date.as_deref();
    let date = date.map_or(Ok(default.content_date), |text| content_date(text, &origin));
    let content_date = faults.keep(date).unwrap_or_default();
    faults.finish()?;
    Ok(Config {
        primary_shard: schema.primary_shard,
        groups,
        validation: validation(&schema.validation),
        version: schema.version,
        release: schema.release,
        prefix: schema.prefix,
        content_date,
        maintainer: schema.maintainer.unwrap_or(default.maintainer),
        vendor: schema.vendor,
        homepage: schema.homepage,
        license: schema.license.unwrap_or(default.license),
        runtime_relation: schema.runtime_relation,
        relations: schema.relations.0,
        selectors: schema.selectors.0,
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

fn groups(
    schema: Ordered<GroupSchema>,
    origin: &Origin,
    faults: &mut Faults,
) -> Vec<ArchitectureGroup> {
    let mut owners: BTreeMap<BaseArch, String> = BTreeMap::new();
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    let mut groups = Vec::new();
    for (name, group) in schema.0 {
        faults.keep(package_part(&name, origin));
        if let Some(other) = names.insert(name.to_lowercase(), name.clone()) {
            let message = format!("gives the same package names as the group {other}");
            faults.add(origin.fault(&[GROUPS, &name], message));
        }
        if group.architectures.is_empty() {
            let error = origin.fault(&[GROUPS, &name], "has no architectures");
            faults.add(error.hint("list the archs whose kernels share a package, or remove it"));
        }
        let mut architectures = Vec::new();
        for (index, text) in group.architectures.iter().enumerate() {
            let place = (name.as_str(), index);
            let arch = architecture(text, place, &mut owners, origin);
            architectures.extend(faults.keep(arch));
        }
        let display_name = group.display_name.unwrap_or_else(|| name.clone());
        if display_name.trim().is_empty() || display_name.contains(char::is_control) {
            let keys = [GROUPS, &name, "display_name"];
            faults.add(origin.fault(&keys, "has to be one line of text that is not empty"));
        }
        groups.push(ArchitectureGroup { name, display_name, architectures });
    }
    groups
}

fn architecture(
    text: &str,
    (group, index): (&str, usize),
    owners: &mut BTreeMap<BaseArch, String>,
    origin: &Origin,
) -> Result<BaseArch> {
    let index = index.to_string();
    let keys = [GROUPS, group, "architectures", &index];
    let arch: BaseArch = text.parse().map_err(|error: Error| {
        let hint = match text.contains(':') {
            true => "a group names base archs; all their feature variants go with them",
            false => "an arch is written as in `gfx1100`, `gfx90a` or `gfx1250-strict`",
        };
        origin.fault(&keys, error.message()).hint(hint)
    })?;
    match owners.insert(arch.clone(), group.to_owned()) {
        Some(other) if other == group => {
            Err(origin.fault(&keys, format!("{arch} is listed twice in the group")))
        }
        Some(other) => {
            let message = format!("{arch} is in the group {other} already");
            let hint = "two kernel packages would install the same files";
            Err(origin.fault(&keys, message).hint(hint))
        }
        None => Ok(arch),
    }
}

/// Whether the lowered name can stand in a package name of both formats.
fn package_part(name: &str, origin: &Origin) -> Result<()> {
    let good = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    let edges = |c: char| c.is_ascii_alphanumeric();
    if name.chars().all(good) && name.starts_with(edges) && name.ends_with(edges) {
        return Ok(());
    }
    let message = format!("`{name}` cannot stand in a package name");
    let error = origin.fault(&[GROUPS, name], message);
    Err(error.hint("group names are made of letters, digits, `-` and `.`"))
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
