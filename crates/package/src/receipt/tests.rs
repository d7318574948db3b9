use super::*;

#[test]
fn a_receipt_of_another_schema_is_refused_by_its_number() {
    let text = r#"{"schema":9,"rockpack_version":"","version":"1","release":"1","prefix":"/x",
        "content_date":0,"packages":[],"code_objects":[],"findings":[]}"#;
    for other in [text, r#"{"schema":9,"packages":"of another shape"}"#] {
        let error = Receipt::parse(other.as_bytes()).unwrap_err();
        assert_eq!(error.kind(), Kind::Unsupported);
        let expected = format!("receipt schema 9 is unknown, expected {SCHEMA}");
        assert!(error.full_text().contains(&expected), "{error:?}");
    }
    let known = text.replace('9', &SCHEMA.to_string());
    let receipt = Receipt::parse(known.as_bytes()).unwrap();
    assert_eq!(Receipt::parse(&receipt.to_bytes().unwrap()).unwrap(), receipt);
    let wheels = |schema: u32| {
        let text = format!(
            r#"{{"schema":{schema},"rockpack_version":"0","content_date":1,"wheels":[],
            "code_objects":[],"findings":[]}}"#
        );
        wheels::WheelReceipt::parse(text.as_bytes())
    };
    wheels(wheels::SCHEMA).unwrap();
    assert_eq!(wheels(wheels::SCHEMA + 1).unwrap_err().kind(), Kind::Unsupported);
}

/// Other tools read receipts: no name in them may change with the types after it.
#[test]
fn names_in_a_receipt_are_pinned() {
    let kinds = [
        "pre-depends",
        "depends",
        "recommends",
        "suggests",
        "enhances",
        "supplements",
        "provides",
        "conflicts",
        "breaks",
        "replaces",
        "obsoletes",
    ];
    let relations = kinds.map(|kind| format!(r#"{{"kind":"{kind}","name":"a"}}"#));
    let signs = ["<", "<=", "=", ">=", ">"].map(|sign| {
        format!(r#"{{"kind":"depends","name":"a","comparison":"{sign}","version":"1"}}"#)
    });
    let entries =
        ["directory", "link"].map(|kind| format!(r#""a-{kind}":{{"mode":493,"kind":"{kind}"}}"#));
    let files = r#""/x/":{"a":[1,"",420],"b":{"size":1,"mode":420,"kind":"file"}}"#;
    let folders = format!(r#""/":{{{}}},{files}"#, entries.join(","));
    let packages = ["host", "kernels", "kernels-common", "support", "meta"].map(|role| {
        let format = if role == "host" { "deb" } else { "rpm" };
        format!(
            r#"{{"id":"{role}","format":"{format}","file_name":"{role}","size":1,"installed_size":2,"sha256":"","role":"{role}","version":"1-1","metadata_sha256":"","relations":[{},{}],"folders":{{{folders}}}}}"#,
            relations.join(","), signs.join(",")
        )
    });
    let fields: [&str; 4] = [
        &format!(r#"{{"schema":{SCHEMA},"rockpack_version":"","version":"1""#),
        r#""release":"1","prefix":"/x","content_date":0"#,
        &format!(r#""packages":[{}]"#, packages.join(",")),
        r#""code_objects":[],"spdx":[{"file_name":"x","sha256":""}],"findings":[]}"#,
    ];
    let text = fields.join(",");
    let receipt = Receipt::parse(text.as_bytes()).unwrap();
    assert_eq!(serde_json::to_string(&receipt).unwrap(), text);
    for known in ["\"deb\"", "\"meta\"", "\"replaces\"", "\">=\"", "\"link\""] {
        assert!(Receipt::parse(text.replace(known, "\"other\"").as_bytes()).is_err(), "{known}");
    }
}

/// A receipt with a `.deb` and an `.rpm` of one package.
fn of_both_formats(deb: &str, rpm: &str) -> Result<Receipt> {
    let package = |format: &str, file_name: &str, paths: &str| {
        format!(
            r#"{{"id":"a","format":"{format}","file_name":"{file_name}","size":1,"installed_size":2,
            "sha256":"","role":"host","version":"1-1","relations":[],{paths}}}"#
        )
    };
    let packages = [package("rpm", "a-1-1.noarch.rpm", rpm), package("deb", "a_1-1_all.deb", deb)];
    let text = format!(
        r#"{{"schema":{SCHEMA},"rockpack_version":"0","version":"1","release":"1","prefix":"/x",
        "content_date":0,"packages":[{}],"code_objects":[],"findings":[]}}"#,
        packages.join(",")
    );
    Receipt::parse(text.as_bytes())
}

#[test]
fn paths_of_both_formats_are_stated_once() {
    let link = r#""link":{"mode":511,"kind":"link","target":"same"}"#;
    let same = format!(r#""same":[1,"s",420],{link}"#);
    let folders = |other: &str| format!(r#""folders":{{"/x/":{{{same},{other}}}}}"#);
    let [deb, rpm] =
        [r#""lib":[2,"l",420],"deb":[3,"d",420]"#, r#""lib":[2,"l",493]"#].map(folders);
    let receipt = of_both_formats(&deb, &rpm).unwrap();
    let text = String::from_utf8(receipt.to_bytes().unwrap()).unwrap();
    for entry in [
        r#""same":[1,"s",420]"#,
        link,
        r#""lib":[2,"l",420]"#,
        r#""lib":[2,"l",493]"#,
        r#""deb":[3,"d",420]"#,
        "shared_folders",
    ] {
        assert_eq!(text.matches(entry).count(), 1, "{entry}: {text}");
    }
    assert_eq!(Receipt::parse(text.as_bytes()).unwrap(), receipt);
    let paths = |index: usize| receipt.packages[index].members.iter().map(|it| it.path.as_str());
    assert_eq!(Vec::from_iter(paths(0)), ["/x/lib", "/x/link", "/x/same"]);
    assert_eq!(Vec::from_iter(paths(1)), ["/x/deb", "/x/lib", "/x/link", "/x/same"]);
}

#[test]
fn a_record_shares_its_paths_with_the_next_of_its_id() {
    let none = r#""folders":{}"#;
    let shared = r#""folders":{},"shared_folders":{"/x/":{"same":[1,"s",420]}}"#;
    for (deb, rpm, expected) in [(none, shared, [1, 1]), (shared, none, [0, 1])] {
        let receipt = of_both_formats(deb, rpm).unwrap();
        let found = receipt.packages.iter().map(|record| record.members.len());
        assert_eq!(Vec::from_iter(found), expected);
    }
    let twice = r#""folders":{"/x/":{"same":[1,"s",420]}}"#;
    for deb in [shared, twice] {
        of_both_formats(deb, shared).unwrap_err();
    }
}

/// Many entries of one long folder would take far more memory than the receipt.
#[test]
fn paths_take_no_more_than_their_receipt_allows() {
    parsed_folder(4096).unwrap();
    let error = parsed_folder(6000).unwrap_err().full_text();
    assert!(error.contains("the paths are too long for their number"), "{error}");
}

/// Parses a receipt with 1,000 links in a folder whose path has `length` bytes.
fn parsed_folder(length: usize) -> Result<Receipt> {
    let link = r#"{"kind":"link","mode":511,"target":"a"}"#;
    let entries: Vec<String> = (1000..2000).map(|name| format!(r#""{name}":{link}"#)).collect();
    let package = format!(
        r#"{{"id":"a","format":"deb","file_name":"a_1_all.deb","size":1,"installed_size":2,
        "sha256":"","role":"host","version":"1","relations":[],
        "folders":{{"/{}/":{{{}}}}}}}"#,
        "x".repeat(length - 2),
        entries.join(",")
    );
    let text = format!(
        r#"{{"schema":{SCHEMA},"rockpack_version":"0","version":"1","release":"1",
        "prefix":"/x","content_date":0,"packages":[{package}],"code_objects":[],
        "findings":[]}}"#
    );
    Receipt::parse(text.as_bytes())
}

#[test]
fn a_part_says_once_where_a_package_belongs() {
    parsed_part(r#""a.deb":1,"b.deb":2"#).unwrap();
    let error = parsed_part(r#""a.deb":1,"b.deb":2,"a.deb":2"#).unwrap_err();
    assert!(error.full_text().contains("`a.deb` is given twice"), "{error:?}");
    assert!(parsed_part(r#""a.deb":1},"index":2,"more":{"a.deb":2"#).is_err());
}

fn parsed_part(packages: &str) -> Result<Receipt> {
    let part = format!(r#"{{"index":1,"of":2,"plan_sha256":"","packages":{{{packages}}}}}"#);
    let text = format!(
        r#"{{"schema":{SCHEMA},"rockpack_version":"","version":"1","release":"1","prefix":"/x",
        "content_date":0,"part":{part},"packages":[],"code_objects":[],"findings":[]}}"#
    );
    Receipt::parse(text.as_bytes())
}

fn parsed(package: &str, more: &str) -> Result<Receipt, String> {
    let text = format!(
        r#"{{"schema":{SCHEMA},"rockpack_version":"","version":"1","release":"1","prefix":"/x",
        "content_date":0,"packages":[{package}],"findings":[],{more}}}"#
    );
    Receipt::parse(text.as_bytes()).map_err(|error| error.full_text())
}

#[test]
fn words_are_those_that_packages_can_have() {
    let package = r#"{"id":"rocm-x","format":"deb","file_name":"rocm-x_1.deb","size":1,
        "installed_size":2,"sha256":"","role":"kernels","group":"gfx11X","archs":["gfx1100"],
        "version":"1:1-1","relations":[],"folders":{}}"#;
    let none = r#""code_objects":[]"#;
    parsed(package, none).unwrap();
    for (good, bad, what) in [
        (r#""rocm-x""#, r#""rocm x""#, "`rocm x` is not a valid name"),
        (r#""rocm-x""#, r#""-rf""#, "is not a valid name"),
        ("rocm-x_1.deb", "../x_1.deb", "is not a valid name"),
        ("gfx11X", "gfx11/X", "is not a valid name"),
        ("gfx1100", "gfx1100\\u001b[2J", "`gfx1100\\u{1b}[2J` is not a valid name"),
        ("1:1-1", "1-1) | bash", "is not a valid version"),
    ] {
        let error = parsed(&package.replace(good, bad), none).unwrap_err();
        assert!(error.contains(what), "{error}");
    }
    parsed(package, &part_fields("a_1.deb")).unwrap();
    assert!(parsed(package, &part_fields("a/b.deb")).unwrap_err().contains("is not a valid name"));
}

fn part_fields(file: &str) -> String {
    let part = format!(r#"{{"index":1,"of":1,"plan_sha256":"","packages":{{"{file}":1}}}}"#);
    format!(r#""code_objects":[],"part":{part}"#)
}

#[test]
fn means_of_updates_are_those_that_builds_write() {
    let relation = r#"{"relations":[{"kind":"breaks","name":"y","comparison":"<","version":"1"}]}"#;
    let path = r#"{"paths":[{"path":"/x","was":"link","is":"directory","target":"y",
        "members":["a/b"]}]}"#;
    parsed_update(relation).unwrap();
    parsed_update(path).unwrap();
    for (good, bad) in [
        ("breaks", "depends"),
        (r#""y""#, r#""y\nPre-Depends: z""#),
        (r#""1""#, r#""1) | z""#),
        (r#""<""#, r#""=""#),
    ] {
        parsed_update(&relation.replace(good, bad)).unwrap_err();
    }
    for (good, bad) in
        [(r#""/x""#, r#""x""#), (r#""y""#, r#""y\nz""#), ("a/b", "../b"), ("a/b", "a\\nb")]
    {
        parsed_update(&path.replace(good, bad)).unwrap_err();
    }
}

fn parsed_update(update: &str) -> Result<Receipt, String> {
    let package = format!(
        r#"{{"id":"x","format":"deb","file_name":"x.deb","size":1,"installed_size":2,
        "sha256":"","role":"host","version":"1-1","relations":[],
        "folders":{{}},"update":{update}}}"#
    );
    parsed(&package, r#""code_objects":[]"#)
}

/// Of two records for one path, one would be believed and the other ignored.
#[test]
fn a_path_is_there_once() {
    let folders = r#""/":{"x/y":[1,"s",420]},"/x/":{"y":[1,"s",420]}"#;
    let package = format!(
        r#"{{"id":"x","format":"rpm","file_name":"x.rpm","size":1,"installed_size":2,"sha256":"",
        "role":"host","version":"1-1","relations":[],"folders":{{{folders}}}}}"#
    );
    let error = parsed(&package, r#""code_objects":[]"#).unwrap_err();
    assert!(error.contains("a path is given twice"), "{error}");
}
