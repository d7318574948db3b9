//! The persistent settings of a channel, and checks for changes that clients would refuse.

use rockpack_archive::apt_index::{format_date, url_host};
use rockpack_core::error::{Error, Faults, Kind, Result};
use serde::{Deserialize, Serialize};

use super::channel::Channel;
use super::options::RepoOptions;
use super::state::ChannelState;

/// Most days of `valid_days`: a hundred years.
const MAX_VALID_DAYS: u32 = 36_525;

/// The highest priority that apt reads.
const MAX_PIN: u16 = 32_767;

/// Settings of a channel. A run keeps those that it does not give.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelSettings {
    /// Field `Origin` of `Release`.
    pub origin: Option<String>,
    /// Field `Label`.
    pub label: Option<String>,
    /// Field `Codename`; the suite's name if unset.
    pub codename: Option<String>,
    /// Field `Description`, and the name in the `.repo` file.
    pub description: Option<String>,
    /// Days until `Valid-Until`; without it, the field is absent. 0 removes it again.
    pub valid_days: Option<u32>,
    /// The name in files for clients; by default from the host of the first URL.
    pub name: Option<String>,
    /// The URL of the repository in the files for clients.
    pub url: Option<String>,
    /// The priority of the repository for apt; without it, clients get no priorities.
    pub pin: Option<u16>,
}

impl ChannelSettings {
    /// These settings, with those of `earlier` as defaults.
    pub fn or(&self, earlier: &Self) -> Self {
        let (own, earlier) = (self.clone(), earlier.clone());
        let url = own.url.or(earlier.url);
        Self {
            origin: own.origin.or(earlier.origin),
            label: own.label.or(earlier.label),
            codename: own.codename.or(earlier.codename),
            description: own.description.or(earlier.description),
            valid_days: own.valid_days.or(earlier.valid_days),
            name: own.name.or(earlier.name).or_else(|| url.as_deref().map(host_name)),
            url,
            pin: own.pin.or(earlier.pin),
        }
    }

    pub fn codename<'a>(&'a self, suite: &'a str) -> &'a str {
        self.codename.as_deref().unwrap_or(suite)
    }

    /// The fields whose change apt refuses for `suite`, with their values; absent ones are empty.
    pub(super) fn release_info<'a>(&'a self, suite: &'a str) -> [(&'static str, &'a str); 3] {
        [
            ("Origin", self.origin.as_deref().unwrap_or_default().trim()),
            ("Label", self.label.as_deref().unwrap_or_default().trim()),
            ("Codename", self.codename(suite)),
        ]
    }

    /// Refuses values that would corrupt an index or a file for clients, and names that clients ignore.
    pub fn check(&self, suite: &str) -> Result<()> {
        let mut faults = Vec::new();
        let texts =
            [("origin", &self.origin), ("label", &self.label), ("description", &self.description)];
        for (key, text) in texts {
            let Some(text) = text else { continue };
            if text.is_empty() || text.trim() != text || text.contains(char::is_control) {
                faults.push(usage(format!(
                    "the {key} is empty, starts or ends with blanks, which signatures leave out, or \
                     has control characters"
                )));
            }
        }
        faults.extend(self.codename.as_deref().and_then(|it| check_word("codename", it).err()));
        if let Some(name) = self.name.as_deref().filter(|name| !is_name(name)) {
            faults.push(usage(format!(
                "the name `{}` is not made of lower-case letters, digits, dots and dashes, which apt, \
                 dnf and dpkg all accept",
                name.escape_debug()
            )));
        }
        if self.url.is_some() && suite.contains(['+', '~']) {
            faults.push(usage(format!(
                "the suite `{suite}` has a character for which apt ignores {suite}.sources: leave out \
                 the URL, or rename the suite"
            )));
        }
        let bad = self.url.as_deref().filter(|url| {
            // dnf reads a comma as the end of a URL.
            !url.contains(':')
                || url.contains(|c: char| c.is_whitespace() || c.is_control() || c == ',')
        });
        if let Some(url) = bad {
            faults.push(usage(format!(
                "`{}` is not a URL that all clients accept",
                url.escape_debug()
            )));
        }
        if self.valid_days.is_some_and(|days| days > MAX_VALID_DAYS) {
            faults.push(usage(format!("`valid_days` must be at most {MAX_VALID_DAYS}")));
        }
        if self.pin.is_some_and(|pin| !(1..=MAX_PIN).contains(&pin)) {
            faults.push(usage(format!("`pin` must be from 1 to {MAX_PIN}")));
        }
        Error::gather(faults).map_or(Ok(()), Err)
    }
}

/// A name for files, packages and repository ids: `packages-example-org` for the host `packages.example.org`.
fn host_name(url: &str) -> String {
    let dashed = url_host(url).replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    let name = dashed.trim_matches('-').to_ascii_lowercase();
    if name.is_empty() { "localhost".to_owned() } else { name }
}

fn is_name(name: &str) -> bool {
    let is_legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || ".-".contains(c);
    !name.is_empty() && !name.starts_with(['.', '-']) && name.chars().all(is_legal)
}

/// Refuses a value that cannot be part of a path and of a field.
pub fn check_word(key: &str, word: &str) -> Result<()> {
    let is_legal = word.chars().all(|c| c.is_ascii_alphanumeric() || "+-._~".contains(c));
    if word.starts_with(|c: char| c.is_ascii_alphanumeric()) && is_legal {
        Ok(())
    } else {
        Err(usage(format!("the {key} `{}` is not one word", word.escape_debug())))
    }
}

fn usage(message: String) -> Error {
    Error::new(Kind::Usage, message)
}

/// Refuses to publish `channel` after `earlier` in a way that clients with the earlier index would refuse.
pub(super) fn check_continuity(
    channel: &Channel,
    earlier: &ChannelState,
    options: &RepoOptions<'_>,
) -> Result<()> {
    let mut faults = Faults::default();
    if !options.confirmed.any_date {
        faults.keep(check_date(earlier.date, options.date));
    }
    if earlier.signed && options.signer.is_none() {
        faults.add(
            Error::new(Kind::Usage, "the repository is signed, but no key is given").hint(
                "its clients would refuse it: give --sign-key, --gpg-key-id or --sign-command",
            ),
        );
    }
    if let (Channel::Apt(suite), false) = (channel, options.confirmed.release_info) {
        faults.keep(check_release(suite, earlier, &options.settings));
    }
    faults.finish()
}

fn check_date(earlier: i64, date: i64) -> Result<()> {
    if date >= earlier {
        return Ok(());
    }
    let message = format!(
        "the time is {}, but the repository was published on {}",
        format_date(date)?,
        format_date(earlier)?
    );
    Err(Error::new(Kind::Usage, message).hint(
        "clients refuse indexes older than those they have: set the clock, or SOURCE_DATE_EPOCH; after \
         a publication that was dated in the future by mistake, give --allow=any-date",
    ))
}

/// Refuses changes of the fields of [`ChannelSettings::release_info`].
fn check_release(suite: &str, earlier: &ChannelState, settings: &ChannelSettings) -> Result<()> {
    // A suite that was never published is new to every client.
    if earlier.generation == 0 {
        return Ok(());
    }
    let next = settings.or(&earlier.settings);
    let fields = earlier.settings.release_info(suite).into_iter().zip(next.release_info(suite));
    let changed: Vec<String> = fields
        .filter(|((_, was), (_, is))| was != is)
        .map(|((field, was), (_, is))| {
            let was = if was.is_empty() { "nothing".to_owned() } else { format!("`{was}`") };
            format!("its {field} from {was} to `{is}`")
        })
        .collect();
    if changed.is_empty() {
        return Ok(());
    }
    let message = format!("the suite {suite} would change {}", changed.join(" and "));
    Err(Error::new(Kind::Usage, message).hint(
        "`apt-get update` would fail on every client until a person accepts the change there: leave \
         out `origin`, `label` and `codename` to keep them, or confirm the change with \
         --allow=releaseinfo-change",
    ))
}
