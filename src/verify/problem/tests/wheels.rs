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
    let members = [MemberFault::Refused { reason: text("is a symbolic link") }, MemberFault::Run];
    all.extend(members.map(|fault| Problem::WheelMember {
        file: PackagePath::new(HOST, "/torch/lib/c10.dll"),
        fault,
    }));
    all.extend(
        differences().map(|difference| Problem::WheelHeaders { wheel: text(DEVICE), difference }),
    );
    all.extend(lacks().map(|lack| Problem::WheelExtra { wheel: text(HOST), lack }));
    let host = text("torch");
    let pins =
        [PinFault::Absent { host: host.clone() }, other_pin(None), other_pin(Some(text("2.9.0")))];
    all.extend(pins.map(|fault| Problem::WheelPin { wheel: text(DEVICE), fault }));
    all.push(Problem::WheelHostMissing { wheel: text(DEVICE), host });
    all.push(Problem::WheelMetadata { wheel: text(DEVICE), line: text("Requires-Dist: evil") });
    all
}

fn other_pin(pin: Option<String>) -> PinFault {
    PinFault::Other { wheel: text("torch"), pin, version: text("2.9.0+rocm7.1") }
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

fn differences() -> [HeaderDifference; 7] {
    [
        HeaderDifference::Own(InfoFault::Folder { folder: text("torch-2.8.0.dist-info") }),
        HeaderDifference::Own(InfoFault::Name {
            field: "version",
            file: "METADATA",
            named: text("2.9.0+rocm7.1"),
            stated: text("2.9.0"),
        }),
        HeaderDifference::Own(InfoFault::Requirement {
            reason: text("`foo ==` is no requirement"),
        }),
        HeaderDifference::Own(InfoFault::NoVersion { file: "file name", version: text("main") }),
        HeaderDifference::HostTags {
            host: text(HOST),
            own: text("py3-none-any"),
            hosts: text("cp312-cp312-manylinux_2_28_x86_64"),
        },
        HeaderDifference::Purelib { host: text(HOST), own: true },
        HeaderDifference::Pythons { host: text(HOST), own: text(">=3.13"), hosts: text("any") },
    ]
}

fn lacks() -> [ExtraLack; 10] {
    let (extra, wheel) = (text("device-gfx1100"), text("torch-device-gfx1100"));
    [
        ExtraLack::WheelAbsent { extra: extra.clone(), wheel: wheel.clone() },
        ExtraLack::Nothing { extra: extra.clone() },
        ExtraLack::NotOffered { extra: extra.clone(), wheel: wheel.clone() },
        ExtraLack::NotOwn { extra: extra.clone(), host: text(HOST) },
        ExtraLack::WithoutExtra { wheel },
        gap(&extra, ExtraGap::NotBrought),
        gap(&extra, ExtraGap::NotOffered),
        gap(&extra, ExtraGap::NotByName),
        ExtraLack::NotBrought { host: text(HOST) },
        ExtraLack::NotInAll { extra: text("device-all"), host: text(HOST) },
    ]
}

fn gap(extra: &str, gap: ExtraGap) -> ExtraLack {
    ExtraLack::Gap { extra: text(extra), wheel: text("torch-device-common"), gap }
}
