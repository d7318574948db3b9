//! Samples of signed files, made by gpg with a key whose private half is gone.
//!
//! A signature covers the text and its own packet, except for the unhashed subpackets (here the key ID, a
//! hint that nobody has to believe). The value of a sample is therefore the whole text and the packet without
//! those: a changed bit in either must be refused. The armour around the packet is not signed.

use std::io::Read;
use std::path::PathBuf;
use std::sync::LazyLock;

use pgp::armor::Dearmor;
use rockpack_core::content::hex;
use rockpack_core::error::Result;
use rockpack_signing::judge::CheckTime;
use rockpack_signing::{PublicKeys, Trust};
use support::tools;

use super::file;
use super::lists::text;
use super::samples::{Damage, Sample, of};

pub fn samples() -> Vec<Sample> {
    vec![
        of("signed Release", signed("Release"), Damage::Noticed(100), signed_release),
        of("Release.gpg", signed("Release.gpg"), Damage::Noticed(95), signature),
        of("InRelease", signed("InRelease"), Damage::Noticed(99), clear_signed),
    ]
}

fn signed(name: &str) -> Vec<u8> {
    file(&format!("tests/fixtures/signed/{name}"))
}

static KEYS: LazyLock<Trust> = LazyLock::new(|| {
    let path: PathBuf = tools::repository("tests/fixtures/signed/key.asc");
    // A time after the signatures, while the key is valid.
    let at = CheckTime { time: 1_800_000_000, clock: 1_800_000_000 };
    Trust { keys: PublicKeys::open(&[path], "--key").unwrap(), at, strict: false }
});

fn signed_release(bytes: &[u8]) -> Result<String> {
    KEYS.check_detached(&signed("Release.gpg"), bytes)?;
    Ok(hex(bytes))
}

fn signature(bytes: &[u8]) -> Result<String> {
    KEYS.check_detached(bytes, &signed("Release"))?;
    Ok(hex(&covered(bytes)))
}

fn clear_signed(bytes: &[u8]) -> Result<String> {
    match KEYS.clear_text(text(bytes)?)? {
        (said, Ok(())) => {
            let at = text(bytes)?.find("-----BEGIN PGP SIGNATURE-----").unwrap();
            Ok(format!("{} {said}", hex(&covered(&bytes[at..]))))
        }
        (_, Err(error)) => Err(error),
    }
}

/// The packet in `armoured` without the content of its unhashed subpackets.
fn covered(armoured: &[u8]) -> Vec<u8> {
    let mut packet = Vec::new();
    Dearmor::new(armoured).read_to_end(&mut packet).unwrap();
    // After the header of two bytes: version, type, two algorithms, and the hashed subpackets.
    let unhashed = 2 + 4 + 2 + length_at(&packet, 6);
    let from = unhashed + 2;
    packet.drain(from..from + length_at(&packet, unhashed));
    packet
}

fn length_at(packet: &[u8], at: usize) -> usize {
    usize::from(u16::from_be_bytes([packet[at], packet[at + 1]]))
}

/// The test takes the sample's only packet apart like the code above.
#[test]
fn a_signature_covers_all_of_its_packet_but_the_id_of_the_key() {
    let whole = signed("Release.gpg");
    let mut packet = Vec::new();
    Dearmor::new(&whole[..]).read_to_end(&mut packet).unwrap();
    assert_eq!((packet.len(), covered(&whole).len()), (119, 109));
}
