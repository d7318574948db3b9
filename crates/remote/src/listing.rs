//! Listings of an address: of a bucket by `ListObjectsV2`, of an index page, or of a text of addresses.

use std::collections::BTreeMap;
use std::sync::Arc;

use percent_encoding::percent_decode_str;
use rockpack_core::content::Recheck;
use rockpack_core::error::{Error, Faults, Kind, Result};
use rockpack_core::run::threads;
use rusty_s3::actions::ListObjectsV2;
use rusty_s3::{Bucket, S3Action, UrlStyle};
use ureq::ResponseExt as _;
use url::Url;

use crate::address::Address;
use crate::client::{Remote, S3Bucket, changed};
use crate::object::{Object, ObjectFacts, ObjectLocation, URL_VALIDITY};

/// Maximum size in bytes of a listing's page: a page of a bucket has a thousand keys of up to a thousand bytes.
const LISTING_BYTES_MAX: u64 = 64 << 20;

const ENTRIES_MAX: usize = 1_000_000;

pub(crate) const PAGES_MAX: usize = 2_000;

/// Objects that are checked for changes in parallel.
const CONCURRENT_CHECKS: usize = 16;

/// The direct objects and folders at an address, or the objects of a list, by name.
#[derive(Debug)]
pub struct Listing {
    pub objects: BTreeMap<String, Arc<Object>>,
    pub folders: BTreeMap<String, Address>,
    remote: Arc<Remote>,
    address: Option<Address>,
}

/// The addresses in a text, one per line, without empty lines and those that begin with `#`. `None` if the first one is
/// not an address.
pub fn addresses(text: &str) -> Result<Option<Vec<Address>>> {
    let lines = text.lines().map(str::trim).enumerate();
    let mut lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')).peekable();
    if !lines.peek().is_some_and(|(_, line)| Address::is_one(line)) {
        return Ok(None);
    }
    let parsed = lines.map(|(number, line)| {
        Address::parse(line).map_err(|error| error.structure(format!("line {}", number + 1)))
    });
    parsed.collect::<Result<_>>().map(Some)
}

impl Listing {
    fn new(remote: &Arc<Remote>, address: Option<&Address>) -> Self {
        let (remote, address) = (Arc::clone(remote), address.cloned());
        Self { objects: BTreeMap::new(), folders: BTreeMap::new(), remote, address }
    }

    /// The objects at `addresses`, which must have different names.
    pub fn of(remote: &Arc<Remote>, addresses: &[Address]) -> Result<Self> {
        let mut listing = Self::new(remote, None);
        for address in addresses {
            listing.add(address.name(), Object::at(remote, address)?)?;
        }
        Ok(listing)
    }

    /// Lists `address`. Fails if it has no objects and folders.
    pub fn at(remote: &Arc<Remote>, address: &Address) -> Result<Self> {
        let listing = Self::find(remote, address)?;
        if listing.objects.is_empty() && listing.folders.is_empty() {
            let error = Error::new(Kind::Usage, "there are no objects at this address");
            let hint = "check the address; a prefix must name a whole folder";
            return Err(error.file(address.to_string()).hint(hint));
        }
        Ok(listing)
    }

    fn find(remote: &Arc<Remote>, address: &Address) -> Result<Self> {
        let mut listing = Self::new(remote, Some(address));
        let listed = match address {
            Address::S3 { bucket, key } => {
                let bucket = remote.bucket(bucket);
                bucket.and_then(|bucket| listing.add_bucket(&Arc::new(bucket), key, address))
            }
            Address::Web(url) => match bucket_of(url) {
                Some((bucket, prefix)) => {
                    let bucket = Arc::new(S3Bucket::anonymous(bucket));
                    listing.add_bucket(&bucket, &prefix, address)
                }
                None => listing.add_page(url),
            },
        };
        listed.map_err(|error| error.file(address.to_string()))?;
        Ok(listing)
    }

    fn add(&mut self, name: String, object: Object) -> Result<()> {
        self.check_room()?;
        if let Some(other) = self.objects.get(&name) {
            let message = format!("has the same name as {}", other.path().display());
            let hint = "a list of addresses is one shard: give a list for each shard";
            return Err(Error::new(Kind::Conflict, message).file(object.path()).hint(hint));
        }
        self.objects.insert(name, Arc::new(object));
        Ok(())
    }

    fn check_room(&self) -> Result<()> {
        if self.objects.len() + self.folders.len() < ENTRIES_MAX {
            return Ok(());
        }
        Err(Error::new(Kind::Limit, format!("has {ENTRIES_MAX} objects and folders, or more")))
    }

    /// Adds all pages of the listing of `prefix` at `address`.
    fn add_bucket(
        &mut self,
        bucket: &Arc<S3Bucket>,
        prefix: &str,
        address: &Address,
    ) -> Result<()> {
        let remote = &Arc::clone(&self.remote);
        // An `index.html` in a bucket is for browsers.
        let prefix = prefix.strip_suffix("index.html").unwrap_or(prefix);
        let slash = if prefix.is_empty() || prefix.ends_with('/') { "" } else { "/" };
        let prefix = format!("{prefix}{slash}");
        let mut token = None::<String>;
        for _ in 0..PAGES_MAX {
            let sign = |it: &Bucket, keys: Option<&_>| {
                let mut list = ListObjectsV2::new(it, keys);
                list.with_prefix(&*prefix);
                list.with_delimiter("/");
                if let Some(token) = &token {
                    list.with_continuation_token(token.as_str());
                }
                list.sign(URL_VALIDITY)
            };
            let attempt = || {
                let answer = remote.get(&bucket.url(sign), &[], false)?;
                remote.text(remote.accept(answer, Some(bucket))?, LISTING_BYTES_MAX)
            };
            let text = remote.with_retries(attempt, || 0)?;
            let wrong = |cause: String| {
                let hint = "the server does not speak the protocol of S3 at this address";
                Error::malformed("the response is not an S3 listing").cause(cause).hint(hint)
            };
            // The parser accepts truncated text.
            if !text.trim_end().ends_with("</ListBucketResult>") {
                return Err(wrong("it is truncated".to_owned()));
            }
            let page =
                ListObjectsV2::parse_response(&text).map_err(|error| wrong(error.to_string()))?;
            for found in page.contents {
                // Some tools create an object with the key of a folder.
                let Some(name) = found.key.strip_prefix(&prefix).filter(|name| !name.is_empty())
                else {
                    continue;
                };
                if name.contains('/') {
                    let message = format!("the listing has {}, which is in a subfolder", found.key);
                    let hint = "the server ignores the delimiter; give an index page or a list of addresses";
                    return Err(Error::unsupported(message).hint(hint));
                }
                let unknown =
                    || Error::malformed(format!("the listing has no size for {}", found.key));
                let tag = found.etag.map(|tag| tag.trim_matches('"').to_owned());
                let facts =
                    ObjectFacts { size: found.size.ok_or_else(unknown)?, tag, ranges: true };
                let place = ObjectLocation::InBucket(Arc::clone(bucket), found.key.clone());
                let address = address_of(address, bucket, &found.key);
                self.add(name.to_owned(), Object::new(remote, place, address, Some(facts)))?;
            }
            for found in page.common_prefixes {
                self.check_room()?;
                if let Some(name) = found.prefix.strip_prefix(&prefix).filter(|name| *name != "/") {
                    let name = name.trim_end_matches('/').to_owned();
                    self.folders.insert(name, address_of(address, bucket, &found.prefix));
                }
            }
            token = page.next_continuation_token;
            if token.is_none() {
                return Ok(());
            }
        }
        Err(Error::new(Kind::Limit, format!("the listing has more than {PAGES_MAX} pages")))
    }

    /// Adds the links of an index page, or the addresses of a text.
    fn add_page(&mut self, url: &Url) -> Result<()> {
        let remote = &Arc::clone(&self.remote);
        let attempt = || {
            let answer = remote.accept(remote.get(url, &[], true)?, None)?;
            // The address after redirects, to which links are relative.
            let base = Url::parse(&answer.get_uri().to_string()).unwrap_or_else(|_| url.clone());
            Ok((remote.text(answer, LISTING_BYTES_MAX)?, base))
        };
        let (text, base) = remote.with_retries(attempt, || 0)?;
        if let Some(addresses) = addresses(&text)? {
            self.objects = Self::of(remote, &addresses)?.objects;
            return Ok(());
        }
        for href in hrefs(&text) {
            let Some((found, name)) = base.join(&href).ok().and_then(|it| child(&base, it)) else {
                continue;
            };
            let address = Address::Web(found.clone());
            // A query gives another view of the same folder.
            if found.path().ends_with('/') && found.query().is_none() {
                self.folders.insert(name, address);
            } else if !found.path().ends_with('/') && !self.objects.contains_key(&name) {
                self.add(name, Object::new(remote, ObjectLocation::Web(found), address, None))?;
            }
        }
        Ok(())
    }
}

impl Recheck for Listing {
    fn recheck(&self) -> Result<()> {
        let now =
            self.address.as_ref().map(|address| Self::find(&self.remote, address)).transpose()?;
        let listed = |name: &str| now.as_ref()?.objects.get(name)?.known();
        if let Some(now) = &now {
            let is_same = self.objects.keys().eq(now.objects.keys())
                && self.folders.keys().eq(now.folders.keys())
                && self
                    .objects
                    .iter()
                    .all(|(name, it)| listed(name).is_none_or(|now| Some(now) == it.known()));
            if !is_same {
                let place = self.address.as_ref().map(ToString::to_string).unwrap_or_default();
                return Err(changed("objects were added, removed or replaced").file(place));
            }
        }
        // Index pages and lists only have names.
        let others: Vec<_> =
            self.objects.iter().filter(|(name, _)| listed(name).is_none()).collect();
        Faults::all(threads::each(&others, CONCURRENT_CHECKS, |(_, object)| object.recheck())?)
            .map(drop)
    }
}

/// The address of the object with `key` in the listing of `address`; of a folder if `key` ends with `/`.
fn address_of(address: &Address, bucket: &S3Bucket, key: &str) -> Address {
    match address {
        Address::S3 { bucket, .. } => Address::S3 { bucket: bucket.clone(), key: key.to_owned() },
        Address::Web(url) if key.ends_with('/') => {
            // A listing of the folder in the same form.
            let mut url = url.clone();
            url.query_pairs_mut().clear().append_pair("list-type", "2").append_pair("prefix", key);
            Address::Web(url)
        }
        Address::Web(_) => Address::Web(bucket.url(|bucket, _| bucket.object_url(key))),
    }
}

/// The bucket and the prefix of a listing's URL: `https://HOST/BUCKET?list-type=2&prefix=…`,
/// `https://BUCKET.HOST/?…`, and any URL of a bucket of Amazon.
fn bucket_of(url: &Url) -> Option<(Bucket, String)> {
    let host = url.host_str()?;
    let query: BTreeMap<_, _> = url.query_pairs().collect();
    let asks = ["list-type", "prefix"].iter().any(|name| query.contains_key(*name));
    let is_aws = host.ends_with(".amazonaws.com") || host.ends_with(".amazonaws.com.cn");
    let in_host = host.split_once(".s3").filter(|(_, rest)| is_aws && rest.starts_with(['.', '-']));
    if !asks && !(is_aws && (in_host.is_some() || host.starts_with("s3"))) {
        return None;
    }
    let path = percent_decode_str(url.path()).decode_utf8().ok()?;
    let path = path.trim_start_matches('/');
    let mut endpoint = url.clone();
    endpoint.set_query(None);
    endpoint.set_path("");
    let (name, style, rest) = match in_host {
        Some((name, rest)) => {
            endpoint.set_host(Some(&format!("s3{rest}"))).ok()?;
            (name.to_owned(), UrlStyle::VirtualHost, path)
        }
        None if path.trim_end_matches('/').is_empty() => {
            let (name, rest) = host.split_once('.')?;
            endpoint.set_host(Some(rest)).ok()?;
            (name.to_owned(), UrlStyle::VirtualHost, "")
        }
        None => {
            let (name, rest) = path.split_once('/').unwrap_or((path, ""));
            (name.to_owned(), UrlStyle::Path, rest)
        }
    };
    let prefix = query.get("prefix").map_or(rest, |prefix| prefix).to_owned();
    Some((Bucket::new(endpoint, style, name, "us-east-1").ok()?, prefix))
}

/// The values of the attributes `href` of the elements `a` of a page.
fn hrefs(page: &str) -> Vec<String> {
    let tags = page.split('<').filter_map(|rest| rest.split('>').next());
    let tags = tags.filter(|tag| tag.starts_with("a ") || tag.starts_with("A "));
    let values = tags.filter_map(|tag| {
        let value = &tag[tag.to_ascii_lowercase().find("href=")? + 5..];
        match value.chars().next().filter(|first| ['"', '\''].contains(first)) {
            Some(quote) => value[1..].split(quote).next(),
            None => value.split_ascii_whitespace().next(),
        }
    });
    values.map(|value| value.replace("&amp;", "&")).collect()
}

/// A URL with its name, if it is a direct child of the folder of `base`.
fn child(base: &Url, found: Url) -> Option<(Url, String)> {
    let folder = &base.path()[..=base.path().rfind('/')?];
    let is_here =
        (base.scheme(), base.host(), base.port()) == (found.scheme(), found.host(), found.port());
    let name = found.path().strip_prefix(folder)?.trim_end_matches('/');
    let name = percent_decode_str(name).decode_utf8().ok()?.into_owned();
    (is_here && !name.is_empty() && !name.contains('/')).then_some((found, name))
}
