//! Changes that a publication must not make, because clients that have the one before it would
//! refuse it.

use rockpack_archive::apt_index::format_date;
use rockpack_core::error::{Error, Faults, Kind, Result};

use super::channel::Channel;
use super::options::RepoOptions;
use super::settings::ChannelSettings;
use super::state::ChannelState;

/// Refuses to publish `channel` after `earlier` in a way that its clients would not take.
pub(super) fn check(
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
            Error::new(Kind::Usage, "the repository is signed, and no key is given").hint(
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
        "the time is {} and the repository was published on {}",
        format_date(date)?,
        format_date(earlier)?
    );
    Err(Error::new(Kind::Usage, message).hint(
        "clients take nothing older than what they have: set the clock, or SOURCE_DATE_EPOCH; after \
         a publication that was dated in the future by mistake, give --allow-any-date",
    ))
}

/// Refuses other values of the fields by which apt knows a suite.
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
        "every client's `apt-get update` would end with an error until a person accepts it there: \
         leave out --origin, --label and --codename, and they stay as they were, or confirm the \
         change by --allow-releaseinfo-change",
    ))
}
