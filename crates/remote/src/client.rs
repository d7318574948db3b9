//! Requests, and the reactions to their responses.
//!
//! | response | reaction |
//! |---|---|
//! | no connection, a connection cut, nothing for [`RetryPolicy::timeout`], 408, 429, 5xx | the request is retried |
//! | 412 (`If-Match`), 416, another entity tag or size | the object changed: an error |
//! | 301, 400 with the header `x-amz-bucket-region` | the request is retried in that region |
//! | any other status | an error, with the S3 code and message if the body has them |

use std::io::{self, Read as _};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use rockpack_core::error::{Error, Kind, Result};
use rockpack_core::run::{interrupt, waiting};
use rusty_s3::{Bucket, Credentials, UrlStyle};
use ureq::http::{HeaderMap, Response, StatusCode};
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::{Agent, Body, Proxy};
use url::Url;

use crate::credentials::S3Settings;

/// Retries and timeouts of requests.
#[derive(Debug, Clone, Copy)]
pub struct RetryPolicy {
    /// Consecutive attempts without [`RetryPolicy::progress`] bytes before it is an error.
    pub attempts: u32,
    /// The wait after the first attempt; each wait is twice as long as the one before.
    pub first_wait: Duration,
    /// The timeout of a connection, of a response's head, and of [`RetryPolicy::progress`] bytes of its body; and the
    /// longest wait that a server may request by `Retry-After`.
    pub timeout: Duration,
    /// The bytes that reset the number of failed attempts.
    pub progress: u64,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        let (first_wait, timeout) = (Duration::from_millis(500), Duration::from_secs(30));
        Self { attempts: 6, first_wait, timeout, progress: 32 << 10 }
    }
}

const CONNECTIONS: usize = 64;

const REDIRECTS: usize = 5;

/// Bytes of the body of an error that are read.
const ERROR_BODY: u64 = 16 << 10;

/// The HTTP client of a run, with its S3 settings.
#[derive(Debug)]
pub struct Remote {
    agent: OnceLock<Agent>,
    s3: OnceLock<S3Settings>,
    policy: RetryPolicy,
}

pub(crate) enum AttemptError {
    /// Another attempt may succeed, after the wait that the server requests.
    Retry(Error, Option<Duration>),
    Fatal(Error),
}

impl From<Error> for AttemptError {
    fn from(error: Error) -> Self {
        Self::Fatal(error)
    }
}

#[derive(Debug)]
pub(crate) struct S3Bucket {
    bucket: RwLock<Bucket>,
    credentials: Option<Credentials>,
    /// Whether the bucket is on AWS, where its region may differ from the settings.
    is_aws: bool,
}

impl Default for Remote {
    fn default() -> Self {
        Self::new(RetryPolicy::default())
    }
}

impl Remote {
    /// Reads the environment when the first address needs it.
    pub fn new(policy: RetryPolicy) -> Self {
        Self { agent: OnceLock::new(), s3: OnceLock::new(), policy }
    }

    /// The bucket of this name, with the settings of the environment.
    pub(crate) fn bucket(&self, name: &str) -> Result<S3Bucket> {
        let settings = match self.s3.get() {
            Some(settings) => settings,
            None => {
                let read = S3Settings::from_environment()?;
                self.s3.get_or_init(|| read)
            }
        };
        let region = &settings.region;
        let (endpoint, style) = match &settings.endpoint {
            Some(endpoint) => (endpoint.clone(), UrlStyle::Path),
            None => (aws_endpoint(region)?, url_style(name)),
        };
        let bucket = Bucket::new(endpoint, style, name.to_owned(), region.clone());
        let bucket = bucket.map_err(|error| {
            Error::new(Kind::Usage, format!("`{name}` is not a bucket name")).cause(error)
        })?;
        let credentials = settings.credentials.clone();
        let is_aws = settings.endpoint.is_none();
        Ok(S3Bucket { bucket: RwLock::new(bucket), credentials, is_aws })
    }

    /// Sends one request with `headers`. If it `follows` redirects, it ignores their bodies, and refuses redirects from
    /// https to http.
    pub(crate) fn get(
        &self,
        url: &Url,
        headers: &[(&str, String)],
        follows: bool,
    ) -> Result<Response<Body>, AttemptError> {
        let agent = self.agent.get_or_init(|| agent(self.policy));
        let mut url = url.clone();
        for _ in 0..=REDIRECTS {
            let mut request = agent.get(url.as_str());
            for (name, value) in headers {
                request = request.header(*name, value);
            }
            let response = request.call().map_err(failed)?;
            interrupt::check()?;
            let leads = follows && response.status().is_redirection();
            let Some(to) = response.headers().get("location").filter(|_| leads) else {
                return Ok(response);
            };
            let to = to.to_str().ok().and_then(|to| url.join(to).ok());
            let is_safe = |to: &Url| {
                to.scheme() == "https" || [to, &url].iter().all(|it| it.scheme() == "http")
            };
            let to = to.filter(is_safe);
            let message = "the server redirects to an invalid URL, or from https to http";
            url = to.ok_or_else(|| Error::new(Kind::Io, message))?;
        }
        let message = format!("the server redirects more than {REDIRECTS} times");
        Err(Error::new(Kind::Io, message).into())
    }

    /// Retries `attempt` until it succeeds or fails finally. `done` returns the number of received bytes.
    pub(crate) fn with_retries<T>(
        &self,
        mut attempt: impl FnMut() -> Result<T, AttemptError>,
        done: impl Fn() -> u64,
    ) -> Result<T> {
        let RetryPolicy { attempts, first_wait, timeout, progress } = self.policy;
        let mut failed = 0;
        loop {
            let before = done();
            let (error, asked) = match attempt() {
                Ok(done) => return Ok(done),
                Err(AttemptError::Fatal(error)) => return Err(error),
                Err(AttemptError::Retry(error, asked)) => (error, asked),
            };
            failed = if done() - before >= progress { 1 } else { failed + 1 };
            if failed >= attempts {
                return Err(error.context(format!("at attempt {attempts} of {attempts}")));
            }
            if failed > 1 {
                waiting::tell(&format!("retrying: {}", error.message()));
            }
            let wait = first_wait * 2_u32.pow(failed - 1);
            pause(asked.map_or(wait, |asked| asked.min(timeout).max(wait)))?;
        }
    }
}

impl S3Bucket {
    pub fn anonymous(bucket: Bucket) -> Self {
        Self { bucket: RwLock::new(bucket), credentials: None, is_aws: false }
    }

    /// Makes a URL, which is valid for an hour if it is signed.
    pub fn url(&self, sign: impl FnOnce(&Bucket, Option<&Credentials>) -> Url) -> Url {
        sign(&self.bucket.read().unwrap_or_else(PoisonError::into_inner), self.credentials.as_ref())
    }

    /// Switches to the region that a response names; returns whether it is another one.
    pub fn switch_region(&self, headers: &HeaderMap) -> Result<bool> {
        let region = headers.get("x-amz-bucket-region").and_then(|it| it.to_str().ok());
        let mut bucket = self.bucket.write().unwrap_or_else(PoisonError::into_inner);
        let Some(region) = region.filter(|it| self.is_aws && *it != bucket.region()) else {
            return Ok(false);
        };
        let name = bucket.name().to_owned();
        let turned = Bucket::new(aws_endpoint(region)?, url_style(&name), name, region.to_owned());
        *bucket = turned.map_err(|error| Error::bug("a region spoils a bucket").cause(error))?;
        Ok(true)
    }
}

fn aws_endpoint(region: &str) -> Result<Url> {
    let china = if region.starts_with("cn-") { ".cn" } else { "" };
    Url::parse(&format!("https://s3.{region}.amazonaws.com{china}")).map_err(|error| {
        let message = format!("`{}` is not a region", region.escape_debug());
        Error::new(Kind::Usage, message)
            .cause(error)
            .hint("set AWS_REGION, for example to us-east-2")
    })
}

/// Certificates of Amazon's hosts name only buckets without dots.
fn url_style(bucket: &str) -> UrlStyle {
    if bucket.contains('.') { UrlStyle::Path } else { UrlStyle::VirtualHost }
}

/// An agent with the proxy of the environment and the certificates of the system.
fn agent(policy: RetryPolicy) -> Agent {
    let wait = Some(policy.timeout);
    let roots = rustls_native_certs::load_native_certs().certs;
    let roots: Vec<_> = roots.iter().map(|root| Certificate::from_der(root).to_owned()).collect();
    let tls = TlsConfig::builder().root_certs(RootCerts::new_with_certs(&roots)).build();
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .proxy(Proxy::try_from_env())
        .tls_config(tls)
        .timeout_connect(wait)
        .timeout_recv_response(wait)
        .timeout_per_read(wait)
        .max_idle_connections_per_host(CONNECTIONS)
        .max_idle_connections(CONNECTIONS)
        .user_agent(concat!("rockpack/", env!("CARGO_PKG_VERSION")));
    config.build().into()
}

/// Waits, unless the run is asked to end.
fn pause(time: Duration) -> Result<()> {
    let end = Instant::now() + time;
    while Instant::now() < end {
        interrupt::check()?;
        thread::sleep(Duration::from_millis(50).min(end - Instant::now()));
    }
    Ok(())
}

/// The failure of a request without a response.
fn failed(error: ureq::Error) -> AttemptError {
    use io::ErrorKind::InvalidData;
    let is_final = match &error {
        ureq::Error::Io(error) => error.kind() == InvalidData,
        ureq::Error::Timeout(_) | ureq::Error::HostNotFound | ureq::Error::ConnectionFailed => {
            false
        }
        ureq::Error::Protocol(_) => false,
        _ => true,
    };
    let why = match &error {
        // The URL may contain a signature.
        ureq::Error::BadUri(_) => "the server redirects to an invalid URL".to_owned(),
        error => error.to_string(),
    };
    let fault = Error::new(Kind::Io, format!("cannot be read: {why}"))
        .hint("check the address, the network, the proxy (HTTPS_PROXY, NO_PROXY), and for https the certificates \
              that the system trusts (ca-certificates, SSL_CERT_FILE)");
    if is_final { AttemptError::Fatal(fault) } else { AttemptError::Retry(fault, None) }
}

/// The failure to read a body.
pub(crate) fn broken_off(error: io::Error) -> AttemptError {
    AttemptError::Retry(Error::new(Kind::Io, format!("the response was cut off: {error}")), None)
}

impl Remote {
    /// The response, if it is a success.
    pub(crate) fn accept(
        &self,
        response: Response<Body>,
        bucket: Option<&Arc<S3Bucket>>,
    ) -> Result<Response<Body>, AttemptError> {
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let (head, body) = response.into_parts();
        if let Some(bucket) = bucket.filter(|_| matches!(status.as_u16(), 301 | 400))
            && bucket.switch_region(&head.headers)?
        {
            let message = format!("is in another region: {status}");
            return Err(AttemptError::Retry(Error::new(Kind::Io, message), None));
        }
        if matches!(status.as_u16(), 412 | 416) {
            return Err(AttemptError::Fatal(changed("it has another entity tag or size")));
        }
        let body = self.start_of(body, ERROR_BODY).unwrap_or_default();
        let body = String::from_utf8_lossy(&body);
        let said = ["Code", "Message"].map(|name| {
            let (_, rest) = body.split_once(&format!("<{name}>"))?;
            rest.split_once(&format!("</{name}>")).map(|(text, _)| text.to_owned())
        });
        let said = said.into_iter().flatten().collect::<Vec<_>>().join(": ");
        let said = if said.is_empty() { said } else { format!(" ({said})") };
        let signed = bucket.is_some_and(|bucket| bucket.credentials.is_some());
        let error = Error::new(Kind::Io, format!("the server answers {status}{said}"));
        let error = error.hint_if(hint(status, signed));
        let again = status.is_server_error() || matches!(status.as_u16(), 408 | 429);
        if !again || status == StatusCode::NOT_IMPLEMENTED {
            return Err(AttemptError::Fatal(error));
        }
        let wait = head.headers.get("retry-after").and_then(|it| it.to_str().ok()?.parse().ok());
        Err(AttemptError::Retry(error, wait.map(Duration::from_secs)))
    }

    /// The text of a response of at most `limit` bytes. Refuses one without a length, which may be truncated.
    pub(crate) fn text(&self, answer: Response<Body>, limit: u64) -> Result<String, AttemptError> {
        let ends = ["content-length", "transfer-encoding"];
        if !ends.iter().any(|name| answer.headers().contains_key(*name)) {
            return Err(unknown_length().into());
        }
        let bytes = self.start_of(answer.into_body(), limit)?;
        if bytes.len() as u64 > limit {
            let message = format!("the answer has more than {limit} bytes");
            return Err(Error::new(Kind::Limit, message).into());
        }
        String::from_utf8(bytes)
            .map_err(|error| Error::malformed("the answer is not UTF-8").cause(error).into())
    }

    /// The first bytes of a body: as many as `limit`, and one more if there is one.
    fn start_of(&self, body: Body, limit: u64) -> Result<Vec<u8>, AttemptError> {
        let mut reader = body.into_with_config().limit(u64::MAX).reader().take(limit + 1);
        let (mut bytes, mut piece) = (Vec::new(), vec![0; 16 << 10]);
        let mut watch = (Instant::now(), 0);
        loop {
            interrupt::check()?;
            match reader.read(&mut piece).map_err(broken_off)? {
                0 => return Ok(bytes),
                len => bytes.extend_from_slice(&piece[..len]),
            }
            self.refuse_slow(&mut watch, bytes.len() as u64)?;
        }
    }

    /// Fails if too few bytes arrived since the time and the position in `watch`.
    pub(crate) fn refuse_slow(
        &self,
        watch: &mut (Instant, u64),
        position: u64,
    ) -> Result<(), AttemptError> {
        let RetryPolicy { timeout, progress, .. } = self.policy;
        if watch.0.elapsed() < timeout {
            return Ok(());
        }
        let arrived = position - watch.1;
        if arrived < progress {
            let why = format!("{arrived} bytes in {} seconds", timeout.as_secs_f32());
            return Err(broken_off(io::Error::new(io::ErrorKind::TimedOut, why)));
        }
        *watch = (Instant::now(), position);
        Ok(())
    }
}

fn hint(status: StatusCode, signed: bool) -> Option<&'static str> {
    Some(match status.as_u16() {
        401 | 403 if signed => {
            "the credentials may lack permission to list or read it, or be for another server; see \
             AWS_PROFILE, AWS_ACCESS_KEY_ID and AWS_ENDPOINT_URL"
        }
        401 | 403 => {
            "requests were anonymous: set AWS_PROFILE, or AWS_ACCESS_KEY_ID and \
             AWS_SECRET_ACCESS_KEY, for an s3:// address; web servers get no credentials"
        }
        404 | 410 => "check the address; a lifecycle rule may have deleted an object",
        429 | 503 => "the server asks for fewer requests: try again later",
        status if status >= 500 => "the server failed: try again later",
        _ => return None,
    })
}

/// The error for a response of unknown length.
pub(crate) fn unknown_length() -> Error {
    Error::unsupported("the server does not state its length")
        .hint("use a server that sends Content-Length")
}

/// The error for an object that changed since it was first seen.
pub(crate) fn changed(how: &str) -> Error {
    Error::new(Kind::Changed, format!("the object was changed during the run: {how}"))
        .hint("run again when the upload is finished")
}
