//! From the schema to a checked configuration. All faults are gathered.

use super::architectures::{components, groups, packages};
use super::databases;
use super::former::{Bound, former};
use super::origin::Origin;
use super::schema::{Schema, Selector};
use super::texts::{is_line, texts};
use super::{Config, Validation};
use crate::artifact::ComponentKind;
use crate::error::{Faults, Result};
use crate::once::Ordered;

pub(super) fn checked(schema: Schema, origin: Origin) -> Result<Config> {
    let mut faults = Faults::default();
    single_lines(&schema, &origin, &mut faults);
    let groups = groups(schema.architecture_groups, &origin, &mut faults);
    let components = components(schema.components, &origin, &mut faults);
    let texts = texts(&schema.packages, &origin, &mut faults);
    let packages = packages(schema.packages, &origin, &mut faults);
    selectors(&schema.selectors, &origin, &mut faults);
    let replaces = former("replaces", schema.replaces, Bound::Optional, &origin, &mut faults);
    let moved = former("moved", schema.moved, Bound::Required, &origin, &mut faults);
    databases::check(&schema.databases, &origin, &mut faults);
    let default = Config::default();
    let date = schema.content_date.as_deref();
    let date = date.map_or(Ok(default.content_date), |text| content_date(text, &origin));
    let content_date = faults.keep(date).unwrap_or_default();
    // Debian's tools keep it in a signed number of 32 bits.
    if schema.epoch.is_some_and(|epoch| i32::try_from(epoch).is_err()) {
        faults.add(origin.fault(&["epoch"], "is more than dpkg can express"));
    }
    faults.finish()?;
    Ok(Config {
        primary_shard: schema.primary_shard,
        groups,
        validation: schema.validation.over(Validation::default()),
        components,
        packages,
        texts,
        scheme: schema.scheme,
        variant: schema.variant,
        parts: schema.parts,
        epoch: schema.epoch,
        distribution_tag: schema.distribution_tag,
        version: schema.version,
        release: schema.release,
        prefix: schema.prefix,
        libdir: schema.libdir,
        kpackdir: schema.kpackdir,
        content_date,
        maintainer: schema.maintainer.unwrap_or(default.maintainer),
        vendor: schema.vendor,
        homepage: schema.homepage,
        license: schema.license.unwrap_or(default.license),
        copyright: schema.copyright,
        alternatives: schema.alternatives.unwrap_or_default(),
        distro: schema.distro,
        runpath: schema.runpath,
        libraries: schema.libraries.0,
        runtime_relation: schema.runtime_relation,
        relations: schema.relations.0,
        replaces,
        moved,
        selectors: schema.selectors.0,
        databases: schema.databases,
        origin,
    })
}

/// These end up in fields of one line: a line break would start another field.
fn single_lines(schema: &Schema, origin: &Origin, faults: &mut Faults) {
    let fields = [
        ("maintainer", &schema.maintainer),
        ("vendor", &schema.vendor),
        ("homepage", &schema.homepage),
        ("license", &schema.license),
        ("copyright", &schema.copyright),
    ];
    for (key, value) in fields {
        let Some(value) = value else { continue };
        if !is_line(value) {
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

pub(super) fn is_address(text: &str) -> bool {
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
                    faults.add(origin.located(&keys, &error));
                }
            }
        }
    }
}
