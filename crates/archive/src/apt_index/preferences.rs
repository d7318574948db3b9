//! Pins of apt_preferences(5) that match one suite, or else one host.
//!
//! `Pin: release o=…,l=…,n=…` compares fields of `Release` with patterns of fnmatch(3), or with a regular
//! expression between slashes. Commas separate the fields; nothing escapes them, but `?` matches one.
//! `Pin: origin "…"` compares the host of the URL.
//!
//! Source: apt_preferences(5), and apt's `versionmatch.cc`.

/// The host in a URL as apt reads it: without user, port and the brackets of an IPv6 address. Empty in URLs
/// of the own machine, such as `file:/srv/rocm`.
pub fn url_host(url: &str) -> &str {
    let rest = url.split_once(':').and_then(|(_, rest)| rest.strip_prefix("//"));
    let authority = rest.unwrap_or_default().split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let end: &[char] = if host.starts_with('[') { &[']'] } else { &[':'] };
    host.trim_start_matches('[').split(end).next().unwrap_or_default()
}

/// The value of `Pin` for the suite of this origin, label and codename at this URL. Absent fields are empty.
/// A suite without origin and label may be called like a distribution's, so its pin is for the host.
pub fn pin(url: &str, [origin, label, codename]: [&str; 3]) -> String {
    if origin.is_empty() && label.is_empty() {
        return format!("origin \"{}\"", url_host(url));
    }
    let fields = [("o", origin), ("l", label), ("n", codename)];
    let present = fields.iter().filter(|(_, value)| !value.is_empty());
    let exact = |value: &str| value.replace([',', '*', '[', ']', '\\', '/'], "?");
    let patterns = present.map(|&(key, value)| format!("{key}={}", exact(value)));
    format!("release {}", patterns.collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_without_user_and_port() {
        for (url, host) in [
            ("https://packages.example.org/rocm", "packages.example.org"),
            ("http://user:word@example.org:8080?x", "example.org"),
            ("https://[2001:db8::1]:443/rocm", "2001:db8::1"),
            ("https://example.org", "example.org"),
            ("file:/srv/rocm", ""),
            ("file:///srv/rocm", ""),
        ] {
            assert_eq!(url_host(url), host, "{url}");
        }
    }

    #[test]
    fn pins_name_a_suite_or_a_host() {
        let url = "https://example.org/rocm";
        assert_eq!(pin(url, ["", "", "stable"]), "origin \"example.org\"");
        assert_eq!(pin(url, ["A, [B]", "", "stable"]), "release o=A? ?B?,n=stable");
        assert_eq!(pin(url, ["", "/l/", "stable"]), "release l=?l?,n=stable");
    }
}
