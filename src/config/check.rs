//! From keys to a checked configuration. All faults are gathered.

use std::mem::take;

use rockpack_base::error::{Faults, Result};

use super::accept::accepted;
use super::architectures::{ArchNames, components, groups, packages};
use super::databases;
use super::document::ConfigDocument;
use super::former::{VersionBound, former};
use super::globs;
use super::keys::Keys;
use super::lines::{is_address, single_lines};
use super::selectors::selectors;
use super::texts::texts;
use super::{Config, Validation};

pub(super) fn checked(mut keys: Keys, document: ConfigDocument) -> Result<Config> {
    let mut faults = Faults::default();
    words(&keys, &document, &mut faults);
    let names = ArchNames::new(&take(&mut keys.additional_architectures), &document, &mut faults);
    let groups = groups(take(&mut keys.architecture_groups), &names, &mut faults);
    let components = components(take(&mut keys.components), &names, &mut faults);
    let texts = texts(&keys.packages, &document, &mut faults);
    let packages = packages(take(&mut keys.packages), &names, &mut faults);
    let selectors = selectors(take(&mut keys.selectors), &document, &mut faults);
    let replaces = take(&mut keys.replaces);
    let replaces = former("replaces", replaces, VersionBound::Optional, &document, &mut faults);
    let moved =
        former("moved", take(&mut keys.moved), VersionBound::Required, &document, &mut faults);
    databases::check(&keys.databases, &names, &document, &mut faults);
    globs::check("other_machines", &keys.other_machines, &document, &mut faults);
    let accept = accepted(take(&mut keys.accept), &document, &mut faults);
    let date = keys.content_date.as_deref().map(|text| content_date(text, &document));
    let content_date = date.and_then(|date| faults.keep(date));
    // Debian's tools keep it in a signed number of 32 bits.
    if keys.epoch.is_some_and(|epoch| i32::try_from(epoch).is_err()) {
        faults.add(document.fault(&["epoch"], "is more than dpkg can express"));
    }
    faults.finish()?;
    let validation = take(&mut keys.validation).over(Validation::default());
    Ok(Config {
        keys,
        groups,
        validation,
        components,
        packages,
        texts,
        content_date,
        replaces,
        moved,
        selectors,
        accept,
        document,
    })
}

fn words(keys: &Keys, document: &ConfigDocument, faults: &mut Faults) {
    let lines = [
        ("maintainer", keys.maintainer.as_deref()),
        ("vendor", keys.vendor.as_deref()),
        ("homepage", keys.homepage.as_deref()),
        ("license", keys.license.as_deref()),
        ("copyright", keys.copyright.as_deref()),
    ];
    single_lines(&[], lines, document, faults);
    if let Some(maintainer) = &keys.maintainer
        && !is_address(maintainer)
    {
        let error = document.fault(&["maintainer"], "is no name with an address");
        faults.add(error.hint("it is written as in `ROCm packagers <rocm@example.org>`"));
    }
}

/// Seconds since 1970; RPM stores the time of a file in 32 bits.
fn content_date(text: &str, document: &ConfigDocument) -> Result<u32> {
    let fault = |message: &str| document.fault(&["content_date"], message);
    let time: jiff::Timestamp = text.parse().map_err(|error: jiff::Error| {
        fault("is no date in RFC 3339")
            .cause(error)
            .hint("it is written as in `2025-01-01T00:00:00Z`")
    })?;
    u32::try_from(time.as_second())
        .map_err(|_| fault("lies outside of 1970 to 2106, the times that RPM can store"))
}
