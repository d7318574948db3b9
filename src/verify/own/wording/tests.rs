use super::changes::{lua_text, lua_word, shell_word, word};
use super::*;
use crate::verify::own::facts::FileFacts;

const PREFIX: &str = "/opt/amd/rocm-7.1";

fn file(class: Class) -> InstalledNode {
    InstalledNode::File { mode: 0o755, facts: FileFacts { size: 1, sha256: [0; 32], class } }
}

fn link(target: &str) -> InstalledNode {
    InstalledNode::Link { target: target.to_owned() }
}

/// A package with these paths below the prefix.
fn package(format: Format, paths: Vec<(&str, InstalledNode)>) -> Installed {
    let paths = paths.into_iter().map(|(path, node)| match path {
        outside if outside.starts_with('/') => (outside.to_owned(), node),
        inside => (format!("{PREFIX}/{inside}"), node),
    });
    Installed {
        format: Some(format),
        name: "rocm-x".to_owned(),
        version: "1:7.1.2~rc1-1~deb12".to_owned(),
        paths: paths.collect(),
        ..Installed::default()
    }
}

/// The scripts of a package by phase, as a set of it alone has them.
fn scripts(package: &Installed) -> BTreeMap<String, String> {
    let words = SetWords::of(PREFIX, [package]);
    let all = words.scripts(package).unwrap().into_iter();
    all.map(|script| (script.phase, format!("{}{}", script.interpreter, script.text))).collect()
}

fn phases(package: &Installed) -> Vec<String> {
    scripts(package).into_keys().collect()
}

/// The package with a script that changes something, and what comes out at that phase.
fn with(mut package: Installed, phase: &str, text: &str) -> (Installed, String) {
    package.scripts.push(script(phase, "", text.to_owned()));
    let out = scripts(&package).remove(phase).unwrap_or_default();
    (package, out)
}

#[test]
fn files_decide_which_scripts_there_are() {
    for (path, expected) in [
        ("/usr/share/doc/rocm-x/copyright", &[][..]),
        ("lib/x", &["preinst"]),
        ("/usr/lib/debug/rocm-x/.build-id/00/1.debug", &["postinst", "prerm"]),
    ] {
        let package = package(Format::Deb, vec![(path, file(Class::Other))]);
        assert_eq!(phases(&package), expected, "{path}");
    }
    assert_eq!(phases(&package_with_loader_file(Format::Deb)), ["triggers"]);
    let common = package_with_loader_file(Format::Rpm);
    let found = scripts(&common);
    assert_eq!(Vec::from_iter(found.keys()), ["%post", "%postun"]);
    assert!(found["%post"].contains("packaged='/opt/amd/rocm-7.1/lib'"), "{found:?}");
    assert!(found["%post"].ends_with("esac\n/sbin/ldconfig\n"), "{found:?}");
    let library = package(Format::Rpm, vec![("lib/libx.so.1", file(Class::Other))]);
    let words = SetWords::of(PREFIX, [&common, &library]);
    let all = words.scripts(&library).unwrap();
    let shown: Vec<&str> = all.iter().map(|script| script.interpreter.as_str()).collect();
    assert_eq!(shown, ["/bin/sh", LDCONFIG, "/bin/sh"], "%pre, %post, %postun");
    assert!(all[2].text.contains("rmdir --ignore-fail-on-non-empty '/opt/amd'"), "{all:?}");
    // A development link, and a folder that the loader does not know.
    for other in [("lib/libx.so", link("libx.so.1")), ("lib/a/libx.so.1", file(Class::Other))] {
        let other = package(Format::Deb, vec![other]);
        let all = SetWords::of(PREFIX, [&common, &other]).scripts(&other).unwrap();
        assert!(all.iter().all(|script| script.phase != "triggers"), "{all:?}");
    }
}

fn package_with_loader_file(format: Format) -> Installed {
    let loader = file(Class::LoaderFolders(vec![format!("{PREFIX}/lib")]));
    package(format, vec![("/etc/ld.so.conf.d/rocm.conf", loader)])
}

#[test]
fn all_programs_of_a_package_are_alternatives_or_none() {
    assert_eq!(phases(&package_of_programs(Format::Deb)), ["preinst"]);
    let said = "update-alternatives --install /usr/bin/other other /tmp/other 1";
    let (package, text) = with(package_of_programs(Format::Deb), "postinst", said);
    assert_eq!(phases(&package), ["postinst", "postrm", "preinst", "prerm"]);
    let line = "--install /usr/bin/tool tool /opt/amd/rocm-7.1/bin/tool 70102\n";
    assert!(text.contains(line) && text.matches("--install").count() == 1, "{text}");
    // What one package of a set has, its host packages have.
    let host = Installed { role: Some(RoleKind::Host), ..package_of_programs(Format::Rpm) };
    assert_eq!(phases(&host), ["%postun", "%pre"]);
    let all = SetWords::of(PREFIX, [&package, &host]).scripts(&host).unwrap();
    assert!(all.iter().any(|script| script.phase == "%post"), "{all:?}");
}

fn package_of_programs(format: Format) -> Installed {
    package(format, vec![("bin/tool", file(Class::Other)), ("bin/a b", link("tool"))])
}

#[test]
fn the_search_for_links_ends_where_the_prefix_says() {
    let [deb_package, rpm_package] = [Format::Deb, Format::Rpm]
        .map(|format| package(format, vec![("lib/x", file(Class::Other))]));
    let deb = scripts(&deb_package);
    assert!(deb["preinst"].contains("    /opt) break ;;"), "{deb:?}");
    let rpm = scripts(&rpm_package);
    assert!(rpm["%pre"].contains("/opt | /root | /sbin"), "{rpm:?}");
    assert!(rpm["%pre"].contains("${RPM_INSTALL_PREFIX:-/opt/amd/rocm-7.1}"), "{rpm:?}");
    // No build takes such a prefix, even if scripts name it.
    for prefix in ["/opt/$(evil)", "/opt/../x", "opt", "/opt/a b"] {
        let words = SetWords::of(prefix, [&deb_package]);
        assert!(words.scripts(&deb_package).unwrap().is_empty(), "{prefix}");
    }
}

#[test]
fn a_deb_changes_what_it_has() {
    for (change, is_kept) in [
        (r"dir_to_symlink '/opt/amd/rocm-7.1/a'\''s' '../$b'", true),
        (r"dir_to_symlink '/opt/amd/rocm-7.1/a'\''s' '/etc'", false),
        ("symlink_to_dir '/opt/amd/rocm-7.1/f' '/b c'", true),
        ("symlink_to_dir '/opt/amd/rocm-7.1/g' '/b c'", false),
        ("symlink_to_dir '/opt' '/b c'", false),
        ("dir_to_symlink '/etc/x' 'y'", false),
        ("rm_conffile '/opt/amd/rocm-7.1/f' 'c'", false),
        ("symlink_to_dir '/opt/amd/rocm-7.1/f' \"$(evil)\"", false),
        ("symlink_to_dir '/opt/amd/rocm-7.1/f' 'b' 'c'", false),
        ("symlink_to_dir '/opt/amd/rocm-7.1/f' 'b'; 'c'", false),
    ] {
        assert_eq!(keeps(&helper_line(change), "preinst"), is_kept, "{change}");
    }
    let helped = helper_line("symlink_to_dir '/opt/amd/rocm-7.1/f' 'b'");
    for other in ["7.1.2~rc1-1", "1:7.1.2~rc1-1~deb12", "9"] {
        let other = helped.replace("1:7.1.2~rc1-1~deb12~", other);
        assert!(!keeps(&other, "preinst"), "{other}");
    }
    let link = "link=\"${DPKG_ROOT:-}\"'/opt/amd/rocm-7.1/f'";
    assert!(keeps(link, "preinst") && !keeps(&link.replace("/f'", "/g'"), "preinst"));
    let folder = r#"folder="${DPKG_ROOT:-}"'/opt/amd/rocm-7.1/a'\''s'"#;
    assert!(keeps(folder, "postinst") && !keeps(&folder.replace("a'\\''s", "f"), "postinst"));
    // All phases make the same change.
    let (package, _) = with(changing_deb(), "preinst", &helped);
    assert_eq!(phases(&package), ["postinst", "postrm", "preinst"]);
}

/// Whether the script of a `.deb` at that phase may have this line.
fn keeps(line: &str, phase: &str) -> bool {
    let (_, text) = with(changing_deb(), phase, line);
    text.lines().any(|own| own == line)
}

fn changing_deb() -> Installed {
    let (link_inside, link_outside) = (("a's", link("../$b")), ("/etc/x", link("y")));
    package(Format::Deb, vec![link_inside, ("f", folder()), link_outside, ("/opt", folder())])
}

fn folder() -> InstalledNode {
    InstalledNode::Directory { mode: 0o755 }
}

fn helper_line(change: &str) -> String {
    format!("dpkg-maintscript-helper {change} 1:7.1.2~rc1-1~deb12~ rocm-x -- \"$@\"")
}

#[test]
fn an_rpm_changes_what_it_has() {
    let clear = "clear(prefix .. \"/was\", {\n  \"b/c\",\n  \"b\",\n})\n";
    assert!(pretrans_of(clear).ends_with(clear), "{}", pretrans_of(clear));
    for member in ["../x", "/etc/passwd", "a//b", "."] {
        let odd = clear.replace("b/c", member);
        assert!(!pretrans_of(&odd).contains(&format!("  \"{member}\",")), "{member}");
    }
    for path in ["was", "/gone", "/f", "/../x", "/.."] {
        assert_eq!(pretrans_of(&clear.replace("/was", path)), "", "{path}");
    }
    let remove = "  os.remove(prefix .. \"/f\")\n";
    assert!(pretrans_of(remove).contains(remove));
    for path in ["f", "/was", "/../../etc"] {
        assert_eq!(pretrans_of(&remove.replace("/f", path)), "", "{path}");
    }
}

/// The script that comes out at `%pretrans` of an `.rpm` which has this text there.
fn pretrans_of(text: &str) -> String {
    let package = package(Format::Rpm, vec![("was", link("x")), ("f", folder())]);
    with(package, "%pretrans", text).1
}

/// Names are read as the builder quotes them, in each language.
#[test]
fn quoted_names_are_read_as_each_language_reads_them() {
    for (value, shell, lua) in [
        (r"'/a b'\''s'", Some("/a b's"), None),
        (r"''\'''", Some("'"), None),
        (r#"'$x\`"'"#, Some(r#"$x\`""#), None),
        (r#""/a b""#, None, Some("/a b")),
        (r#""/a \"b\" \\c's""#, None, Some(r#"/a "b" \c's"#)),
        (r#""/a\46""#, None, None),
        (r#""a" .. "b""#, None, None),
        ("'a'b", None, None),
        ("'a' 'b'", None, None),
        ("'a", None, None),
        ("", None, None),
    ] {
        assert_eq!(word(value).as_deref(), shell, "{value}");
        assert_eq!(lua_word(value).as_deref(), lua, "{value}");
    }
    for text in ["/a b's", r#"/a "b" \c"#, "''"] {
        assert_eq!(word(&shell_word(text)).as_deref(), Some(text));
        assert_eq!(lua_word(&lua_text(text)).as_deref(), Some(text));
    }
}
