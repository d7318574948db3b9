#!/usr/bin/env bash
# libamd-comgr2 5.2.3-2 of Debian 12 (comgr 2.4), and a bundle that is asked for the code of two GPUs at once.
#
# amd_comgr_lookup_code_object takes a list of targets and gives a size of 0 for those that the bundle lacks. A bundle
# has code for gfx906 and for gfx1030, and each is found if it is asked for alone. One would expect the same of a list
# with both. In the order of the bundle, only the first is found: the second gets a size of 0, and the call succeeds.
# In the other order both are found. A program that asks once for all kinds of GPU of a machine takes code for
# missing that is there. HIP asks by this function since later releases, as 5.7 of Debian 13 does; HIP 5.2 of Debian 12
# reads bundles itself.
#
# Comgr 3.3, as the wheel vapoursynth-bm3dhip 2.17.5 on PyPI has it, finds both in each order.
#
# Needs Debian 12's apt and dpkg-deb, python3 with pip, unzip and a network. Exits with 1 if one of the two behaves
# otherwise.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -qq libamd-comgr2=5.2.3-2 libllvm15=1:15.0.6-4+b1 \
  libbsd0 libedit2 libffi8 libicu72 libmd0 libxml2 libz3-4 2>/dev/null
for package in *.deb; do dpkg-deb -x "$package" root; done
pip download -q --no-deps --only-binary :all: --python-version 3.13 --platform manylinux_2_28_x86_64 \
  --disable-pip-version-check vapoursynth-bm3dhip==2.17.5
unzip -q ./*.whl 'vapoursynth_bm3dhip.libs/*'

cat >judge.py <<'PYTHON'
import ctypes, struct, sys

FATBIN = 0x10
HOST, PREFIX = b"host-x86_64-unknown-linux-gnu-", b"hipv4-amdgcn-amd-amdhsa--"

class Data(ctypes.Structure):
    _fields_ = [("handle", ctypes.c_uint64)]

class Query(ctypes.Structure):
    _fields_ = [("isa", ctypes.c_char_p), ("size", ctypes.c_size_t), ("offset", ctypes.c_uint64)]

def bundle(*targets):
    """A bundle as clang-offload-bundler writes it: of the host, which is empty, and of targets, in their order."""
    codes = {HOST: b""} | {PREFIX + target.encode(): b"\x7fELF" + target.encode() for target in targets}
    at = 32 + sum(24 + len(id) for id in codes)
    rows = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(codes))
    for id, code in codes.items():
        rows += struct.pack("<QQQ", at, len(code), len(id)) + id
        at += len(code)
    return rows + b"".join(codes.values())

def found(bytes, *targets):
    """The targets that comgr finds in a bundle."""
    data = Data()
    queries = (Query * len(targets))(*((b"amdgcn-amd-amdhsa--" + target.encode(), 0, 0) for target in targets))
    assert comgr.amd_comgr_create_data(FATBIN, ctypes.byref(data)) == 0
    assert comgr.amd_comgr_set_data(data, ctypes.c_size_t(len(bytes)), bytes) == 0
    assert comgr.amd_comgr_lookup_code_object(data, queries, ctypes.c_size_t(len(targets))) == 0
    comgr.amd_comgr_release_data(data)
    codes = [bytes[query.offset:query.offset + query.size] for query in queries]
    assert all(code in (b"", b"\x7fELF" + target.encode()) for code, target in zip(codes, targets))
    return " ".join(target for code, target in zip(codes, targets) if code) or "none"

comgr = ctypes.CDLL(sys.argv[1])
major, minor = ctypes.c_size_t(), ctypes.c_size_t()
comgr.amd_comgr_get_version(ctypes.byref(major), ctypes.byref(minor))
for asked in ["gfx906"], ["gfx1030"], ["gfx906", "gfx1030"], ["gfx1030", "gfx906"]:
    print(f"comgr {major.value}.{minor.value}, asked for {' '.join(asked)}: "
          f"{found(bundle('gfx906', 'gfx1030'), *asked)}")
asked = ["gfx906", "gfx1030"]
print(f"in a bundle of the other order, asked for {' '.join(asked)}: {found(bundle('gfx1030', 'gfx906'), *asked)}")
PYTHON
debian=root/usr/lib/x86_64-linux-gnu wheel=vapoursynth_bm3dhip.libs
LD_LIBRARY_PATH=$debian python3 judge.py $debian/libamd_comgr.so.2 | tee result
LD_LIBRARY_PATH=$wheel python3 judge.py $wheel/libamd_comgr-* | tee -a result
diff - result <<'RESULT'
comgr 2.4, asked for gfx906: gfx906
comgr 2.4, asked for gfx1030: gfx1030
comgr 2.4, asked for gfx906 gfx1030: gfx906
comgr 2.4, asked for gfx1030 gfx906: gfx1030 gfx906
in a bundle of the other order, asked for gfx906 gfx1030: gfx906 gfx1030
comgr 3.3, asked for gfx906: gfx906
comgr 3.3, asked for gfx1030: gfx1030
comgr 3.3, asked for gfx906 gfx1030: gfx906 gfx1030
comgr 3.3, asked for gfx1030 gfx906: gfx1030 gfx906
in a bundle of the other order, asked for gfx906 gfx1030: gfx906 gfx1030
RESULT
