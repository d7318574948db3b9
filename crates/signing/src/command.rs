//! Signatures by another program: gpg with its agent, or the front end of a hardware key.
//!
//! The program runs without a shell. It gets the data to sign on its standard input, and must write an armoured
//! signature, or the clear-signed text, to its standard output. `{mode}` in its arguments becomes `detach-sign` or
//! `clear-sign`, gpg's names. Its output is untrusted: the signatures are extracted, checked with the public keys of
//! clients, and put around the original text.

use std::io::{self, Write};
use std::process::{Command, Stdio};
use std::slice::from_ref;
use std::thread;

use pgp::armor::BlockType;
use pgp::composed::{
    ArmorOptions, CleartextSignedMessage, Deserializable, DetachedSignature, SignedPublicKey,
};
use pgp::packet::{Signature, SignatureType, SignatureVersion};
use rockpack_core::error::{Error, Kind, Result, ResultExt};

use super::index::{armored, armored_signatures, failed};
use super::judge::{self, CheckTime, KeyValidAt};
use super::own;
use super::trust::{common_algorithm, public_keys};
use super::{Algorithm, IndexSigner, PASSPHRASE_VARIABLE};
use rockpack_report::Finding;
use rockpack_report::words::list;

const MODE: &str = "{mode}";

const CLEAR: &str = "clear-sign";

const DETACHED: &str = "detach-sign";

#[derive(Debug)]
pub struct CommandSigner {
    words: Vec<String>,
    /// The public keys of clients: one of them must have made each signature.
    keys: Vec<SignedPublicKey>,
    /// These keys, prepared by [`judge::checked`].
    checked: Vec<SignedPublicKey>,
    /// The time for which keys and signatures are judged.
    at: CheckTime,
}

impl CommandSigner {
    /// A signer that runs `template`, a program and its arguments with blanks between them. `public` is the
    /// content of a file of public keys; a key that clients refuse at that time may not sign.
    pub fn new(template: &str, public: &[u8], at: CheckTime) -> Result<Self> {
        let words: Vec<String> = template.split_whitespace().map(str::to_owned).collect();
        if words.is_empty() || !template.contains(MODE) {
            let message = format!("the signing command `{template}` has no {MODE}");
            return Err(Error::new(Kind::Usage, message).hint(
                "{mode} is replaced by detach-sign or clear-sign, as in \
                 `gpg --batch --local-user KEY --armor --{mode}`",
            ));
        }
        let keys = public_keys(public).context(|| "reading the public key".to_owned())?;
        // A program signs at the time of the clock, even if another time is stated elsewhere.
        let at = CheckTime { time: at.time.max(at.clock), ..at };
        let checked: Vec<_> = keys.iter().cloned().map(judge::checked).collect();
        let refusals: Option<Vec<_>> =
            checked.iter().map(|key| judge::public_refusal(key, at)).collect();
        match refusals.iter().flatten().next() {
            Some(refusal) => Err(refusal.error()),
            None => Ok(Self { words, keys, checked, at }),
        }
    }

    /// A signer that uses the key `id` of gpg's own keyring and agent.
    pub fn gpg(id: &str, at: CheckTime) -> Result<Self> {
        let key: String = id.chars().filter(|c| !c.is_whitespace()).collect();
        if key.is_empty() || key.starts_with('-') {
            return Err(Error::new(Kind::Usage, format!("`{id}` is not a key id")));
        }
        let words = ["gpg", "--batch", "--armor", "--export", &key].map(str::to_owned);
        let public = run(&words, b"")?;
        if public.is_empty() {
            return Err(Error::new(Kind::Usage, format!("gpg has no key {id}")));
        }
        let keys = public_keys(public.as_bytes()).context(|| "reading gpg's key".to_owned())?;
        if keys.len() > 1 {
            let names = list(keys.iter().map(|key| own::key_name(&key.primary_key, &key.details)));
            let message = format!("gpg has {} keys for {id}: {names}", keys.len());
            return Err(Error::new(Kind::Usage, message)
                .hint("give the fingerprint of one of them with --gpg-key-id"));
        }
        let template = format!("gpg --batch --yes --local-user {key} --armor --{MODE}");
        Self::new(&template, public.as_bytes(), at)
    }

    /// Runs the program to sign `data`. Clients may still refuse the signatures.
    fn sign(&self, mode: &str, data: &[u8]) -> Result<Vec<Signature>> {
        let words: Vec<String> = self.words.iter().map(|word| word.replace(MODE, mode)).collect();
        let signed = run(&words, data)?;
        let begin = match mode {
            CLEAR => "-----BEGIN PGP SIGNED MESSAGE-----",
            _ => "-----BEGIN PGP SIGNATURE-----",
        };
        if !signed.starts_with(begin) {
            let message = format!("{} wrote no armoured signature for {mode}", self.program());
            return Err(Error::new(Kind::Malformed, message));
        }
        let signatures = signatures(&signed, mode).map_err(|error| {
            let message = format!("{} wrote a signature that cannot be read", self.program());
            Error::new(Kind::Malformed, message).cause(error)
        })?;
        if signatures.is_empty() {
            let message = format!("{} wrote armour without a signature", self.program());
            return Err(Error::new(Kind::Malformed, message));
        }
        Ok(signatures)
    }

    fn program(&self) -> &str {
        self.words.first().map_or("the signing command", String::as_str)
    }

    /// Refuses a signature that clients do not accept for `data`. Lines of clear-signed texts end in CR LF.
    fn check(&self, signature: &Signature, data: &[u8], mode: &str) -> Result<()> {
        self.check_strength(signature)?;
        let wanted = if mode == CLEAR { SignatureType::Text } else { SignatureType::Binary };
        let keys = (self.checked.as_slice(), self.at);
        let accepted = match signature.typ() == Some(wanted) {
            true => judge::check_any_accepted(from_ref(signature), data, keys, KeyValidAt::Now),
            false => Err(None),
        };
        let Err(refused) = accepted else { return Ok(()) };
        let is_known = self.checked.iter().any(|key| judge::names_key(signature, key));
        let (fault, hint) = match (refused, signature.issuer_key_id().first()) {
            (Some(fault), _) => (
                fault,
                "extend the validity of the key, or sign with another, and export the public key again",
            ),
            (None, Some(id)) if !is_known => (
                format!(
                    "is by the key {}, which clients do not get",
                    id.to_string().to_uppercase()
                ),
                "give the public key of the signing key with --public-key: clients get no other",
            ),
            (None, _) => (
                "is not a signature of the data it was given".to_owned(),
                "it must sign its standard input, byte for byte, in the way that {mode} states: \
                 detach-sign or clear-sign",
            ),
        };
        let message = format!("the signature that {} wrote {fault}", self.program());
        Err(Error::new(Kind::Malformed, message).hint(hint))
    }

    /// Refuses a signature that clients never accept, for any data.
    fn check_strength(&self, signature: &Signature) -> Result<()> {
        if let Some(fault) = judge::signature_fault(signature, self.at) {
            let program = self.program();
            let message =
                format!("the signature that {program} wrote {fault}, which clients refuse");
            let hint = if signature.version() != SignatureVersion::V4 {
                "have it write signatures of version 4: gpg from 2.1 on writes no others, and older ones \
                 need --no-force-v3-sigs, or no force-v3-sigs in gpg.conf"
            } else {
                "have it use SHA-256 or SHA-512 (`gpg --digest-algo SHA512`, or without digest-algo and \
                 personal-digest-preferences in gpg.conf), the right time, and no end \
                 (default-sig-expire)"
            };
            return Err(Error::new(Kind::Usage, message).hint(hint));
        }
        let by = self.checked.iter().find(|key| judge::names_key(signature, key));
        let refusal = by.and_then(|key| {
            let by =
                key.public_subkeys.iter().find(|sub| judge::names_key_part(signature, &sub.key));
            judge::key_refusal(key, by, self.at)
        });
        refusal.map_or(Ok(()), |refusal| Err(refusal.error()))
    }
}

/// Reads the signatures from armour, in the form of `mode`.
fn signatures(signed: &str, mode: &str) -> pgp::errors::Result<Vec<Signature>> {
    if mode == CLEAR {
        let (message, _) = CleartextSignedMessage::from_string(signed)?;
        return Ok(message.signatures().to_vec());
    }
    let (found, _) = DetachedSignature::from_armor_many(signed.as_bytes())?;
    found.map(|found| found.map(|found| found.signature)).collect()
}

impl IndexSigner for CommandSigner {
    fn sign_detached(&self, data: &[u8]) -> Result<String> {
        let signatures = self.sign(DETACHED, data)?;
        signatures.iter().try_for_each(|signature| self.check(signature, data, DETACHED))?;
        armored_signatures(signatures)
    }

    fn sign_clear(&self, text: &str) -> Result<String> {
        let signatures = self.sign(CLEAR, text.as_bytes())?;
        // The last line break belongs to the frame around the text.
        let inner = text.strip_suffix('\n').unwrap_or(text);
        let message =
            CleartextSignedMessage::new_many(inner, |_| Ok(signatures)).map_err(failed)?;
        for signature in message.signatures() {
            self.check(signature, message.signed_text().as_bytes(), CLEAR)?;
        }
        message.to_armored_string(ArmorOptions::default()).map_err(failed)
    }

    fn public_keys(&self) -> Result<String> {
        armored(&self.keys, BlockType::PublicKey)
    }

    fn algorithm(&self) -> Option<Algorithm> {
        common_algorithm(&self.keys)
    }

    fn findings(&self) -> Vec<Finding> {
        let refusals = self.checked.iter().filter_map(|key| judge::public_refusal(key, self.at));
        refusals.map(|refusal| refusal.finding()).collect()
    }
}

/// Runs a program with `input`, and returns its output. Hides the passphrase of `--sign-key` from it.
fn run(words: &[String], input: &[u8]) -> Result<String> {
    let (program, arguments) = words.split_first().ok_or_else(|| Error::bug("no program"))?;
    let mut child = Command::new(program)
        .args(arguments)
        .env_remove(PASSPHRASE_VARIABLE)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| not_run(program, e))?;
    let stdin = child.stdin.take();
    let output = thread::scope(|scope| {
        // A thread writes the input, because a program may answer before it has read all. A failed write is
        // ignored: a program that reads nothing reports that by its status.
        let write = move || stdin.map(|mut stdin| stdin.write_all(input));
        match thread::Builder::new().spawn_scoped(scope, write) {
            Ok(_) => child.wait_with_output().map_err(|e| not_run(program, e)),
            Err(error) => {
                // Without its input it would sign nothing.
                child.kill().and_then(|()| child.wait()).map_err(|e| not_run(program, e))?;
                Err(Error::thread_start_failure(error))
            }
        }
    })?;
    if !output.status.success() {
        let message = format!("{program} failed ({})", output.status);
        let stderr = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(
            with_terminal_hint(Error::new(Kind::Io, message), &stderr).cause_in_lines(stderr)
        );
    }
    String::from_utf8(output.stdout)
        .map_err(|_| Error::new(Kind::Malformed, format!("{program} did not write text")))
}

/// Adds a hint if gpg found no terminal to ask for the passphrase on.
fn with_terminal_hint(error: Error, stderr: &str) -> Error {
    if !["Inappropriate ioctl for device", "No pinentry"].iter().any(|it| stderr.contains(it)) {
        return error;
    }
    error.hint(
        "gpg cannot ask for the passphrase without a terminal: set GPG_TTY=$(tty), or use a key without a \
         passphrase, or --sign-key with --sign-passphrase-file",
    )
}

fn not_run(program: &str, error: io::Error) -> Error {
    Error::io(program, "run", error).context("running the signing program")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpg_without_a_terminal_gets_a_hint() {
        let failed = |stderr| with_terminal_hint(Error::new(Kind::Io, "gpg failed"), stderr);
        for stderr in [
            "gpg: signing failed: Inappropriate ioctl for device",
            "gpg: signing failed: No pinentry",
        ] {
            let error = failed(stderr);
            assert!(error.hint_text().unwrap().contains("GPG_TTY=$(tty)"), "{stderr}");
        }
        assert!(failed("gpg: signing failed: No secret key").hint_text().is_none());
    }
}
