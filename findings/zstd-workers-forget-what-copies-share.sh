#!/usr/bin/env bash
# zstd 1.5.7 (zstandard 0.25.0 on PyPI), and four nearly equal builds of a program, 64 MiB in all, at level 9 with
# long-distance matching (`--long`: a window of 128 MiB).
#
# zstd(1) says that the result of one worker thread (`-T1`) is slightly different from the result without workers
# (`--single-thread`), and that a job generally has four times the size of the window. Then this content is a single
# job, and one would expect nearly the same size. With one worker the frame is 2.19 times as large (13.0 and 28.5 MB).
# The number of workers makes no difference.
#
# Long-distance matching finds repetitions of 64 bytes or more in the whole window. The match finder of the level
# finds shorter ones: here 44 bytes between two addresses in code. Without workers, its tables have positions of the
# whole window, too. A worker begins each job with empty tables and only loads the overlap, the end of the previous
# job. With long-distance matching, zstd derives the size of a job from the level and not from the window
# (ZSTDMT_computeTargetJobLog in zstdmt_compress.c): 8 MiB here, with an overlap of 512 KiB. The previous build is
# further away, so the stretches between addresses are stored again for each build.
#
# `ovlog=9` does not help: zstd(1) says that it loads up to a whole window, but with long-distance matching it loads a
# quarter of 8 MiB. What helps: no workers, or a job of the size of the content (`-B64M`), which keeps only one
# worker busy. All frames are valid and decompress to the same content.
#
# The zstd developers know that jobs have access to the overlap alone (facebook/zstd#1059, which made the two work
# together). zstd 1.5.4 of Debian 12 behaves in the same way.
#
# Needs python3 (3.9 or later) with pip, 300 MB of memory, half a minute, and a network. Exits with 1 if zstd behaves
# otherwise.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
pip install -q --no-deps --only-binary :all: --disable-pip-version-check --root-user-action ignore --target wheel \
  zstandard==0.25.0

cat >judge.py <<'PYTHON'
import random
import zstandard

LEN, FUNCTION, WITH_ADDRESSES, STEP = 16 << 20, 4096, 2048, 48
source = random.Random(1)
# Five of eight bits are random: like code, the base alone compresses a little.
base = source.randbytes(LEN).translate(bytes(byte % 32 for byte in range(256)))

def build():
    """The base with other addresses of four bytes, one in every 48 bytes in the first half of each function."""
    code = bytearray(base)
    for function in range(0, LEN, FUNCTION):
        for address in range(function, function + WITH_ADDRESSES, STEP):
            code[address:address + 4] = source.randbytes(4)
    return code

def size(title, **parameters):
    """The size of the builds as a frame, which is checked to have their content."""
    settings = zstandard.ZstdCompressionParameters.from_level(9, window_log=27, enable_ldm=True, **parameters)
    frame = zstandard.ZstdCompressor(compression_params=settings).compress(builds)
    assert zstandard.ZstdDecompressor().decompress(frame) == builds
    print(f"{title}: {len(frame)}", flush=True)
    return len(frame)

builds = b"".join([base, build(), build(), build()])
print("zstd", ".".join(map(str, zstandard.ZSTD_VERSION)))
alone = size("no workers", threads=0)
worker = size("one worker", threads=1)
print(f"{worker / alone:.2f} times as large")
size("one worker, the largest overlap", threads=1, overlap_log=9)
size("one worker, one job", threads=1, job_size=len(builds))
PYTHON
PYTHONPATH=wheel python3 judge.py | tee result
diff - result <<'RESULT'
zstd 1.5.7
no workers: 12987990
one worker: 28485028
2.19 times as large
one worker, the largest overlap: 28509893
one worker, one job: 12987997
RESULT
