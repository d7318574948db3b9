//! Descriptions, wrapped as both formats want them.

/// Columns that package managers show without breaking a line; lintian and rpmlint warn beyond.
const WIDTH: usize = 79;

/// Wraps the texts at [`WIDTH`] columns, with an empty line between paragraphs. A longer word has a line of
/// its own.
pub(super) fn wrapped(paragraphs: &[String]) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in paragraphs {
        let mut words = paragraph.split_whitespace();
        let Some(first) = words.next() else {
            continue;
        };
        if !lines.is_empty() {
            lines.push(String::new());
        }
        let mut line = first.to_owned();
        for word in words {
            if line.chars().count() + 1 + word.chars().count() > WIDTH {
                lines.push(std::mem::take(&mut line));
            } else {
                line.push(' ');
            }
            line.push_str(word);
        }
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_are_wrapped_and_kept_apart() {
        let long = ["word"; 40].join(" ");
        let lines = wrapped(&[long, "  ".to_owned(), "second\nline ".to_owned(), "x".repeat(100)]);
        assert_eq!(lines[0], ["word"; 16].join(" "));
        assert!(lines[0].len() == 79 && lines[2].len() < 79);
        assert_eq!(&lines[3..6], ["", "second line", ""]);
        assert_eq!(lines[6].len(), 100);
    }
}
