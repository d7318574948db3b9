#!/usr/bin/env python3
"""Measures the split of wheels.

    wheels.py ROCKPACK FOLDER SCRATCH [OPTION...]

Splits each wheel below FOLDER three times into SCRATCH, on its own, and prints medians: bytes of the input and
of the output, wall and CPU time, the largest resident memory, and what anonymous files took at most.
"""

import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

ROUNDS = 3
PAUSE = 0.02


def unlinked(process):
    """The bytes on disk of open anonymous files."""
    total = 0
    folder = pathlib.Path(f"/proc/{process}/fd")
    try:
        for entry in folder.iterdir():
            status = entry.stat()
            total += status.st_blocks * 512 if status.st_nlink == 0 else 0
    except OSError:
        pass  # The file was closed, or the process ended.
    return total


def split(rockpack, wheel, scratch, options):
    shutil.rmtree(scratch, ignore_errors=True)
    start, spool = time.monotonic(), 0
    command = [rockpack, "wheel", wheel, "--out", scratch, *options]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while True:
        ended, status, usage = os.wait4(process.pid, os.WNOHANG)
        if ended:
            break
        spool = max(spool, unlinked(process.pid))
        time.sleep(PAUSE)
    wall = time.monotonic() - start
    if status:
        sys.exit(f"{wheel}: rockpack ends with {os.waitstatus_to_exitcode(status)}")
    size = sum(path.stat().st_size for path in pathlib.Path(scratch).glob("*.whl"))
    return size / 1e6, wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024 / 1e6, spool / 1e6


def main(rockpack, folder, scratch, *options):
    print("| wheel | in MB | out MB | wall s | CPU s | memory MB | spool MB |\n|---|---|---|---|---|---|---|")
    for wheel in sorted(pathlib.Path(folder).glob("**/*.whl")):
        found = [split(rockpack, wheel, scratch, options) for _ in range(ROUNDS)]
        size, wall, cpu, memory, spool = map(statistics.median, zip(*found))
        name = wheel.name.split("-")[0]
        print(f"| {name} | {wheel.stat().st_size / 1e6:.1f} | {size:.1f} | {wall:.1f} | {cpu:.1f} "
              f"| {memory:.0f} | {spool:.0f} |")


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__.strip())
    main(*sys.argv[1:])
