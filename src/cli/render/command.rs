//! Proposed commands.

use std::path::Path;

/// `path` as an argument in a shell command: quoted if needed, and never taken for an option.
pub(super) fn shell_word(path: &Path) -> String {
    let text = path.to_string_lossy();
    let start = if text.starts_with('-') { "./" } else { "" };
    let is_plain = text.chars().all(|c| c.is_ascii_alphanumeric() || "._-/+=:@%,".contains(c));
    if !text.is_empty() && is_plain {
        format!("{start}{text}")
    } else {
        format!("'{start}{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_takes_a_path_for_one_argument() {
        for (path, expected) in [
            ("target/packages", "target/packages"),
            ("my packages", "'my packages'"),
            ("it's", r"'it'\''s'"),
            ("-out", "./-out"),
            ("-o $x", "'./-o $x'"),
        ] {
            assert_eq!(shell_word(Path::new(path)), expected);
        }
    }
}
