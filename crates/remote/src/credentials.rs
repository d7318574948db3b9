//! Credentials, region and endpoint as Amazon's tools find them.
//!
//! | variable | key of a profile | |
//! |---|---|---|
//! | `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN` | `aws_access_key_id`, … | without any, requests are anonymous |
//! | `AWS_REGION`, `AWS_DEFAULT_REGION` | `region` | `us-east-1` by default |
//! | `AWS_ENDPOINT_URL_S3`, `AWS_ENDPOINT_URL` | `endpoint_url` | another server than Amazon's |
//!
//! Profiles are in `AWS_SHARED_CREDENTIALS_FILE` (`~/.aws/credentials`) and `AWS_CONFIG_FILE` (`~/.aws/config`);
//! `AWS_PROFILE` names one. Source: "Configuration and credential file settings" of the AWS CLI.

use std::collections::BTreeMap;
use std::env::var;
use std::fs;
use std::path::{Path, PathBuf};

use rockpack_core::content::if_exists;
use rockpack_core::error::{Error, Kind, Result};
use rusty_s3::Credentials;
use url::Url;

#[derive(Debug)]
pub(crate) struct S3Settings {
    pub credentials: Option<Credentials>,
    pub region: String,
    /// A server with addresses `ENDPOINT/BUCKET/KEY`.
    pub endpoint: Option<Url>,
}

type Profile = BTreeMap<String, String>;

impl S3Settings {
    pub fn from_environment() -> Result<Self> {
        let set = |names: &[&str]| {
            names.iter().find_map(|name| var(name).ok().filter(|it| !it.is_empty()))
        };
        let named = set(&["AWS_PROFILE"]);
        let own_keys = set(&["AWS_ACCESS_KEY_ID"]).zip(set(&["AWS_SECRET_ACCESS_KEY"]));
        let profile = profile(named.as_deref(), own_keys.is_none())?;
        let found = |names: &[&str], key: &str| set(names).or_else(|| profile.get(key).cloned());
        let (keys, token) = match own_keys {
            Some(keys) => (Some(keys), set(&["AWS_SESSION_TOKEN"])),
            None => {
                let [id, secret, token] =
                    ["aws_access_key_id", "aws_secret_access_key", "aws_session_token"]
                        .map(|key| profile.get(key).cloned());
                (id.zip(secret), token)
            }
        };
        let credentials = keys.map(|(id, secret)| match token {
            Some(token) => Credentials::new_with_token(id, secret, token),
            None => Credentials::new(id, secret),
        });
        let endpoint = found(&["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"], "endpoint_url");
        let endpoint = endpoint.map(|text| {
            let url =
                Url::parse(&text).ok().filter(|url| ["http", "https"].contains(&url.scheme()));
            let hint = "set AWS_ENDPOINT_URL to the https:// address of the server";
            url.ok_or_else(|| {
                Error::new(Kind::Usage, "the endpoint for s3:// is not a URL").hint(hint)
            })
        });
        let region = found(&["AWS_REGION", "AWS_DEFAULT_REGION"], "region");
        let region = region.unwrap_or_else(|| "us-east-1".to_owned());
        Ok(Self { credentials, region, endpoint: endpoint.transpose()? })
    }
}

/// The settings of the profile `named`, or of the default one. It must have its own credentials if they are `needed`.
fn profile(named: Option<&str>, needed: bool) -> Result<Profile> {
    let home = std::env::home_dir().unwrap_or_default();
    let place = |variable: &str, file: &str| {
        let given = std::env::var_os(variable).map(PathBuf::from);
        given.unwrap_or_else(|| home.join(".aws").join(file))
    };
    let name = named.unwrap_or("default");
    let mut found = Profile::new();
    let mut exists = false;
    for (variable, file) in
        [("AWS_CONFIG_FILE", "config"), ("AWS_SHARED_CREDENTIALS_FILE", "credentials")]
    {
        let sections = sections(&place(variable, file))?;
        let own = [format!("profile {name}"), name.to_owned()];
        for keys in own.iter().filter_map(|own| sections.get(own)) {
            exists = true;
            found.extend(keys.clone());
        }
    }
    let elsewhere = ["role_arn", "sso_session", "sso_start_url", "credential_process"];
    let message = match named {
        Some(_) if !exists => {
            format!("the profile {name}, which AWS_PROFILE names, does not exist")
        }
        _ if needed && !found.contains_key("aws_access_key_id") => {
            let Some(key) = elsewhere.iter().find(|key| found.contains_key(**key)) else {
                return Ok(found);
            };
            format!("the profile {name} has no keys, and rockpack does not support its {key}")
        }
        _ => return Ok(found),
    };
    let hint = "run `eval \"$(aws configure export-credentials --format env)\"` first, or set \
                AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY";
    Err(Error::new(Kind::Usage, message).hint(hint))
}

/// The sections of a file with lines `[name]` and `key = value`; none if it does not exist. Skips lines that begin with
/// a blank, which continue the key above.
fn sections(path: &Path) -> Result<BTreeMap<String, Profile>> {
    let text = if_exists(path, "read", fs::read_to_string(path))?.unwrap_or_default();
    let mut sections = BTreeMap::<String, Profile>::new();
    let mut name = String::new();
    for line in text.lines().filter(|line| !line.starts_with(['#', ';', ' ', '\t'])) {
        if let Some(section) = line.trim().strip_prefix('[').and_then(|rest| rest.strip_suffix(']'))
        {
            name = section.trim().to_owned();
            sections.entry(name.clone()).or_default();
        } else if let Some((key, value)) = line.split_once('=') {
            let (key, value) = (key.trim().to_owned(), value.trim().to_owned());
            sections.entry(name.clone()).or_default().insert(key, value);
        }
    }
    Ok(sections)
}
