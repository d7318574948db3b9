//! Credentials, proxies and certificates.

use support::example::files;

use super::*;

const SHARD: &str = "gfx1151-build";
/// A shard that needs no key on SeaweedFS, ...
const PUBLIC: &str = "s3://public/run-17/gfx1151-build/";
/// ... and the same one where it needs one.
const PRIVATE: &str = "s3://private/run-17/gfx1151-build/";

/// Fails unless the command can fetch the shard at `address`.
#[track_caller]
fn gets(command: Command, address: &str) {
    let room = tempfile::tempdir().unwrap();
    run(&mut fetch(command, &[address], room.path()));
    let expected = files(&servers().buckets.join("private/run-17").join(SHARD));
    assert!(files(&room.path().join(SHARD)) == expected);
}

/// The errors of the command, which must not be able to fetch the shard at `address`.
#[track_caller]
fn gets_not(command: Command, address: &str) -> String {
    let room = tempfile::tempdir().unwrap();
    let out = room.path().join("out");
    refused(&mut fetch(command, &[address], &out), &out)
}

#[test]
fn refused_keys_are_errors_that_name_no_secret() {
    let wrong = ("AWS_SECRET_ACCESS_KEY", "neverprinted/+=y", "SignatureDoesNotMatch");
    let unknown = ("AWS_ACCESS_KEY_ID", "AKIAUNKNOWN", "InvalidAccessKeyId");
    for (store, (variable, value, code)) in
        STORES.into_iter().flat_map(|store| [wrong, unknown].map(|row| (store, row)))
    {
        let room = tempfile::tempdir().unwrap();
        let [out, cache] = ["out", "cache"].map(|name| room.path().join(name));
        let command = || {
            let mut command = signed(servers().url(store));
            command.env(variable, value);
            command
        };
        let mut fetch = fetch(command(), &[PRIVATE], &out);
        let mut build = build(command(), &[PRIVATE], &out);
        build.arg("--fetch-cache").arg(cache);
        for command in [&mut fetch, &mut build] {
            let said = refused(command.arg("-v"), &out);
            for expected in ["s3://private/run-17/", "403", code] {
                assert!(said.contains(expected), "{store}: {said}");
            }
            assert_hides(said.as_bytes(), store);
        }
        assert!(files(room.path()).is_empty(), "{:?}", files(room.path()).keys());
    }
}

#[test]
fn requests_without_a_key_are_anonymous() {
    let anonymous = || {
        let mut command = client();
        command.env("AWS_ENDPOINT_URL_S3", servers().url("seaweedfs"));
        command
    };
    gets(anonymous(), PUBLIC);
    let said = gets_not(anonymous(), PRIVATE);
    assert!(
        said.contains("403") && said.contains("AccessDenied") && said.contains(PRIVATE),
        "{said}"
    );
}

#[test]
fn profiles_have_keys_and_endpoints() {
    let url = servers().url("seaweedfs");
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join(".aws");
    let [credentials, config] = ["credentials", "config"].map(|name| folder.join(name));
    fs::create_dir(&folder).unwrap();
    let section = |name: &str, secret: &str| {
        format!("[{name}]\naws_access_key_id = {KEY}\naws_secret_access_key = {secret}\n\n")
    };
    let text = format!("# Keys\n{}{}", section("default", "wrong"), section("judge", SECRET));
    fs::write(&credentials, text).unwrap();
    let text = format!(
        "[default]\nregion = us-east-2\n[profile judge]\nendpoint_url = {url}\nregion = eu-central-1\n"
    );
    fs::write(&config, text).unwrap();

    let at_home = |profile: Option<&str>| {
        let mut command = client();
        command.env("HOME", home.path()).envs(profile.map(|profile| ("AWS_PROFILE", profile)));
        command
    };
    gets(at_home(Some("judge")), PRIVATE);
    let mut elsewhere = client();
    elsewhere.env("AWS_SHARED_CREDENTIALS_FILE", &credentials).env("AWS_CONFIG_FILE", &config);
    elsewhere.env("AWS_PROFILE", "judge");
    gets(elsewhere, PRIVATE);
    // The environment is asked first.
    let mut own = at_home(None);
    own.env("AWS_ENDPOINT_URL", url)
        .env("AWS_ACCESS_KEY_ID", KEY)
        .env("AWS_SECRET_ACCESS_KEY", SECRET);
    gets(own, PRIVATE);

    let mut default = at_home(None);
    default.env("AWS_ENDPOINT_URL", url);
    let said = gets_not(default, PRIVATE);
    assert!(said.contains("SignatureDoesNotMatch"), "{said}");
    let said = gets_not(at_home(Some("absent")), PRIVATE);
    assert!(said.contains("absent") && said.contains("AWS_PROFILE"), "{said}");
}

#[test]
fn proxies_of_the_environment_are_used() {
    let url = servers().url("seaweedfs");
    let proxy = Recorder::start(&[]);
    let mut asked = 0;
    for (variable, exceptions, is_used) in [
        ("HTTP_PROXY", "", true),
        ("http_proxy", "example.org,.example.com", true),
        ("ALL_PROXY", "", true),
        ("HTTP_PROXY", "127.0.0.1", false),
    ] {
        let mut command = signed(url);
        command.env(variable, &proxy.url).env("NO_PROXY", exceptions);
        gets(command, PRIVATE);
        let requests = proxy.requests();
        assert_eq!(requests.len() > asked, is_used, "{variable}: {requests:?}");
        asked = requests.len();
    }
    // As a proxy has it: a whole URL, or a tunnel to the host.
    let host = url.strip_prefix("http://").unwrap();
    for request in proxy.requests() {
        let target = request["target"].as_str().unwrap();
        assert!(target.starts_with(url) || target == host, "{request}");
    }
}

#[test]
fn certificates_are_those_that_the_system_trusts() {
    need(&["openssl", "sh"]);
    let store = servers().url("seaweedfs");
    let room = tempfile::tempdir().unwrap();
    run(Command::new("sh").arg(script("certificates.sh")).current_dir(room.path()));
    let [trusted, other, own] =
        ["ca.pem", "other.pem", "server.pem"].map(|name| room.path().join(name));
    let server = Recorder::start(&["--to", store, "--certificate", own.to_str().unwrap()]);
    let url = server.url.replace("http://127.0.0.1", "https://localhost");
    let trusting = |certificates: &Path| {
        let mut command = signed(&url);
        command.env("SSL_CERT_FILE", certificates);
        command
    };
    gets(trusting(&trusted), PRIVATE);
    for command in [trusting(&other), signed(&url)] {
        let begin = std::time::Instant::now();
        let said = gets_not(command, PRIVATE);
        assert!(said.contains("certificate") && said.contains(PRIVATE), "{said}");
        // Another attempt would not help.
        assert!(begin.elapsed().as_secs() < 10, "{said}");
    }
    let proxy = Recorder::start(&[]);
    let mut command = trusting(&trusted);
    command.env("HTTPS_PROXY", &proxy.url);
    gets(command, PRIVATE);
    let requests = proxy.requests();
    assert!(
        !requests.is_empty() && requests.iter().all(|request| request["method"] == "CONNECT"),
        "{requests:?}"
    );
}
