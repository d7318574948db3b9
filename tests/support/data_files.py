#!/usr/bin/python3
"""Writes data files that contain the bytes of the file CODE into the folder WITH, and files in which the search of
64 KiB finds no device code into WITHOUT: data_files.py CODE WITH WITHOUT. Prints null."""

import gzip
import io
import lzma
import pickle
import random
import sys
import tarfile
import zipfile

import zstandard

WORDS = b"__CLANG_OFFLOAD_BUNDLE__ CCOB \x7fELF hipv4-amdgcn-amd-amdhsa--gfx1100 \x10\xff\x10\xad"


class Unseekable(io.RawIOBase):
    """A sink that makes zipfile write sizes behind the bytes of members, as PyTorch does."""

    def __init__(self):
        self.bytes = b""

    def writable(self):
        return True

    def write(self, data):
        self.bytes += bytes(data)
        return len(data)


def zipped(method, members, sink=None):
    sink = sink or io.BytesIO()
    with zipfile.ZipFile(sink, "w", method) as archive:
        for name, data in members.items():
            with archive.open(name, "w", force_zip64=True) as member:
                member.write(data)
    return sink.bytes if isinstance(sink, Unseekable) else sink.getvalue()


def tarred(members):
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w") as archive:
        for name, data in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return sink.getvalue()


def npy(data):
    header = b"{'descr': '|u1', 'fortran_order': False, 'shape': (%d,), }" % len(data)
    header = header.ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + data


def static_library(data):
    """A static library with a member of these bytes."""
    header = b"%-16s%-12d%-6d%-6d%-8o%-10d`\n" % (b"data.o/", 0, 0, 0, 0o644, len(data))
    return b"!<arch>\n" + header + data + b"\n" * (len(data) % 2)


def zst(data):
    return zstandard.ZstdCompressor().compress(data)


def containers(code):
    """The containers in use, with these bytes; all but the first have other data in front of them."""
    members = {"index.json": b'{"arch": "gfx1100"}\n' * 500, "a/kernel": code}
    noise = random.Random(1).randbytes(300_000)
    files = {
        "raw.bin": b"MAGIC\0\1\0" + code,
        "array.npy": npy(code),
        "library.a": static_library(npy(code)),
        "deflated.npz": zipped(zipfile.ZIP_DEFLATED, {"kernel.npy": npy(code)}),
        "deflated.zip": zipped(zipfile.ZIP_DEFLATED, members),
        "stored.whl": zipped(zipfile.ZIP_STORED, members),
        "model.pt": zipped(zipfile.ZIP_STORED, members, Unseekable()),
        "streamed.zip": zipped(zipfile.ZIP_DEFLATED, members, Unseekable()),
        "plain.tar": tarred(members),
        "packed.tar.gz": gzip.compress(tarred(members)),
        "packed.tar.xz": lzma.compress(tarred(members)),
        "packed.tar.zst": zst(tarred(members)),
        "kernel.gz": gzip.compress(code + noise, mtime=0x7f7f7f7f),
        "kernel.xz": lzma.compress(code + noise),
        "kernel.zst": zst(code + noise),
        "frames.zst": b"\x50\x2a\x4d\x18\x04\0\0\0next" + zst(code),
    }
    for protocol in range(1, pickle.HIGHEST_PROTOCOL + 1):
        value = {"é" * 9: [1, None], "kernel": code}
        files[f"protocol{protocol}.pkl"] = pickle.dumps(value, protocol)
    return files


def innocent(code):
    with open("/proc/self/exe", "rb") as file:
        host = file.read(50_000)
    files = {}
    for number, data in enumerate([host, WORDS * 9, WORDS + bytes(9_000), b"", code[:12]]):
        files |= {f"{number}-{name}": data for name, data in containers(data).items()}
    deflated = zipped(zipfile.ZIP_DEFLATED, {"kernel": code + bytes(9_000)})
    files |= {
        "words.py": b"MAGIC = b'" + WORDS[:-4] + b"'\n",
        "far.tar": tarred({"first": bytes(70_000), "kernel": code}),
        "far.gz": gzip.compress(bytes(70_000) + code),
        "nested.zip.gz": gzip.compress(deflated),
        "cut.gz": gzip.compress(code)[:12],
        "cut.zip": deflated[:40],
        "damaged.zip": deflated[:37] + b"\xff" * 99,
        "damaged.xz": lzma.compress(code)[:20] + bytes(99),
        "magic.zst": b"\x28\xb5\x2f\xfd",
        "window.zst": b"\x28\xb5\x2f\xfd\x00\xff" + bytes(99),
        "large.zip": zipped(zipfile.ZIP_DEFLATED, {"zeros": bytes(5_000_000)}),
        "headers.zip": deflated[:36] * 900,
    }
    return files


def main(code, *folders):
    with open(code, "rb") as file:
        code = file.read()
    for folder, files in zip(folders, [containers(code), innocent(code)]):
        for name, data in files.items():
            with open(f"{folder}/{name}", "wb") as file:
                file.write(data)
    print("null")


main(*sys.argv[1:])
