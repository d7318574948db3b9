//! Relations: their syntax, and the configuration's additions and removals.

use rockpack_archive::deb::{check_relations, compare_versions};
use rockpack_core::error::{Error, Faults, Kind, Result};

use crate::config::{AddedRelations, Config, RuntimeRelation};
use crate::naming::Naming;
use rockpack_package::{
    Comparison, Format, Package, Relation, RelationKind, Version, deb_relation,
};

pub(super) fn need_version<'a>(
    relations: impl Iterator<Item = &'a Relation>,
    name: &str,
    version: &str,
) -> bool {
    let signs = [Comparison::Equal, Comparison::GreaterEqual];
    let depends = relations.filter(|r| r.kind == RelationKind::Depends && r.name == name);
    let mut bounds = depends.filter_map(|relation| relation.version.as_ref());
    bounds.any(|(sign, bound)| signs.contains(sign) && bound == version)
}

pub(super) fn parse(format: Format, kind: RelationKind, text: &str) -> Result<Relation> {
    match format {
        Format::Deb => parse_deb(kind, text),
        Format::Rpm => rpm_relation(kind, text.trim())
            .ok_or_else(|| refused(text, "", "hip-runtime-amd >= 7.1")),
    }
}

/// Reads `name`, `name (>= 1.2)` or `a | b` as a relation of `kind`, as dpkg and apt do.
pub(super) fn parse_deb(kind: RelationKind, text: &str) -> Result<Relation> {
    let refused = |why: &str| refused(text, why, "libamdhip64-7 (>= 7.1)");
    if text.trim().is_empty() || text.contains(|c: char| c.is_control() || c == ',') {
        return Err(refused(""));
    }
    check_relations(kind.as_str(), text.trim()).map_err(|why| refused(&format!(": {why}")))?;
    Ok(deb_relation(kind, text))
}

/// Reads `name`, `name >= 1.2` or a boolean `(a or b)` as a relation of `kind`.
fn rpm_relation(kind: RelationKind, text: &str) -> Option<Relation> {
    if text.contains(char::is_control) {
        return None;
    }
    if text.starts_with('(') {
        return text.ends_with(')').then(|| plain(kind, text));
    }
    let Some((name, bound)) = text.split_once(char::is_whitespace) else {
        return check_name(text).map(|name| plain(kind, name));
    };
    let name = check_name(name)?;
    let (comparison, version) = Comparison::split(bound.trim(), Format::Rpm)?;
    let version = version.trim();
    let is_legal = version.chars().all(|c| c.is_ascii_alphanumeric() || ".+~:-_^".contains(c));
    (is_legal && !version.is_empty())
        .then(|| Relation { version: Some((comparison, version.to_owned())), ..plain(kind, name) })
}

/// The relations of a `.deb`, sorted, without dependencies that others on the same name imply: a bounded one implies
/// an unbounded one, the highest lower bound implies the lower ones, and an exact version implies the bounds that it
/// satisfies. Alternatives (`a | b`) stay.
pub(super) fn simplified_deb(mut relations: Vec<Relation>) -> Vec<Relation> {
    relations.sort();
    relations.dedup();
    let by_name = relations.chunk_by(|one, next| (one.kind, &one.name) == (next.kind, &next.name));
    let left = by_name.flat_map(|same| {
        same.iter().filter(move |weak| {
            weak.kind != RelationKind::Depends || !same.iter().any(|other| implies(other, weak))
        })
    });
    left.cloned().collect()
}

/// Whether `strong` implies `weak`, which has its kind and name, and is stricter.
fn implies(strong: &Relation, weak: &Relation) -> bool {
    match (&strong.version, &weak.version) {
        (Some(_), None) => true,
        (Some((Comparison::Equal, version)), Some((sign, bound))) if *sign != Comparison::Equal => {
            sign.holds(compare_versions(version, bound))
        }
        (Some((strong, above)), Some((weak, below))) => {
            let ranks = lower_bound_rank(*strong).zip(lower_bound_rank(*weak));
            ranks.is_some_and(|(strong, weak)| {
                let order = compare_versions(above, below).then(strong.cmp(&weak));
                // If two spellings mean the same version, the first in order stays.
                order.then_with(|| below.cmp(above)).is_gt()
            })
        }
        (None, _) => false,
    }
}

/// The rank of a lower bound's comparison, the stricter the higher.
fn lower_bound_rank(comparison: Comparison) -> Option<u8> {
    match comparison {
        Comparison::GreaterEqual => Some(0),
        Comparison::Greater => Some(1),
        _ => None,
    }
}

pub(super) fn plain(kind: RelationKind, name: impl Into<String>) -> Relation {
    Relation { kind, name: name.into(), version: None }
}

/// Accepts package names, capabilities such as `librocblas.so.5()(64bit)`, and patterns of hardware such as
/// `modalias(pci:v00001002d*)`.
fn check_name(name: &str) -> Option<&str> {
    let more = if name.starts_with("modalias(") { "*?[]" } else { "" };
    let is_sign = |c| "+-._:/()~".contains(c) || more.contains(c);
    let is_legal = name.chars().all(|c| c.is_ascii_alphanumeric() || is_sign(c));
    let starts = name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '/');
    (starts && is_legal).then_some(name)
}

fn refused(text: &str, why: &str, example: &str) -> Error {
    let message = format!("`{}` is not a valid relation{why}", text.escape_debug());
    Error::new(Kind::Config, message).hint(format!("write it as in `{example}`"))
}

/// The relation to the HIP runtime in `format`: the configuration's, or else the scheme's.
pub(super) fn runtime(
    config: &Config,
    naming: &Naming,
    format: Format,
) -> Result<Option<Relation>> {
    let keys = ["runtime_relation", format.as_str()];
    let own = &config.keys.runtime_relation;
    if let Some(text) = format.select(&own.deb, &own.rpm) {
        let relation = parse(format, RelationKind::Depends, text);
        return relation.map(Some).map_err(|error| config.located(&keys, &error));
    }
    let scheme = &naming.scheme;
    let RuntimeRelation { deb, rpm } = &scheme.runtime_relation;
    let Some(text) = format.select(deb, rpm) else { return Ok(None) };
    let relation = parse(format, RelationKind::Depends, &naming.set_text(text)?);
    relation.map(Some).map_err(|error| scheme.located(&keys, &error))
}

#[derive(Debug)]
pub(super) struct PackageRelations {
    pub package: String,
    pub deb: RelationChange,
    pub rpm: RelationChange,
}

impl PackageRelations {
    pub fn of(&self, format: Format) -> &RelationChange {
        format.select(&self.deb, &self.rpm)
    }

    /// Changes the discovered and decided relations of `package`.
    ///
    /// `remove` removes relations by name. An added relation with a version replaces those of its kind on the same
    /// name. One without a version is added to them; in a `.deb`, the others imply it.
    pub fn apply<F>(&self, config: &Config, package: &mut Package<F>, faults: &mut Faults) {
        if let Some(deb) = &mut package.deb {
            self.change(config, Format::Deb, &mut [&mut deb.relations], faults);
        }
        if let Some(rpm) = &mut package.rpm {
            let lists = &mut [&mut rpm.relations, &mut rpm.discovered];
            self.change(config, Format::Rpm, lists, faults);
        }
    }

    fn change(
        &self,
        config: &Config,
        format: Format,
        lists: &mut [&mut Vec<Relation>],
        faults: &mut Faults,
    ) {
        let RelationChange { added, removed, .. } = self.of(format);
        for (index, name) in removed.iter().enumerate() {
            // An added relation may equal an existing one: then it stays, and the name was no typo.
            let has_any = lists.iter().any(|list| list.iter().any(|known| known.name == *name));
            drop_all(lists, |relation| relation.name == *name && !added.contains(relation));
            if !has_any {
                let index = index.to_string();
                let keys = ["relations", &self.package, format.as_str(), "remove", &index];
                let message = format!("the package has no relation to `{name}`");
                let hint = "name it as `rockpack plan --details` lists it, without its version";
                faults.add(config.fault(&keys, message).hint(hint));
            }
        }
        drop_all(lists, |relation| {
            let mut bounded = added.iter().filter(|new| new.version.is_some());
            !added.contains(relation)
                && bounded.any(|new| (new.kind, &new.name) == (relation.kind, &relation.name))
        });
    }
}

#[derive(Debug)]
pub(super) struct RelationChange {
    pub added: Vec<Relation>,
    /// The added relations whose text does not contain `{version}`.
    pub literal: Vec<Relation>,
    pub removed: Vec<String>,
}

/// The relations that the configuration adds and removes, also for formats that are not built. In their texts,
/// `{version}` is the version and release of the set and `{series}` its `<major>.<minor>`.
pub(super) fn configured(config: &Config, version: &Version) -> Result<Vec<PackageRelations>> {
    let mut faults = Faults::default();
    let mut all = Vec::new();
    for (package, relations) in &config.keys.relations.0 {
        let mut change =
            |format| configured_change(config, version, package, relations, format, &mut faults);
        all.push(PackageRelations {
            package: package.clone(),
            deb: change(Format::Deb),
            rpm: change(Format::Rpm),
        });
    }
    faults.finish().map(|()| all)
}

fn configured_change(
    config: &Config,
    version: &Version,
    package: &str,
    relations: &AddedRelations,
    format: Format,
    faults: &mut Faults,
) -> RelationChange {
    let fields = format.select(relations.deb.added(), relations.rpm.added());
    let removed = format.select(&relations.deb.remove, &relations.rpm.remove);
    let (mut added, mut literal) = (Vec::new(), Vec::new());
    for (field, kind, texts) in fields {
        for (index, text) in texts.iter().enumerate() {
            let keys = ["relations", package, format.as_str(), field, &index.to_string()];
            let mut filled_in = text.replace("{version}", &version.full(format));
            if let Some(series) = version.series() {
                filled_in = filled_in.replace("{series}", &series);
            }
            let relation = parse(format, kind, &filled_in);
            let relation = faults.keep(relation.map_err(|e| config.located(&keys, &e)));
            if !text.contains("{version}") {
                literal.extend(relation.clone());
            }
            added.extend(relation);
        }
    }
    RelationChange { added, literal, removed: removed.clone() }
}

fn drop_all(lists: &mut [&mut Vec<Relation>], unwanted: impl Fn(&Relation) -> bool) {
    lists.iter_mut().for_each(|list| list.retain(|relation| !unwanted(relation)));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(relation: Result<Relation>) -> Option<(String, Option<(Comparison, String)>)> {
        relation.ok().map(|r| (r.name, r.version))
    }

    #[test]
    fn dependencies_that_others_imply_go() {
        let cases: [(&[&str], &[&str]); 8] = [
            (&["libc6", "libc6 (>= 2.34)", "libc6 (>= 2.4)"], &["libc6 (>= 2.34)"]),
            (&["a (>= 2)", "a (>> 2)", "a (>= 1:0)"], &["a (>= 1:0)"]),
            (&["a (>= 2)", "a (>> 2)"], &["a (>> 2)"]),
            (&["a (>= 2.0)", "a (>= 2.00)"], &["a (>= 2.0)"]),
            (&["a (<< 3)", "a (>= 2)", "a"], &["a (<< 3)", "a (>= 2)"]),
            (&["a (= 2)", "a (<< 3)", "a (>= 2)"], &["a (= 2)"]),
            (&["a (= 2)", "a (<< 2)", "a (>= 3)"], &["a (<< 2)", "a (= 2)", "a (>= 3)"]),
            (&["a", "a | b", "b"], &["a", "a | b", "b"]),
        ];
        for (texts, kept) in cases {
            assert_eq!(simplified_deb(deb_dependencies(texts)), deb_dependencies(kept));
        }
        let mut other = parse_deb(RelationKind::Suggests, "libc6").unwrap();
        let bound = parse_deb(RelationKind::Depends, "libc6 (>= 2)").unwrap();
        assert_eq!(simplified_deb(vec![other.clone(), bound.clone()]).len(), 2);
        other.kind = RelationKind::Depends;
        assert_eq!(simplified_deb(vec![other, bound.clone()]), [bound]);
    }

    fn deb_dependencies(texts: &[&str]) -> Vec<Relation> {
        texts.iter().map(|text| parse_deb(RelationKind::Depends, text).unwrap()).collect()
    }

    #[test]
    fn relations_are_read_in_each_formats_syntax() {
        assert_eq!(shown_deb("hip"), Some(("hip".to_owned(), None)));
        let greater = bound(Comparison::GreaterEqual, "7.1");
        assert_eq!(shown_deb("hip (>= 7.1)"), Some(("hip".to_owned(), greater.clone())));
        assert_eq!(shown_deb("a (<< 2) | b"), Some(("a (<< 2) | b".to_owned(), None)));
        assert_eq!(shown_rpm("hip >= 7.1"), Some(("hip".to_owned(), greater)));
        assert_eq!(shown_rpm("x < 2"), Some(("x".to_owned(), bound(Comparison::Less, "2"))));
        assert_eq!(shown_rpm("libx.so.5()(64bit)"), Some(("libx.so.5()(64bit)".to_owned(), None)));
        assert_eq!(shown_rpm("modalias(a:pci:v*d00007[4]*)").map(|it| it.1), Some(None));
        assert_eq!(shown_rpm("a*"), None);
        assert_eq!(shown_rpm("(a or b)"), Some(("(a or b)".to_owned(), None)));
        for text in ["", "a b", "a (7)", "a (>= 7", "a, b", "a\nDepends: b", "a | ", "A|b,c"] {
            assert_eq!(shown_deb(text), None, "{text}");
        }
        for text in ["a [amd64]", "a/b", "a (= x)", "a (>= 1) | b <!x>", "a:", "a^"] {
            assert_eq!(shown_deb(text), None, "{text}");
        }
        let equal = bound(Comparison::Equal, "1");
        assert_eq!(shown_deb(" a:any ( = 1 ) "), Some(("a:any".to_owned(), equal)));
        assert!(parse_deb(RelationKind::Breaks, "a | b").is_err());
        for text in ["", "a b", "a >=", "(a or b", "a\nb"] {
            assert_eq!(shown_rpm(text), None, "{text}");
        }
    }

    fn shown_deb(text: &str) -> Option<(String, Option<(Comparison, String)>)> {
        shown(parse_deb(RelationKind::Depends, text))
    }

    fn shown_rpm(text: &str) -> Option<(String, Option<(Comparison, String)>)> {
        shown(parse(Format::Rpm, RelationKind::Depends, text))
    }

    fn bound(sign: Comparison, version: &str) -> Option<(Comparison, String)> {
        Some((sign, version.to_owned()))
    }
}
