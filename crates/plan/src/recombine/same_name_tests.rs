use rockpack_core::content::Content;
use serde_json::{Value, json};

use super::super::fixture::{ArtifactBuilder, join, wrapper};
use rockpack_report::Code;
use rockpack_split::SharedFile;

const VERIFY: &str = "[components.x]\nverify_generic_artifacts_match = true";

/// An artifact in an archive of its own.
fn packed(shard: &str) -> ArtifactBuilder {
    let digest = shard.bytes().fold(0, u8::wrapping_add);
    ArtifactBuilder::new(shard, "x_lib_generic").packed(digest)
}

/// The findings about artifacts of one name.
fn found(parts: Vec<ArtifactBuilder>, toml: &str) -> Vec<Value> {
    let recombined = join(parts, toml).unwrap();
    let own = recombined.findings.iter().filter(|it| it.code() == Some(Code::ArtifactsDiffer));
    own.map(|finding| serde_json::to_value(finding).unwrap()).collect()
}

/// The end of the message about two artifacts.
fn difference(one: ArtifactBuilder, two: ArtifactBuilder) -> String {
    let all = found(vec![one, two], "");
    let [finding] = all.as_slice() else { panic!("{all:?}") };
    assert_eq!(finding["subject"], "two/x_lib_generic");
    let start = "differs from one/x_lib_generic, whose files take precedence, in ";
    finding["message"].as_str().unwrap().strip_prefix(start).unwrap().to_owned()
}

#[test]
fn every_kind_of_difference_is_named() {
    let (one, two) = (|| packed("one"), || packed("two"));
    let (file, link) = (|| one().plain("lib/a", "1"), || one().link("lib/a", "b"));
    for (one, two, expected) in [
        (file(), two().plain("lib/a", "12"), "has different content: 1 and 2 bytes"),
        (file(), two().plain("lib/a", "2"), "has different content in its 1 bytes"),
        (file(), two().program("lib/a", "1"), "is executable on one side only (mode 664 and 775)"),
        (link(), two().link("lib/a", "c"), "is a link to b and to c"),
        (link(), two().plain("lib/a", "1"), "is a link on one side only"),
    ] {
        assert_eq!(difference(one, two), format!("1 host file (lib/a {expected})"));
    }
    let alone = difference(file(), two().plain("lib/b", "1").link("lib/c", "b"));
    let expected =
        "3 host files (lib/a is only in one, lib/b is only in two, lib/c is only in two)";
    assert_eq!(alone, expected);
}

/// Sizes, modes and links give three examples, so that no content is read.
#[test]
fn examples_are_few_and_the_count_says_that_files_were_not_compared() {
    let one = packed("one").plain("lib/bytes", "abc").plain("lib/same", "1").plain("lib/only", "1");
    let two = packed("two").plain("lib/bytes", "abd").plain("lib/same", "1");
    let one = one.link("lib/link", "same").plain("lib/size", "1").program("lib/tool", "12");
    let two = two.link("lib/link", "size").plain("lib/size", "12").plain("lib/tool", "1");
    let all = found(vec![one, two], "");
    let message = "differs from one/x_lib_generic, whose files take precedence, in at least 4 host files \
                   (lib/link is a link to same and to size, lib/size has different content: 1 and 2 bytes, \
                   lib/tool is executable on one side only (mode 775 and 664))";
    let expected = json!([{
        "code": "R161", "name": "artifacts-differ", "severity": "note",
        "subject": "two/x_lib_generic", "message": message,
        "other": { "shard": "two", "artifact": "x_lib_generic" },
        "first": { "shard": "one", "artifact": "x_lib_generic" },
        "different": 4, "not_compared": 2,
        "examples": [
            { "path": "lib/link", "difference": { "targets": { "first": "same", "other": "size" } } },
            { "path": "lib/size", "difference": { "sizes": { "first": 1, "other": 2 } } },
            { "path": "lib/tool", "difference": { "modes": { "first": 0o775, "other": 0o664 } } },
        ],
    }]);
    assert_eq!(Value::from(all), expected);
}

#[test]
fn the_shortest_files_are_read_first() {
    let text = |shard: &str, byte: &str| {
        let files = [("a", 9), ("b", 1), ("c", 7), ("d", 3), ("e", 5)];
        files
            .into_iter()
            .fold(packed(shard), |part, (name, len)| part.plain(name, &byte.repeat(len)))
    };
    let expected = "at least 3 host files (b has different content in its 1 bytes, \
                    d has different content in its 3 bytes, e has different content in its 5 bytes)";
    assert_eq!(difference(text("one", "1"), text("two", "2")), expected);
}

#[test]
fn each_shard_is_compared_with_the_first() {
    let shards = ["one", "three", "two"];
    let parts = || Vec::from(shards.map(|shard| packed(shard).plain("lib/a", shard)));
    for (toml, first, others) in [
        ("", "one", ["three/x_lib_generic", "two/x_lib_generic"]),
        ("primary_shard = 'two'", "two", ["one/x_lib_generic", "three/x_lib_generic"]),
    ] {
        let all = found(parts(), toml);
        assert_eq!(all.iter().map(|it| &it["subject"]).collect::<Vec<_>>(), others);
        assert!(all.iter().all(|it| it["first"]["shard"] == first), "{all:?}");
    }
}

#[test]
fn other_artifacts_are_not_compared() {
    let folder = |shard: &str| ArtifactBuilder::new(shard, "x_lib_generic").plain("lib/a", shard);
    let of_family = |shard: &str, family: &str| {
        ArtifactBuilder::new(shard, &format!("x_lib_{family}")).packed(1).plain("lib/a", shard)
    };
    for (one, two) in [
        // Folders, and a folder beside an archive.
        (folder("one"), folder("two")),
        (folder("one"), packed("two").plain("lib/a", "two")),
        // A SHA-256 is taken at its word.
        (folder("one").packed(1), folder("two").packed(1)),
        // Only the archives differ.
        (packed("one").plain("lib/a", "1"), packed("two").plain("lib/a", "1")),
        (of_family("one", "gfx1100"), of_family("two", "gfx1200").packed(2)),
    ] {
        assert_eq!(found(vec![one, two], ""), Vec::<Value>::new());
    }
}

#[test]
fn device_code_and_databases_have_findings_of_their_own() {
    let fat =
        |shard: &str, arch: &str| packed(shard).fat("lib/x.so", vec![wrapper(&[(arch, "a|1")])]);
    assert_eq!(found(vec![fat("one", "gfx1100"), fat("two", "gfx1200")], ""), Vec::<Value>::new());
    let cache = |at: &str, shard: &str| {
        let shared = SharedFile { rule: "rocfft".to_owned(), moves: false, cache: true };
        packed(shard).shared(at, shared, Content::of_bytes(shard.as_bytes()))
    };
    for [one, two] in [["lib/cache.db"; 2], ["lib/one.db", "lib/two.db"]] {
        let parts = vec![cache(one, "one"), cache(two, "two")];
        assert_eq!(found(parts, ""), Vec::<Value>::new());
    }
}

#[test]
fn host_files_that_must_match_are_an_error_as_before() {
    let parts = || ["one", "two"].map(|shard| packed(shard).plain("lib/a", shard));
    let error = join(parts().into(), VERIFY).unwrap_err().to_string();
    let expected = "x_lib: lib/a has different content in its 3 bytes: one/x_lib_generic comes first, \
                    two/x_lib_generic disagrees";
    assert!(error.contains(expected), "{error}");
    assert_eq!(found(parts().into(), "").len(), 1);
}
