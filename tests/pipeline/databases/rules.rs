//! Every library of the rules table, with files made for it.

use support::device::aks2;

use crate::databases::{Files, code_object, findings, placed, split_files};

const FAMILY: &str = "gfx1100 gfx1101 gfx1102 gfx1103";
const GFX1100: u8 = 0x41;
const GFX942: u8 = 0x4c;

/// Splits text files at these paths and compares the arch of each.
fn assert_placed(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    let files: Files =
        expected.iter().map(|(path, _)| ((*path).to_owned(), b"text".to_vec())).collect();
    let split = split_files("one", &files);
    let placed = placed(&split);
    for (path, archs) in expected {
        assert_eq!(placed[*path], *archs, "{path}");
    }
    let own = |(code, file): (&str, &str)| (code.to_owned(), file.to_owned());
    findings(&split).into_iter().map(own).collect()
}

#[test]
fn files_of_miopen_go_to_their_archs() {
    let found = assert_placed(&[
        ("share/miopen/db/gfx90878.HIP.fdb.txt", "gfx908"),
        ("share/miopen/db/gfx90a6e.kdb", "gfx90a"),
        ("share/miopen/db/gfx942130.db.txt", "gfx942"),
        ("share/miopen/db/gfx1030_36.db.txt", "gfx1030"),
        ("share/miopen/db/gfx908_ConvAsm1x1U_decoder.ktn.model", "gfx908"),
        ("share/miopen/db/gfx942.tn.model", "gfx942"),
        ("share/miopen/db/readme.txt", "host"),
        ("share/miopen/gfx942.db.txt", "host"),
    ]);
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn files_of_aotriton_go_to_their_archs() {
    let found = assert_placed(&[
        ("lib/aotriton.images/amd-gfx110x/flash/attn_fwd/a.aks2", FAMILY),
        ("lib/aotriton.images/amd-gfx942/flash/attn_fwd/a.aks2", "gfx942"),
        ("lib/aotriton.images/amd-gfx942/__signature__", "gfx942"),
        ("lib/aotriton/kernels/gfx110x/b.json", FAMILY),
        ("lib/aotriton.images/notes", "host"),
    ]);
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn a_file_of_aotriton_is_for_the_members_of_a_family_that_it_has_code_for() {
    let path = |name: &str| format!("lib/aotriton.images/amd-gfx110x/flash/attn_fwd/{name}.aks2");
    let files = Files::from([
        (path("some"), aks2(&["gfx1101", "gfx1151", "gfx1100"])),
        (path("all"), aks2(&["gfx1100", "gfx1101", "gfx1102", "gfx1103"])),
        (path("generic"), aks2(&["gfx11-generic", "gfx1100"])),
        (path("foreign"), aks2(&["gfx942"])),
        (path("damaged"), b"AKS2amd-gfx110xamd-gfx110x".to_vec()),
    ]);
    let split = split_files("one", &files);
    let placed = placed(&split);
    assert_eq!(placed[&path("some")], "gfx1100 gfx1101");
    let unread = ["damaged", "foreign", "generic"];
    assert!(unread.iter().all(|name| placed[&path(name)] == FAMILY), "{placed:?}");
    assert_eq!(findings(&split), unread.map(|name| ("R147", &*format!("{name}.aks2").leak())));
    // The build may lack members that no file names.
    let whole = split.databases.iter().filter(|file| file.of_whole_family);
    let whole: Vec<String> = whole.map(|file| file.path.to_string()).collect();
    assert_eq!(whole, unread.map(path));
}

#[test]
fn code_in_the_directory_of_a_family_is_of_its_own_arch() {
    let files = Files::from([
        (code_of_family("one"), code_object(GFX1100)),
        (code_of_family("generic"), code_object(0x54)),
        (code_of_family("foreign"), code_object(GFX942)),
    ]);
    let split = split_files("one", &files);
    let placed = placed(&split);
    assert_eq!(placed[&code_of_family("one")], "gfx1100");
    assert_eq!(placed[&code_of_family("generic")], FAMILY);
    assert_eq!(placed[&code_of_family("foreign")], "gfx942");
    assert_eq!(findings(&split), [("R020", "foreign.hsaco"), ("R020", "one.hsaco")]);
}

fn code_of_family(name: &str) -> String {
    format!("lib/aotriton/kernels/gfx110x/{name}.hsaco")
}

#[test]
fn a_directory_of_an_unknown_arch_is_a_warning() {
    let found = assert_placed(&[
        ("lib/aotriton.images/amd-gfx9ff/flash/attn_fwd/y.aks2", "host"),
        ("lib/aotriton.images/amd-gfx9ff/z.aks2", "host"),
        ("lib/aotriton.images/amd-gfx942/y.aks2", "gfx942"),
        ("lib/aotriton.images/gfxnotes/y.txt", "host"),
        ("lib/other/amd-gfx9ff/y.aks2", "host"),
    ]);
    assert_eq!(found, [("R061".to_owned(), "amd-gfx9ff".to_owned())]);
}

#[test]
fn files_of_hip_kernel_provider_go_to_their_archs() {
    let engines = "lib/hipdnn_plugins/engines";
    let found = assert_placed(&[
        (&format!("{engines}/arch_content/hip-kernel-provider/gfx942/k.bin"), "gfx942"),
        (&format!("{engines}/arch_content/gfx90a/k.bin"), "gfx90a"),
        (&format!("{engines}/test_arch_content/p/unit/shared/gfx1100/k.bin"), "gfx1100"),
        (&format!("{engines}/arch_content/p/common/k.bin"), "host"),
    ]);
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn files_of_rocfft_go_to_their_archs() {
    let found = assert_placed(&[
        ("lib/rocfft/rocfft_kernel_cache.db", "host"),
        ("lib/rocfft/rocfft_kernel_cache_gfx1201.db", "gfx1201"),
        ("lib/rocfft_kernel_cache_gfx942.db", "gfx942"),
    ]);
    assert_eq!(found, [("R021".to_owned(), "rocfft_kernel_cache.db".to_owned())]);
}

#[test]
fn files_of_rocjitsu_go_to_their_archs() {
    let sha = "0".repeat(64);
    let found = assert_placed(&[
        (&format!("share/rocjitsu/translations/gfx1250-b0-a0/v1/{sha}.man"), "gfx1250"),
        (&format!("share/rocjitsu/translations/gfx1250-b0-a0/v1/{sha}.obj"), "gfx1250"),
        (&format!("share/rocjitsu/translations/gfx942-b0-a0/v1/{sha}.man"), "host"),
    ]);
    assert!(found.is_empty(), "{found:?}");
}
