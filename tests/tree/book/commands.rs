//! The page of commands lists those of the program, and documents call commands with existing options.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use support::documents::{code_blocks, markdown, same};
use support::program::rockpack;
use support::tools;

use super::WRITER;

const PAGE: &str = "docs/reference/commands.md";

const HEAD: &str = "\
# Commands

`rockpack COMMAND --help` prints everything about a command, `rockpack COMMAND -h` a shorter form.
`rockpack man DIR` writes manual pages. In the book that `.ci/book` builds, this page continues with the
`--help` of every command. `rockpack -h` prints:
";

/// The help of the program, or of one of its commands.
fn help(command: &[&str]) -> String {
    tools::succeed(rockpack().args(command).arg("--help"))
}

/// The names of commands in a help text: between the usage and the options, in groups or not.
fn commands_of(help: &str) -> Vec<&str> {
    let (_, below) = help.split_once("\nUsage: ").unwrap();
    let (lists, _) = below.split_once("\nOptions:\n").unwrap();
    let lines = lists.lines().filter_map(|line| line.strip_prefix("  "));
    let named = lines.filter(|line| line.starts_with(|c: char| c.is_ascii_lowercase()));
    named.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help").collect()
}

/// The help of each command, by its words, starting with the program's own.
fn all_help() -> Vec<(String, String)> {
    let top = help(&[]);
    let mut all = vec![(String::new(), top.clone())];
    for command in commands_of(&top) {
        let text = help(&[command]);
        let below: Vec<String> = commands_of(&text).into_iter().map(str::to_owned).collect();
        all.push((command.to_owned(), text));
        for name in below {
            all.push((format!("{command} {name}"), help(&[command, &name])));
        }
    }
    all
}

/// The options in a help text.
fn options(help: &str) -> BTreeSet<String> {
    let is_name = |c: char| c.is_ascii_lowercase() || c == '-' || c.is_ascii_digit();
    let words = help.split(|c| !is_name(c)).filter(|word| word.starts_with("--"));
    words.map(str::to_owned).collect()
}

/// The words of each `rockpack` call in a script, with its arguments.
fn calls(script: &str) -> Vec<Vec<String>> {
    let script = script.replace("\\\n", " ");
    let parts = script.split(['\n', '|', ';', '&', '>', '(', '#', '\'']);
    let calls = parts.filter_map(|part| {
        let words: Vec<&str> = part.split_whitespace().collect();
        let at =
            words.iter().position(|word| *word == "rockpack" || word.ends_with("/rockpack"))?;
        Some(words[at + 1..].iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    });
    calls.filter(|words| !words.is_empty()).collect()
}

/// The fault of a call, if any: a command or an option that the program lacks.
fn fault(call: &[String], known: &BTreeMap<String, BTreeSet<String>>) -> Option<String> {
    let names: Vec<&str> =
        call.iter().filter(|word| !word.starts_with('-')).map(String::as_str).take(2).collect();
    let command = [names.join(" "), names.first().copied().unwrap_or_default().to_owned()];
    let has = command.iter().find_map(|name| known.get(name));
    let Some(has) = has.or_else(|| names.is_empty().then(|| &known[""])) else {
        return Some(format!("there is no command {names:?}"));
    };
    let name = |word: &str| word.split(['=', '`', ')', ',']).next().unwrap_or_default().to_owned();
    let given = call.iter().filter(|word| word.starts_with("--")).map(|word| name(word));
    let unknown = given.into_iter().find(|option| !has.contains(option));
    unknown.map(|option| format!("{names:?} has no {option}"))
}

#[test]
fn the_page_of_commands_is_that_of_the_program() {
    let help = tools::succeed(rockpack().arg("-h"));
    let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
    let text = lines.join("\n");
    same(PAGE, &format!("{HEAD}\n```text\n{}\n```\n", text.trim_end()), WRITER);
}

#[test]
fn documents_call_commands_that_exist() {
    let known: BTreeMap<String, BTreeSet<String>> =
        all_help().into_iter().map(|(command, help)| (command, options(&help))).collect();
    assert!(known.len() > 13, "{known:?}");
    let mut documents = markdown("docs");
    documents.extend(["README.md", "CONTRIBUTING.md"].map(PathBuf::from));
    let (mut count, mut wrong) = (0, Vec::new());
    for document in documents {
        for block in code_blocks(&document) {
            if !["sh", "console", "yaml"].contains(&&*block.language) {
                continue;
            }
            for call in calls(&block.text) {
                count += 1;
                let fault = fault(&call, &known);
                wrong.extend(fault.map(|fault| format!("{}: {fault}", document.display())));
            }
        }
    }
    assert!(count > 60, "{count}");
    assert!(wrong.is_empty(), "{wrong:#?}");
    // This test can fail.
    for script in ["rockpack biuld --out x", "$ rockpack build --outt x", "x | rockpack verfy y"] {
        let faults: Vec<_> = calls(script).iter().map(|call| fault(call, &known)).collect();
        assert!(faults.iter().all(Option::is_some) && faults.len() == 1, "{script}");
    }
}
