//! The result of `wheel`, for people.

use super::table::TextTable;
use super::units::bytes;
use crate::pipeline::WheelsMade;
use rockpack_package::receipt::wheels::{WheelKind, WheelReceipt};
use rockpack_report::words::counted;

/// Wheels as a table, then those of an earlier set that were removed.
pub fn wheels_text(made: &WheelsMade) -> String {
    let WheelsMade { receipt, removed, .. } = made;
    let total: u64 = receipt.wheels.iter().map(|wheel| wheel.size).sum();
    let mut text = format!(
        "{}\n{}, {}; {} of the input packed\n",
        table(receipt),
        counted(receipt.wheels.len(), "wheel"),
        bytes(total),
        counted(receipt.code_objects.len(), "code object"),
    );
    for name in removed {
        text.push_str(&text_line!("removed {name} of the earlier set"));
    }
    text
}

fn table(receipt: &WheelReceipt) -> String {
    let columns = ["wheel", "role", ">size", ">installed", ">code objects", "archs"];
    let mut table = TextTable::new(columns);
    for wheel in &receipt.wheels {
        let own = receipt.code_objects.iter().filter(|code| code.package == wheel.file_name);
        let count = own.count();
        let role = match wheel.role {
            WheelKind::Host => "host",
            WheelKind::Device => "device",
            WheelKind::Copy => "copy",
        };
        let archs = if wheel.archs.is_empty() { "-".to_owned() } else { wheel.archs.join(" ") };
        table.row([
            wheel.file_name.clone(),
            role.to_owned(),
            bytes(wheel.size),
            bytes(wheel.installed_size),
            if count == 0 { "-".to_owned() } else { count.to_string() },
            archs,
        ]);
    }
    table.render()
}
