#!/usr/bin/python3
"""Measures a build under a memory limit, beside bare zstd over the same payloads.

    measure.py cost ROCKPACK ARTIFACTS PACKAGES SCRATCH JOBS
    measure.py limited ROCKPACK ARTIFACTS OUT JOBS

PACKAGES are what a build of ARTIFACTS wrote; SCRATCH/code-objects holds the distinct code objects.
Three rounds of a build and of zstd, one after the other, so that both see the same machine; printed
are medians. Fails where the build takes more memory than the limit, more than 1.5 times the CPU
time of zstd, or writes anything but the packages. `limited` only builds under the limit, into OUT.
"""

import json
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import threading
import time

LIMIT = 1 << 30
ROUNDS = 3
RATIO = 1.5
CONFIGURATION = pathlib.Path(__file__).resolve().parent.parent / "examples/debian-rocm/packaging.toml"
V1 = pathlib.Path("/sys/fs/cgroup/memory")
V2 = pathlib.Path("/sys/fs/cgroup")


class Cgroup:
    """A memory cgroup of either version with a limit, or none where that is not permitted."""

    def __init__(self):
        self.v2 = (V2 / "cgroup.controllers").exists()
        self.path = (V2 if self.v2 else V1) / f"rockpack-{os.getpid()}"
        try:
            if self.v2:
                (V2 / "cgroup.subtree_control").write_text("+memory")
            self.path.mkdir()
            self.write("memory.max" if self.v2 else "memory.limit_in_bytes", LIMIT)
            # Without swap, or the limit would be none.
            swap = "memory.swap.max" if self.v2 else "memory.memsw.limit_in_bytes"
            if (self.path / swap).exists():
                self.write(swap, 0 if self.v2 else LIMIT)
        except OSError as error:
            print(f"no memory limit, a cgroup is not permitted: {error}", file=sys.stderr)
            self.path = None

    def write(self, name, value):
        (self.path / name).write_text(str(value))

    def join(self):
        if self.path:
            self.write("cgroup.procs", os.getpid())

    def anonymous(self):
        fields = dict(line.split() for line in (self.path / "memory.stat").read_text().splitlines())
        return int(fields["anon" if self.v2 else "total_rss"])

    def failures(self):
        """How often the limit left no choice but to kill."""
        name = "memory.events" if self.v2 else "memory.oom_control"
        fields = dict(line.split() for line in (self.path / name).read_text().splitlines())
        return int(fields.get("oom_kill", 0))

    def remove(self):
        if self.path:
            self.path.rmdir()


class Watch(threading.Thread):
    """Samples the anonymous memory of a process."""

    def __init__(self, pid, cgroup):
        super().__init__(daemon=True)
        self.status = pathlib.Path(f"/proc/{pid}/status")
        self.cgroup, self.peak, self.done = cgroup, 0, False

    def run(self):
        while not self.done:
            self.peak = max(self.peak, self.sample())
            time.sleep(0.01)

    def sample(self):
        try:
            if self.cgroup.path:
                return self.cgroup.anonymous()
            fields = dict(line.split(":", 1) for line in self.status.read_text().splitlines())
            return int(fields["RssAnon"].split()[0]) * 1024
        except (OSError, KeyError):
            return 0


def build(rockpack, artifacts, out, jobs):
    """Runs a build within the limit and returns its figures."""
    cgroup = Cgroup()
    command = [rockpack, "build", "--artifacts", artifacts, "--config", CONFIGURATION,
               "--version", "5.7.1", "--jobs", jobs, "--out", out]
    begin = time.monotonic()
    process = subprocess.Popen(command, stdout=sys.stderr, preexec_fn=cgroup.join)
    watch = Watch(process.pid, cgroup)
    watch.start()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    wall = time.monotonic() - begin
    watch.done = True
    watch.join()
    # The counters of a process stay readable until it is waited for.
    counters = dict(line.split(": ") for line in open(f"/proc/{process.pid}/io").read().splitlines())
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"the build failed with status {process.returncode} under {LIMIT >> 20} MiB")
    if cgroup.path and cgroup.failures():
        sys.exit("the memory limit killed")
    cgroup.remove()
    return {"wall": wall, "user": usage.ru_utime, "sys": usage.ru_stime, "anonymous": watch.peak,
            "total": usage.ru_maxrss * 1024, "written": int(counters["write_bytes"])}


def cpu(command, **options):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, **options)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def zstd(payloads, code_objects):
    """CPU seconds of the payloads with the packages' settings, and of every code object once."""
    long = ["zstd", "-q", "-9", "--long=27", "-T1", "-c"]
    packed = sum(cpu([*long, payload]) for payload in payloads)
    return packed, cpu(["zstd", "-q", "-9", "-T1", "-c", *code_objects])


def unpack(packages, folder):
    """The payloads of all packages, decompressed."""
    folder.mkdir()
    for package in sorted(packages.iterdir()):
        reader = {".deb": ["dpkg-deb", "--fsys-tarfile"], ".rpm": ["rpm2cpio"]}.get(package.suffix)
        if reader:
            with open(folder / package.name, "wb") as payload:
                subprocess.run([*reader, package], check=True, stdout=payload)
    return sorted(folder.iterdir())


def disk_size(folder):
    """Bytes of the blocks that a folder's files take."""
    return sum(path.stat().st_blocks * 512 for path in folder.iterdir())


def rounds(rockpack, artifacts, scratch, jobs, payloads):
    code_objects = sorted((scratch / "code-objects").iterdir())
    out = scratch / "measured"
    figures = []
    for _ in range(ROUNDS):
        figure = build(rockpack, artifacts, out, jobs)
        figure["packed"], figure["frames"] = zstd(payloads, code_objects)
        figure["excess"] = figure["written"] - disk_size(out)
        shutil.rmtree(out)
        print(json.dumps(figure), file=sys.stderr)
        figures.append(figure)
    return {name: statistics.median(figure[name] for figure in figures) for name in figures[0]}


def limited(rockpack, artifacts, out, jobs):
    figure = build(rockpack, artifacts, out, jobs)
    print(f"wall {figure['wall']:.1f} s, CPU {figure['user']:.1f} + {figure['sys']:.1f} s, "
          f"memory {figure['anonymous'] / (1 << 20):.0f} MiB anonymous, "
          f"written {figure['written'] / (1 << 20):.1f} MiB")


def cost(rockpack, artifacts, packages, scratch, jobs):
    scratch = pathlib.Path(scratch)
    payloads = unpack(pathlib.Path(packages), scratch / "payloads")
    median = rounds(rockpack, artifacts, scratch, jobs, payloads)
    spent, bare = median["user"] + median["sys"], median["packed"] + median["frames"]
    mib = {name: median[name] / (1 << 20) for name in ("anonymous", "total", "written", "excess")}
    print(f"wall {median['wall']:.1f} s, CPU {median['user']:.1f} + {median['sys']:.1f} s, "
          f"memory {mib['anonymous']:.0f} MiB anonymous, {mib['total']:.0f} MiB in all, "
          f"written {mib['written']:.1f} MiB, {mib['excess']:+.1f} beside the packages; "
          f"bare zstd {median['packed']:.1f} + {median['frames']:.1f} s; "
          f"ratio {spent / bare:.2f}")
    # A page at the front of each package is written twice, when what follows it is known.
    if spent > RATIO * bare or abs(mib["excess"]) > 4 or median["total"] > LIMIT:
        sys.exit("over the limit")


{"cost": cost, "limited": limited}[sys.argv[1]](*sys.argv[2:])
