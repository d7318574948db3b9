"""Long runs in slices: what a slice is called, what is known already, and a clone to change.

`.ci/nightly` and `.ci/mutants` use this. A result is kept below target/ under the state of
the source that it holds for, so that a run which was cut off goes on where it stopped.
"""

import argparse
import fcntl
import hashlib
import json
import os
import pathlib
import re
import subprocess

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent


def target():
    return pathlib.Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target")).resolve()


def git(*arguments, folder=REPOSITORY, **options):
    return subprocess.run(["git", *arguments], cwd=folder, check=True, stdout=subprocess.PIPE, text=True, **options).stdout.strip()


def state():
    """The commit; with what is not committed, also a digest of that."""
    commit = git("rev-parse", "--short=12", "HEAD")
    read = lambda *arguments: subprocess.run(["git", *arguments], cwd=REPOSITORY, check=True, stdout=subprocess.PIPE).stdout
    changes = read("diff", "--binary", "HEAD")
    for name in filter(None, read("ls-files", "-z", "--others", "--exclude-standard").split(b"\0")):
        path = os.path.join(os.fsencode(REPOSITORY), name)
        changes += name + b"\0" + (os.readlink(path) if os.path.islink(path) else pathlib.Path(os.fsdecode(path)).read_bytes())
    return f"{commit}-{hashlib.sha256(changes).hexdigest()[:12]}" if changes else commit


def slice_of(text):
    """`2/5` as (2, 5), for argparse."""
    match = re.fullmatch(r"([0-9]+)/([0-9]+)", text)
    if not match or not 1 <= int(match[1]) <= int(match[2]):
        raise argparse.ArgumentTypeError(f"{text!r} is no slice: name it as I/N, with I from 1 to N")
    return int(match[1]), int(match[2])


def part(items, chosen):
    """The items of a slice: every N-th, from the I-th."""
    index, of = chosen
    return items[index - 1::of]


class Results:
    """What is known of a state of the source: name -> a JSON object, each kept as soon as it is known."""

    def __init__(self, folder, state):
        self.file = folder / "results" / f"{state}.json"
        self.known = json.loads(self.file.read_text()) if self.file.exists() else {}

    def keep(self, name, result):
        self.known[name] = result
        self.file.parent.mkdir(parents=True, exist_ok=True)
        growing = self.file.with_suffix(".part")
        growing.write_text(json.dumps(self.known, indent=1, sort_keys=True))
        growing.rename(self.file)


class Clone:
    """A clone of HEAD that may be changed, and the folder of its builds. Both are kept: files that a commit
    did not change stay as they are, and are not compiled anew. One process uses them at a time."""

    def __init__(self):
        self.folder, self.build = target() / "sliced/clone", target() / "sliced/build"
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        self.lock = open(self.folder.parent / "lock", "w")
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        if not (self.folder / ".git").exists():
            subprocess.run(["git", "clone", "-q", "--no-checkout", REPOSITORY, self.folder], check=True)
        git("fetch", "-q", REPOSITORY, "HEAD", folder=self.folder)
        self.restore("FETCH_HEAD")
        self.commit = git("rev-parse", "--short=12", "HEAD", folder=self.folder)
        self.environment = {**os.environ, "CARGO_TARGET_DIR": str(self.build)}
        # A test that is skipped for a missing tool proves nothing.
        self.environment["ROCKPACK_INTEROP"] = "1"

    def restore(self, commit="HEAD"):
        git("-c", "advice.detachedHead=false", "checkout", "-q", "-f", "--detach", commit, folder=self.folder)
        git("clean", "-q", "-f", "-d", folder=self.folder)

    def run(self, *command, log):
        with open(log, "a") as file:
            done = subprocess.run(command, cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
                                  stdout=file, stderr=subprocess.STDOUT)
        return done.returncode
