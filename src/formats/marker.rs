//! The content of `.rocm_kpack_ref`: how a transformed host binary names its kernel archives.
//!
//! ```text
//! MessagePack map { "kernel_name": str, "kpack_search_paths": [str, …] }
//! ```

use rmpv::Value;

use super::message_pack::{self, Fields};
use crate::content::Content;
use crate::error::{Error, Kind, Result};

/// Longest marker in bytes: loaders read no further.
pub const MARKER_LIMIT: u64 = 64 << 10;

/// A marker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marker {
    /// The key under which the archives list the binary's code objects.
    pub kernel_name: String,
    /// Paths relative to the directory of the binary; `@GFXARCH@` stands for a target.
    pub kpack_search_paths: Vec<String>,
}

impl Marker {
    /// The bytes of the section.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let paths = self.kpack_search_paths.iter();
        let bytes = message_pack::encode(&message_pack::map([
            ("kernel_name", self.kernel_name.as_str().into()),
            (
                "kpack_search_paths",
                Value::Array(paths.map(|path| path.as_str().into()).collect()),
            ),
        ]))?;
        if bytes.len() as u64 > MARKER_LIMIT {
            let message = format!(
                "marker of {} bytes exceeds the {MARKER_LIMIT} bytes that loaders read",
                bytes.len()
            );
            return Err(Error::new(Kind::Limit, message).structure(self.kernel_name.clone()));
        }
        Ok(bytes)
    }

    /// Reads the bytes of the section.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let content = Content::of_bytes(bytes);
        let value = message_pack::decode(&content, MARKER_LIMIT, "kpack marker")?;
        let fields = Fields::of(&value, "kpack marker", &content.place(0))?;
        Ok(Self {
            kernel_name: fields.text("kernel_name")?.to_owned(),
            kpack_search_paths: fields.texts("kpack_search_paths")?,
        })
    }
}
