use super::*;

fn claim(path: &str) -> Option<(String, DatabaseRole, Vec<String>, Vec<String>)> {
    let rules = DatabaseRules::builtin().unwrap();
    let claim = rules.claim(&TreePath::new(path).unwrap())?;
    let archs = [&claim.named, &claim.directory];
    let [named, directory] = archs.map(|archs| archs.iter().map(ToString::to_string).collect());
    Some((claim.rule.name.clone(), claim.role, named, directory))
}

/// Checks the rule, the role, and the archs of the name and of the directory of a claimed path.
fn assert_claimed(path: &str, rule: &str, role: DatabaseRole, named: &[&str], directory: &[&str]) {
    let (own, own_role, own_named, own_directory) = claim(path).expect(path);
    assert_eq!((own.as_str(), own_role), (rule, role), "{path}");
    assert_eq!(own_named, named, "{path}");
    assert_eq!(own_directory, directory, "{path}");
}

#[test]
fn libraries_of_tensile() {
    for library in ["rocblas", "hipblaslt", "hipsparselt"] {
        let folder = format!("lib/{library}/library");
        let kernels = format!("{folder}/Kernels.so-000-gfx90a-xnack+.hsaco");
        assert_claimed(&kernels, library, DatabaseRole::Code, &["gfx90a"], &[]);
        let lazy = format!("{folder}/TensileLibrary_lazy_gfx1100.dat.zlib");
        assert_claimed(&lazy, library, DatabaseRole::Index, &["gfx1100"], &[]);
        let fallback = format!("{folder}/T_fallback.dat");
        assert_claimed(&fallback, library, DatabaseRole::Shared, &[], &[]);
        let deep = format!("{folder}/gfx90a-xnack+/deep/notes.txt");
        assert_claimed(&deep, library, DatabaseRole::Data, &[], &["gfx90a"]);
        for name in ["readme.txt", "gfxv0/x.co", "other/x.co"] {
            assert!(claim(&format!("{folder}/{name}")).is_none(), "{name}");
        }
    }
    let path = "lib/hipblaslt/library/gfx1250v0/x_gfx1250.dat.zlib";
    assert_claimed(path, "hipblaslt", DatabaseRole::Index, &["gfx1250"], &["gfx1250"]);
    for name in ["ExtOpLibrary.dat", "Transform.hsaco"] {
        let path = format!("lib/hipblaslt/library/hipblaslt{name}");
        assert_claimed(&path, "hipblaslt", DatabaseRole::Shared, &[], &[]);
    }
    let path = "lib/rocblas/5.1/library/x_gfx906.co";
    assert_claimed(path, "rocblas", DatabaseRole::Code, &["gfx906"], &[]);
    assert!(claim("lib/rocblas/TensileLibrary.dat").is_none());
    assert!(claim("lib/other/library/x.co").is_none());
}

#[test]
fn tuning_databases_of_miopen() {
    for (name, arch) in [
        ("gfx90878.HIP.fdb.txt", "gfx908"),
        ("gfx90a6e.kdb", "gfx90a"),
        ("gfx942130.db.txt", "gfx942"),
        ("gfx1030_36.db.txt", "gfx1030"),
        ("gfx908_ConvAsm1x1U_decoder.ktn.model", "gfx908"),
    ] {
        assert_claimed(
            &format!("share/miopen/db/{name}"),
            "miopen",
            DatabaseRole::Data,
            &[arch],
            &[],
        );
    }
    assert!(claim("share/miopen/db/notes.txt").is_none());
    assert!(claim("share/other/db/gfx90a6e.kdb").is_none());
}

#[test]
fn libraries_and_archives_of_one_arch() {
    for (path, rule, arch) in [
        ("lib/libMIOpenCKGroupedConv_gfx942.so", "miopen-ck", "gfx942"),
        ("lib/libMIOpenCKGroupedConv_gfx90a_xnackp.so.1", "miopen-ck", "gfx90a"),
        ("lib/libdevice_conv_operations_gfx950_xnackp.a", "composable-kernel", "gfx950"),
        ("lib/libdevice_conv_operations_gfx1250_strict.a", "composable-kernel", "gfx1250-strict"),
    ] {
        assert_claimed(path, rule, DatabaseRole::Whole, &[arch], &[]);
    }
    for path in [
        "lib/libMIOpen.so.1",
        "lib/libMIOpenCK_gfxother.so",
        "lib/libdevice_conv_operations.a",
        "share/libdevice_conv_operations_gfx942.a",
    ] {
        assert!(claim(path).is_none(), "{path}");
    }
}

#[test]
fn directories_of_archs_and_families() {
    let family = ["gfx1100", "gfx1101", "gfx1102", "gfx1103"];
    for path in [
        "lib/aotriton.images/amd-gfx110x/flash/attn_fwd/kernel.aks2",
        "lib/aotriton/kernels/gfx110x/a.hsaco",
    ] {
        assert_claimed(path, "aotriton", DatabaseRole::Data, &[], &family);
    }
    let (.., all) = claim("lib/aotriton.images/amd-gfx11xx/x").unwrap();
    assert!(all.len() > family.len() && all.iter().all(|arch| arch.starts_with("gfx11")));
    let one = "lib/aotriton.images/amd-gfx942/flash/gfx90a/x";
    assert_claimed(one, "aotriton", DatabaseRole::Data, &[], &["gfx942"]);
    assert!(claim("lib/aotriton.images/readme").is_none());

    let rule = "hip-kernel-provider";
    let engines = "lib/hipdnn_plugins/engines";
    for below in ["arch_content/gfx942/x", "arch_content/a/b/gfx942/gfx906/x"] {
        assert_claimed(&format!("{engines}/{below}"), rule, DatabaseRole::Data, &[], &["gfx942"]);
    }
    let test = "lib/engines/test_arch_content/unit/shared/gfx90a/x.json";
    assert_claimed(test, rule, DatabaseRole::Data, &[], &["gfx90a"]);
    assert!(claim(&format!("{engines}/arch_content/common/x")).is_none());
    assert!(claim(&format!("{engines}/content/gfx942/x")).is_none());
}

#[test]
fn caches_and_mapped_directories() {
    assert_claimed("lib/rocfft/rocfft_kernel_cache.db", "rocfft", DatabaseRole::Cache, &[], &[]);
    let one = "lib/rocfft/rocfft_kernel_cache_gfx1201.db";
    assert_claimed(one, "rocfft", DatabaseRole::Data, &["gfx1201"], &[]);
    assert!(claim("lib/gfx942/x").is_none());
    let translation = "share/rocjitsu/translations/gfx1250-b0-a0/v1/0a.obj";
    assert_claimed(translation, "rocjitsu", DatabaseRole::Data, &[], &["gfx1250"]);
    assert!(claim("share/rocjitsu/translations/gfx1250-c0-a0/v1/0a.obj").is_none());
    assert!(claim("share/rocjitsu/translations/gfx1250/v1/0a.obj").is_none());
}

#[test]
fn what_hipblaslt_knows_for_compiling_is_data_of_its_arch() {
    let name = "hipblaslt-jit-knowledge-gfx942.dat.zlib";
    let flat = format!("lib/hipblaslt/library/{name}");
    assert_claimed(&flat, "hipblaslt-jit", DatabaseRole::Data, &["gfx942"], &[]);
    let nested = format!("lib/hipblaslt/library/gfx942/{name}");
    assert_claimed(&nested, "hipblaslt-jit", DatabaseRole::Data, &["gfx942"], &["gfx942"]);
    let stepping = "lib/hipblaslt/library/gfx1250v0/hipblaslt-jit-knowledge-gfx1250v0.dat.zlib";
    assert_claimed(stepping, "hipblaslt-jit", DatabaseRole::Data, &[], &["gfx1250"]);
    let other = "lib/hipblaslt/library/gfx942/other";
    assert_claimed(other, "hipblaslt", DatabaseRole::Data, &[], &["gfx942"]);
}

#[test]
fn what_moves_to_the_directory_of_an_arch() {
    let rules = DatabaseRules::builtin().unwrap();
    assert!(is_moved(&rules, "lib/rocblas/library/T_fallback.dat"));
    assert!(is_moved(&rules, "lib/hipblaslt/library/TensileLiteLibrary_lazy_Mapping.dat"));
    assert!(!is_moved(&rules, "lib/hipblaslt/library/hipblasltExtOpLibrary.dat"));
    assert!(!is_moved(&rules, "lib/hipblaslt/library/extop_gfx1100.co"));
}

fn is_moved(rules: &DatabaseRules, path: &str) -> bool {
    let path = TreePath::new(path).unwrap();
    rules.claim(&path).unwrap().rule.is_moved(path.name())
}

#[test]
fn a_rule_with_an_unknown_key_is_refused() {
    let rule = "[[database]]\nname = 'a'\ndirectories = []\n";
    assert!(DatabaseRules::parse(rule).is_ok());
    assert!(DatabaseRules::parse(&format!("{rule}codes = []")).is_err());
    assert!(DatabaseRules::parse(&format!("{rule}{rule}")).is_err());
    assert!(DatabaseRules::parse(&format!("{rule}names = 'end'")).is_err());
    assert!(DatabaseRules::parse(&format!("{rule}directory_archs = {{a = ['b']}}")).is_err());
    for (master, is_right) in [("a_*", true), ("a", false)] {
        let lazy = format!("{rule}lazy = {{master = '{master}', mapping = 'm_*'}}");
        assert_eq!(DatabaseRules::parse(&lazy).is_ok(), is_right, "{master}");
    }
}

#[test]
fn rules_of_the_user_come_first() {
    let own = "[[database]]\nname = 'mine'\ndirectories = ['**/miopen/db']\ncode = ['*.kdb']\n\
               [[database]]\nname = 'rocfft'\ndirectories = []\n";
    let own = DatabaseRules::parse(own).unwrap().rules;
    let rules = DatabaseRules::builtin().unwrap().appended_to(&own).unwrap();
    for (path, expected) in [
        ("share/miopen/db/gfx90a6e.kdb", Some("mine")),
        ("share/miopen/db/gfx90a6e.model", Some("miopen")),
        ("lib/rocfft/rocfft_kernel_cache.db", None),
    ] {
        let claim = rules.claim(&TreePath::new(path).unwrap());
        assert_eq!(claim.map(|claim| claim.rule.name.as_str()), expected, "{path}");
    }
    let twice = [own[0].clone(), own[0].clone()];
    assert!(DatabaseRules::builtin().unwrap().appended_to(&twice).is_err());
}
