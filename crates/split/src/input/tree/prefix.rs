//! The search for the install prefix in a folder or tarball.

use std::{iter, mem};

use rockpack_core::error::{Error, Kind, Result};
use rockpack_core::tree::TreePath;

/// A prefix has at least one of these folders. One with `share` only may hold documents of others.
const LAYOUT: [&str; 6] = ["bin", "include", "lib", "lib64", "libexec", SHARE];
const SHARE: &str = "share";

/// Folders in the prefix of ROCm that look like one themselves.
const NESTED: [&str; 2] = ["amdgcn", "llvm"];

/// Maximum number of folders around a prefix that the search enters, such as `rocsparse-4.0-Linux/`.
const AROUND: usize = 2;

/// Whether a folder of this name makes the folder around it an install tree, or a DESTDIR.
pub(in crate::input) fn is_tree_folder(name: &str) -> bool {
    LAYOUT.contains(&name) || matches!(name, "opt" | "usr")
}

/// The install prefix in a folder or tarball: `opt/rocm*`, `opt/rocm*/core*`, `usr`, the folder that `wanted` names,
/// or `""` for the whole. `None` if there is none. `folders` lists the names of the folders in a folder, none if it
/// does not exist. With several prefixes, `wanted` decides.
pub(in crate::input) fn find(
    wanted: Option<&TreePath>,
    folders: &dyn Fn(&str) -> Result<Vec<String>>,
) -> Result<Option<String>> {
    let mut above = String::new();
    for _ in 0..=AROUND {
        if let Some(wanted) = wanted {
            let place = join(&above, wanted.as_str());
            let (around, name) = place.rsplit_once('/').unwrap_or(("", &place));
            if folders(around)?.iter().any(|folder| folder == name) {
                return Ok(Some(place));
            }
        }
        let (mut found, mut shared) = (Vec::new(), Vec::new());
        for place in candidates(&above, folders)? {
            let inside = folders(&place)?;
            let mut own = LAYOUT.iter().filter(|name| inside.iter().any(|it| it == *name));
            match own.next() {
                Some(&SHARE) => shared.push(place),
                Some(_) => found.push(place),
                None => {}
            }
        }
        let mut found = if found.is_empty() { shared } else { found };
        match found.as_mut_slice() {
            [] => {}
            [only] => return Ok(Some(mem::take(only))),
            found => return Err(several(found)),
        }
        match &*folders(&above)? {
            [only] if !NESTED.contains(&only.as_str()) => above = join(&above, only),
            _ => break,
        }
    }
    Ok(None)
}

/// The places that may be prefixes below `above`: itself, `usr`, `opt/rocm*`, and `core*` in a folder of several ROCm
/// releases.
fn candidates(above: &str, folders: &dyn Fn(&str) -> Result<Vec<String>>) -> Result<Vec<String>> {
    let opt = join(above, "opt");
    let rocms = folders(&opt)?.into_iter().filter(|name| name.starts_with("rocm"));
    let mut places = vec![join(above, "usr")];
    for place in iter::once(above.to_owned()).chain(rocms.map(|name| join(&opt, &name))) {
        let inside = folders(&place)?;
        let cores = inside.iter().filter(|name| name.starts_with("core"));
        if !inside.iter().any(|name| LAYOUT.contains(&name.as_str())) {
            places.extend(cores.map(|core| join(&place, core)));
        }
        places.push(place);
    }
    Ok(places)
}

fn join(above: &str, name: &str) -> String {
    if above.is_empty() { name.to_owned() } else { format!("{above}/{name}") }
}

fn several(places: &[String]) -> Error {
    let shown =
        |place: &String| if place.is_empty() { "the folder itself" } else { place }.to_owned();
    let list = places.iter().map(shown).collect::<Vec<_>>().join(", ");
    let message = format!("may have several install prefixes: {list}");
    let inside = places.iter().rfind(|place| !place.is_empty()).map_or("usr", String::as_str);
    let hint = format!(
        "give the folder of the intended one, such as PATH/{inside} (unpack a tarball first); build, plan, discover, \
         split and inspect also accept its location, as in `--prefix /{inside}`"
    );
    Error::new(Kind::Usage, message).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The prefix in a tree with these folders.
    fn found(paths: &[&str], wanted: Option<&str>) -> Result<Option<String>> {
        let wanted = wanted.map(|path| TreePath::new(path).unwrap());
        find(wanted.as_ref(), &|at| {
            let below = if at.is_empty() { String::new() } else { format!("{at}/") };
            let inside = paths.iter().filter_map(|path| path.strip_prefix(&*below));
            let mut names: Vec<String> =
                inside.filter_map(|rest| rest.split('/').next()).map(str::to_owned).collect();
            names.dedup();
            Ok(names)
        })
    }

    #[test]
    fn prefixes_are_found() {
        for (paths, wanted, expected) in [
            (&["bin", "lib/cmake"][..], None, Some("")),
            (&["usr/lib"], None, Some("usr")),
            (&["etc/ld.so.conf.d", "opt/rocm-7.1.0/lib"], None, Some("opt/rocm-7.1.0")),
            (&["opt/rocm/core-7.14/lib"], None, Some("opt/rocm/core-7.14")),
            (&["bin", "core-7.14/lib"], None, Some("")),
            (&["core-7.14/lib", "x"], None, Some("core-7.14")),
            (&["opt/rocm-7.1/lib", "usr/share/doc"], None, Some("opt/rocm-7.1")),
            (&["usr/share/doc"], None, Some("usr")),
            (&["opt/acme"], Some("opt/acme"), Some("opt/acme")),
            (&["llvm/bin"], None, None),
            (&["rocsparse-4.0-Linux/include"], None, Some("rocsparse-4.0-Linux")),
            (&["a/usr/lib"], None, Some("a/usr")),
            (&["opt/rocm-7.1/lib", "usr/share"], Some("opt/rocm-7.1"), Some("opt/rocm-7.1")),
            (&["opt/rocm-7.1/lib", "usr/share"], Some("usr"), Some("usr")),
            (&["lib/x", "usr/lib"], Some("usr"), Some("usr")),
            (&["srv/gpu/lib", "usr/lib"], Some("srv/gpu"), Some("srv/gpu")),
            (&["opt/rocm-7.1/lib"], Some("usr"), Some("opt/rocm-7.1")),
            (&["a/b/c/lib"], None, None),
            (&["doc", "src"], None, None),
            (&[], None, None),
        ] {
            assert_eq!(found(paths, wanted).unwrap().as_deref(), expected, "{paths:?}");
        }
    }

    #[test]
    fn several_prefixes_are_a_question() {
        for paths in [
            &["opt/rocm-7.1/lib", "usr/lib"][..],
            &["lib/x", "usr/lib"],
            &["core-7.13/lib", "core-7.14/lib"],
        ] {
            let error = found(paths, None).unwrap_err();
            assert!(error.to_string().contains("several install prefixes"), "{error}");
        }
    }
}
