//! Files for clients, which nobody signs, and suites in other folders than their own.

use std::fs;
use std::path::Path;

use support::example::rockpack;
use support::gpg_keys::key;
use support::repo_fixture::{
    deb, failed_checks, plain_spec, publish, repo, rpm, verify, verify_by,
};
use support::tools::{need, told};

/// One change of a repository at a time, undone before the next.
#[test]
fn what_leads_clients_astray_is_named() {
    need(&["gpg", "gpgconf", "dpkg-deb", "rpmbuild"]);
    let room = tempfile::tempdir().unwrap();
    let (packages, out) = (room.path().join("packages"), room.path().join("repo"));
    deb(&packages, ("one", "1", "amd64"), "");
    rpm(&packages, &plain_spec("plain", "1", ""));
    let [own, other] = ["own", "other"].map(|name| key(room.path(), name, "ed25519"));
    let url = "https://repo.example/rocm";
    publish(repo(&[&packages], &out).args(["--url", url, "--sign-key"]).arg(&own.secret));
    let names: Vec<String> = fs::read_dir(&out)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .map(|name| name.into_string().unwrap())
        .collect();
    let named = |ending: &str| {
        names.iter().find(|name| name.ends_with(ending)).unwrap_or_else(|| panic!("{names:?}"))
    };
    let [sources, dnf, keyring] = [".sources", ".repo", "-archive-keyring.asc"].map(named);
    assert_passes(&out, &own.public);
    let evil = "https://evil.example/rocm";
    let second = format!("{url}\n {evil}");
    let changes: [(&str, &str, &str, &str); 17] = [
        (sources, url, &second, "leads to https://evil.example/rocm"),
        (sources, "Types: deb", "Types: deb\nTrusted:\n yes", "says `trusted: yes`"),
        (sources, "Types: deb", "Types: deb\nTrusted: on", "says `trusted: on`"),
        (sources, "Types: deb", "Types: deb\nCheck-Date: disable", "says `check-date: disable`"),
        (sources, "Types: deb", "Types: deb\nInclude: x", "has the line `include: x`"),
        (
            sources,
            "Signed-By: ",
            "Signed-By: /usr/share/keyrings/evil.gpg ",
            "has the line `signed-by: /usr/share/keyrings/evil.gpg ",
        ),
        (dnf, "enabled=1", "enabled=1\nsslverify=\n 0", "says `sslverify: 0`"),
        (dnf, "enabled=1", "enabled=1\nproxy=http://evil.example", "has the line `proxy: "),
        (dnf, "\nenabled", "\n https://evil.example/rocm\nenabled", "leads to https://evil."),
        (dnf, ".asc", ".asc\n https://evil.example/rocm/k", "leads to https://evil."),
        (dnf, "repo_gpgcheck=1", "repo_gpgcheck=\n off", "does not have clients check"),
        (sources, url, evil, "leads to https://evil.example/rocm"),
        (dnf, url, evil, "leads to https://evil.example/rocm"),
        (sources, "Types: deb", "Types: deb\nTrusted: yes", "says `trusted: yes`"),
        (sources, "Suites: stable", "Suites: absent", "names the suite absent"),
        (sources, "Signed-By: ", "X-Signed-By: ", "does not have clients check"),
        (dnf, "repo_gpgcheck=1", "repo_gpgcheck=0", "does not have clients check"),
    ];
    for (name, before, after, part) in changes {
        let text = fs::read_to_string(out.join(name)).unwrap();
        assert!(text.contains(before), "{text}");
        fs::write(out.join(name), text.replace(before, after)).unwrap();
        let said = verify(&out);
        assert_eq!(failed_checks(&said), ["V104"], "{said}");
        assert!(said.contains(&format!("{name}: {part}")), "{part}: {said}");
        fs::write(out.join(name), text).unwrap();
    }
    // What users may add.
    for (name, before, after) in [
        (sources, "Types: deb", "# ours\nTypes: deb\nEnabled: no\nLanguages: none\nTrusted: No"),
        (dnf, "enabled=1", "enabled=0\npriority=10\nsslverify=true\nmetadata_expire=6h"),
        (dnf, "repo_gpgcheck=1", "repo_gpgcheck=True"),
    ] {
        let text = fs::read_to_string(out.join(name)).unwrap();
        assert!(text.contains(before), "{text}");
        fs::write(out.join(name), text.replace(before, after)).unwrap();
        assert_passes(&out, &own.public);
        fs::write(out.join(name), text).unwrap();
    }
    let text = fs::read(out.join(keyring)).unwrap();
    fs::copy(&other.public, out.join(keyring)).unwrap();
    let parts = ["has no key by which an index", "has none of the keys given"];
    for (said, part) in [verify(&out), verify_by(&out, &own.public)].into_iter().zip(parts) {
        assert_eq!(failed_checks(&said), ["V104"], "{said}");
        assert!(said.contains(part), "{said}");
    }
    // A key beside the right one.
    let both = [&text[..], &fs::read(&other.public).unwrap()].concat();
    fs::write(out.join(keyring), both).unwrap();
    assert!(failed_checks(&verify(&out)).is_empty());
    let said = verify_by(&out, &own.public);
    assert_eq!(failed_checks(&said), ["V104"], "{said}");
    assert!(said.contains("has the key ") && said.contains(" beside those given"), "{said}");
    let mut by_both = rockpack();
    by_both.arg("verify").arg(&out).arg("--key").arg(&own.public).arg("--key").arg(&other.public);
    assert!(failed_checks(&told(&mut by_both)).is_empty());
    fs::write(out.join(keyring), text).unwrap();
    // Keys in the place of the name of a keyring.
    let text = fs::read_to_string(out.join(sources)).unwrap();
    fs::write(out.join(sources), with_keys_inside(&text, &[&own.public])).unwrap();
    assert!(failed_checks(&verify_by(&out, &own.public)).is_empty());
    for (keys, part) in [
        (&[&*other.public][..], "has none of the keys given"),
        (&[&*own.public, &*other.public], "beside those given"),
    ] {
        fs::write(out.join(sources), with_keys_inside(&text, keys)).unwrap();
        let said = verify_by(&out, &own.public);
        assert_eq!(failed_checks(&said), ["V104"], "{said}");
        assert!(said.contains(&format!("{sources}: has ")) && said.contains(part), "{said}");
    }
    fs::write(out.join(sources), text).unwrap();
    assert_passes(&out, &own.public);
    fs::remove_file(out.join(sources)).unwrap();
    fs::rename(out.join("dists/stable"), out.join("dists/testing")).unwrap();
    let said = verify_by(&out, &own.public);
    assert!(failed_checks(&said).contains(&"V078".to_owned()), "{said}");
    assert!(said.contains("lies in the folder of the suite testing"), "{said}");
}

fn assert_passes(out: &Path, key: &Path) {
    for said in [verify(out), verify_by(out, key)] {
        assert!(failed_checks(&said).is_empty(), "{said}");
    }
}

fn with_keys_inside(sources: &str, keys: &[&Path]) -> String {
    let block: String = keys
        .iter()
        .map(|key| fs::read_to_string(key).unwrap())
        .map(|keys| keys.replace("\n\n", "\n.\n").replace('\n', "\n "))
        .collect();
    let line = sources.lines().find(|line| line.starts_with("Signed-By: ")).unwrap();
    sources.replace(line, &format!("Signed-By:\n {}", block.trim_end()))
}
