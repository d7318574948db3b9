//! Characters of names.

/// Whether `c` is an ASCII letter or a digit.
pub fn is_letter_or_digit(c: char) -> bool {
    c.is_ascii_alphanumeric()
}

/// Whether `c` is a small ASCII letter or a digit.
pub fn is_small_or_digit(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit()
}
