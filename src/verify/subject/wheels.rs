//! Wheels that an argument names, and the receipt beside them.

use std::path::{Path, PathBuf};

use rockpack_base::content::{if_there, list, read_file};
use rockpack_base::error::Result;
use rockpack_base::formats::wheel::WheelName;

use crate::receipt::wheels::{FILE_NAME, WheelReceipt};

/// One argument: a wheel, or a folder of wheels.
#[derive(Default)]
pub(in crate::verify) struct WheelArgument {
    /// Files, in name order.
    pub(in crate::verify) wheels: Vec<PathBuf>,
    pub(in crate::verify) receipt: Option<WheelReceipt>,
}

impl WheelArgument {
    /// The wheel in a file.
    pub(in crate::verify) fn of_wheel(path: PathBuf) -> Self {
        Self { wheels: vec![path], receipt: None }
    }

    /// The wheels of a folder.
    pub(in crate::verify) fn of_folder(folder: &Path) -> Result<Self> {
        let mut wheels = Vec::new();
        for entry in list(folder)? {
            let path = entry?.path();
            if WheelName::is_one(&path) {
                wheels.push(path);
            }
        }
        wheels.sort();
        let file = folder.join(FILE_NAME);
        let bytes = if_there(&file, "read", read_file(&file))?;
        let receipt = bytes.map(|bytes| WheelReceipt::parse(&bytes)).transpose();
        Ok(Self { wheels, receipt: receipt.map_err(|error| error.file(&file))? })
    }

    /// Whether neither wheels nor a receipt of some are there.
    pub(in crate::verify) fn is_empty(&self) -> bool {
        self.wheels.is_empty() && self.receipt.is_none()
    }
}
