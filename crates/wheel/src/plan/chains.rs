//! Chains of host wheels: if one host wheel requires another, its extras require the same extras of the other.

use std::collections::BTreeSet;

use rockpack_archive::wheel::{Requirement, Version, normalized};
use rockpack_core::error::{Error, Kind, Result};
use rockpack_core::gfx::{self, BaseArch};
use rockpack_package::device_wheel::{ALL, EXTRA};
use rockpack_split::input::wheel::{Wheel, always_required};

use super::code::Extra;
use crate::WheelSettings;

#[derive(Debug, Default)]
pub struct SplitHosts(Vec<SplitHost>);

#[derive(Debug)]
struct SplitHost {
    name: String,
    version: Option<Version>,
    extras: BTreeSet<String>,
    /// Requirements of wheels that are not known to be split.
    unresolved: Vec<Requirement>,
}

impl SplitHost {
    fn fits(&self, needed: &Requirement) -> bool {
        needed.project == self.name && self.version.as_ref().is_some_and(|it| needed.accepts(it))
    }
}

impl SplitHosts {
    /// Adds the host wheel of `wheel` if its extras require device wheels. Refuses one that an earlier host requires,
    /// because the extras of that host do not include it.
    pub fn add(
        &mut self,
        wheel: &Wheel,
        extras: impl Iterator<Item = String>,
        unresolved: Vec<Requirement>,
    ) -> Result<()> {
        let (name, version) = (normalized(wheel.metadata.name()), wheel.name.parsed_version());
        let extras = extras.filter(|extra| extra.starts_with(EXTRA)).collect();
        let host = SplitHost { name, version, extras, unresolved };
        if !host.extras.contains(ALL) {
            return Ok(());
        }
        if let Some(other) = self.0.iter().find(|it| it.unresolved.iter().any(|it| host.fits(it))) {
            let (own, other) = (&host.name, &other.name);
            let message = format!("{other} and {own} require each other, and both are split");
            let hint =
                format!("`--split-elsewhere {own}` assumes that it has the extras of {other}");
            return Err(Error::new(Kind::Conflict, message).file(&wheel.path).hint(hint));
        }
        self.0.push(host);
        Ok(())
    }

    /// The extras of the wheels that installers choose for `needed`: of the exact version, or of the highest.
    fn names(&self, needed: &Requirement) -> BTreeSet<String> {
        let fitting = self.0.iter().filter(|host| host.fits(needed));
        let versions = fitting.clone().map(|host| &host.version);
        let taken = versions.max_by_key(|&it| (it.as_ref() == needed.exact(), it));
        let hosts = fitting.filter(|host| Some(&host.version) == taken);
        hosts.flat_map(|host| host.extras.clone()).collect()
    }

    /// Adds the extras of the split wheels that `wheel` requires to its own `extras`, the last of which is for all,
    /// and then adds its host wheel.
    pub(super) fn extend(
        &mut self,
        extras: &mut Vec<Extra>,
        wheel: &Wheel,
        settings: &WheelSettings,
    ) -> Result<()> {
        let (mut unresolved, mut chains) = (Vec::new(), Vec::new());
        let all = extras.pop();
        for needed in always_required(&wheel.metadata, &settings.config.keys.wheels.host_requires) {
            let names = self.names(&needed);
            let own: BTreeSet<String> = extras.iter().map(|extra| extra.name.clone()).collect();
            let new = names.difference(&own).filter(|name| *name != ALL);
            let new: Vec<Extra> = new.map(|name| Extra::of_chain(name, &own, extras)).collect();
            extras.extend(new);
            match names.is_empty() && !settings.split_elsewhere.contains(&needed.project) {
                true => unresolved.push(needed),
                false => chains.push((needed, names)),
            }
        }
        extras.extend(all);
        for (needed, names) in &chains {
            let Requirement { project, versions, marker, .. } = needed;
            let marker = marker.replace('\n', " ");
            for extra in extras.iter_mut() {
                let others = extra.same(names).into_iter();
                let others =
                    others.map(|it| [format!("{project}[{it}]{versions}"), marker.clone()]);
                extra.chains.extend(others);
            }
        }
        self.add(wheel, extras.iter().map(|extra| extra.name.clone()), unresolved)
    }
}

fn archs_of(extra: &str) -> Vec<BaseArch> {
    gfx::archs_of_label(extra.strip_prefix(EXTRA).unwrap_or_default())
}

impl Extra {
    /// The extra `name` of other wheels, for a wheel with `extras`, whose names are `own`.
    fn of_chain(name: &str, own: &BTreeSet<String>, extras: &[Self]) -> Self {
        let members = archs_of(name).iter().map(|arch| format!("{EXTRA}{arch}")).collect();
        let new = Self { name: name.to_owned(), members, ..Self::default() };
        let own = new.same(own);
        let own = extras.iter().filter(|extra| own.contains(&extra.name));
        let requires: BTreeSet<String> = own.flat_map(|extra| extra.requires.clone()).collect();
        Self { requires: requires.into_iter().collect(), ..new }
    }

    /// The extras in `names`, those of another wheel, that correspond to this one. A wheel that is split elsewhere,
    /// with no names, is assumed to have the same; another one may lack the extra of a group, but have those of its
    /// archs.
    fn same(&self, names: &BTreeSet<String>) -> BTreeSet<String> {
        if names.is_empty() || names.contains(&self.name) {
            return [self.name.clone()].into();
        }
        let members = self.members.iter().map(|member| match names.contains(member) {
            true => [member.clone()].into(),
            // Without code for their archs, its GPUs run generic code and SPIR-V.
            false => {
                let archs = archs_of(member).into_iter().filter(|arch| !arch.is_generic());
                let all = archs.flat_map(|arch| {
                    let generic = gfx::generic_of(&arch).map_or(gfx::SPIRV, BaseArch::as_str);
                    [generic, gfx::SPIRV]
                });
                all.map(|name| format!("{EXTRA}{name}")).collect::<BTreeSet<_>>()
            }
        });
        members.flatten().filter(|name| names.contains(name)).collect()
    }

    /// The requirements for extras of other wheels, under a further condition.
    pub fn chained(&self, condition: &str) -> impl Iterator<Item = String> {
        self.chains.iter().map(move |[other, marker]| match (marker.as_str(), condition) {
            ("", "") => other.clone(),
            ("", marker) | (marker, "") => format!("{other}; {marker}"),
            (marker, condition) => format!("{other}; ({marker}) and {condition}"),
        })
    }
}
