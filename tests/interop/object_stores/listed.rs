//! Listings: pages, odd keys, and the keys of TheRock's buckets.

use std::collections::BTreeSet;

use support::example::files;

use super::*;

/// A listing as Amazon sends it, with a key for the folder itself, a name with an empty part, and the
/// entity tag of an object that was uploaded in parts. Source: "ListObjectsV2" in the reference of its API.
const AMAZON: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>amazon</Name><Prefix>run/</Prefix>
<KeyCount>4</KeyCount><MaxKeys>1000</MaxKeys><Delimiter>/</Delimiter><EncodingType>url</EncodingType>
<IsTruncated>false</IsTruncated>
<Contents><Key>run/</Key><LastModified>2026-11-28T16:10:35.000Z</LastModified>
<ETag>&quot;d41d8cd98f00b204e9800998ecf8427e&quot;</ETag><Size>0</Size><StorageClass>STANDARD</StorageClass></Contents>
<Contents><Key>run/a+b_lib_generic.tar.zst</Key><LastModified>2026-11-28T16:10:35.000Z</LastModified>
<ETag>&quot;0cc175b9c0f1b6a831c399e269772661-3&quot;</ETag><ChecksumAlgorithm>CRC64NVME</ChecksumAlgorithm>
<ChecksumType>FULL_OBJECT</ChecksumType><Size>5368709120</Size><StorageClass>INTELLIGENT_TIERING</StorageClass></Contents>
<Contents><Key>run/a%2Bb_lib_generic.tar.zst</Key><LastModified>2026-11-28T16:10:35.000Z</LastModified>
<ETag>&quot;92eb5ffee6ae2fec3ad71c777531578f&quot;</ETag><Size>7</Size><StorageClass>STANDARD</StorageClass></Contents>
<CommonPrefixes><Prefix>run//</Prefix></CommonPrefixes></ListBucketResult>
"#;

/// The index page that TheRock's server makes of a run.
fn index(names: &BTreeSet<String>) -> String {
    let rows = names
        .iter()
        .map(|name| format!("<tr><td><a href=\"{name}\">{name}</a></td><td>1</td></tr>\n"));
    format!(
        "<html>\n<body>\n<h1>Artifacts</h1>\n<a href=\"../\">..</a> <a href=\"logs/gfx1151/index.html\">Logs</a>\n\
         <a href=\"https://github.com/ROCm/TheRock\">TheRock</a>\n<table>\n{}</table></body></html>\n",
        rows.collect::<String>()
    )
}

/// Writes the listing of [`AMAZON`], and the buckets of TheRock: all families of a run are in one folder, in the
/// bucket of forks below a folder of the repository.
pub fn fill(buckets: &Path) {
    // Python's server answers requests for a folder with this file.
    let amazon = buckets.join("amazon");
    fs::create_dir(&amazon).unwrap();
    fs::write(amazon.join("index.html"), AMAZON).unwrap();
    let run = buckets.join("therock-ci-artifacts").join(RUN);
    let shard = |name: &str| tree(&buckets.join("private/run-17").join(name));
    let mut objects = shard("gfx110X-build");
    let of_family = |(name, _): &(String, _)| name.starts_with("blas_");
    objects.extend(shard("gfx1151-build").into_iter().filter(of_family));
    plant(&objects, &run, false);
    let names = support::example::names(&run);
    fs::write(run.join("index.html"), index(&names)).unwrap();
    for file in [
        "logs/gfx1151/build.log",
        "logs/gfx1151/index.html",
        "manifests/gfx1151/therock_manifest.json",
    ] {
        fs::create_dir_all(run.join(file).parent().unwrap()).unwrap();
        fs::write(run.join(file), "{}\n").unwrap();
    }
    let fork = buckets.join("therock-ci-artifacts-external/someone-TheRock").join(RUN);
    plant(&tree(&run), &fork, false);
}

/// The names and sizes that a dry run shows.
#[track_caller]
fn shown(command: Command, address: &str, out: &Path) -> Vec<(String, u64)> {
    let result = fetched(fetch(command, &[address], out).arg("--dry-run"));
    assert!(!out.exists(), "{address}");
    let objects = result["objects"].as_array().unwrap().iter();
    let named = objects.map(|object| {
        let path = Path::new(object["path"].as_str().unwrap()).strip_prefix(out).unwrap();
        (path.to_str().unwrap().to_owned(), object["bytes"].as_u64().unwrap())
    });
    named.collect()
}

#[test]
fn all_pages_of_a_listing_are_read() {
    let room = tempfile::tempdir().unwrap();
    let out = room.path().join("out");
    for (store, count) in [("seaweedfs", 1200), ("rclone", 5000)] {
        let found = shown(signed(servers().url(store)), "s3://many", &out);
        let expected =
            (0..count).map(|number| (format!("many/part{number:04}_lib_generic.tar.zst"), 0_u64));
        assert!(found.iter().cloned().eq(expected), "{store}: {}", found.len());
    }
}

#[test]
fn odd_keys_are_fetched_under_their_names() {
    let servers = servers();
    let room = tempfile::tempdir().unwrap();
    let expected = files(&servers.buckets.join("odd"));
    assert_eq!(expected.len(), ODD.len());
    let check = |command: Command, address: &str, name: &str| {
        let out = room.path().join(name);
        run(&mut fetch(command, &[address], &out));
        assert!(files(&out) == expected, "{address}: {:?}", files(&out).keys());
    };
    for store in STORES {
        check(signed(servers.url(store)), "s3://odd/run/", store);
    }
    for server in WEB {
        check(client(), &servers.web(server, "odd/run"), server);
    }
    check(client(), &servers.listing("odd", "run"), "listing");
}

#[test]
fn a_listing_of_amazon_is_understood() {
    let room = tempfile::tempdir().unwrap();
    let out = room.path().join("out");
    let address = format!("{}/amazon?list-type=2&prefix=run/", servers().url("whole"));
    let found = shown(client(), &address, &out);
    let expected =
        [("run/a b_lib_generic.tar.zst", 5_u64 << 30), ("run/a+b_lib_generic.tar.zst", 7)];
    assert_eq!(found, expected.map(|(name, size)| (name.to_owned(), size)));
}

/// The keys of a run: `RUN-linux/NAME_COMPONENT_FAMILY.tar.zst`, checksums, logs, manifests and an index page.
#[test]
fn runs_of_therock_are_single_shards() {
    let servers = servers();
    let packages = |mut files: BTreeMap<String, Vec<u8>>| {
        let receipt: Value =
            serde_json::from_slice(&files.remove("packages.json").unwrap()).unwrap();
        // On disk, folders beside the artifacts are passed over with a note, too.
        files.insert("packages".to_owned(), receipt["packages"].to_string().into_bytes());
        files
    };
    let folder = servers.buckets.join("therock-ci-artifacts").join(RUN);
    let expected = packages(built(client(), &[folder.to_str().unwrap()]));
    let fork = format!("s3://therock-ci-artifacts-external/someone-TheRock/{RUN}/");
    let anonymous = |url: &str| {
        let mut command = client();
        command.env("AWS_ENDPOINT_URL", url);
        command
    };
    let url = servers.url("seaweedfs");
    for (command, address) in [
        (anonymous(url), format!("s3://therock-ci-artifacts/{RUN}/")),
        (anonymous(url), fork),
        (signed(servers.url("rclone")), format!("s3://therock-ci-artifacts/{RUN}")),
        (client(), servers.listing("therock-ci-artifacts", RUN)),
        (client(), servers.web("whole", &format!("therock-ci-artifacts/{RUN}"))),
    ] {
        let found = packages(built(command, &[&address]));
        assert_same(&found, &expected, &address);
    }
}
