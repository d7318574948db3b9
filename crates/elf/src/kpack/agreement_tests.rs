//! Packer and loader read the same from an archive.

use rockpack_core::content::Content;
use rockpack_kpack::archive::Archive;

use super::*;

/// An archive with rows of three keys for two targets; some rows share one code object.
fn sample(scheme: Scheme) -> Vec<u8> {
    let codes: Vec<Vec<u8>> = (1..=4).map(|n| vec![n; 20 * usize::from(n)]).collect();
    let frames: Vec<Content> = codes
        .iter()
        .map(|code| match scheme {
            Scheme::None => code.clone(),
            Scheme::ZstdPerKernel => zstd::bulk::compress(code, 1).unwrap(),
        })
        .map(Content::of_bytes)
        .collect();
    let mut toc = Toc {
        group_name: "blas_lib".to_owned(),
        gfx_arch_family: "gfx90a".to_owned(),
        gfx_arches: ["gfx90a:xnack+", "gfx90a"].map(str::to_owned).into(),
        scheme,
        rows: Default::default(),
    };
    for (name, index, ordinals) in
        [("lib/x.so", 2, [0, 1]), ("lib/x.so", 10, [2, 2]), ("b", 0, [3, 1])]
    {
        let targets = toc.rows.entry(key(name, index)).or_default();
        let rows = ordinals.map(|ordinal| TocRow {
            kind: HSACO.to_owned(),
            ordinal,
            original_size: 20 * u64::from(ordinal + 1),
            metadata: None,
        });
        targets.extend(toc.gfx_arches.iter().cloned().zip(rows));
    }
    let archive = write(&toc, &frames).unwrap();
    archive.read_vec(0..archive.len(), u64::MAX, "archive").unwrap()
}

/// Asserts that both readers read the same from `bytes`, and returns whether the packer accepts them.
fn agree(bytes: &[u8]) -> bool {
    let Ok(strict) = KpackReader::open(Content::of_bytes(bytes)) else { return false };
    let lenient = Archive::open(bytes).unwrap();
    let toc = strict.toc();
    assert_eq!(lenient.scheme(), toc.scheme);
    assert!(lenient.arches().iter().eq(toc.gfx_arches.iter().map(String::as_bytes)));
    assert!(lenient.keys().iter().eq(toc.rows.keys().map(String::as_bytes)));
    assert_eq!(lenient.count(), strict.len());
    for (key, targets) in &toc.rows {
        for (target, row) in targets {
            let found = lenient.row(key.as_bytes(), target.as_bytes()).unwrap();
            assert_eq!(found.ordinal, row.ordinal, "{key} {target}");
            assert!(found.original_size.is_none_or(|size| size == row.original_size));
            let span = lenient.stored(row.ordinal).unwrap();
            let frame = strict.frame(row.ordinal).unwrap();
            let stored = frame.read_vec(0..frame.len(), u64::MAX, "frame").unwrap();
            let start = usize::try_from(span.offset).unwrap();
            assert_eq!(&bytes[start..start + stored.len()], stored);
            assert_eq!(span.size, stored.len() as u64);
        }
    }
    true
}

#[test]
fn both_readers_take_the_seeds_of_the_fuzz_targets() {
    let seeds = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/kpack");
    let seeds: Vec<_> =
        std::fs::read_dir(seeds).unwrap().map(|seed| seed.unwrap().path()).collect();
    assert!(!seeds.is_empty());
    for path in seeds {
        assert!(agree(&std::fs::read(&path).unwrap()), "{}", path.display());
    }
}

#[test]
fn both_readers_agree_also_on_damaged_archives() {
    for scheme in [Scheme::None, Scheme::ZstdPerKernel] {
        let bytes = sample(scheme);
        assert!(agree(&bytes));
        let mut accepted = 0;
        for at in 0..bytes.len() {
            assert!(!agree(&bytes[..at]), "cut at {at}");
            for bit in 0..8 {
                let mut changed = bytes.clone();
                changed[at] ^= 1 << bit;
                accepted += u32::from(agree(&changed));
            }
        }
        assert!(accepted > 100, "{accepted}: names and code objects may be any");
    }
}
