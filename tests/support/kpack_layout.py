"""The layout of a kernel archive, with only msgpack and zstandard; independent of rockpack."""

import struct

import msgpack
import zstandard


def stored(objects, scheme, start):
    """The blob that begins at `start`, and the fields of the table of contents that describe it."""
    if scheme == "none":
        blob, blobs = b"", []
        for content in objects:
            blob += b"\0" * (-(start + len(blob)) % 64)
            blobs.append({"offset": start + len(blob), "size": len(content)})
            blob += content
        return blob, {"blobs": blobs}
    blob = struct.pack("<I", len(objects))
    for content in objects:
        frame = zstandard.ZstdCompressor(level=3).compress(content)
        blob += struct.pack("<I", len(frame)) + frame
    return blob, {"zstd_offset": start, "zstd_size": len(blob)}


def write(path, start, blob, head):
    """Writes the header, the blob and the table of contents `head`."""
    header = struct.pack("<4sIQ", b"KPAK", 1, start + len(blob))
    with open(path, "wb") as file:
        file.write(header.ljust(start, b"\0") + blob + msgpack.packb(head))
