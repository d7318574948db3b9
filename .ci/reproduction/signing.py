"""Signatures: the changes that they make, and their reproducibility. The keys are made for the run."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from . import compare
from .build import Fault
from .ways import PLAIN

ALGORITHMS = ["ed25519", "rsa3072"]
# The time of the keys: before the time of the builds, which signatures state.
MADE = "20240101T000000"
SIGNED = "20250615T150640"
SIGNATURE = re.compile('  <rpmTag name="(?:Rsa|Dsa)header">.*?</rpmTag>\n', re.DOTALL)
# The files with which clients of a repository get its key.
CLIENTS = [f"repository/{name}" for name in ("example-org-archive-keyring.asc", "example-org.repo", "example-org-stable.sources")]
# The additional files of a signed set and its repository.
INDEXES = {"InRelease", "Release.gpg", "repomd.xml.asc", "packages.json.asc"}


class Key:
    """A key in its own home of gpg. The path of an agent's socket must be short."""

    def __init__(self, algorithm):
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="gpg-"))
        self.gpg("--faked-system-time", MADE, "--passphrase", "", "--quick-generate-key",
                 "Packager <packager@example.org>", algorithm, "sign", "never")
        self.secret, self.public = self.home / "secret", self.home / "public"
        self.secret.write_bytes(self.gpg("--armor", "--export-secret-keys"))
        self.public.write_bytes(self.gpg("--armor", "--export"))
        # The signing process has to read it.
        self.home.chmod(0o755)
        self.secret.chmod(0o644)
        listed = self.gpg("--with-colons", "--list-keys").decode()
        self.fingerprint = listed.split("\nfpr:")[1].split("\n")[0].strip(":")

    def gpg(self, *arguments):
        command = ["gpg", "--homedir", self.home, "--quiet", "--batch", "--yes", "--pinentry-mode", "loopback"]
        done = subprocess.run([*command, *arguments], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        return done.stdout

    def remove(self):
        subprocess.run(["gpgconf", "--homedir", self.home, "--kill", "all"], check=True)
        shutil.rmtree(self.home)


def is_index(name):
    return name.rsplit("/", 1)[-1] in INDEXES


def signed_packages(out):
    """The .rpm files, each of which has a signature, as rpm reads it."""
    packages = sorted(path for path in out.iterdir() if path.suffix == ".rpm")
    query = ["rpm", "-qp", "--qf", "%{RSAHEADER:pgpsig}%{DSAHEADER:pgpsig}\n", *packages]
    told = subprocess.run(query, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    if told.count("Key ID") != len(packages):
        raise Fault(f"not in force: {told}")
    return packages


def changes_nothing_else(signed, plain):
    """Compares a signed set with the unsigned one. Returns the number of equal files, and of packages that
    are equal except for the signature header."""
    packages = signed_packages(signed.out)
    for package in packages:
        one, other = compare.without_signature(package), compare.without_signature(plain.out / package.name)
        if one != other or package.read_bytes() == (plain.out / package.name).read_bytes():
            raise Fault(f"{package.name} differs outside of its signature, or is not signed")
    sets = [{name: digest for name, digest in compare.of(built).items() if not tells_of_signatures(name)}
            for built in (signed, plain)]
    same_receipt(signed, plain, packages)
    return compare.same(*sets), len(packages)


def tells_of_signatures(name):
    """The files with a signature or with digests of signed files, and those with the key for clients.
    Packages for apt have no signatures, so their indexes are not included."""
    return (name.endswith(".rpm") or is_index(name)
            or name in ("packages.json", "packages.spdx.json", *CLIENTS)
            or name.startswith(("repository/repodata/", "repository/.rockpack/")))


def same_receipt(signed, plain, packages):
    """Checks that the receipts are equal except for the digests of the signed files and of what lists them."""
    names = {package.name for package in packages}
    receipts = []
    for built in (signed, plain):
        receipt = json.loads((built.out / "packages.json").read_text())
        for package in receipt["packages"]:
            if package["file_name"] in names:
                del package["sha256"]
        receipt.pop("spdx", None)
        receipts.append(receipt)
    if receipts[0] != receipts[1]:
        raise Fault("the receipts differ in more than digests of signed packages")


def tags(package):
    """Every tag of an .rpm, of both headers, as rpm reads them."""
    query = ["rpm", "-qp", "--xml", package]
    return subprocess.run(query, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout


def rpm_sees_one_tag_more(signed, plain):
    """Checks that rpm reads the same from both, except for the one tag of the signature."""
    packages = signed_packages(signed.out)
    for package in packages:
        other = tags(plain.out / package.name)
        if SIGNATURE.search(other) or SIGNATURE.subn("", tags(package)) != (other, 1):
            raise Fault(f"{package.name} has other tags than the unsigned one, or not one of a signature")
    return len(packages)


def gpg_of(key, faked):
    """gpg as the program that signs, at a time."""
    words = ["gpg", "--homedir", key.home, "--batch", "--pinentry-mode", "loopback", "--faked-system-time", faked,
             "--local-user", key.fingerprint, "--armor", "--{mode}"]
    return ["--sign-command", " ".join(map(str, words)), "--public-key", str(key.public)]


def by_gpg_is_the_same_again(runner, chosen, epoch, key):
    """Checks that gpg's signatures are equal for equal times, and that another time changes only them."""
    build = lambda faked: compare.of(runner.build(chosen, PLAIN, epoch, gpg_of(key, faked)))
    one, again, later = build(f"{SIGNED}!"), build(f"{SIGNED}!"), build("20260615T150640!")
    count = compare.same(one, again)
    lonely, changed = compare.differing(one, later)
    if lonely or not changed or not all(map(is_index, changed)):
        raise Fault(f"{lonely} {changed}: others than {sorted(INDEXES)} differ, or none")
    return f"{count} files identical; at another time but {', '.join(os.path.basename(name) for name in changed)}"
