use super::*;

#[test]
fn priorities_rise_with_versions() {
    assert_eq!(["7.1.2", "7.1", "7.1.0~rc1"].map(priority_of), [70_102, 70_100, 70_100]);
    assert!(priority_of("7.10.0") > priority_of("7.9.5"));
    assert!(priority_of("10.0") > priority_of("7.99.99"));
    assert_eq!(priority_of("99999999999.300.1"), 1_000_009_901);
}

fn priority_of(version: &str) -> u32 {
    Version::new(version, "1").unwrap().priority()
}

#[test]
fn pre_releases_sort_before_the_release() {
    for (text, expected) in [
        ("7.1.0", "7.1.0"),
        ("7.1.0-rc1", "7.1.0~rc1"),
        ("7.1.0rc1", "7.1.0~rc1"),
        ("7.1.0~rc1", "7.1.0~rc1"),
        ("7.1.0-pre2", "7.1.0~pre2"),
        ("7.10.0a20251008", "7.10.0~a20251008"),
        ("7.1.0.dev0", "7.1.0~dev0"),
        ("7.1.0-20251104", "7.1.0~20251104"),
        ("7.1.0-rc1+git5", "7.1.0~rc1+git5"),
        ("7.1.0+git5", "7.1.0+git5"),
        ("7.1.0.post1", "7.1.0.post1"),
    ] {
        let version = Version::new(text, "1").unwrap();
        assert_eq!(version.full(Format::Deb), format!("{expected}-1"), "{text}");
        assert_eq!(version.upstream(Format::Rpm), expected);
    }
}

#[test]
fn what_a_format_cannot_write_is_refused() {
    for text in ["", "v7", "7.1.0-1", "7.1_0", "1:7.1", "7.1 0", "7.1.0-rcx", "7.1^1", "7/1"] {
        assert!(Version::new(text, "1").is_err(), "{text}");
    }
    for release in ["", "1-2", "1_2", "1:2"] {
        assert!(Version::new("7.1.0", release).is_err(), "{release}");
    }
}

#[test]
fn formats_have_versions_of_one_release() {
    let version = Version::of_formats(["7.15.0~pre2", "7.15.0rc2"], ["2", "3"]).unwrap();
    assert_eq!(version.full(Format::Deb), "7.15.0~pre2-2");
    assert_eq!(version.full(Format::Rpm), "7.15.0~rc2-3");
    assert!(version.is_pre_release() && !version.is_same_in_formats());
    assert_eq!(version.next_patch().as_deref(), Some("7.15.1~"));
    assert!(version.is_of_release("7.15.0~rc2-9", Format::Rpm));
    assert!(!version.is_of_release("7.15.0~rc2-9", Format::Deb));
    for (deb, rpm) in [("7.15.0", "7.15.1"), ("7.15.0", "7.15"), ("7.15.0~a1", "7.16.0~a1")] {
        let error = Version::of_formats([deb, rpm], ["1"; 2]).unwrap_err().to_string();
        assert!(error.contains(deb) && error.contains(rpm), "{error}");
    }
    assert!(Version::of_formats(["7.15.0", "v7"], ["1"; 2]).is_err());
}

#[test]
fn release_types_have_the_suffixes_of_therock() {
    for (release_type, deb, rpm) in [
        ("dev:20261120g1a2b3c4d", "7.15.0~dev20261120-1", "7.15.0~20261120g1a2b3c4d-1"),
        ("ci:20261120g1a2b3c4d", "7.15.0~dev20261120-1", "7.15.0~20261120g1a2b3c4d-1"),
        ("nightly:20261120", "7.15.0~20261120-1", "7.15.0~20261120-1"),
        ("prerelease:2", "7.15.0~pre2-1", "7.15.0~rc2-1"),
        ("release", "7.15.0-1", "7.15.0-1"),
    ] {
        let version = Version::new("7.15.0", "1").unwrap().with_release_type(release_type).unwrap();
        assert_eq!(Format::ALL.map(|format| version.full(format)), [deb, rpm]);
    }
    for wrong in [
        "",
        "dev",
        "dev:20261120",
        "dev:20261120g1a2b3c",
        "dev:20261120g1A2B3C4D",
        "dev:2026g1a2b3c4d",
        "nightly:",
        "nightly:2026112",
        "nightly:20261120g1a2b3c4d",
        "prerelease:",
        "prerelease:rc2",
        "release:",
        "release:1",
        "weekly:20261120",
    ] {
        let error = Version::new("7.15.0", "1").unwrap().with_release_type(wrong).unwrap_err();
        assert!(error.to_string().contains("is not a valid release type"), "{wrong}");
    }
    let candidate = Version::new("7.15.0~rc1", "1").unwrap();
    let error = candidate.with_release_type("release").unwrap_err().to_string();
    assert!(error.contains("7.15.0~rc1 already is a pre-release"), "{error}");
}

#[test]
fn an_epoch_stands_in_front() {
    let version = Version::new("7.1.0", "1").unwrap();
    assert_eq!(version.clone().with_epoch(Some(2)).full(Format::Rpm), "2:7.1.0-1");
    assert_eq!(version.clone().with_epoch(Some(0)), version.with_epoch(None));
}

#[test]
fn a_tag_ends_the_release_of_its_format() {
    let version = Version::new("7.1.0", "1").unwrap();
    let tagged = version.clone().with_tag(Format::Deb, "~deb12").unwrap();
    let tagged = tagged.with_tag(Format::Rpm, ".el9").unwrap();
    assert_eq!(tagged.full(Format::Deb), "7.1.0-1~deb12");
    assert_eq!(tagged.full(Format::Rpm), "7.1.0-1.el9");
    assert_eq!(tagged.set_release(), "1");
    for illegal in ["-deb12", ""] {
        assert!(version.clone().with_tag(Format::Deb, illegal).is_err());
    }
}

#[test]
fn the_next_patch_version_is_above_all_releases_of_this_one() {
    for (text, expected) in [
        ("7.1.0", Some("7.1.1~")),
        ("7.1", Some("7.1.1~")),
        ("7", Some("7.0.1~")),
        ("7.1.9+git5", Some("7.1.10~")),
        ("7.1.0.70100", Some("7.1.1~")),
        ("7.12.0-20251104", Some("7.12.1~")),
        ("7.1.x", None),
        ("7.1.18446744073709551615", None),
    ] {
        let version = Version::new(text, "9").unwrap();
        assert_eq!(version.next_patch().as_deref(), expected, "{text}");
        for (format, next) in Format::ALL.into_iter().flat_map(|f| expected.map(|next| (f, next))) {
            let full = version.full(format);
            assert!(format.compare_versions(&full, next).is_lt(), "{text}");
            let bare = next.trim_end_matches('~');
            for newer in [format!("{bare}-rc1"), bare.to_owned()] {
                let newer = Version::new(&newer, "1").unwrap().full(format);
                assert!(format.compare_versions(&newer, next).is_gt(), "{text}");
            }
        }
    }
    let version = Version::new("7.1.0", "1").unwrap().with_epoch(Some(2));
    assert_eq!(version.next_patch().as_deref(), Some("2:7.1.1~"));
}

#[test]
fn the_series_is_major_and_minor() {
    for (text, expected) in [("7.1.0", Some("7.1")), ("7.1~rc1", Some("7.1")), ("7", None)] {
        let series = Version::new(text, "1").unwrap().series();
        assert_eq!(series.as_deref(), expected, "{text}");
    }
}
