//! The state of a repository, read by a run that publishes it again. The pool has the files that the state
//! lists. A published state can be published again. Behind a zero byte is the record of an interrupted
//! publication.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;

use rockpack_core::checked_json;
use rockpack_core::compression::Method;
use rockpack_core::content::Content;
use rockpack_core::error::{Error, Result};
use rockpack_core::run::Budget;
use rockpack_repo::{
    FileBody, PackageChanges, ChannelSettings, ConfirmedChanges, RepoOptions, Stat, Store, WhenLocked, publish_to,
};
use rockpack_report::Silent;
use rockpack_signing::Trust;
use serde_json::Value;

/// A store in memory.
struct Memory {
    budget: Budget,
    files: Mutex<BTreeMap<String, Vec<u8>>>,
    /// The stated content of the pool.
    pool: BTreeMap<String, Stat>,
}

impl Store for Memory {
    fn read(&self, path: &str) -> Result<Option<Vec<u8>>> {
        Ok(self.files.lock().unwrap().get(path).cloned())
    }

    fn budget(&self) -> &Budget {
        &self.budget
    }

    fn open(&self, path: &str) -> Result<Content> {
        let bytes = self.read(path)?;
        bytes.map(Content::of_bytes).ok_or_else(|| Error::malformed("is not there"))
    }

    fn stat(&self, path: &str) -> Result<Option<Stat>> {
        let there = self.read(path)?;
        let own = there.map(|bytes| Stat { size: bytes.len() as u64, modified: 0 });
        Ok(own.or_else(|| self.pool.get(path).copied()))
    }

    fn list(&self, folder: &str) -> Result<Vec<String>> {
        let files = self.files.lock().unwrap();
        let names = files.keys().filter_map(|path| path.strip_prefix(folder)?.strip_prefix('/'));
        Ok(names.filter(|name| !name.contains('/')).map(str::to_owned).collect())
    }

    fn put(&self, files: Vec<(String, FileBody)>) -> Result<()> {
        for (path, body) in files {
            let (FileBody::Made(content) | FileBody::Same(_, content)) = body else {
                panic!("{path} is no index");
            };
            self.files.lock().unwrap().insert(path, content.to_vec()?);
        }
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        let mut files = self.files.lock().unwrap();
        let bytes = files.remove(from).ok_or_else(|| Error::malformed("is not there"))?;
        files.insert(to.to_owned(), bytes);
        Ok(())
    }

    fn remove(&self, paths: &[String]) -> Result<()> {
        let mut files = self.files.lock().unwrap();
        paths.iter().for_each(|path| drop(files.remove(path)));
        Ok(())
    }
}

pub fn run(bytes: &[u8]) {
    // The first byte chooses the channel, and whether its publication was interrupted.
    let Some((kind, bytes)) = bytes.split_first() else {
        return;
    };
    let (channel, begun) = (["apt-stable", "rpm"][usize::from(kind % 2)], kind % 4 > 1);
    let mut parts = bytes.splitn(2, |byte| *byte == 0);
    let (state, shown) = (parts.next().unwrap_or_default(), parts.next());
    let store = Memory { budget: Budget::unlimited(), files: Mutex::default(), pool: pool(state) };
    let path = format!(".rockpack/{}{channel}.json.zst", if begun { "next-" } else { "" });
    store.files.lock().unwrap().insert(path, frame(state));
    if let Some(shown) = shown {
        let path = format!(".rockpack/shown-{channel}.json.zst");
        store.files.lock().unwrap().insert(path, frame(shown));
    }
    match publish_to(&store, &options(), &Silent) {
        Ok(_) => drop(publish_to(&store, &options(), &Silent).unwrap()),
        Err(error) => super::refuse_bug(&error),
    }
}

/// The file of a state: JSON in a frame with a checksum. Anything else is the file itself.
fn frame(text: &[u8]) -> Vec<u8> {
    let frame = match serde_json::from_slice::<Value>(text) {
        Ok(value) => checked_json::write(&value).unwrap(),
        Err(_) => text.to_vec(),
    };
    // Without the room that its writer reserved.
    frame.into_boxed_slice().into_vec()
}

/// A pool with the files that the state lists.
fn pool(state: &[u8]) -> BTreeMap<String, Stat> {
    let state: Value = serde_json::from_slice(state).unwrap_or_default();
    let records = state["records"].as_object().into_iter().flatten();
    let stats = records.filter_map(|(path, record)| {
        let (size, modified) = (record["indexed"]["size"].as_u64()?, record["modified"].as_i64()?);
        Some((path.clone(), Stat { size, modified }))
    });
    stats.collect()
}

fn options() -> RepoOptions<'static> {
    RepoOptions {
        strict: false,
        packages: Vec::new(),
        out: PathBuf::new(),
        kinds: Vec::new(),
        suite: "stable".to_owned(),
        component: "main".to_owned(),
        settings: ChannelSettings::default(),
        changes: PackageChanges { keep: Some(1), ..PackageChanges::default() },
        check: false,
        dry_run: false,
        upload_plan: None,
        receipts: Trust::default(),
        index_page: true,
        when_locked: WhenLocked::Fail,
        generations: 1,
        date: 1_800_000_000,
        confirmed: ConfirmedChanges::default(),
        list_method: Method::Stored,
        signer: None,
        package_signer: None,
        built: BTreeMap::new(),
        key_package: None,
    }
}
