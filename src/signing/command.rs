//! Signatures by another program: gpg with its agent, or what stands before a hardware key.
//!
//! The program is run without a shell. It gets what is to be signed on its standard input and has
//! to write an armoured signature, or the clear-signed text, to its standard output. In its words,
//! `{mode}` stands for `detach-sign` or `clear-sign`, as gpg calls the two.

use std::io::Write;
use std::process::{Command, Stdio};
use std::thread;

use super::IndexSigner;
use crate::error::{Error, Kind, Result};

/// The word that stands for the kind of signature.
const MODE: &str = "{mode}";

/// A program that signs indexes.
#[derive(Debug)]
pub struct CommandSigner {
    words: Vec<String>,
    public: String,
}

impl CommandSigner {
    /// Signs by `template`, a program and its arguments with blanks between them; `public` are the
    /// armoured public keys.
    pub fn new(template: &str, public: String) -> Result<Self> {
        let words: Vec<String> = template.split_whitespace().map(str::to_owned).collect();
        if words.is_empty() || !template.contains(MODE) {
            let message = format!("the signing command `{template}` has no {MODE}");
            return Err(Error::new(Kind::Usage, message).hint(
                "{mode} is replaced by detach-sign or clear-sign, as in \
                 `gpg --batch --local-user KEY --armor --{mode}`",
            ));
        }
        if !public.contains("-----BEGIN PGP PUBLIC KEY BLOCK-----") {
            return Err(Error::new(Kind::Usage, "the public key is not armoured")
                .hint("write it by `gpg --armor --export`"));
        }
        Ok(Self { words, public })
    }

    /// Signs by the key `id` of gpg's own keyring and agent.
    pub fn gpg(id: &str) -> Result<Self> {
        let key: String = id.chars().filter(|c| !c.is_whitespace()).collect();
        if key.is_empty() || key.starts_with('-') {
            return Err(Error::new(Kind::Usage, format!("`{id}` is no id of a key")));
        }
        let words = ["gpg", "--batch", "--armor", "--export", &key].map(str::to_owned);
        let public = run(&words, b"")?;
        if public.is_empty() {
            return Err(Error::new(Kind::Usage, format!("gpg has no key {id}")));
        }
        Self::new(&format!("gpg --batch --yes --local-user {key} --armor --{MODE}"), public)
    }

    fn sign(&self, mode: &str, data: &[u8]) -> Result<String> {
        let words: Vec<String> = self.words.iter().map(|word| word.replace(MODE, mode)).collect();
        let signed = run(&words, data)?;
        let begin = match mode {
            "clear-sign" => "-----BEGIN PGP SIGNED MESSAGE-----",
            _ => "-----BEGIN PGP SIGNATURE-----",
        };
        if signed.starts_with(begin) {
            Ok(signed)
        } else {
            let message = format!("{} wrote no armoured signature for {mode}", named(&words));
            Err(Error::new(Kind::Malformed, message))
        }
    }
}

impl IndexSigner for CommandSigner {
    fn sign_detached(&self, data: &[u8]) -> Result<String> {
        self.sign("detach-sign", data)
    }

    fn sign_clear(&self, text: &str) -> Result<String> {
        self.sign("clear-sign", text.as_bytes())
    }

    fn public_keys(&self) -> Result<String> {
        Ok(self.public.clone())
    }
}

fn named(words: &[String]) -> &str {
    words.first().map_or("the signing command", String::as_str)
}

/// What a program writes when it is given `input`.
fn run(words: &[String], input: &[u8]) -> Result<String> {
    let (program, arguments) = words.split_first().ok_or_else(|| Error::bug("no program"))?;
    let fault = |e| Error::io(program, "run", e).context("running the program that signs");
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(fault)?;
    let stdin = child.stdin.take();
    let output = thread::scope(|scope| {
        // Written beside the reading: a program may answer before it has read all. One that does
        // not read at all says by its status what it thinks of that.
        let write = move || stdin.map(|mut stdin| stdin.write_all(input));
        match thread::Builder::new().spawn_scoped(scope, write) {
            Ok(_) => child.wait_with_output().map_err(fault),
            Err(error) => {
                // Its input has ended: it would sign nothing.
                child.kill().and_then(|()| child.wait()).map_err(fault)?;
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
