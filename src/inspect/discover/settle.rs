//! Groups and primary shard for those who configured none.

use std::path::{Path, PathBuf};

use super::fallback::is_processor;
use super::{Discovery, Proposal, propose};
use rockpack_plan::config::Grouping;

/// The file name in the command that saves a proposed configuration.
const FILE: &str = "packaging.toml";

/// The groups and primary shard that [`propose`] proposes for `artifacts`, with a note on the decision and
/// the command that saves it. If nothing can be proposed, each arch is a group.
pub fn settle(artifacts: &[PathBuf], found: &Discovery) -> (Grouping, Option<String>) {
    // Without device code there is nothing to group.
    if found.architectures.is_empty() {
        return (Grouping::default(), None);
    }
    let Ok(proposal) = propose(found) else {
        let none = "note: no configuration, and none to propose: each architecture is a group";
        return (Grouping::default(), Some(none.to_owned()));
    };
    let said = said(&proposal, artifacts);
    let primary_shard = Some(proposal.primary_shard.name);
    (Grouping { groups: proposal.groups, primary_shard }, Some(said))
}

fn said(proposal: &Proposal, artifacts: &[PathBuf]) -> String {
    let groups: Vec<&str> = proposal.groups.iter().map(|group| group.name.as_str()).collect();
    // Others that are in no group get packages of their own.
    let left: Vec<&str> = proposal
        .left_out
        .iter()
        .map(|left| &left.arch)
        .filter(|arch| is_processor(arch))
        .map(|arch| arch.as_str())
        .collect();
    let left =
        if left.is_empty() { String::new() } else { format!(", without {}", left.join(", ")) };
    let artifacts: Vec<String> = artifacts.iter().map(|path| quoted(path)).collect();
    format!(
        "note: no configuration: the groups are {}{left}, the primary shard is {}; \
         `rockpack discover {} --propose {FILE}` saves that as one",
        groups.join(", "),
        proposal.primary_shard.name,
        artifacts.join(" "),
    )
}

/// A path as a shell takes it for one word.
fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    let is_plain = text.chars().all(|c| c.is_ascii_alphanumeric() || "/._+~-".contains(c));
    if is_plain && !text.starts_with(['-', '~']) {
        text.into_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inspect::discover::fixture::discovery;

    fn settled(archs: &[(&str, bool)], artifacts: &[&str]) -> (Grouping, Option<String>) {
        let artifacts: Vec<PathBuf> = artifacts.iter().map(PathBuf::from).collect();
        settle(&artifacts, &discovery(archs))
    }

    #[test]
    fn groups_and_shard_are_the_proposed_ones() {
        let archs = [("gfx906", true), ("gfx1100", false), ("gfx11-generic", false)];
        let (grouping, said) = settled(&archs, &["a b", "it's"]);
        assert_eq!(grouping.groups[0].archs, ["gfx1100".parse().unwrap()]);
        assert_eq!((grouping.groups.len(), grouping.primary_shard.as_deref()), (1, Some("one")));
        let expected = "note: no configuration: the groups are gfx110X, without gfx906, the primary \
                        shard is one; `rockpack discover 'a b' 'it'\\''s' --propose packaging.toml` \
                        saves that as one";
        assert_eq!(said.as_deref(), Some(expected));
    }

    #[test]
    fn what_cannot_be_grouped_stays_as_it_is() {
        let (grouping, said) = settled(&[("gfx906", true)], &["a"]);
        assert!(said.unwrap().contains("none to propose: each architecture is a group"));
        assert_eq!(grouping, Grouping::default());
        assert_eq!(settled(&[], &["a"]).1, None);
    }
}
