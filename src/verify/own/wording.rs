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
}

/// Whether dpkg or rpm runs scripts of packages at a phase of that name.
pub(in crate::verify) fn is_phase(phase: &str) -> bool {
    TEMPLATES.iter().any(|(known, _)| *known == phase)
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
    let Subject { package, prefix, has } = subject;
    let lua = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
    let plain = unquoted(value);
    let inside = |path: &str| path.strip_prefix(prefix).is_some_and(|path| path.starts_with('/'));
    match name {
        "package" => value == package,
        "prefix" => value == prefix || lua == Some(prefix),
        "program" => {
            is_word(value) && !value.contains('/') && has(&format!("{prefix}/bin/{value}"))
        }
        "priority" => !value.is_empty() && value.bytes().all(|c| c.is_ascii_digit()),
        "moved" => value == MOVED || lua == Some(&format!("{MOVED} ")),
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
        "change" => is_change(value, &inside),
        // Relative to the prefix in Lua.
        "link" | "folder.path" => plain.is_some_and(|path| lua.is_some() || inside(path)),
        _ => plain.is_some(),
    }
}

/// Whether a value has a folder of the prefix become a link, or a link of it a folder.
fn is_change(value: &str, is_inside: &dyn Fn(&str) -> bool) -> bool {
    let Some((change, words)) = value.split_once(' ') else { return false };
    let words = words.strip_prefix('\'').and_then(|words| words.strip_suffix('\''));
    let plain = |word: &str| unquoted(&format!("'{word}'")).is_some();
    ["dir_to_symlink", "symlink_to_dir"].contains(&change)
        && words
            .and_then(|words| words.split_once("' '"))
            .is_some_and(|(path, target)| plain(path) && plain(target) && is_inside(path))
}

/// A text that is one word to a shell, or a string of Lua, without what is around it.
fn unquoted(value: &str) -> Option<&str> {
    let quoted = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    let plain = |text: &&str| !text.contains(['\'', '"', '\\', '$', '`']);
    let found = quoted('\'').or_else(|| quoted('"')).filter(plain);
    let found = found.or_else(|| is_word(value).then_some(value))?;
    (!found.split('/').any(|part| part == "..")).then_some(found)
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
        is_known(phase, text, Subject { package: "rocm-x", prefix: "/opt/rocm", has: &has })
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
        assert!(!known("postinst", &script("dir_to_symlink '/opt/rocm/a' '$(evil)'")));
        assert!(!known("postinst", &script("rm_conffile '/opt/rocm/a' 'c'")));
    }
}
