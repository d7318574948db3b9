#!/usr/bin/python3
"""Measures builds, beside the bare compressor over the same payloads.

    measure.py cost ROCKPACK ARTIFACTS SCRATCH JOBS
    measure.py limited ROCKPACK ARTIFACTS OUT JOBS [MEBIBYTES]
    measure.py within MEBIBYTES COMMAND...
    measure.py bench ROCKPACK ARTIFACTS SCRATCH JOBS ROUNDS [OPTION...]
    measure.py cores ROCKPACK ARTIFACTS OUT [ROUNDS]
    measure.py respin ROCKPACK ARTIFACTS SCRATCH JOBS

`cost`: three rounds of a build of Debian's libraries within 1 GiB of memory and of the bare
compressor, one after the other, so that both see the same machine; printed are medians. Fails where
the build takes more memory, more than 1.25 times the CPU time of the compressor, or writes anything
but the packages. `limited` only builds into OUT, with --memory 1G and within as many MEBIBYTES (1024);
`within` runs any COMMAND within so many. All three fail where no cgroup is permitted. `bench` measures
builds with any OPTIONs, without a limit, and prints a JSON object of medians. `cores` builds Debian's
libraries on one processor and on two, in turns, and prints medians of wall times.
`respin` builds them with an empty cache, under another version, and under that one again.

The bare compressor is zstd or xz on one thread, with the settings of the packages: every code object
once, and the payload of every package, which goes through a pipe.
"""

import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import threading
import time

LIMIT = 1 << 30
ROUNDS = 3
RATIO = 1.25
HERE = pathlib.Path(__file__).resolve().parent
DEBIAN = ["--config", str(HERE.parent / "examples/debian-rocm/packaging.toml"), "--version", "5.7.1"]
BUDGET = ["--memory", "1G"]
V1 = pathlib.Path("/sys/fs/cgroup/memory")
V2 = pathlib.Path("/sys/fs/cgroup")
READERS = {".deb": ["dpkg-deb", "--fsys-tarfile"], ".rpm": ["rpm2cpio"]}
# The compression of archives and payloads, by preset.
ZSTD = {"fast": (["-3"], ["-3", "--long=27"]), "balanced": (["-9"], ["-9", "--long=27"]),
        "small": (["-19"], ["-19", "--long=27"])}
# Level and block, which is three dictionaries, of xz payloads.
XZ = {"fast": ("-1", "3MiB"), "balanced": ("-6", "24MiB"), "small": ("-7", "48MiB")}


class Cgroup:
    """A memory cgroup of either version, or none where that is not permitted and no limit is asked for."""

    def __init__(self, limit):
        self.v2 = (V2 / "cgroup.controllers").exists()
        self.path = (V2 if self.v2 else V1) / f"rockpack-{os.getpid()}"
        try:
            if self.v2:
                (V2 / "cgroup.subtree_control").write_text("+memory")
            self.path.mkdir()
            if limit:
                self.restrict(limit)
        except OSError as error:
            if limit:
                sys.exit(f"there is no memory limit, a cgroup is not permitted: {error}")
            print(f"page cache is not measured, a cgroup is not permitted: {error}", file=sys.stderr)
            self.path = None

    def restrict(self, limit):
        self.write("memory.max" if self.v2 else "memory.limit_in_bytes", limit)
        # Without swap, which would void the limit.
        swap = "memory.swap.max" if self.v2 else "memory.memsw.limit_in_bytes"
        if (self.path / swap).exists():
            self.write(swap, 0 if self.v2 else limit)

    def write(self, name, value):
        (self.path / name).write_text(str(value))

    def join(self):
        if self.path:
            self.write("cgroup.procs", os.getpid())

    def memory(self):
        """Bytes of anonymous memory and of page cache."""
        fields = dict(line.split() for line in (self.path / "memory.stat").read_text().splitlines())
        names = ("anon", "file") if self.v2 else ("total_rss", "total_cache")
        return tuple(int(fields[name]) for name in names)

    def failures(self):
        """How often the limit left no choice but to kill."""
        name = "memory.events" if self.v2 else "memory.oom_control"
        fields = dict(line.split() for line in (self.path / name).read_text().splitlines())
        return int(fields.get("oom_kill", 0))

    def remove(self):
        if not self.path:
            return
        # The kernel removes a process a moment after it ended.
        for _ in range(100):
            try:
                return self.path.rmdir()
            except OSError:
                time.sleep(0.05)


class Watch(threading.Thread):
    """Samples the memory of a process."""

    def __init__(self, pid, cgroup):
        super().__init__(daemon=True)
        self.status = pathlib.Path(f"/proc/{pid}/status")
        self.cgroup, self.anonymous, self.cached, self.done = cgroup, 0, 0, False

    def run(self):
        while not self.done:
            anonymous, cached = self.sample()
            self.anonymous = max(self.anonymous, anonymous)
            self.cached = max(self.cached, cached)
            time.sleep(0.01)

    def sample(self):
        try:
            if self.cgroup.path:
                return self.cgroup.memory()
            fields = dict(line.split(":", 1) for line in self.status.read_text().splitlines())
            return int(fields["RssAnon"].split()[0]) * 1024, 0
        except (OSError, KeyError):
            return 0, 0


def build(rockpack, artifacts, out, jobs, options, limit=None):
    """Runs a build, within the limit if there is one, and returns its figures."""
    command = [rockpack, "build", "--artifacts", artifacts, "--jobs", jobs, "--out", out, *options]
    return run(command, limit)


def run(command, limit, **options):
    """Runs a command, within the limit if there is one, and returns its figures. Options are Popen's."""
    cgroup = Cgroup(limit)
    begin = time.monotonic()
    process = subprocess.Popen(command, **{"stdout": sys.stderr} | options, preexec_fn=cgroup.join)
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
    killed = cgroup.path and cgroup.failures()
    cgroup.remove()
    if process.returncode:
        sys.exit(f"{' '.join(map(str, command[:2]))} failed with status {process.returncode}")
    if killed:
        sys.exit("the memory limit killed")
    # Checks that the kernel enforced the limit; every process takes some memory.
    if limit and not 0 < watch.anonymous <= limit:
        sys.exit(f"{watch.anonymous} bytes of anonymous memory were seen, {limit} is the limit")
    return {"wall": wall, "user": usage.ru_utime, "sys": usage.ru_stime, "anonymous": watch.anonymous,
            "cached": watch.cached, "total": usage.ru_maxrss * 1024,
            "written": int(counters["write_bytes"])}


def taken(process, said=""):
    """CPU seconds of a process, until it ends, and of those that it ran. Where it failed, so does this, with `said`."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{process.args[0]} failed{said}")
    return usage.ru_utime + usage.ru_stime


def cpu(compressor, files=(), source=None):
    """CPU seconds of a compressor, over files or over what another process writes."""
    return taken(subprocess.Popen([*compressor, *files], stdin=source, stdout=subprocess.DEVNULL))


def compressed(package, compressor):
    """CPU seconds of the compressor over the payload of a package."""
    with subprocess.Popen([*READERS[package.suffix], package], stdout=subprocess.PIPE) as reader:
        return cpu(compressor, source=reader.stdout)


def bare(out, code_objects, options):
    """CPU seconds of the bare compressor over the payloads and over every code object once."""
    given = dict(zip(options, options[1:]))
    preset = given.get("--preset", "balanced")
    archives, payloads = ZSTD[preset]
    payload = ["zstd", "-q", "-T1", "-c", *payloads]
    if given.get("--compression") == "xz":
        level, block = XZ[preset]
        payload = ["xz", "-T1", "-c", level, f"--block-size={block}"]
    packages = sorted(path for path in pathlib.Path(out).iterdir() if path.suffix in READERS)
    packed = sum(compressed(package, payload) for package in packages)
    return packed, cpu(["zstd", "-q", "-T1", "-c", *archives], code_objects) * repeated(out, code_objects)


def repeated(out, code_objects):
    """How often the build compressed what is in the files of distinct code objects."""
    records = json.loads((pathlib.Path(out) / "packages.json").read_text())["code_objects"]
    # Archives of one component share a frame for equal code objects.
    stored = {(record["archive"].rsplit("_gfx", 1)[0], record["sha256"]): record["size"]
              for record in records if "archive" in record}
    return sum(stored.values()) / sum(path.stat().st_size for path in code_objects)


def disk_size(folder):
    """Bytes of the blocks that a folder's files take."""
    return sum(path.stat().st_blocks * 512 for path in folder.iterdir())


def rounds(rockpack, artifacts, scratch, jobs, count, options, limit=None):
    """Medians of builds and of the bare compressor, and the bytes of input and packages."""
    scratch = pathlib.Path(scratch)
    code = scratch / "code-objects"
    if not code.exists():
        subprocess.run([HERE / "code_objects.py", "cut", artifacts, code], check=True)
    code_objects, out, figures = sorted(code.iterdir()), scratch / "measured", []
    for _ in range(count):
        figure = build(rockpack, artifacts, out, jobs, options, limit)
        figure["packed"], figure["frames"] = bare(out, code_objects, options)
        figure["excess"] = figure["written"] - disk_size(out)
        figure["cpu"] = figure["user"] + figure["sys"]
        # A ratio within one round, as the load of the machine differs between rounds.
        figure["ratio"] = figure["cpu"] / (figure["packed"] + figure["frames"])
        figure["packages"] = sum(p.stat().st_size for p in out.iterdir() if p.suffix in READERS)
        shutil.rmtree(out)
        print(json.dumps(figure), file=sys.stderr)
        figures.append(figure)
    median = {name: statistics.median(figure[name] for figure in figures) for name in figures[0]}
    files = (path for path in pathlib.Path(artifacts).rglob("*") if not path.is_symlink())
    median["input"] = sum(path.stat().st_size for path in files if path.is_file())
    return median


def line(figure):
    return (f"wall {figure['wall']:.1f} s, CPU {figure['user']:.1f} + {figure['sys']:.1f} s, "
            f"memory {figure['anonymous'] / (1 << 20):.0f} MiB anonymous, "
            f"written {figure['written'] / (1 << 20):.1f} MiB")


def limited(rockpack, artifacts, out, jobs, mebibytes=LIMIT >> 20):
    print(line(build(rockpack, artifacts, out, jobs, [*DEBIAN, *BUDGET], int(mebibytes) << 20)))


def within(mebibytes, *command):
    print(line(run(command, int(mebibytes) << 20)))


def cost(rockpack, artifacts, scratch, jobs):
    median = rounds(rockpack, artifacts, scratch, jobs, ROUNDS, [*DEBIAN, *BUDGET], LIMIT)
    print(f"{line(median)}, {median['excess'] / (1 << 20):+.1f} beside the packages; "
          f"bare zstd {median['packed']:.1f} + {median['frames']:.1f} s; "
          f"ratio {median['ratio']:.2f}")
    # The first page of each package is written again once the rest is known.
    if median["ratio"] > RATIO or abs(median["excess"]) > 4 << 20 or median["total"] > LIMIT:
        sys.exit("over the limit")


def bench(rockpack, artifacts, scratch, jobs, count, *options):
    median = rounds(rockpack, artifacts, scratch, jobs, int(count), list(options))
    median |= {"bare": median["packed"] + median["frames"],
               "throughput": median["input"] / median["cpu"] / 1e6}
    print(json.dumps(median))


def cores(rockpack, artifacts, out, count=ROUNDS):
    """Each build finds the same: the files in memory, nothing left to be written."""
    processors = sorted(os.sched_getaffinity(0))[:2]
    walls = {1: [], 2: []}
    for _ in range(int(count)):
        for number, measured in walls.items():
            shutil.rmtree(out, ignore_errors=True)
            os.sync()
            os.sched_setaffinity(0, processors[:number])
            measured.append(build(rockpack, artifacts, out, str(number), DEBIAN)["wall"])
    one, two = (statistics.median(walls[number]) for number in (1, 2))
    print(f"one core {one:.1f} s, two cores {two:.1f} s: {one / two:.2f} times as fast")


def respin(rockpack, artifacts, scratch, jobs):
    scratch = pathlib.Path(scratch)
    cache, out = scratch / "cache", scratch / "respun"
    shutil.rmtree(cache, ignore_errors=True)
    for version in ("5.7.1", "5.7.2", "5.7.2"):
        shutil.rmtree(out, ignore_errors=True)
        print(version, line(build(rockpack, artifacts, out, jobs, [
            *DEBIAN[:-1], version, "--cache", str(cache)])))


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    commands = [cost, limited, within, bench, cores, respin]
    {command.__name__: command for command in commands}[sys.argv[1]](*sys.argv[2:])
