//! Addresses as users give them.

use std::fmt;

use percent_encoding::percent_decode_str;
use rockpack_core::error::{Error, Kind, Result};
use url::Url;

/// The address of an object, or of a folder of objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// `s3://BUCKET/KEY`.
    S3 {
        bucket: String,
        /// The key of an object, or the start of several keys.
        key: String,
    },
    /// `https://…` or `http://…`.
    Web(Url),
}

const HINT: &str = "addresses are s3://BUCKET/PREFIX, https://HOST/PATH/ and http://HOST/PATH/";

impl Address {
    pub fn is_one(text: &str) -> bool {
        ["s3://", "https://", "http://"].iter().any(|scheme| text.starts_with(scheme))
    }

    pub fn parse(text: &str) -> Result<Self> {
        let wrong = |why: &str| {
            // A signature may follow `?`, and a password precede `@`.
            let shown = text.split(['?', '#']).next().and_then(|it| it.rsplit('@').next());
            let shown = shown.unwrap_or_default();
            let message = format!("`{}` is not an address: {why}", shown.escape_debug());
            Error::new(Kind::Usage, message).hint(HINT)
        };
        if let Some(rest) = text.strip_prefix("s3://") {
            let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
            let is_name = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
            if bucket.is_empty() || !bucket.chars().all(is_name) {
                return Err(wrong("the bucket name may have only a-z, 0-9, - and ."));
            }
            if key.split('/').any(|part| part == "." || part == "..") {
                return Err(wrong("a part of the key is . or .., which servers resolve"));
            }
            return Ok(Self::S3 { bucket: bucket.to_owned(), key: key.to_owned() });
        }
        let url = Url::parse(text).map_err(|error| wrong(&error.to_string()))?;
        if !["https", "http"].contains(&url.scheme()) {
            return Err(wrong("it has another scheme"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            let error = Error::new(Kind::Usage, "an address has a user name or a password");
            return Err(
                error.hint("they would appear in messages and logs; give the address without them")
            );
        }
        Ok(Self::Web(url))
    }

    /// The last part of its path; without a path, the bucket or the host.
    pub fn name(&self) -> String {
        self.last(|_| true)
    }

    /// The name of its shard: the name of the folder, also for its `index.html`, or of the list of addresses.
    pub fn shard(&self) -> String {
        let name = self.last(|part| part != "index.html");
        name.strip_suffix(".txt").map_or(name.clone(), str::to_owned)
    }

    fn last(&self, is_name: impl Fn(&str) -> bool) -> String {
        let (path, whole) = match self {
            Self::S3 { bucket, key } => (key.clone(), bucket.as_str()),
            Self::Web(url) => {
                let prefix = url.query_pairs().find(|(name, _)| name == "prefix");
                let path = prefix.map(|(_, prefix)| prefix.into_owned());
                let path = path.filter(|path| !path.is_empty());
                let decoded = || percent_decode_str(url.path()).decode_utf8_lossy().into_owned();
                (path.unwrap_or_else(decoded), url.host_str().unwrap_or_default())
            }
        };
        let mut parts = path.trim_matches('/').rsplit('/');
        parts.find(|part| !part.is_empty() && is_name(part)).unwrap_or(whole).to_owned()
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::S3 { bucket, key } => write!(f, "s3://{bucket}/{key}"),
            Self::Web(url) => f.write_str(&url[..url::Position::AfterPath]),
        }
    }
}
