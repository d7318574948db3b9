//! Scripts that are, word for word, what the templates of packages say.
//!
//! A script is made of templates, one behind the other. Of a template every line is there as it is,
//! lines within a loop or a condition any number of times or not at all, and a value fits its place:
//! names, folders and versions that cannot be more than one word to a shell or to Lua.

use std::collections::BTreeSet;

/// The beginning of every maintainer script of a `.deb`.
const START: &str = "#!/bin/sh\nset -e\n";

/// How the loader's file begins where rpm moved the packages to.
const MOVED: &str =
    "# Written where rpm moved the packages to; as it is, the next version writes it anew:";

/// The program that makes the loader's cache.
pub(in crate::verify) const LDCONFIG: &str = "/sbin/ldconfig";

const GUARD: &str = include_str!("../../../templates/guard.sh");

/// The templates by when their scripts run: at phases of dpkg, and of rpm.
const TEMPLATES: [(&str, &str); 17] = [
    ("preinst", GUARD),
    ("preinst", include_str!("../../../templates/kinds-preinst.sh")),
    ("postinst", include_str!("../../../templates/kinds-postinst.sh")),
    ("postinst", include_str!("../../../templates/alternatives-postinst.sh")),
    ("postinst", include_str!("../../../templates/debug-postinst.sh")),
    ("prerm", include_str!("../../../templates/alternatives-prerm.sh")),
    ("prerm", include_str!("../../../templates/debug-prerm.sh")),
    ("postrm", include_str!("../../../templates/kinds-postrm.sh")),
    ("postrm", include_str!("../../../templates/alternatives-postrm.sh")),
    ("%pretrans", include_str!("../../../templates/kinds-pretrans.lua")),
    ("%pre", GUARD),
    ("%post", include_str!("../../../templates/loader-post.sh")),
    ("%post", include_str!("../../../templates/alternatives-post.sh")),
    ("%postun", include_str!("../../../templates/loader-postun.sh")),
    ("%postun", include_str!("../../../templates/alternatives-postun.sh")),
    ("%postun", include_str!("../../../templates/folders-postun.sh")),
    ("%postun", "/sbin/ldconfig\n"),
];

/// The facts of a package that its scripts may state.
#[derive(Clone, Copy)]
pub(in crate::verify) struct Subject<'a> {
    pub(in crate::verify) package: &'a str,
    /// The install prefix, absolute.
    pub(in crate::verify) prefix: &'a str,
    /// Whether the package has something at an absolute path.
    pub(in crate::verify) has: &'a dyn Fn(&str) -> bool,
    /// The language of the script.
    pub(in crate::verify) language: Language,
}

/// The languages of scripts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::verify) enum Language {
    Shell,
    Lua,
}

/// Whether dpkg or rpm runs scripts of packages at a phase of that name.
pub(in crate::verify) fn is_phase(phase: &str) -> bool {
    TEMPLATES.iter().any(|(known, _)| *known == phase)
}

/// What the templates of a phase are written in.
pub(in crate::verify) fn language(phase: &str) -> Language {
    if phase == "%pretrans" { Language::Lua } else { Language::Shell }
}

/// Whether the script that runs at `phase` is made of templates.
pub(in crate::verify) fn is_known(phase: &str, text: &str, subject: Subject<'_>) -> bool {
    let lines: Vec<&str> = text.lines().collect();
    let own = TEMPLATES.iter().filter(|(known, _)| *known == phase).map(|(_, text)| *text);
    let more = match phase {
        "%post" => "/sbin/ldconfig\n",
        _ if phase.starts_with('%') => "",
        _ => START,
    };
    let templates: Vec<Vec<Item<'_>>> =
        own.chain([more]).map(|text| items(&mut text.lines())).collect();
    let mut reached = BTreeSet::from([0]);
    loop {
        let next = templates.iter().flat_map(|items| reach(items, &lines, &reached, subject));
        let next: BTreeSet<usize> = next.chain(reached.iter().copied()).collect();
        if next == reached {
            return reached.contains(&lines.len());
        }
        reached = next;
    }
}

/// A part of a template.
enum Item<'a> {
    Line(&'a str),
    /// Lines that are there any number of times.
    Loop(Vec<Item<'a>>),
    /// Lines that are there or not.
    Maybe(Vec<Item<'a>>),
}

/// The parts of a template up to the end of its loop or condition.
fn items<'a>(lines: &mut impl Iterator<Item = &'a str>) -> Vec<Item<'a>> {
    let mut found = Vec::new();
    while let Some(line) = lines.next() {
        let statement = line.trim_start().strip_prefix("{% ");
        match statement.and_then(|statement| statement.split(' ').next()) {
            Some("for") => found.push(Item::Loop(items(lines))),
            Some("if") => found.push(Item::Maybe(items(lines))),
            Some(_) => break,
            None => found.push(Item::Line(line)),
        }
    }
    found
}

/// Where in `lines` one may be behind `items`, from each of these places.
fn reach(
    items: &[Item<'_>],
    lines: &[&str],
    from: &BTreeSet<usize>,
    subject: Subject<'_>,
) -> BTreeSet<usize> {
    let mut at = from.clone();
    for item in items {
        at = match item {
            Item::Line(template) => {
                let fits = |at: &usize| {
                    lines.get(*at).is_some_and(|line| is_line(template, line, subject))
                };
                at.into_iter().filter(fits).map(|at| at + 1).collect()
            }
            Item::Maybe(inner) => &reach(inner, lines, &at, subject) | &at,
            Item::Loop(inner) => repeated(inner, lines, at, subject),
        };
    }
    at
}

fn repeated(
    items: &[Item<'_>],
    lines: &[&str],
    mut all: BTreeSet<usize>,
    subject: Subject<'_>,
) -> BTreeSet<usize> {
    let mut last = all.clone();
    while !last.is_empty() {
        last = &reach(items, lines, &last, subject) - &all;
        all.extend(&last);
    }
    all
}

/// Whether a line is that of the template, with values that fit.
fn is_line(template: &str, line: &str, subject: Subject<'_>) -> bool {
    let Some((before, rest)) = template.split_once("{{ ") else { return template == line };
    let (Some((name, rest)), Some(line)) = (rest.split_once(" }}"), line.strip_prefix(before))
    else {
        return false;
    };
    let ends = line.char_indices().map(|(at, _)| at).chain([line.len()]);
    ends.filter_map(|end| line.split_at_checked(end))
        .any(|(value, behind)| is_value(name, value, subject) && is_line(rest, behind, subject))
}

/// Whether a value fits the place that a template calls `name`.
fn is_value(name: &str, value: &str, subject: Subject<'_>) -> bool {
    let Subject { package, prefix, has, language } = subject;
    let is_lua = language == Language::Lua;
    let lua = lua_text(value).filter(|_| is_lua);
    let word = if is_lua { lua.clone() } else { shell_word(value) };
    let plain = word.as_deref().filter(|path| !path.split('/').any(|part| part == ".."));
    let inside = |path: &str| path.strip_prefix(prefix).is_some_and(|path| path.starts_with('/'));
    match name {
        "package" => value == package,
        "prefix" => value == prefix || lua.as_deref() == Some(prefix),
        "program" => {
            is_word(value) && !value.contains('/') && has(&format!("{prefix}/bin/{value}"))
        }
        "priority" => !value.is_empty() && value.bytes().all(|c| c.is_ascii_digit()),
        "moved" => value == MOVED || lua == Some(format!("{MOVED} ")),
        "root" => ["\"${DPKG_ROOT:-}\"", "\"\""].contains(&value),
        "path" => {
            let moved = format!("\"${{RPM_INSTALL_PREFIX:-{prefix}}}\"");
            value == moved || value == format!("\"$root{prefix}\"")
        }
        "system" => value.split(" | ").all(is_word),
        "file" => plain.is_some_and(|file| file.starts_with("/etc/ld.so.conf.d/")),
        "folder" => {
            value.starts_with("/opt/")
                && prefix.strip_prefix(value).is_some_and(|it| it.starts_with('/'))
        }
        // Within quotes in shell, and with its own in Lua; below the prefix.
        "libdir" => {
            // Lua puts it behind the prefix, with the slash between.
            let folder = if is_lua { lua.as_deref() } else { Some(value) };
            let folder =
                folder.map(|it| if is_lua { it.strip_prefix('/').unwrap_or(it) } else { it });
            folder.is_some_and(|folder| {
                is_word(folder) && folder.split('/').all(|part| !part.is_empty() && part != "..")
            })
        }
        "change" => is_change(value, &inside),
        // Relative to the prefix in Lua.
        "link" | "folder.path" => plain.is_some_and(|path| is_lua || inside(path)),
        // The text of a link, which may lead anywhere.
        "folder.target" => word.is_some(),
        _ => plain.is_some(),
    }
}

/// Whether a value has a folder of the prefix become a link, or a link of it a folder. The text of that
/// link may lead anywhere.
fn is_change(value: &str, is_inside: &dyn Fn(&str) -> bool) -> bool {
    let Some((change, words)) = value.split_once(' ') else { return false };
    let Some((path, rest)) = quoted(words) else { return false };
    let target = rest.strip_prefix(' ').and_then(quoted);
    ["dir_to_symlink", "symlink_to_dir"].contains(&change)
        && target.is_some_and(|(_, rest)| rest.is_empty())
        && is_inside(&path)
        && !path.split('/').any(|part| part == "..")
}

/// The word in single quotes at the beginning of a text for a shell, in which `'\''` stands for a quote,
/// and what is behind it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let (first, mut rest) = text.strip_prefix('\'')?.split_once('\'')?;
    let mut word = first.to_owned();
    while let Some(more) = rest.strip_prefix("\\''") {
        let (part, behind) = more.split_once('\'')?;
        word = word + "'" + part;
        rest = behind;
    }
    Some((word, rest))
}

/// A text that is one word to a shell, without what is around it.
fn shell_word(value: &str) -> Option<String> {
    let single = quoted(value).filter(|(_, rest)| rest.is_empty()).map(|(word, _)| word);
    let double = || value.strip_prefix('"')?.strip_suffix('"');
    let double = || double().filter(|text| !text.contains(['"', '\\', '$', '`']));
    let bare = || is_word(value).then_some(value);
    single.or_else(|| double().or_else(bare).map(str::to_owned))
}

/// The text that a string of Lua in double quotes stands for, in which a backslash stands before another
/// one or a quote.
fn lua_text(value: &str) -> Option<String> {
    let mut inside = value.strip_prefix('"')?.strip_suffix('"')?.chars();
    let mut text = String::new();
    while let Some(c) = inside.next() {
        match c {
            '"' => return None,
            '\\' => text.push(inside.next().filter(|next| ['"', '\\'].contains(next))?),
            other => text.push(other),
        }
    }
    Some(text)
}

/// Whether a text means nothing else than itself.
fn is_word(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._+-~:@%=,/".contains(c);
    !text.is_empty() && text.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(phase: &str, text: &str) -> bool {
        let has = |path: &str| path == "/opt/rocm/bin/tool";
        let (package, prefix, language) = ("rocm-x", "/opt/rocm", language(phase));
        is_known(phase, text, Subject { package, prefix, has: &has, language })
    }

    #[test]
    fn scripts_are_taken_as_the_templates_have_them() {
        let line = |program: &str| {
            format!(
                "    update-alternatives --install /usr/bin/{program} {program} \
                 /opt/rocm/bin/{program} 71\n"
            )
        };
        let script = |inside: &str| {
            let phases = "configure | abort-upgrade | abort-remove | abort-deconfigure";
            format!("{START}case \"$1\" in\n  {phases})\n{inside}    ;;\nesac\n")
        };
        assert!(known("postinst", &script(&line("tool"))));
        assert!(known("postinst", &script("")));
        assert!(known("postinst", START));
        assert!(known("%post", "/sbin/ldconfig"));
        // Another program, another place, more than a template says, at another time.
        assert!(!known("postinst", &script(&line("sh"))));
        assert!(!known("postinst", &script(&line("tool").replace("/opt/rocm", "/tmp"))));
        assert!(!known("postinst", &script(&line("tool").replace("71", "71; evil"))));
        assert!(!known("postinst", &(script(&line("tool")) + "evil\n")));
        assert!(!known("postrm", &script(&line("tool"))));
    }

    #[test]
    fn values_are_single_words() {
        let change =
            |text: &str| format!("dpkg-maintscript-helper {text} 7.1-1~ rocm-x -- \"$@\"\n");
        let script = |text: &str| format!("{START}{}", change(text));
        assert!(known("postinst", &script("dir_to_symlink '/opt/rocm/a b' 'c'")));
        assert!(!known("postinst", &script("dir_to_symlink '/etc/a' 'c'")));
        assert!(!known("postinst", &script("dir_to_symlink '/opt/rocm/../a' 'c'")));
        assert!(!known("postinst", &script("rm_conffile '/opt/rocm/a' 'c'")));
        assert!(known("postinst", &script(r"dir_to_symlink '/opt/rocm/a'\''s' '../$b'")));
        assert!(known("postinst", &script("symlink_to_dir '/opt/rocm/a' '/b c'")));
        assert!(!known("postinst", &script("dir_to_symlink '/opt/rocm/a' \"$(evil)\"")));
        assert!(!known("postinst", &script(r"dir_to_symlink '/opt/rocm/a'\'$(evil)' 'c'")));
        assert!(!known("postinst", &script("dir_to_symlink '/opt/rocm/a' 'b' 'c'")));
        assert!(!known("postinst", &script("dir_to_symlink '/opt/rocm/a' 'b'; 'c'")));
    }

    /// The folder of libraries stands within quotes in the template: it may not end them.
    #[test]
    fn a_folder_within_quotes_is_nothing_but_that() {
        let script = |folder: &str| {
            let text = include_str!("../../../templates/loader-post.sh");
            let text = text.replace("{{ prefix }}", "/opt/rocm").replace("{{ moved }}", MOVED);
            text.replace("{{ file }}", "/etc/ld.so.conf.d/x.conf").replace("{{ libdir }}", folder)
        };
        assert!(known("%post", &script("lib64/x")));
        for odd in
            ["'$(evil)'", "'$(touch x;echo lib)''", "a'b", "$(evil)", "../x", "/etc", "a b", ""]
        {
            assert!(!known("%post", &script(odd)), "{odd}");
        }
    }

    /// As the builder quotes names, in each language.
    #[test]
    fn quoted_names_are_read_as_each_language_reads_them() {
        for (value, shell, lua) in [
            (r"'/a b'\''s'", Some("/a b's"), None),
            (r"''\'''", Some("'"), None),
            (r#"'$x\`"'"#, Some(r#"$x\`""#), None),
            ("/a@b", Some("/a@b"), None),
            (r#""/a b""#, Some("/a b"), Some("/a b")),
            (r#""/a \"b\" \\c's""#, None, Some(r#"/a "b" \c's"#)),
            (r#""/a\46""#, None, None),
            (r#""a" .. "b""#, None, None),
            ("'a'b", None, None),
            ("'a' 'b'", None, None),
            ("'a", None, None),
            ("", None, None),
        ] {
            assert_eq!(shell_word(value).as_deref(), shell, "{value}");
            assert_eq!(lua_text(value).as_deref(), lua, "{value}");
        }
    }
}
