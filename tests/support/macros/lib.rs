//! `#[test]` of the test programs: registers a function with their harness (`support::harness`).

#![allow(clippy::unwrap_used, reason = "what is parsed stands here")]

use proc_macro::{Delimiter, Group, TokenStream, TokenTree};

/// Replaces the standard attribute, which registers nothing without cargo's harness. `#[ignore = "reason"]`
/// keeps its meaning.
#[proc_macro_attribute]
pub fn test(_: TokenStream, function: TokenStream) -> TokenStream {
    let (function, ignored) = without_ignore(function);
    let Some(name) = name(&function) else {
        return "compile_error!(\"#[test] belongs to a function\");".parse().unwrap();
    };
    let ignored = ignored.map_or("None".to_owned(), |reason| format!("Some({reason})"));
    let registered = format!(
        "::support::harness::submit! {{ ::support::harness::Test {{ \
         path: concat!(module_path!(), \"::\", stringify!({name})), ignored: {ignored}, \
         run: {name} }} }}"
    );
    let mut all = function;
    all.extend(registered.parse::<TokenStream>().unwrap());
    all
}

/// The name after `fn`.
fn name(function: &TokenStream) -> Option<String> {
    let mut tokens = function.clone().into_iter();
    tokens.find(|token| matches!(token, TokenTree::Ident(word) if word.to_string() == "fn"))?;
    tokens.next().map(|name| name.to_string())
}

/// A function without its `#[ignore = "reason"]`, and the reason as a literal.
fn without_ignore(function: TokenStream) -> (TokenStream, Option<String>) {
    let mut ignored = None;
    let mut kept: Vec<TokenTree> = Vec::new();
    for token in function {
        if let TokenTree::Group(group) = &token
            && let Some(reason) = reason(group)
        {
            // Removes the `#` before it.
            kept.pop();
            ignored = Some(reason);
        } else {
            kept.push(token);
        }
    }
    (kept.into_iter().collect(), ignored)
}

fn reason(attribute: &Group) -> Option<String> {
    let mut words = attribute.stream().into_iter();
    let is_ignore = attribute.delimiter() == Delimiter::Bracket
        && words.next().is_some_and(|word| word.to_string() == "ignore");
    is_ignore.then(|| words.nth(1).map_or("\"\"".to_owned(), |reason| reason.to_string()))
}
