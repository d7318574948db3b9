#!/usr/bin/python3
"""Makes libraries for runtime_startup.c of the device code in a fat library whose bundles are not compressed.

    startup_libraries.py FAT TARGET[,TARGET...] OUT HIP

OUT gets libplain.so.1, with one wrapper for each bundle of FAT and the code for the targets alone, and libccob.so.1,
whose bundles are compressed as compilers do it, but for the hash. HIP is a libamdhip64 to link them to. `rockpack build`
with `hip_runtime = "any"` splits libplain.so.1.

    startup_libraries.py --plain ARCHIVE OUT

Writes a kernel archive again with scheme `none`. Needs gcc, zstd, and for archives msgpack and zstandard.
"""

import pathlib
import struct
import subprocess
import sys

MAGIC = b"__CLANG_OFFLOAD_BUNDLE__"
PAGE = 4096
SOURCE = """
struct wrapper { char bytes[24]; };
extern struct wrapper wrappers[%(count)d];
void **__hipRegisterFatBinary(const void *);
void __hipUnregisterFatBinary(void **);
static void **handles[%(count)d];
__attribute__((constructor)) static void load(void) {
  for (int i = 0; i < %(count)d; i++) handles[i] = __hipRegisterFatBinary(&wrappers[i]);
}
__attribute__((destructor)) static void unload(void) {
  for (int i = 0; i < %(count)d; i++) __hipUnregisterFatBinary(handles[i]);
}
"""


def padded(data, step=PAGE):
    return data + bytes(-len(data) % step)


def bundles(data):
    """The entries of each bundle, by id."""
    start = data.find(MAGIC)
    while start >= 0:
        count, at, entries = struct.unpack_from("<Q", data, start + 24)[0], start + 32, {}
        # The magic is also in host code.
        for _ in range(count if count < 64 else 0):
            offset, size, length = struct.unpack_from("<3Q", data, at)
            name = data[at + 24:at + 24 + length].decode()
            entries[name] = data[start + offset:start + offset + size]
            at += 24 + length
        if entries:
            yield entries
        start = data.find(MAGIC, start + 1)


def bundle(entries, targets):
    kept = {name: code for name, code in entries.items() if name.startswith("host") or name.split("--")[-1] in targets}
    table, body = MAGIC + struct.pack("<Q", len(kept)), b""
    for name, code in kept.items():
        table += struct.pack("<3Q", PAGE + len(body), len(code), len(name)) + name.encode()
        body = padded(body + code)
    return padded(table) + body


def compressed(data):
    frame = subprocess.run(["zstd", "-3", "-c"], input=data, stdout=subprocess.PIPE, check=True).stdout
    return padded(b"CCOB" + struct.pack("<HHIIQ", 2, 1, 24 + len(frame), len(data), 0) + frame)


def link(name, parts, out, hip):
    starts = [sum(map(len, parts[:index])) for index in range(len(parts))]
    (out / f"{name}.bin").write_bytes(b"".join(parts))
    wrappers = "".join(f".long 0x48495046, 1\n.quad fat + {start}\n.quad 0\n" for start in starts)
    (out / f"{name}.s").write_text(
        f'.section .hip_fatbin,"a",@progbits\n.balign 4096\nfat:\n.incbin "{out / name}.bin"\n'
        f'.section .hipFatBinSegment,"aw",@progbits\n.balign 8\n.globl wrappers\n.hidden wrappers\nwrappers:\n{wrappers}'
        '.section .note.GNU-stack,"",@progbits\n')
    (out / f"{name}.c").write_text(SOURCE % {"count": len(parts)})
    library = f"lib{name}.so.1"
    subprocess.run(["gcc", "-O2", "-fPIC", "-shared", f"-Wl,-soname,{library}", "-o", out / library,
                    out / f"{name}.c", out / f"{name}.s", hip], check=True)


def plain_archive(data):
    import msgpack
    import zstandard
    table = msgpack.unpackb(data[struct.unpack_from("<Q", data, 8)[0]:])
    at = table.pop("zstd_offset") + 4
    table.pop("zstd_size")
    written, table["compression_scheme"], table["blobs"] = bytes(64), "none", []
    for _ in range(struct.unpack_from("<I", data, at - 4)[0]):
        size = struct.unpack_from("<I", data, at)[0]
        code = zstandard.ZstdDecompressor().decompress(data[at + 4:at + 4 + size])
        table["blobs"].append({"offset": len(written), "size": len(code)})
        written, at = padded(written + code, 64), at + 4 + size
    return b"KPAK" + struct.pack("<IQ", 1, len(written)) + written[16:] + msgpack.packb(table)


if sys.argv[1:2] == ["--plain"] and len(sys.argv) == 4:
    pathlib.Path(sys.argv[3]).write_bytes(plain_archive(pathlib.Path(sys.argv[2]).read_bytes()))
elif len(sys.argv) == 5:
    fat, targets, out, hip = sys.argv[1:]
    parts = [bundle(entries, targets.split(",")) for entries in bundles(pathlib.Path(fat).read_bytes())]
    out = pathlib.Path(out).resolve()
    link("plain", parts, out, hip)
    link("ccob", [compressed(part) for part in parts], out, hip)
else:
    sys.exit(__doc__)
