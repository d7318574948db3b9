//! Commands about rockpack itself: `explain` prints the documentation of a code, a word of the glossary or a GPU;
//! `completions` prints completion scripts for shells; `man` writes a manual page for each command.

use std::path::PathBuf;

use clap::builder::PossibleValue;
use clap::{Args, Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;
use rockpack_core::content::Content;
use rockpack_core::error::{Error, Kind, Result};
use rockpack_files::{make_folder, make_folders, new_file};
use rockpack_hardware::names_with_prefix;
use rockpack_report::Progress;
use rockpack_report::words::counted;

use super::gpu::{self, NamedTarget};
use super::help;
use super::progress::Terminal;
use crate::settings::output_path;

/// Explain a finding (R070), a check of verify (V031), a word of the glossary or a GPU.
#[derive(Debug, Args)]
pub(super) struct ExplainArguments {
    /// Codes or their names, words of the glossary, or GPUs; without any, all codes are listed
    #[arg(value_name = "CODE")]
    codes: Vec<String>,
}

pub(super) fn explain(arguments: &ExplainArguments, terminal: &Terminal) -> Result<()> {
    let texts: Vec<String> =
        arguments.codes.iter().map(|it| explain_word(it)).collect::<Result<_>>()?;
    let text: String = if texts.is_empty() {
        all_explanations().map(|it| text_line!("{} {}", it.code, it.name)).collect()
    } else {
        texts.join("\n")
    };
    terminal.print(&text)
}

/// The explanation of a code, a word of the glossary, or a GPU.
fn explain_word(word: &str) -> Result<String> {
    if let Some(it) = find(word) {
        return Ok(explanation_text(&it));
    }
    if let Some(entry) = glossary_entry(word) {
        return Ok(entry);
    }
    let found = gpu::look_up(word);
    if found.is_empty() {
        return Err(unknown_word(word));
    }
    Ok(found.iter().map(NamedTarget::text).collect())
}

/// The paragraph of the glossary that has `word` in bold type.
fn glossary_entry(word: &str) -> Option<String> {
    let mut entries = include_str!("../../docs/glossary.md").split("\n\n");
    let entry = entries.find(|entry| {
        let bold = entry.split("**").skip(1).step_by(2);
        bold.flat_map(|words| words.split('\n')).any(|own| own.eq_ignore_ascii_case(word))
    })?;
    Some(entry.replace("**", "").lines().map(|line| text_line!("{line}")).collect())
}

fn unknown_word(code: &str) -> Error {
    if !names_with_prefix(code).is_empty() {
        return gpu::unknown_word(code);
    }
    let error = Error::new(
        Kind::Usage,
        format!("no finding, check, GPU or word of the glossary is called `{code}`"),
    );
    error.hint(match most_similar(code) {
        Some(nearest) => format!("did you mean `{nearest}`? `rockpack explain` lists all codes"),
        None => "`rockpack explain` lists all codes".to_owned(),
    })
}

/// Lowest Jaro-Winkler similarity at which a word counts as a typo of a code or name.
const TYPO_SIMILARITY: f64 = 0.7;

/// The documentation of a code, from its section on a page (`## R070 name-of-the-code`) up to the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Explanation {
    code: &'static str,
    name: &'static str,
    /// The text, in Markdown.
    pub text: &'static str,
}

/// All explanations, in the order of the pages.
fn all_explanations() -> impl Iterator<Item = Explanation> {
    let findings = include_str!("../../docs/reference/findings.md");
    let checks = include_str!("../../docs/reference/checks.md");
    [findings, checks].into_iter().flat_map(sections)
}

/// Finds the explanation of a code or name; ignores case.
pub(super) fn find(asked: &str) -> Option<Explanation> {
    all_explanations()
        .find(|it| [it.code, it.name].iter().any(|own| own.eq_ignore_ascii_case(asked)))
}

/// The code or name most similar to `asked`, if any is similar.
fn most_similar(asked: &str) -> Option<&'static str> {
    let asked = asked.to_lowercase();
    let names = all_explanations().flat_map(|it| [it.code, it.name]);
    let alike = names.map(|own| (strsim::jaro_winkler(&own.to_lowercase(), &asked), own));
    let best = alike.max_by(|(a, _), (b, _)| a.total_cmp(b));
    best.filter(|(likeness, _)| *likeness >= TYPO_SIMILARITY).map(|(_, own)| own)
}

fn sections(page: &'static str) -> impl Iterator<Item = Explanation> {
    page.split("\n## ").skip(1).filter_map(|section| {
        let (title, text) = section.split_once('\n')?;
        let (code, name) = title.trim().split_once(' ')?;
        Some(Explanation { code, name, text: text.trim() })
    })
}

/// The title and the text; code blocks are indented instead of fenced.
fn explanation_text(it: &Explanation) -> String {
    let mut text = text_line!("{} {}", it.code, it.name);
    text.push('\n');
    let mut is_example = false;
    for line in it.text.lines() {
        if line.starts_with("```") {
            is_example = !is_example;
            continue;
        }
        let indent = if is_example && !line.is_empty() { "    " } else { "" };
        text.push_str(&text_line!("{indent}{line}"));
    }
    text
}

/// The codes with their names, for completions.
pub(super) fn code_values() -> impl Iterator<Item = PossibleValue> {
    all_explanations().map(|it| PossibleValue::new(it.code).help(it.name))
}

/// Print the completion script of a shell.
///
/// Save the script for bash as /usr/share/bash-completion/completions/rockpack, that for zsh as _rockpack in a folder
/// of $fpath, and that for fish as ~/.config/fish/completions/rockpack.fish.
#[derive(Debug, Args)]
pub(super) struct CompletionsArguments {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

pub(super) fn completions(arguments: &CompletionsArguments, terminal: &Terminal) -> Result<()> {
    let mut command = help::with_completion_values(super::Arguments::command());
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, "rockpack", &mut script);
    let mut script = String::from_utf8_lossy(&script).into_owned();
    if arguments.shell == Shell::Fish {
        // clap_complete leaves out the values of arguments without a name there.
        script += "complete -c rockpack -n '__fish_rockpack_using_subcommand explain' -f \
                   -a '(rockpack explain | string replace \" \" \\t)'\n";
    }
    terminal.print(&script)
}

/// Write the manual pages of all commands into a folder.
#[derive(Debug, Args)]
pub(super) struct ManArguments {
    /// Folder for the pages; created if missing. Nothing in it is overwritten
    #[arg(value_name = "DIR", value_parser = output_path())]
    out: PathBuf,
}

pub(super) fn man(arguments: &ManArguments, terminal: &Terminal) -> Result<()> {
    let mut command = super::Arguments::command().disable_help_subcommand(true);
    // Gives each command its full name.
    command.build();
    let pages = pages(&command)?;
    let _made = make_folder(&arguments.out, "manual pages", make_folders)?;
    for (name, page) in &pages {
        new_file::write_single(&arguments.out.join(name), &Content::of_bytes(page.clone()))?;
    }
    let (count, out) = (counted(pages.len(), "manual page"), arguments.out.display());
    terminal.note(&format!("{count} in {out}; read one by `man {out}/rockpack.1`"));
    Ok(())
}

/// The page in ASCII with escapes, because troff does not detect encodings.
fn ascii_page(page: &str) -> Vec<u8> {
    let escaped = |c: char| format!("\\[u{:04X}]", u32::from(c));
    let units = page.chars().map(|c| if c.is_ascii() { c.to_string() } else { escaped(c) });
    units.collect::<String>().into_bytes()
}

/// The manual pages of a command and its subcommands, with their file names.
fn pages(command: &Command) -> Result<Vec<(String, Vec<u8>)>> {
    let mut all = Vec::new();
    // Quoted: troff would read the source as the date if the date were empty.
    let man = Man::new(command.clone())
        .date("\"\"")
        .source(concat!("rockpack ", env!("CARGO_PKG_VERSION")));
    let (name, mut page) = (man.get_filename(), Vec::new());
    let sections = help::manual_sections(name.trim_end_matches(".1"));
    let written = man.render(&mut page).and_then(|()| sections.to_writer(&mut page));
    written.map_err(|e| Error::bug("a manual page could not be rendered").cause(e))?;
    all.push((name, ascii_page(&String::from_utf8_lossy(&page))));
    for below in command.get_subcommands() {
        all.extend(pages(below)?);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_code_has_a_section() {
        let findings = rockpack_report::Code::ALL.iter().map(|code| (code.id, code.name));
        let checks = rockpack_verify::Check::ALL.iter().map(|check| (check.id(), check.name()));
        let explained: BTreeSet<_> = all_explanations().map(|it| (it.code, it.name)).collect();
        assert_eq!(explained, findings.chain(checks).collect());
    }

    #[test]
    fn codes_and_names_are_found_in_any_case_and_slips_are_named() {
        assert_eq!(find("r012").unwrap().name, "arch-not-grouped");
        assert_eq!(find("Arch-Not-Grouped").unwrap().code, "R012");
        assert_eq!(find("R12"), None);
        assert_eq!(most_similar("arch-notgrouped"), Some("arch-not-grouped"));
        assert_eq!(most_similar("LIBARY-MISSING"), Some("library-missing"));
        assert_eq!(most_similar("zzz"), None);
    }
}
