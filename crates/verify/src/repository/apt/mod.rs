//! A suite of an apt repository.

mod indexes;
mod packages;

use rockpack_archive::apt_index::{Release, parse_date};
use rockpack_core::content::is_file;
use rockpack_core::error::{Error, Result};

use super::context::Context;
use crate::problem::Problem;
use rockpack_report::words::either;

/// Checks the suite `dists/<suite>`.
pub(super) fn check(context: &mut Context<'_>, suite: &str) -> Result<()> {
    let folder = format!("dists/{suite}");
    let Some(ReleaseText { file: subject, text }) = release_text(context, &folder)? else {
        return Ok(());
    };
    let release = match Release::parse(&text) {
        Ok(release) => release,
        Err(error) => {
            context.unreadable(&subject, &error);
            return Ok(());
        }
    };
    check_dates(context, &subject, &release);
    check_name(context, &subject, suite, &release);
    let texts = indexes::check(context, &folder, &release)?;
    packages::check(context, suite, texts);
    Ok(())
}

/// The text of a suite, and the file that has it.
struct ReleaseText {
    file: String,
    text: String,
}

/// The text of `Release`, with which `InRelease` and `Release.gpg` are compared, or of `InRelease` alone.
fn release_text(context: &mut Context<'_>, folder: &str) -> Result<Option<ReleaseText>> {
    let [path, clear, detached] =
        ["Release", "InRelease", "Release.gpg"].map(|name| format!("{folder}/{name}"));
    let plain = is_file(&context.root.join(&path))?;
    let has_clear = is_file(&context.root.join(&clear))?;
    let has_detached = is_file(&context.root.join(&detached))?;
    let has_signature = has_clear || (plain && has_detached);
    // apt asks for InRelease first, and is content with it.
    if !context.trust.keys.is_empty() && !has_signature {
        context.bad_signature(&clear, "is not there");
    }
    if !plain && has_clear {
        let Some(bytes) = context.read_head(&clear)? else { return Ok(None) };
        let text = clear_text(context, &bytes);
        let text = context.signed(&clear, text);
        return Ok(text.map(|text| ReleaseText { file: clear, text }));
    }
    let Some(bytes) = context.read_head(&path)? else {
        return Ok(None);
    };
    let Ok(text) = String::from_utf8(bytes) else {
        context.bad_index(&path, "is no UTF-8");
        return Ok(None);
    };
    for (path, there) in [(&clear, has_clear), (&detached, has_detached)] {
        let Some(bytes) = (if there { context.read_head(path)? } else { None }) else {
            continue;
        };
        let checked = if path == &clear {
            check_clear(context, &bytes, &text)
        } else {
            context.trust.check_detached(&bytes, text.as_bytes())
        };
        context.signed(path, checked);
    }
    Ok(Some(ReleaseText { file: path, text }))
}

/// The text of a clear-signed file, which one of the keys signed if there are keys.
fn clear_text(context: &Context<'_>, bytes: &[u8]) -> Result<String> {
    let message = std::str::from_utf8(bytes).map_err(|_| Error::malformed("is no UTF-8"))?;
    let (text, signed) = context.trust.clear_text(message)?;
    signed.map(|()| text)
}

fn check_clear(context: &Context<'_>, bytes: &[u8], release: &str) -> Result<()> {
    if clear_text(context, bytes)?.trim_end() == release.trim_end() {
        Ok(())
    } else {
        Err(Error::malformed("has another text than Release"))
    }
}

/// A suite lies in the folder that clients ask for it in: by its name, or by its codename.
fn check_name(context: &mut Context<'_>, subject: &str, folder: &str, release: &Release) {
    let fields = ["Suite", "Codename"].into_iter().filter_map(|name| release.field(name));
    let names: Vec<String> = fields.map(str::to_owned).collect();
    if !names.is_empty() && !names.iter().any(|name| name == folder) {
        let names = either(&names, 2);
        let reason =
            format!("says that its suite is {names}, but lies in the folder of the suite {folder}");
        context.contradicts(subject, reason);
    }
}

fn check_dates(context: &mut Context<'_>, subject: &str, release: &Release) {
    match release.field("Valid-Until").map(parse_date) {
        Some(Ok(until)) if until < context.trust.at.time => {
            let until = release.field("Valid-Until").unwrap_or_default().to_owned();
            context.problems.add(Problem::ReleaseExpired { file: subject.to_owned(), until });
        }
        Some(Err(error)) => context.unreadable(subject, &error),
        _ => {}
    }
    match release.field("Date").map(parse_date) {
        Some(Ok(date)) => context.check_date(subject, date),
        Some(Err(error)) => context.unreadable(subject, &error),
        None => {}
    }
}
