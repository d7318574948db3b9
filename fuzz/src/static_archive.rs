//! Static archives and other development files in the split stage: passed on whole, or an error.

use std::sync::LazyLock;

use rockpack_split::input::artifact::{Artifact, StagePrefix};
use rockpack_split::input::database::DatabaseRules;
use rockpack_report::Findings;
use rockpack_split::{HostKind, SplitPolicy, split};
use rockpack_core::content::Content;
use rockpack_core::tree::{Node, Tree, TreePath};

static RULES: LazyLock<DatabaseRules> = LazyLock::new(|| DatabaseRules::builtin().unwrap());

pub fn run(bytes: &[u8]) {
    let path = TreePath::new("lib/libx.a").unwrap();
    let content = Content::of_bytes([b"!<arch>\n", bytes].concat());
    let mut tree = Tree::new();
    tree.insert(path.clone(), Node::File { data: content.clone(), mode: 0o644 }).unwrap();
    let artifact = Artifact {
        shard: "shard".to_owned(),
        name: "x_dev_generic".parse().unwrap(),
        root: "x_dev_generic".into(),
        sha256: None,
        prefixes: vec![StagePrefix { path: "x/stage".to_owned(), module: None, tree }],
        findings: Findings::default(),
    };
    match split(&artifact, &SplitPolicy::strict(&RULES)) {
        Ok(split) => {
            let Some(Node::File { data, .. }) = split.host.get(&path) else {
                panic!("the file is lost");
            };
            let HostKind::Plain(passed) = &data.kind else { panic!("is no host binary") };
            assert!(passed.same_bytes(&content).unwrap());
        }
        Err(error) => super::refuse_bug(&error),
    }
}
