//! Wheels that an argument names, and the receipt beside them.

use std::path::{Path, PathBuf};

use rockpack_base::error::Result;
use rockpack_base::formats::wheel::WheelName;

use super::argument::{files, read_if_there};
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
        let wheels = files(folder, |file| Ok(WheelName::is_one(file)))?;
        let receipt = read_if_there(&folder.join(FILE_NAME), WheelReceipt::parse)?;
        Ok(Self { wheels, receipt })
    }

    /// Whether neither wheels nor a receipt of some are there.
    pub(in crate::verify) fn is_empty(&self) -> bool {
        self.wheels.is_empty() && self.receipt.is_none()
    }
}
