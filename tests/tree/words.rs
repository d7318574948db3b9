//! A ratchet for plain English: the share of doc comments whose first sentence lacks a subject may only fall.
//!
//! A reader meets a doc comment alone, in an editor or on a page of rustdoc. "What of it stands in no field
//! of a `.deb`." makes sense only beside the code; "The texts that a `.deb` has no control field for." makes
//! sense everywhere. The rule is rough on purpose: it counts, and does not judge a single comment.

use std::fs;

use support::program::rust_files;
use support::tools;

/// The highest share, in hundredths of a percent. Lower it when the share has fallen.
const HIGHEST: usize = 13;

/// How far the share may fall before this test asks for a lower [`HIGHEST`], and thus how far it may rise
/// again: a tenth of a percent.
const SLACK: usize = 10;

const FOLDERS: [&str; 7] =
    ["src", "crates", "runtime", "tests", "benches", "fuzz/src", "fuzz/fuzz_targets"];

/// Words that refer to a subject elsewhere.
const REFERRING: [&str; 15] = [
    "What", "Whatever", "Which", "Who", "Whoever", "Whose", "Those", "That", "Its", "Their", "It",
    "They", "None", "Neither", "Also",
];

/// Words that begin a part of a sentence, before a comma and a main clause.
const PREPOSITIONS: [&str; 30] = [
    "Above", "Among", "As", "At", "Before", "Behind", "Below", "Beside", "Besides", "Between",
    "By", "For", "From", "In", "Instead", "Into", "Like", "Of", "On", "Out", "Through", "To",
    "Under", "Where", "While", "With", "Within", "Without", "Beneath", "Beyond",
];

/// Words that follow a bare participle: "Removed with everything in it".
const AFTER_PARTICIPLE: [&str; 14] = [
    "by", "with", "if", "when", "as", "in", "on", "at", "to", "from", "for", "of", "only", "where",
];

/// Words that begin another part after a comma, and no main clause.
const NO_CLAUSE: [&str; 22] = [
    "so", "as", "and", "or", "which", "that", "with", "but", "because", "in", "if", "what", "by",
    "of", "too", "where", "while", "whose", "not", "who", "at", "for",
];

/// The sentence up to its first full stop, semicolon or colon.
fn first_sentence(text: &str) -> &str {
    let is_end = |at: &usize| matches!(text.as_bytes()[*at + 1..].first(), None | Some(b' '));
    let ends = text.match_indices(['.', ';', ':']).map(|(at, _)| at);
    &text[..ends.into_iter().find(is_end).unwrap_or(text.len())]
}

/// Tells whether a main clause follows the first comma.
fn has_main_clause(sentence: &str) -> bool {
    let after = sentence.split_once(", ").and_then(|(_, rest)| rest.split(' ').next());
    after.is_some_and(|word| !NO_CLAUSE.contains(&word))
}

/// Tells whether a doc comment opens with a fragment whose subject is elsewhere.
fn lacks_subject(comment: &str) -> bool {
    let sentence = first_sentence(comment);
    let mut words = sentence.split([' ', ',']);
    let first = words.next().unwrap_or_default();
    if REFERRING.contains(&first) {
        return true;
    }
    let is_participle = first.starts_with(char::is_uppercase)
        && first.ends_with("ed")
        && words.next().is_some_and(|word| AFTER_PARTICIPLE.contains(&word));
    (is_participle || PREPOSITIONS.contains(&first)) && !has_main_clause(sentence)
}

/// The doc comments of a source, each as one line of text.
fn doc_comments(source: &str) -> Vec<String> {
    let mut comments: Vec<String> = Vec::new();
    let mut before = None;
    for line in source.lines().map(str::trim_start) {
        let marker = ["///", "//!"].into_iter().find(|marker| line.starts_with(marker));
        if let Some(marker) = marker {
            let text = line[marker.len()..].trim();
            match comments.last_mut().filter(|_| before == Some(marker)) {
                Some(comment) => *comment = format!("{comment} {text}"),
                None => comments.push(text.to_owned()),
            }
        }
        before = marker;
    }
    comments
}

#[test]
fn the_rule_tells_fragments_from_sentences() {
    for fragment in [
        "What of it stands in no field of a `.deb`.",
        "Its content and cores are let go before the disk is waited for.",
        "Of the package that holds it.",
        "By path.",
        "Removed with everything in it unless committed.",
        "With the sum of each file, or zeros in their place.",
    ] {
        assert!(lacks_subject(fragment), "{fragment}");
    }
    for sentence in [
        "The texts that a `.deb` has no control field for.",
        "Writes one package.",
        "In a transformed file, the loader reads the marker first.",
        "Packed artifacts as input.",
        "Removed packages.",
    ] {
        assert!(!lacks_subject(sentence), "{sentence}");
    }
    let source = "//! One\n//! two.\n/// Three.\nfn x() {}\n    /// Four.\n";
    assert_eq!(doc_comments(source), ["One two.", "Three.", "Four."]);
}

#[test]
fn the_share_of_doc_comments_without_a_subject_only_falls() {
    let files = FOLDERS.iter().flat_map(|folder| rust_files(&tools::repository(folder)));
    let comments: Vec<String> =
        files.flat_map(|file| doc_comments(&fs::read_to_string(file).unwrap())).collect();
    let fragments = comments.iter().filter(|comment| lacks_subject(comment)).count();
    assert!(comments.len() > 1000, "only {} doc comments were found", comments.len());
    let share = fragments * 10_000 / comments.len();
    let told = format!("{fragments} of {} doc comments open without a subject", comments.len());
    assert!(
        share <= HIGHEST,
        "{told}: {share} of 10,000, and {HIGHEST} are allowed; begin each new doc comment with a noun \
         or verb that names the thing"
    );
    assert!(share + SLACK >= HIGHEST, "{told}: set HIGHEST to {share}, so that it stays so");
}
