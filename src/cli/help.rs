//! Command groups, examples and further sections for the help, manual pages and completions.

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Arg, Command};
use clap_mangen::roff::{Roff, bold, roman};
use rockpack_distribution::Table;
use rockpack_plan::config::Scheme;

use super::about;

/// The groups of commands: heading, commands in the order of the help, and manual pages of other programs.
const GROUPS: &[(&str, &str, &str)] = &[
    ("Package", "build plan config discover fetch split recombine wheel distro", "deb(5) rpm(8)"),
    ("Inspect and verify", "inspect extract verify report", "dpkg-deb(1) rpm(8) readelf(1)"),
    ("Publish", "repo", "apt(8) sources.list(5) dnf(8) zypper(8) gpg(1)"),
    ("Install", "gpu thin", "apt(8) dnf(8) zypper(8)"),
    ("About rockpack", "explain man completions", "man(1) bash(1) fish(1) zsh(1)"),
];

/// The examples of each command, in the layout of the help. The name of the command comes first.
const EXAMPLES: &str = include_str!("examples.txt");

fn examples(command: &str) -> &'static str {
    let mut sections = EXAMPLES.split("\n\n").filter_map(|section| section.split_once('\n'));
    sections.find(|(name, _)| *name == command).map_or("", |(_, text)| text.trim_end())
}

/// Adds the groups of commands to the help, and examples to the long help.
pub(super) fn with_groups_and_examples(command: Command) -> Command {
    let styles = command.get_styles().clone();
    let (header, literal) = (styles.get_header(), styles.get_literal());
    let list = command.clone().help_template("{subcommands}").render_help().ansi().to_string();
    let groups = GROUPS.iter().fold(list, |list, (heading, commands, _)| {
        let first = commands.split(' ').next().unwrap_or_default();
        let line = format!("  {literal}{first}{literal:#}");
        list.replacen(&line, &format!("\n{header}{heading}:{header:#}\n{line}"), 1)
    });
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{groups}\n\
         {header}Options:{header:#}\n{{options}}{{after-help}}"
    );
    let text = |name: &str| format!("{header}Examples:{header:#}\n{}", examples(name));
    command.help_template(template).after_long_help(text("rockpack")).mut_subcommands(|below| {
        let own = text(below.get_name());
        below.mut_subcommands(|inner| inner.after_long_help(own.clone())).after_long_help(own)
    })
}

/// The sections that follow the options in a manual page, such as `rockpack-build`.
pub(super) fn manual_sections(page: &str) -> Roff {
    let command = page.split('-').nth(1).unwrap_or(page);
    let mut files = rows(include_str!("../../docs/reference/files.md"));
    files.retain(|row| page == "rockpack" || row.last().is_some_and(|it| has_word(it, command)));
    // Only commands that accept addresses read AWS profiles. Build-time variables are on no page.
    let takes_addresses = files.iter().any(|row| row.concat().contains("~/.aws"));
    let end = if takes_addresses { "\n## When rockpack is compiled" } else { "\n## Object stores" };
    let variables = include_str!("../../docs/reference/environment.md").split(end).next();
    let mut roff = Roff::new();
    for (title, rows) in [
        ("EXIT STATUS", rows(include_str!("../../docs/reference/exit-codes.md"))),
        ("ENVIRONMENT", rows(variables.unwrap_or_default())),
        ("FILES", files),
    ] {
        if !rows.is_empty() {
            roff.control("SH", [title]);
        }
        for row in rows {
            if let [name, text, ..] = row[..] {
                roff.control("TP", []).text([bold(name.replace('`', ""))]).text([roman(text)]);
            }
        }
    }
    roff.control("SH", ["EXAMPLES"]).control("EX", []).text([roman(examples(command))]);
    let is_own = |it: &&(&str, &str, &str)| has_word(it.1, command);
    let groups = || GROUPS.iter().filter(|it| command == "rockpack" || is_own(it));
    let own = groups().flat_map(|it| it.1.split(' ')).map(|name| format!("rockpack-{name}"));
    let pages = ["rockpack".to_owned()].into_iter().chain(own).filter(|it| it != page);
    let programs = groups().filter(is_own).flat_map(|it| it.2.split(' ')).map(str::to_owned);
    let pages: Vec<String> = pages.map(|it| it + "(1)").chain(programs).collect();
    roff.control("EE", []).control("SH", ["SEE ALSO"]).text([roman(pages.join(", "))]);
    roff
}

/// The rows of the tables of a page in Markdown, as cells. Header rows begin with a lower-case letter and are skipped.
fn rows(page: &str) -> Vec<Vec<&str>> {
    let lines = page.lines().filter_map(|line| line.strip_prefix("| "));
    let bodies = lines.filter(|line| !line.starts_with(|c: char| c.is_ascii_lowercase()));
    bodies.map(|line| line.trim_end_matches([' ', '|']).split(" | ").collect()).collect()
}

fn has_word(text: &str, word: &str) -> bool {
    text.split(|c: char| !c.is_ascii_lowercase()).any(|it| it == word)
}

/// Adds the values that completions offer: codes of `explain`, distributions and naming schemes. The parser also
/// accepts other values there, such as names and paths.
pub(super) fn with_completion_values(command: Command) -> Command {
    let offered = |argument: Arg| {
        let values: Vec<PossibleValue> = match argument.get_id().as_str() {
            "codes" => about::code_values().collect(),
            // `rpm` is the generic table of all rpm distributions.
            "distro" => Table::names().filter(|it| *it != "rpm").map(PossibleValue::new).collect(),
            "scheme" => Scheme::names().map(PossibleValue::new).collect(),
            _ => return argument,
        };
        argument.value_parser(PossibleValuesParser::new(values))
    };
    command.mut_args(offered).mut_subcommands(with_completion_values)
}

#[cfg(test)]
mod tests {
    use super::super::Arguments;
    use super::*;
    use clap::CommandFactory;

    fn commands() -> Vec<String> {
        let command = Arguments::command();
        command.get_subcommands().map(|it| it.get_name().to_owned()).collect()
    }

    #[test]
    fn each_command_is_in_one_group_and_in_its_order() {
        let grouped: Vec<&str> =
            GROUPS.iter().flat_map(|(_, commands, _)| commands.split(' ')).collect();
        assert_eq!(grouped, commands());
    }

    #[test]
    fn each_command_has_examples_that_its_parser_takes() {
        let sections: Vec<_> =
            EXAMPLES.split("\n\n").map(|it| it.split_once('\n').unwrap()).collect();
        let mut named: Vec<&str> = sections.iter().map(|(name, _)| *name).collect();
        assert_eq!(named.remove(0), "rockpack");
        assert_eq!(named, commands());
        for (name, text) in sections {
            let calls: Vec<&str> = text.lines().filter(|it| it.starts_with("    ")).collect();
            assert!(!calls.is_empty() && text.starts_with("  "), "{name}");
            for call in calls {
                // Longer lines would be cut in two by the help.
                assert!(call.len() < 100, "{call}");
                let (_, words) = call.split_once("rockpack ").unwrap();
                let words = words.split(['>', ')']).next().unwrap().split_whitespace();
                let words: Vec<&str> = ["rockpack"].into_iter().chain(words).collect();
                let parsed = Arguments::command().try_get_matches_from(&words);
                parsed.unwrap_or_else(|error| panic!("{call}: {error}"));
            }
        }
    }
}
