//! The files that configure a repository on clients: `.sources` and `.pref` for apt, `.repo` for dnf and zypper, and a
//! script that prints the packages for the GPUs of a machine.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use rockpack_archive::apt_index::pin;
use rockpack_archive::rpm::MissingDigest;
use rockpack_archive::rpm_md::RpmPackage;
use rockpack_core::error::Result;
use rockpack_package::for_gpu::{GpuPackage, GpuPackages, script};
use rockpack_package::indexed::IndexMetadata;
use rockpack_report::{Findings, found};
use rockpack_signing::{Algorithm, signer_ids};

use super::channel::Channel;
use super::indexes::{ALL, archs, components};
use super::keyring;
use super::next::Publication;
use super::state::ChannelState;
use super::store::FileContent;

/// Name and text of the `.sources` file (sources.list(5), deb822 style).
pub(super) fn sources(suite: &str, state: &ChannelState) -> Option<(String, FileContent)> {
    let settings = &state.settings;
    let (url, name) = (settings.url.as_ref()?, settings.name.as_ref()?);
    let components = Vec::from_iter(components(state)).join(" ");
    let mut archs = archs(state);
    archs.retain(|arch| *arch != ALL);
    let mut text = format!("Types: deb\nURIs: {url}\nSuites: {suite}\nComponents: {components}\n");
    if !archs.is_empty() {
        text.push_str(&format!("Architectures: {}\n", archs.join(" ")));
    }
    if state.signed {
        let path = keyring::installed_path(name);
        text.push_str(&format!("Signed-By: /{path}\n"));
    }
    Some((format!("{name}-{suite}.sources"), text.into_bytes().into()))
}

/// Name and text of the file with the priority of the suite for apt (apt_preferences(5)).
pub(super) fn preferences(suite: &str, state: &ChannelState) -> Option<(String, FileContent)> {
    let settings = &state.settings;
    let (url, name) = (settings.url.as_ref()?, settings.name.as_ref()?);
    let pin = pin(url, settings.release_info(suite).map(|(_, value)| value));
    let text = format!("Package: *\nPin: {pin}\nPin-Priority: {}\n", settings.pin?);
    Some((format!("{name}-{suite}.pref"), text.into_bytes().into()))
}

/// The suffix of the GPU script's name.
pub(super) const GPU_SCRIPT: &str = "-gpu.sh";

/// Name and text of the GPU script; `None` if no package has device code.
pub(super) fn gpu_script(channel: &Channel, state: &ChannelState) -> Option<(String, FileContent)> {
    let (format, settings) = (channel.format()?, &state.settings);
    let (Some(_), Some(name)) = (&settings.url, &settings.name) else { return None };
    let offers = state.records.values().filter_map(|record| GpuPackage::of(&record.indexed.facts));
    let text = script::text(&GpuPackages::new(format, offers), format, None)?;
    let file = match channel {
        Channel::Apt(suite) => format!("{name}-{suite}{GPU_SCRIPT}"),
        Channel::Rpm | Channel::Python => format!("{name}{GPU_SCRIPT}"),
    };
    Some((file, text.into_bytes().into()))
}

/// Name and text of the `.repo` file (dnf.conf(5)). It requires signed packages if the indexes and all packages are
/// signed.
pub(super) fn repo(state: &ChannelState) -> Option<(String, FileContent)> {
    let settings = &state.settings;
    let url = settings.url.as_ref()?.trim_end_matches('/');
    let name = settings.name.as_deref()?;
    let title = settings.description.as_deref().unwrap_or(name);
    let signed_packages =
        state.signed && matching_paths(state, |package| !package.signed).is_none();
    let mut text = format!(
        "[{name}]\nname={title}\nbaseurl={url}\nenabled=1\ngpgcheck={}\nrepo_gpgcheck={}\n",
        u8::from(signed_packages),
        u8::from(state.signed)
    );
    if let Some(pin) = settings.pin {
        // Below, at or above the default 99, as the pin is above, at or below apt's 500: here, lower numbers win.
        let priority = match pin.cmp(&500) {
            Ordering::Less => 150,
            Ordering::Equal => 99,
            Ordering::Greater => 50,
        };
        text.push_str(&format!("priority={priority}\n"));
    }
    if state.signed {
        text.push_str(&format!("gpgkey={url}/{}\n", keyring::file_name(Some(name))));
    }
    Some((format!("{name}.repo"), text.into_bytes().into()))
}

/// Paths of the rpm packages that `selects` selects; `None` if there are none.
fn matching_paths(
    state: &ChannelState,
    selects: impl Fn(&RpmPackage) -> bool,
) -> Option<Vec<String>> {
    let selected = state.records.iter().filter(
        |(_, record)| matches!(&record.indexed.facts, IndexMetadata::Rpm(package) if selects(package)),
    );
    let paths: Vec<String> = selected.map(|(path, _)| path.clone()).collect();
    (!paths.is_empty()).then_some(paths)
}

/// Adds findings about rpm packages whose missing or foreign signatures make clients skip the check, or refuse them.
pub(super) fn add_signature_findings(
    run: &Publication<'_>,
    state: &ChannelState,
    findings: &mut Findings,
) -> Result<()> {
    let (unsigned, of) = (matching_paths(state, |package| !package.signed), state.records.len());
    let has_signed = unsigned.as_ref().map_or(0, Vec::len) < of;
    let (channel, options) = (|| run.channel.name(), run.options);
    let algorithm = options.signer.as_ref().and_then(|signer| signer.algorithm());
    let made_here = options.package_signer.is_some() || !options.built.is_empty();
    if made_here && has_signed && algorithm == Some(Algorithm::EdDsa) {
        findings.add(found::PackagesByEd25519 { channel: channel() });
    }
    // Clients do not get the keys of other signers, so they refuse these packages.
    if let (None, Some(signer)) = (&unsigned, &options.signer) {
        let known = signer_ids(signer.public_keys()?.as_bytes())?;
        let mut by: BTreeMap<Vec<&str>, Vec<String>> = BTreeMap::new();
        for (path, record) in &state.records {
            let IndexMetadata::Rpm(package) = &record.indexed.facts else { continue };
            if !package.signers.is_empty() && package.signers.is_disjoint(&known) {
                let keys = package.signers.iter().map(String::as_str).collect();
                by.entry(keys).or_default().push(path.clone());
            }
        }
        for (keys, packages) in by {
            let (channel, key) = (channel(), keys.join(", "));
            findings.add(found::PackagesByOtherKey { channel, key, packages });
        }
    }
    if let Some(unsigned) = unsigned.filter(|_| state.signed) {
        findings.add(found::PackagesUnsigned { channel: channel(), unsigned, of });
    }
    for missing in [MissingDigest::Header, MissingDigest::Payload] {
        let packages = matching_paths(state, |package| package.missing_digest == Some(missing));
        if let Some(packages) = packages {
            findings.add(found::PackagesWithoutDigest { channel: channel(), packages, missing });
        }
    }
    if let Some(packages) = matching_paths(state, |package| package.signed_for_rpm6) {
        findings.add(found::PackagesSignedForRpm6 { channel: channel(), packages });
    }
    Ok(())
}
