#!/usr/bin/env bash
# librocm_kpack 0.1.0 of ROCm 7.14, as the wheel vapoursynth-bm3dhip 2.17.5 on PyPI has it.
#
# The HIP runtime asks the loader for a list of targets: that of the GPU, then the generic one. One archive has
# kernels for gfx1201 and another for gfx12-generic, and a wrapper has code in the second alone. One would expect
# the loader to go on to gfx12-generic, as it does if there is no archive for gfx1201 at all. It returns 5
# (KPACK_ERROR_KERNEL_NOT_FOUND) instead, and the runtime then loads no code of the library for any GPU.
#
# Seen: gfx1201 alone: 5; gfx1201, gfx12-generic: 5; gfx12-generic alone: 0; the same list without the archive for
# gfx1201: 0; with an archive for gfx1201 that has a row for the wrapper, too: 0.
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

def archive(target, *wrappers):
    """An archive with one stored code object, for some wrappers of lib/libx.so."""
    code = b"\x7fELF" + target.encode()
    row = {"type": "hsaco", "ordinal": 0, "original_size": len(code)}
    toc = {"format_version": 1, "group_name": "x", "gfx_arch_family": target, "gfx_arches": [target],
           "compression_scheme": "none", "blobs": [{"offset": 64, "size": len(code)}],
           "toc": {f"lib/libx.so#{wrapper}": {target: row} for wrapper in wrappers}}
    header = b"KPAK" + struct.pack("<IQ", 1, 64 + len(code))
    with open(f"x_{target}.kpack", "wb") as file:
        file.write(header.ljust(64, b"\0") + code + pack(toc))

def load(*targets):
    """The loader's answer for wrapper 1."""
    cache = ctypes.c_void_p()
    assert kpack.kpack_cache_create(ctypes.byref(cache)) == 0
    names = [b"amdgcn-amd-amdhsa--" + target.encode() for target in targets]
    found, size = ctypes.c_void_p(), ctypes.c_size_t()
    marker = pack({"kernel_name": "lib/libx.so", "kpack_search_paths": ["x_@GFXARCH@.kpack"]})
    return kpack.kpack_load_code_object(
        cache, marker, os.path.abspath("libx.so").encode(), ctypes.c_uint32(1),
        (ctypes.c_char_p * len(names))(*names), ctypes.c_size_t(len(names)),
        ctypes.byref(found), ctypes.byref(size))

kpack = ctypes.CDLL(glob.glob("vapoursynth_bm3dhip.libs/librocm_kpack-*")[0])
archive("gfx1201", 0)
archive("gfx12-generic", 1)
seen = [load("gfx1201"), load("gfx1201", "gfx12-generic"), load("gfx12-generic")]
os.remove("x_gfx1201.kpack")
seen.append(load("gfx1201", "gfx12-generic"))
archive("gfx1201", 0, 1)
seen.append(load("gfx1201", "gfx12-generic"))
print("gfx1201: %d; gfx1201, gfx12-generic: %d; gfx12-generic: %d; without the archive of gfx1201: %d; "
      "with a row for the wrapper in it: %d" % tuple(seen))
raise SystemExit(seen != [5, 5, 0, 0, 0])
PYTHON
LD_LIBRARY_PATH=vapoursynth_bm3dhip.libs python3 judge.py
