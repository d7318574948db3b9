//! Makes a checked configuration of the keys. Collects all faults; the default replaces a refused value.

use std::mem::take;

use rockpack_core::error::{Faults, Result};

use super::accept::accepted;
use super::architectures::{ArchNames, components, groups, packages};
use super::configuration::Config;
use super::databases;
use super::document::ConfigDocument;
use super::folders::Folders;
use super::former::{VersionBound, former};
use super::globs;
use super::grouping::Grouping;
use super::keys::Keys;
use super::lines::{is_address, single_lines};
use super::selectors::selectors;
use super::texts::texts;

/// The checked configuration; `None` only if rockpack's own defaults or shipped rules are wrong.
pub(super) fn checked(
    mut keys: Keys,
    document: ConfigDocument,
    faults: &mut Faults,
) -> Option<Config> {
    let instead = Keys::default();
    words(&keys, &document, faults);
    let names = ArchNames::new(&take(&mut keys.additional_architectures), &document, faults);
    let groups = groups(take(&mut keys.architecture_groups), &names, faults);
    let components = components(take(&mut keys.components), &names, faults);
    let texts = texts(&keys.packages, &document, faults);
    let packages = packages(take(&mut keys.packages), &names, faults);
    let selectors = selectors(take(&mut keys.selectors), &document, faults);
    let replaces = take(&mut keys.replaces);
    let replaces = former("replaces", replaces, VersionBound::Optional, &document, faults);
    let moved = former("moved", take(&mut keys.moved), VersionBound::Required, &document, faults);
    requirements(&keys, &document, faults);
    globs::check("other_machines", &keys.other_machines, &document, faults);
    let accept = accepted(take(&mut keys.accept), &document, faults);
    let date = faults
        .keep(content_date(&keys.content_date, &document))
        .or_else(|| faults.keep(content_date(&instead.content_date, &document)));
    let folders = Folders::new(&keys, &document, faults)?;
    let databases = databases::rules(&take(&mut keys.databases), &names, &document, faults)?;
    // dpkg stores the epoch as a signed 32-bit number.
    if keys.epoch.is_some_and(|epoch| i32::try_from(epoch).is_err()) {
        faults.add(document.fault(&["epoch"], "is more than dpkg can express"));
    }
    let grouping = Grouping { primary_shard: keys.primary_shard.take(), groups };
    Some(Config {
        keys,
        grouping,
        folders,
        databases,
        components,
        packages,
        texts,
        content_date: date?,
        replaces,
        moved,
        selectors,
        accept,
        document,
    })
}

fn words(keys: &Keys, document: &ConfigDocument, faults: &mut Faults) {
    let lines = [
        ("maintainer", Some(keys.maintainer.as_str())),
        ("vendor", keys.vendor.as_deref()),
        ("homepage", keys.homepage.as_deref()),
        ("license", Some(keys.license.as_str())),
        ("copyright", keys.copyright.as_deref()),
    ];
    single_lines(&[], lines, document, faults);
    if !is_address(&keys.maintainer) {
        let error = document.fault(&["maintainer"], "is no name with an address");
        faults.add(error.hint("it is written as in `ROCm packagers <rocm@example.org>`"));
    }
}

/// Parses `content_date` into seconds since 1970. RPM stores the time of a file in 32 bits.
fn content_date(text: &str, document: &ConfigDocument) -> Result<u32> {
    let keys = ["content_date"];
    let time: jiff::Timestamp = text.parse().map_err(|error: jiff::Error| {
        document
            .fault(&keys, "is no date in RFC 3339")
            .cause(error)
            .hint("it is written as in `2025-01-01T00:00:00Z`")
    })?;
    u32::try_from(time.as_second()).map_err(|_| {
        document.fault(&keys, "lies outside of 1970 to 2106, the times that RPM can store")
    })
}

/// Refuses requirements of wheels that cannot be a line of METADATA.
fn requirements(keys: &Keys, document: &ConfigDocument, faults: &mut Faults) {
    keys.wheels.each_requirement(|place, text| {
        let begins = text.starts_with(|c: char| c.is_ascii_alphanumeric());
        if !begins || text.contains(char::is_control) {
            let message = "is no requirement, such as `rocm-sdk-core == 7.1`";
            faults.add(document.fault(place, message));
        }
    });
}
