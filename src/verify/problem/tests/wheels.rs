//! Examples of what is wrong with Python wheels.

use super::*;

const HOST: &str = "torch-2.9.0+rocm7.1-cp312-cp312-manylinux_2_28_x86_64.whl";
const DEVICE: &str = "torch_device_gfx1100-2.9.0+rocm7.1-cp312-cp312-manylinux_2_28_x86_64.whl";

pub(super) fn examples() -> Vec<Problem> {
    let mut all = Vec::new();
    all.extend(listings().map(|fault| {
        let file = PackagePath::new(HOST, "/torch/lib/libtorch_hip.so");
        Problem::WheelRecord { file, fault }
    }));
    all.push(Problem::WheelMember {
        file: PackagePath::new(HOST, "/torch/lib/c10.dll"),
        reason: text("cannot be installed: is a symbolic link"),
    });
    let wheel = || text(DEVICE);
    let reason = text("is tagged py3-none-any, and its host cp312-cp312-manylinux_2_28_x86_64");
    all.push(Problem::WheelHeaders { wheel: wheel(), reason });
    let fault = SetFault::absent("its extra device-gfx1100 needs torch-device-gfx1100");
    all.push(Problem::WheelExtra { wheel: text(HOST), fault });
    let (host, reason) = (text("torch"), text("does not require torch, its host"));
    all.push(Problem::WheelPin { wheel: wheel(), reason });
    all.push(Problem::WheelHostMissing { wheel: wheel(), host });
    all.push(Problem::WheelMetadata { wheel: wheel(), line: text("Requires-Dist: evil") });
    all
}

fn listings() -> [ListingFault; 8] {
    [
        ListingFault::Unlisted,
        ListingFault::WithoutMember,
        ListingFault::Digest { hash: text("sha256") },
        ListingFault::Size { size: 2, stated: 1 },
        ListingFault::WithoutDigest,
        ListingFault::WithoutItself,
        ListingFault::OfItself,
        ListingFault::Signature,
    ]
}
