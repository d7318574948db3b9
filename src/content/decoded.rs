//! Content that comes out of a decoder.

use std::fmt::Debug;
use std::fs::File;
use std::io::{self, Read};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::error::{Error, Place, Result};

/// A stream that can be decoded again from its start.
///
/// Output of up to [`HOLD_LIMIT`] bytes is decoded into memory while somebody reads or pins it;
/// longer output is decoded anew, up to the wanted position, by every read.
pub trait StreamSource: Debug + Send + Sync {
    /// Number of decoded bytes.
    fn len(&self) -> u64;
    /// Whether there are no decoded bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// A reader of the decoded bytes from the first on.
    fn open(&self) -> Result<Box<dyn Read + Send>>;
    /// Where the encoded stream lies, for messages.
    fn place(&self) -> Place;
}

/// The longest decoded stream that is held in memory as a whole.
pub const HOLD_LIMIT: u64 = 256 << 20;

#[derive(Debug)]
pub(super) struct Decoded {
    stream: Arc<dyn StreamSource>,
    held: Mutex<Weak<Vec<u8>>>,
}

impl Decoded {
    pub(super) fn new(stream: Arc<dyn StreamSource>) -> Self {
        Self { stream, held: Mutex::new(Weak::new()) }
    }

    /// Output of which `bytes` is the whole.
    pub(super) fn holding(stream: Arc<dyn StreamSource>, bytes: &Arc<Vec<u8>>) -> Self {
        Self { stream, held: Mutex::new(Arc::downgrade(bytes)) }
    }

    pub(super) fn place(&self) -> Place {
        self.stream.place()
    }

    /// The whole output, or `None` if it is too long to hold.
    pub(super) fn hold(&self) -> Result<Option<Arc<Vec<u8>>>> {
        let len = self.stream.len();
        if len > HOLD_LIMIT {
            return Ok(None);
        }
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bytes) = held.upgrade() {
            return Ok(Some(bytes));
        }
        let capacity = usize::try_from(len).map_err(|_| Error::bug("hold limit above usize"))?;
        let mut bytes = vec![0; capacity];
        let mut reader = self.stream.open()?;
        reader.read_exact(&mut bytes).map_err(|e| self.fault(e))?;
        let bytes = Arc::new(bytes);
        *held = Arc::downgrade(&bytes);
        Ok(Some(bytes))
    }

    pub(super) fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        if let Some(bytes) = self.hold()? {
            let start = usize::try_from(offset).map_err(|_| Error::bug("held offset"))?;
            buffer.copy_from_slice(&bytes[start..start + buffer.len()]);
            return Ok(());
        }
        let mut reader = self.stream.open()?;
        io::copy(&mut reader.by_ref().take(offset), &mut io::sink()).map_err(|e| self.fault(e))?;
        reader.read_exact(buffer).map_err(|e| self.fault(e))
    }

    /// A sequential reader from `offset` on, for content that is too long to hold.
    pub(super) fn reader_at(&self, offset: u64) -> Result<Box<dyn Read + Send>> {
        let mut reader = self.stream.open()?;
        io::copy(&mut reader.by_ref().take(offset), &mut io::sink()).map_err(|e| self.fault(e))?;
        Ok(reader)
    }

    pub(super) fn fault(&self, source: io::Error) -> Error {
        match Error::from_io(source) {
            Ok(error) => error.at(&self.place()),
            Err(source) => Error::malformed("cannot decode the compressed stream")
                .cause(source)
                .at(&self.place()),
        }
    }
}

/// Keeps open files and decoded bytes alive; see [`super::Content::pin`].
#[derive(Debug, Default)]
pub struct Pinned {
    files: Vec<Arc<File>>,
    buffers: Vec<Arc<Vec<u8>>>,
}

impl Pinned {
    pub(super) fn keep_file(&mut self, file: Arc<File>) {
        if !self.files.iter().any(|kept| Arc::ptr_eq(kept, &file)) {
            self.files.push(file);
        }
    }

    pub(super) fn keep_bytes(&mut self, bytes: Option<Arc<Vec<u8>>>) {
        if let Some(bytes) = bytes
            && !self.buffers.iter().any(|kept| Arc::ptr_eq(kept, &bytes))
        {
            self.buffers.push(bytes);
        }
    }
}
