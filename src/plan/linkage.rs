//! Which bundles need which others, by the libraries that their programs link to.

use std::collections::{BTreeMap, BTreeSet};

use super::libraries::{Libraries, libraries};
use super::selectors::{Bundle, Owned};
use crate::content::Content;
use crate::error::Result;
use crate::report::{Code, Finding, Findings};
use crate::split::{HostFile, HostKind};
use crate::tree::{Node, TreePath};

/// The folder whose libraries are preferred where several have one name.
const LIBRARY_FOLDER: &str = "lib";

/// What starts an ELF file and a static archive: content of one processor.
const NATIVE_MAGIC: [&[u8]; 2] = [b"\x7fELF", b"!<arch>\n"];

/// What the host files of a set say about their bundles, by index.
#[derive(Debug, Default)]
pub(super) struct Linkage {
    /// Bundle → bundles whose libraries it links to, without itself.
    pub needs: BTreeMap<usize, BTreeSet<usize>>,
    /// Bundles with files for one processor.
    pub native: BTreeSet<usize>,
}

/// A library of the set.
struct Provider<'a> {
    bundle: usize,
    path: &'a TreePath,
}

type Providers<'a> = BTreeMap<String, Vec<Provider<'a>>>;

/// Reads the dynamic sections of all programs and libraries.
pub(super) fn discover(bundles: &[Bundle<'_>], findings: &mut Findings) -> Result<Linkage> {
    let mut linkage = Linkage::default();
    let mut providers = Providers::new();
    let mut needed: Vec<(usize, BTreeSet<String>)> = Vec::new();
    for (index, bundle) in bundles.iter().enumerate() {
        let mut names = BTreeSet::new();
        for (path, owned) in &bundle.files {
            let Some(content) = host_content(owned) else {
                continue;
            };
            if is_native(content)? {
                linkage.native.insert(index);
            }
            if let Some(found) = read(content, (owned, path), bundle, findings) {
                let provider = Provider { bundle: index, path };
                provide(&mut providers, &found, provider);
                names.extend(found.needed);
            }
        }
        needed.push((index, names));
    }
    for (index, names) in needed {
        let found = names.iter().filter_map(|name| {
            let providers = providers.get(name)?;
            chosen(index, (name, providers), bundles, findings)
        });
        let found: BTreeSet<usize> = found.filter(|other| *other != index).collect();
        linkage.needs.insert(index, found);
    }
    Ok(linkage)
}

/// The bytes of a host file as the input has them, with device code.
fn host_content<'a>(owned: &Owned<'a>) -> Option<&'a Content> {
    match owned.node {
        Node::File { data: HostFile { kind, .. }, .. } => Some(match kind {
            HostKind::Plain(content) => content,
            HostKind::Fat(fat) => fat.binary.original(),
        }),
        _ => None,
    }
}

fn is_native(content: &Content) -> Result<bool> {
    let len = content.len().min(8);
    let start = content.read_vec(0..len, 8, "start of a file")?;
    Ok(NATIVE_MAGIC.iter().any(|magic| start.starts_with(magic)))
}

/// A damaged library is packed as it is; that nothing is known of its needs is a finding.
fn read(
    content: &Content,
    (owned, path): (&Owned<'_>, &TreePath),
    bundle: &Bundle<'_>,
    findings: &mut Findings,
) -> Option<Libraries> {
    if !bundle.part.programs {
        return None;
    }
    match libraries(content) {
        Ok(found) => found,
        Err(error) => {
            let subject = format!("{}/{path}", owned.component.id());
            let message = format!("its needed libraries cannot be read: {}", error.message());
            findings.add(Finding::new(Code::LibrariesUnreadable, subject, message));
            None
        }
    }
}

fn provide<'a>(providers: &mut Providers<'a>, found: &Libraries, provider: Provider<'a>) {
    let file_name = provider.path.name();
    let own_name = file_name.contains(".so").then(|| file_name.to_owned());
    if let Some(name) = found.soname.clone().or(own_name) {
        providers.entry(name).or_default().push(provider);
    }
}

/// The bundle that provides `name` to bundle `index`: its own, or the only one, or the one that
/// has it in the library folder.
fn chosen(
    index: usize,
    (name, providers): (&str, &[Provider<'_>]),
    bundles: &[Bundle<'_>],
    findings: &mut Findings,
) -> Option<usize> {
    if providers.iter().any(|provider| provider.bundle == index) {
        return Some(index);
    }
    let distinct = |providers: &mut dyn Iterator<Item = &Provider<'_>>| -> BTreeSet<usize> {
        providers.map(|provider| provider.bundle).collect()
    };
    let in_folder = |provider: &&Provider<'_>| {
        provider.path.parent().is_some_and(|folder| folder.as_str() == LIBRARY_FOLDER)
    };
    let all = distinct(&mut providers.iter());
    let preferred = distinct(&mut providers.iter().filter(in_folder));
    let candidates = if preferred.is_empty() { all } else { preferred };
    let first = candidates.first().copied();
    if candidates.len() > 1 {
        let names = candidates.iter().filter_map(|&at| bundles.get(at));
        let names: Vec<&str> = names.map(|bundle| bundle.family.as_str()).collect();
        let message = format!("is provided by {}; the first is depended on", names.join(", "));
        findings.add(Finding::new(Code::LibraryAmbiguous, name, message));
    }
    first
}

impl Linkage {
    /// The nearest bundles that `index` needs, directly or through others, and for which `wanted`
    /// holds; what lies behind these is their own concern.
    pub fn nearest(&self, index: usize, wanted: impl Fn(usize) -> bool) -> BTreeSet<usize> {
        let mut found = BTreeSet::new();
        let mut seen = BTreeSet::from([index]);
        let mut open = vec![index];
        while let Some(at) = open.pop() {
            for &next in self.needs.get(&at).into_iter().flatten() {
                if !seen.insert(next) {
                    continue;
                }
                match wanted(next) {
                    true => drop(found.insert(next)),
                    false => open.push(next),
                }
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_found_behind_hosts_without_any() {
        let needs = [(0, vec![1, 4]), (1, vec![2, 0]), (2, vec![3]), (4, vec![])];
        let needs = needs.map(|(from, to)| (from, to.into_iter().collect())).into();
        let linkage = Linkage { needs, native: BTreeSet::new() };
        assert_eq!(linkage.nearest(0, |at| at == 2 || at == 3), BTreeSet::from([2]));
        assert_eq!(linkage.nearest(0, |_| true), BTreeSet::from([1, 4]));
        assert!(linkage.nearest(4, |_| true).is_empty());
    }
}
