//! Signatures by another program: gpg with its agent, or a front end of a hardware key.
//!
//! The program is run without a shell. It gets the data to sign on its standard input, and must write an
//! armoured signature, or the clear-signed text, to its standard output. In its words, `{mode}` is replaced
//! by `detach-sign` or `clear-sign`, as gpg calls the two. Its output is untrusted: the signatures are
//! extracted, checked against the public keys of clients, and written anew around the text to sign.

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
use super::judge::{self, Alive, Moment};
use super::own;
use super::trust::{common_algorithm, public_keys};
use super::{Algorithm, IndexSigner, PASSPHRASE_VARIABLE};
use rockpack_report::Finding;
use rockpack_report::words::list;

/// The placeholder for the kind of signature.
const MODE: &str = "{mode}";

/// The value for texts with a signature around them.
const CLEAR: &str = "clear-sign";

/// The value for detached signatures.
const DETACHED: &str = "detach-sign";

/// A program that signs receipts and indexes.
#[derive(Debug)]
pub struct CommandSigner {
    words: Vec<String>,
    /// The public keys of clients: one of them must have made each signature.
    keys: Vec<SignedPublicKey>,
    /// These keys, prepared by [`judge::checked`].
    checked: Vec<SignedPublicKey>,
    /// The time for which keys and signatures are judged.
    at: Moment,
}

impl CommandSigner {
    /// A signer that runs `template`, a program and its arguments with blanks between them. `public` is the
    /// content of a file of public keys; a key that clients refuse at that time may not sign.
    pub fn new(template: &str, public: &[u8], at: Moment) -> Result<Self> {
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
        let at = Moment { time: at.time.max(at.clock), ..at };
        let checked: Vec<_> = keys.iter().cloned().map(judge::checked).collect();
        let refusals: Option<Vec<_>> =
            checked.iter().map(|key| judge::public_refusal(key, at)).collect();
        match refusals.iter().flatten().next() {
            Some(refusal) => Err(refusal.error()),
            None => Ok(Self { words, keys, checked, at }),
        }
    }

    /// A signer that uses the key `id` of gpg's own keyring and agent.
    pub fn gpg(id: &str, at: Moment) -> Result<Self> {
        let key: String = id.chars().filter(|c| !c.is_whitespace()).collect();
        if key.is_empty() || key.starts_with('-') {
            return Err(Error::new(Kind::Usage, format!("`{id}` is no id of a key")));
        }
        let words = ["gpg", "--batch", "--armor", "--export", &key].map(str::to_owned);
        let public = run(&words, b"")?;
        if public.is_empty() {
            return Err(Error::new(Kind::Usage, format!("gpg has no key {id}")));
        }
        let keys = public_keys(public.as_bytes()).context(|| "reading gpg's key".to_owned())?;
        if keys.len() > 1 {
            let names = list(keys.iter().map(|key| own::named(&key.primary_key, &key.details)));
            let message = format!("gpg has {} keys {id}: {names}", keys.len());
            return Err(Error::new(Kind::Usage, message)
                .hint("which one is to sign? give its fingerprint by --gpg-key-id"));
        }
        let template = format!("gpg --batch --yes --local-user {key} --armor --{MODE}");
        Self::new(&template, public.as_bytes(), at)
    }

    /// Has the program sign `data`. Clients may still refuse the signatures.
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
        let taken = match signature.typ() == Some(wanted) {
            true => judge::one_is_taken(from_ref(signature), data, keys, Alive::Now),
            false => Err(None),
        };
        let Err(refused) = taken else { return Ok(()) };
        let is_known = self.checked.iter().any(|key| judge::is_by(signature, key));
        let (fault, hint) = match (refused, signature.issuer_key_id().first()) {
            (Some(fault), _) => (
                fault,
                "extend the life of the key, or sign by another, and export the public key again",
            ),
            (None, Some(id)) if !is_known => (
                format!(
                    "is by the key {}, which clients do not get",
                    id.to_string().to_uppercase()
                ),
                "give the public key of the key that signs by --public-key: clients get no other",
            ),
            (None, _) => (
                "is not one of what it was given to sign".to_owned(),
                "it has to sign its standard input, byte for byte, as {mode} says: detach-sign or \
                 clear-sign",
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
        let by = self.checked.iter().find(|key| judge::is_by(signature, key));
        let refusal = by.and_then(|key| {
            let by = key.public_subkeys.iter().find(|sub| judge::is_of(signature, &sub.key));
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

/// Runs a program with `input`, and returns its output. It does not get the passphrase of `--sign-key`.
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
                Err(Error::no_thread(error))
            }
        }
    })?;
    if !output.status.success() {
        let message = format!("{program} failed ({})", output.status);
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(Error::new(Kind::Io, message).cause_in_lines(said));
    }
    String::from_utf8(output.stdout)
        .map_err(|_| Error::new(Kind::Malformed, format!("{program} did not write text")))
}

fn not_run(program: &str, error: io::Error) -> Error {
    Error::io(program, "run", error).context("running the program that signs")
}
