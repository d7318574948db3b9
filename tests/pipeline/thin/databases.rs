//! Kernel databases and code files: those of other archs are removed, and links to them.

use std::fs;
use std::os::unix::fs::symlink;

use support::example::{files, tree};

use super::{Room, bundle_of, bundles_of_file, changed, code};

const ROCBLAS: &str = "tree/lib/rocblas/library";

/// The paths in a tree, without folders.
fn paths(room: &Room, folder: &str) -> Vec<String> {
    let is_folder = |path: &String| room.path(folder).join(path).is_dir();
    tree(&room.path(folder)).into_keys().filter(|path| !is_folder(path)).collect()
}

/// Files of rocBLAS for two archs, and shared ones.
fn rocblas(room: &Room) {
    for arch in ["gfx1100", "gfx90a"] {
        room.write(&format!("{ROCBLAS}/Kernels.so-000-{arch}.hsaco"), code(arch, 1));
        room.write(&format!("{ROCBLAS}/TensileLibrary_lazy_{arch}.dat"), arch);
        room.write(&format!("{ROCBLAS}/TensileLibrary_Type_DD_{arch}.co"), code(arch, 2));
        room.write(&format!("{ROCBLAS}/TensileLibrary_Type_DD_{arch}.dat"), arch);
    }
    room.write(&format!("{ROCBLAS}/TensileLibrary.dat"), "shared");
    room.write(&format!("{ROCBLAS}/TensileLibrary_Type_SS_fallback.dat"), "shared");
    room.write(&format!("{ROCBLAS}/TensileManifest.txt"), "cache");
    room.write("tree/share/notes-gfx90a.txt", "names no code");
}

#[test]
fn files_of_other_archs_are_removed_and_all_others_stay() {
    let room = Room::new();
    rocblas(&room);
    let before = files(&room.path("tree"));
    let report = room.thin("tree --target gfx1100 --in-place --json").json();
    let removed = [
        "lib/rocblas/library/Kernels.so-000-gfx90a.hsaco",
        "lib/rocblas/library/TensileLibrary_Type_DD_gfx90a.co",
        "lib/rocblas/library/TensileLibrary_Type_DD_gfx90a.dat",
        "lib/rocblas/library/TensileLibrary_lazy_gfx90a.dat",
    ];
    let rows = removed.map(|path| (path.to_owned(), before[path].len() as u64, None::<u64>));
    assert_eq!(changed(&report), rows);
    let mut expected = before;
    expected.retain(|path, _| !removed.contains(&path.as_str()));
    let after = files(&room.path("tree"));
    assert!(after == expected, "{:?}", after.keys());
}

#[test]
fn folders_of_other_archs_lose_their_files_and_stay() {
    let room = Room::new();
    for arch in ["gfx1100", "gfx90a"] {
        room.write(&format!("{ROCBLAS}/{arch}/TensileLibrary_Type_DD.co"), code(arch, 2));
        room.write(&format!("{ROCBLAS}/{arch}/TensileLibrary_Type_DD.dat"), arch);
        let family = if arch == "gfx1100" { "amd-gfx11xx" } else { "amd-gfx90a" };
        room.write(&format!("tree/lib/aotriton.images/{family}/flash/attn_fwd.aks2"), family);
    }
    room.thin("tree --target gfx1100 --in-place").done();
    assert_eq!(
        paths(&room, "tree"),
        [
            "lib/aotriton.images/amd-gfx11xx/flash/attn_fwd.aks2",
            "lib/rocblas/library/gfx1100/TensileLibrary_Type_DD.co",
            "lib/rocblas/library/gfx1100/TensileLibrary_Type_DD.dat",
        ]
    );
    assert!(room.path(&format!("{ROCBLAS}/gfx90a")).is_dir());
    assert!(room.path("tree/lib/aotriton.images/amd-gfx90a/flash").is_dir());
}

#[test]
fn databases_of_miopen_go_by_the_arch_at_the_start_of_their_names() {
    let room = Room::new();
    for name in ["gfx110030.db.txt", "gfx90878.db.txt", "gfx90a6e.kdb", "gfx90a_68.fdb.txt"] {
        room.write(&format!("tree/share/miopen/db/{name}"), "x");
    }
    room.thin("tree --target gfx90a --in-place").done();
    let kept = ["share/miopen/db/gfx90a6e.kdb", "share/miopen/db/gfx90a_68.fdb.txt"];
    assert_eq!(paths(&room, "tree"), kept);
}

/// Libraries that are for one arch as a whole.
#[test]
fn plugins_of_other_archs_are_removed() {
    let room = Room::new();
    for arch in ["gfx1100", "gfx90a"] {
        let name = format!("tree/lib/libMIOpenCKGroupedConv_{arch}.so");
        room.library(&format!("{name}.1"), &[bundle_of(&[arch], 1)]);
        symlink(format!("libMIOpenCKGroupedConv_{arch}.so.1"), room.path(&name)).unwrap();
    }
    let before = fs::read(room.path("tree/lib/libMIOpenCKGroupedConv_gfx90a.so.1")).unwrap();
    room.thin("tree --target gfx90a --in-place").done();
    let kept = ["lib/libMIOpenCKGroupedConv_gfx90a.so", "lib/libMIOpenCKGroupedConv_gfx90a.so.1"];
    assert_eq!(paths(&room, "tree"), kept);
    assert!(fs::read(room.path("tree/lib/libMIOpenCKGroupedConv_gfx90a.so.1")).unwrap() == before);
}

#[test]
fn a_code_file_of_several_archs_is_thinned() {
    let room = Room::new();
    let file =
        room.write(&format!("{ROCBLAS}/x.hsaco"), bundle_of(&["gfx1100", "gfx90a", "gfx942"], 1));
    room.write(&format!("{ROCBLAS}/x.dat"), "index");
    let before = bundles_of_file(&file);
    room.thin("tree --target gfx942,gfx1100 --in-place").done();
    assert_eq!(bundles_of_file(&file)[0].entries, before[0].only(&["gfx1100", "gfx942"]));
    assert_eq!(fs::read(room.path(&format!("{ROCBLAS}/x.dat"))).unwrap(), b"index");
    room.thin("tree --target gfx942 --in-place").done();
    assert_eq!(bundles_of_file(&file)[0].entries, before[0].only(&["gfx942"]));
}

#[test]
fn code_files_are_known_by_their_content_wherever_they_are() {
    let room = Room::new();
    room.write("tree/share/x/one.bin", code("gfx1100", 1));
    room.write("tree/share/x/two.bin", code("gfx90a", 1));
    room.write("tree/share/x/three", bundle_of(&["gfx90a"], 1));
    room.write("tree/share/x/four", bundle_of(&["gfx1100"], 1));
    room.thin("tree --target gfx1100 --in-place").done();
    assert_eq!(paths(&room, "tree"), ["share/x/four", "share/x/one.bin"]);
}

#[test]
fn links_to_removed_files_go_and_others_stay() {
    let room = Room::new();
    rocblas(&room);
    fs::create_dir(room.path("tree/links")).unwrap();
    symlink("lib", room.path("tree/lib64")).unwrap();
    let library = "../lib/rocblas/library";
    for (name, target) in [
        ("direct", format!("{library}/Kernels.so-000-gfx90a.hsaco")),
        ("chain", "direct".to_owned()),
        ("folder-link", "../lib64/rocblas/library/Kernels.so-000-gfx90a.hsaco".to_owned()),
        ("kept", format!("{library}/../library/Kernels.so-000-gfx1100.hsaco")),
        ("kept-chain", "kept".to_owned()),
        ("shared", format!("{library}/TensileLibrary.dat")),
        ("folder", library.to_owned()),
        ("dangling", "absent".to_owned()),
    ] {
        symlink(target, room.path("tree/links").join(name)).unwrap();
    }
    for place in ["--out out", "--in-place"] {
        room.thin(&format!("tree --target gfx1100 {place}")).done();
    }
    for folder in ["tree", "out/tree"] {
        let left: Vec<String> = tree(&room.path(&format!("{folder}/links"))).into_keys().collect();
        assert_eq!(left, ["dangling", "folder", "kept", "kept-chain", "shared"], "{folder}");
        assert!(room.path(&format!("{folder}/lib64")).is_symlink());
    }
}

#[test]
fn a_file_stays_if_a_link_of_a_kept_name_leads_to_it() {
    let room = Room::new();
    rocblas(&room);
    let [own, other] = ["gfx1100", "gfx90a"]
        .map(|arch| room.path(&format!("{ROCBLAS}/TensileLibrary_lazy_{arch}.dat")));
    fs::remove_file(&own).unwrap();
    symlink(other.file_name().unwrap(), &own).unwrap();
    room.thin("tree --target gfx1100 --in-place").done();
    assert_eq!(fs::read(own).unwrap(), b"gfx90a");
    assert!(!room.path(&format!("{ROCBLAS}/Kernels.so-000-gfx90a.hsaco")).exists());
}

#[test]
fn code_objects_with_other_features_are_removed() {
    let room = Room::new();
    for feature in ["xnack+", "xnack-"] {
        let name = format!("{ROCBLAS}/Kernels.so-000-gfx90a-{feature}.hsaco");
        room.write(&name, code(&format!("gfx90a:{feature}"), 1));
    }
    room.thin("tree --target gfx90a --in-place").done();
    assert_eq!(paths(&room, "tree").len(), 2);
    room.thin("tree --target gfx90a:xnack- --in-place").done();
    assert_eq!(paths(&room, "tree"), ["lib/rocblas/library/Kernels.so-000-gfx90a-xnack-.hsaco"]);
    room.thin("tree --target gfx90a:xnack+ --in-place").failed(64, &["gfx90a:xnack+", "no code"]);
}
