#!/usr/bin/env bash
# librocm_kpack 0.1.0 of ROCm 7.14, as the wheel vapoursynth-bm3dhip 2.17.5 on PyPI has it.
#
# An archive without compression has a code object for each of 64 wrappers. A process loads one of them and forks two
# children, which load all of them again and again through the cache that they inherited. One would expect each load
# to give the code object of its wrapper, or an error. Some give other bytes, and return 0 (KPACK_SUCCESS): the
# children share the position in the open file, and one moves it between the seek and the read of the other. With a
# cache that each child makes itself, every load is right.
#
# Seen: 48 to 18,748 of 80,000 loads with wrong bytes and code 0, the fewest on one core; a few others fail with code 9;
# with caches of their own 0 and 0.
#
# Needs python3 with pip, unzip and a network. Exits with 1 if the loader behaves otherwise.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
pip download -q --no-deps --only-binary :all: --python-version 3.13 --platform manylinux_2_28_x86_64 \
  --disable-pip-version-check vapoursynth-bm3dhip==2.17.5
unzip -q ./*.whl 'vapoursynth_bm3dhip.libs/*'
cat >judge.py <<'PYTHON'
import ctypes, glob, os, struct

WRAPPERS, LOADS = 64, 40000

def pack(value):
    """MessagePack, as far as archives need it."""
    if isinstance(value, int):
        return struct.pack(">BI", 0xCE, value)
    if isinstance(value, str):
        return struct.pack(">BH", 0xDA, len(value)) + value.encode()
    if isinstance(value, list):
        return struct.pack(">BH", 0xDC, len(value)) + b"".join(map(pack, value))
    pairs = (pack(key) + pack(entry) for key, entry in value.items())
    return struct.pack(">BH", 0xDE, len(value)) + b"".join(pairs)

codes = [b"\x7fELF" + bytes([wrapper]) * 20000 for wrapper in range(WRAPPERS)]
rows = {f"lib/libx.so#{wrapper}": {"gfx1100": {"type": "hsaco", "ordinal": wrapper, "original_size": len(code)}}
        for wrapper, code in enumerate(codes)}
toc = {"format_version": 1, "group_name": "x", "gfx_arch_family": "gfx1100", "gfx_arches": ["gfx1100"],
       "compression_scheme": "none", "toc": rows,
       "blobs": [{"offset": 64 + wrapper * len(code), "size": len(code)} for wrapper, code in enumerate(codes)]}
blob = b"".join(codes)
with open("x_gfx1100.kpack", "wb") as file:
    file.write((b"KPAK" + struct.pack("<IQ", 1, 64 + len(blob))).ljust(64, b"\0") + blob + pack(toc))

kpack = ctypes.CDLL(glob.glob("vapoursynth_bm3dhip.libs/librocm_kpack-*")[0])
marker = pack({"kernel_name": "lib/libx.so", "kpack_search_paths": ["x_@GFXARCH@.kpack"]})
targets = (ctypes.c_char_p * 1)(b"amdgcn-amd-amdhsa--gfx1100")

def make_cache():
    cache = ctypes.c_void_p()
    assert kpack.kpack_cache_create(ctypes.byref(cache)) == 0
    return cache

def load(cache, wrapper):
    """The loader's answer, and whether its bytes are those of the wrapper."""
    found, size = ctypes.c_void_p(), ctypes.c_size_t()
    answer = kpack.kpack_load_code_object(
        cache, marker, os.path.abspath("libx.so").encode(), ctypes.c_uint32(wrapper), targets, ctypes.c_size_t(1),
        ctypes.byref(found), ctypes.byref(size))
    if answer:
        return answer, False
    right = ctypes.string_at(found, size.value) == codes[wrapper]
    kpack.kpack_free_code_object(found)
    return answer, right

def child(cache, result):
    cache = cache or make_cache()
    answers = [load(cache, number % WRAPPERS) for number in range(LOADS)]
    wrong, failed = answers.count((0, False)), sum(answer != 0 for answer, _ in answers)
    os.write(result, struct.pack("<II", wrong, failed))
    os._exit(0)

def children(cache):
    """How many loads of two children gave wrong bytes with success, and how many an error."""
    reading, writing = os.pipe()
    pids = []
    for _ in range(2):
        pids.append(os.fork())
        if pids[-1] == 0:
            child(cache, writing)
    counts = [struct.unpack("<II", os.read(reading, 8)) for _ in pids]
    for pid in pids:
        os.waitpid(pid, 0)
    return tuple(map(sum, zip(*counts)))

cache = make_cache()
assert load(cache, 0) == (0, True)
inherited, own = children(cache), children(None)
print(f"{inherited[0]} of {2 * LOADS} loads with wrong bytes and code 0, {inherited[1]} failed; "
      f"with caches of their own {own[0]} and {own[1]}")
raise SystemExit(inherited[0] == 0 or own != (0, 0))
PYTHON
LD_LIBRARY_PATH=vapoursynth_bm3dhip.libs python3 judge.py
