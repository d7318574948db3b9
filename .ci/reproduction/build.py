"""Runs one build in a way, and checks that the way was in force."""

import json
import os
import pathlib
import re
import shutil
import subprocess

from . import places

HERE = pathlib.Path(__file__).resolve().parent
FAKETIME = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
LOCALES = {"tr_TR.UTF-8": "tr_TR", "tr_TR.ISO-8859-9": "tr_TR", "de_DE.UTF-8": "de_DE"}
WEEKDAYS = {"tr_TR": "Pazar", "de_DE": "Sonntag"}
OFFSETS = {"Pacific/Kiritimati": "+1400", "Asia/Kathmandu": "+0545"}
THREAD = re.compile(r"clone3?\(")


class Fault(Exception):
    """A build that failed, a variation that was not in force, files that differ."""


def make_locales(folder):
    """Debian has them only as sources, unless the administrator generated them."""
    for name, source in LOCALES.items():
        places.run("localedef", "-i", source, "-f", name.split(".")[1], folder / name)


def variables(way, locales, epoch):
    found = {"PATH": PATH, "HOME": "/root", "TZ": way.zone, "LC_ALL": way.locale, "LOCPATH": str(locales)}
    found |= dict(way.variables)
    if epoch is not None:
        found["SOURCE_DATE_EPOCH"] = str(epoch)
    if way.clock:
        # The clock goes on from there. The timestamps of files do not change, nor does the clock for
        # waits: the kernel has no other.
        found |= {"LD_PRELOAD": FAKETIME, "FAKETIME": f"@{way.clock}-03-04 05:06:07",
                  "NO_FAKE_STAT": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
    return found


def wrapped(way, environment, command):
    """The command as the way starts it, regardless of the state of this process."""
    words = []
    if way.host:
        words += ["unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', way.host]
    if way.kernel or way.addresses:
        words += ["setarch", *["--uname-2.6"] * way.kernel, *["--addr-no-randomize"] * way.addresses]
    if way.cores:
        words += ["taskset", "--cpu-list", ",".join(map(str, sorted(os.sched_getaffinity(0))[:way.cores]))]
    if way.user:
        words += ["setpriv", f"--reuid={way.user}", f"--regid={way.user}", "--clear-groups"]
    words += ["sh", "-c", 'umask "$0" && exec "$@"', f"{way.umask:03o}"]
    return [*words, "env", "-i", *(f"{name}={value}" for name, value in environment.items()), *map(str, command)]


# The expected view of the probe, by field of a way; `plain` is its view in the plain way. Everything that
# a field changes must be as the way says, and differ from the plain way.
SEEN = {
    "folder": lambda way, seen, plain: f"/{way.folder}/" in f"{seen['input']}/" and seen["input"] != plain["input"],
    "program": lambda way, seen, plain: f"/{way.program}/" in seen["program"] and seen["program"] != plain["program"],
    "relative": lambda way, seen, plain: all(seen["relative"]) and not any(plain["relative"]),
    "linked": lambda way, seen, plain: all(seen["linked"]) and not any(plain["linked"]),
    "user": lambda way, seen, plain: seen["user"] == way.user != plain["user"],
    "variables": lambda way, seen, plain: all(
        seen["variables"].get(name) == value != plain["variables"].get(name) for name, value in way.variables),
    "umask": lambda way, seen, plain: seen["umask"] == way.umask != plain["umask"],
    "locale": lambda way, seen, plain: seen["locale"] == [
        way.locale, WEEKDAYS[LOCALES[way.locale]], way.locale.split(".")[1]] and seen["locale"] != plain["locale"],
    "zone": lambda way, seen, plain: seen["zone"] == OFFSETS[way.zone] != plain["zone"],
    "clock": lambda way, seen, plain: seen["clock"] == way.clock != plain["clock"],
    "age": lambda way, seen, plain: seen["age"] == [way.age] != plain["age"],
    "host": lambda way, seen, plain: seen["host"] == way.host != plain["host"],
    "kernel": lambda way, seen, plain: seen["kernel"].startswith("2.6.") and not plain["kernel"].startswith("2.6."),
    "addresses": lambda way, seen, plain: seen["addresses"] and not plain["addresses"],
    "cores": lambda way, seen, plain: seen["cores"] == way.cores,
    "order": lambda way, seen, plain: seen["order"] != plain["order"] and names(seen) == names(plain),
    "input_on": lambda way, seen, plain: seen["input_on"] != plain["input_on"],
    "output_on": lambda way, seen, plain: seen["output_on"][0] != plain["output_on"][0],
    "holes": lambda way, seen, plain: seen["holes"] > plain["holes"],
    "hard_links": lambda way, seen, plain: seen["hard_links"] > 1 == plain["hard_links"],
}
# Shown by the build itself: see `Built.check`.
SHOWN = {"jobs", "memory", "threads", "cache"}


def names(seen):
    return {folder: sorted(listed) for folder, listed in seen["order"].items()}


def not_in_force(way, seen, plain):
    """The fields of a way that a process started in it does not see."""
    return [field for field in way.differences() if field not in SHOWN and not SEEN[field](way, seen, plain)]


def sign(one, other):
    """The number of threads depends on the set, so this compares only more, fewer or as many."""
    return (one > other) - (one < other)


class Built:
    """The output of one build, and the way it was run."""

    def __init__(self, work, way, epoch):
        self.work, self.way, self.epoch = work, way, epoch
        self.out = self.repository = self.seen = None
        self.threads, self.summary = 0, {}

    def command(self, program, artifacts, config, options, cache):
        words = [program, "build", "--artifacts", artifacts, "--config", config, "--out", self.out,
                 "--sbom", "--log-format", "json", *options]
        if self.repository:
            words += ["--repo", self.repository, "--repo-set", "url=https://example.org/rocm"]
        words += ["--jobs", self.way.jobs] if self.way.jobs else []
        words += ["--memory", self.way.memory] if self.way.memory else []
        return words + (["--cache", cache] if cache else [])

    def run(self, environment, command, cwd, log):
        """Standard output of a command in this way."""
        with open(log, "a") as stderr:
            words = wrapped(self.way, environment, command)
            done = subprocess.run(words, cwd=cwd, stdout=subprocess.PIPE, stderr=stderr, text=True)
        if done.returncode:
            raise Fault(f"{' '.join(map(str, command[:2]))} ended with status {done.returncode}: see {log}")
        return done.stdout

    def traced(self, environment, command, cwd, log):
        """Runs the build, and counts the threads that it starts."""
        trace = self.work / "trace"
        tracer = ["strace", "-f", "--seccomp-bpf", "-qq", "-e", "trace=clone,clone3", "-e", "signal=none", "-o", trace]
        self.run(environment, [*tracer, *command], cwd, log)
        self.threads = len(THREAD.findall(trace.read_text()))
        for line in log.read_text().splitlines():
            if line.startswith('{"') and json.loads(line)["event"] == "summary":
                self.summary = json.loads(line)

    def check(self, plain):
        """Fails if a field of the way was not in force."""
        way = self.way
        faults = not_in_force(way, self.seen, plain.seen)
        # A cache has threads that fill it, and a publication as many as there are cores.
        comparable = not way.cache and not self.repository
        if comparable and sign(self.threads, plain.threads) != sign(way.threads, plain.way.threads):
            faults.append(f"threads ({self.threads}, plainly {plain.threads})")
        made, reused = (sum(work[kind]["count"] for work in self.summary["compressed"]) for kind in ("made", "reused"))
        wanted = {"": made and not reused, "empty": made, "filled": reused and not made, "older": reused}[way.cache]
        if not wanted:
            faults.append(f"cache (made {made}, reused {reused})")
        if faults:
            raise Fault(f"not in force: {', '.join(faults)}")

    def remove(self):
        shutil.rmtree(self.work)
