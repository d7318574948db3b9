"""Writes wheels whose archives are odd, and asks installers: forms.py OUT. Prints, per form, what it hides ("-" is
nothing), who refuses it first (zipfile, uv from an index, uv; "-" is none), and the path of the wheel."""

import base64
import concurrent.futures
import hashlib
import http.server
import os
import struct
import subprocess
import sys
import threading
import zipfile
import zlib

FILE = "demo-1.0-py3-none-any.whl"
INFO = "demo-1.0.dist-info"
ONES = 0xffffffff


class Member:
    """A member; `local` and `central` replace fields of one header, `set` those of both."""

    def __init__(self, name, text="x\n" * 20, method=8, **both):
        self.name, self.data, self.method = name.encode(), text.encode(), method
        self.body = zlib.compress(self.data)[2:-4] if method else self.data
        self.both, self.local, self.central = both, {}, {}
        self.extra, self.central_extra, self.comment, self.behind, self.listed = b"", b"", b"", b"", True

    def descriptor(self, signature=b"PK\7\x08", form="<LLL", **lies):
        told = {"crc": zlib.crc32(self.data), "packed": len(self.body), "size": len(self.data), **lies}
        return signature + struct.pack(form, told["crc"], told["packed"], told["size"])

    def streamed(self, descriptor=None, **local):
        self.both["flags"] = 8
        self.local = {"crc": 0, "packed": 0, "size": 0, **local}
        self.behind = self.descriptor() if descriptor is None else descriptor

    def fields(self, own):
        known = {"version": 20, "flags": 0, "method": self.method, "crc": zlib.crc32(self.data),
                 "packed": len(self.body), "size": len(self.data), "name": self.name, **self.both, **own}
        return known, struct.pack("<HHHLLLL", known["version"], known["flags"], known["method"], 0x5c210000,
                                  known["crc"], known["packed"], known["size"])

    def at_local(self):
        known, fields = self.fields(self.local)
        lengths = struct.pack("<HH", len(known["name"]), len(self.extra))
        return b"PK\3\4" + fields + lengths + known["name"] + self.extra + self.body + self.behind

    def at_central(self, offset):
        known, fields = self.fields(self.central)
        lengths = struct.pack("<HHHHHL", len(known["name"]), len(self.central_extra), len(self.comment),
                              known.get("disk", 0), 0, 0o100644 << 16)
        place = struct.pack("<L", known.get("offset", offset))
        return b"PK\1\2\x14\3" + fields + lengths + place + known["name"] + self.central_extra + self.comment


def wide(*numbers):
    return struct.pack(f"<HH{len(numbers)}Q", 1, 8 * len(numbers), *numbers)


def extra(number, data):
    return struct.pack("<HH", number, len(data)) + data


def members():
    headers = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    return [Member("demo/a.py"), Member("demo/b.txt", "text", 0), Member(f"{INFO}/WHEEL", headers),
            Member(f"{INFO}/METADATA", "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n\n")]


def archive(change):
    files, end = members(), {"comment": b"", "before": b"", "between": b"", "wide": None}
    change(files, end)
    rows = "".join(
        f"{one.name.decode()},sha256={base64.urlsafe_b64encode(hashlib.sha256(one.data).digest()).decode()[:-1]},"
        f"{len(one.data)}\n" for one in files if one.listed and not one.name.endswith(b"/"))
    files.append(Member(f"{INFO}/RECORD", rows + f"{INFO}/RECORD,,\n"))
    out, headers = end["before"], []
    for one in files:
        headers += [one.at_central(len(out))] if one.listed else []
        out += one.at_local()
    out += end["between"]
    start, directory = len(out), b"".join(headers)
    out += directory
    told = {"count": len(headers), "size": len(directory), "offset": start, **end.get("end", {})}
    if end["wide"] is not None:
        real = {"count": len(headers), "size": len(directory), "offset": start, **end["wide"]}
        out += struct.pack("<LQHHLLQQQQ", 0x06064b50, 44, 798, 45, 0, 0, real["count"], real["count"], real["size"],
                           real["offset"]) + struct.pack("<LLQL", 0x07064b50, 0, start + len(directory), 1)
    return out + b"PK\5\6" + struct.pack("<HHHHLLH", 0, 0, told["count"], told["count"], told["size"], told["offset"],
                                         len(end["comment"])) + end["comment"]


def put(name, text="x", flags=0x800):
    return lambda files, end: files.insert(1, Member(name, text, 0, flags=flags))


def of_first(act):
    return lambda files, end: act(files[0])


def both(**fields):
    return of_first(lambda one: one.both.update(fields))


def local(**fields):
    return of_first(lambda one: one.local.update(fields))


def set_all(**fields):
    return of_first(lambda one: one.__dict__.update(fields))


def hidden(name):
    def change(files, end):
        files.insert(1, Member(name))
        files[1].listed = False
    return change


def streamed(number, *given, **lies):
    def change(files, end):
        one = files[number]
        one.streamed(one.descriptor(*given, **lies))
    return change


def wide_local(sizes=lambda one: (len(one.data), len(one.body)), ones=("packed", "size")):
    def change(one):
        one.extra = wide(*sizes(one))
        one.local.update({field: ONES for field in ones})
    return of_first(change)


def wide_end(narrow, real=()):
    return lambda files, end: end.update(end=dict(narrow), wide=dict(real))


def wide_stream(form):
    def change(one):
        one.streamed(one.descriptor(form=form), packed=ONES, size=ONES)
        one.extra = wide(0, 0)
    return of_first(change)


# What an archive hides, the form, and how to make it.
FORMS = [
    ("-", "plain", lambda files, end: None),
    ("-", "streamed", streamed(0)), ("-", "streamed-bare", streamed(0, b"")), ("-", "streamed-stored", streamed(1)),
    ("-", "streamed-wide", wide_stream("<LQQ")), ("-", "wide-local", wide_local()),
    ("-", "wide-room", wide_local(ones=())), ("-", "comment", lambda files, end: end.update(comment=b"of a builder")),
    ("-", "wide-end", wide_end({"count": 0xffff, "size": ONES, "offset": ONES})), ("-", "wide-end-too", wide_end({})),
    ("-", "time-field", set_all(extra=extra(0x5455, b"\1\0\0\0\0"))), ("-", "name-utf8", put("demo/ü☃.txt")),
    ("-", "name-255", put("demo/" + "a" * 255)), ("-", "name-emoji", put("demo/☃\ufe0f.txt")),
    ("-", "folder", put("demo/d/", "")), ("-", "version-63", both(version=63)), ("-", "flags-1-2", both(flags=6)),
    ("-", "reversed", lambda files, end: files.reverse()),
    ("bytes", "gap", set_all(behind=b"\0")), ("bytes", "gap-4k", set_all(behind=bytes(4096))),
    ("bytes", "gap-directory", lambda files, end: end.update(between=b"x")),
    ("bytes", "gap-start", lambda files, end: end.update(before=b"#!/bin/sh\n")),
    ("a member", "hidden", hidden("demo/h.py")), ("a member", "hidden-twin", hidden("demo/a.py")),
    ("bytes", "stray-descriptor", of_first(lambda one: one.__dict__.update(behind=one.descriptor()))),
    ("bytes", "streamed-gap", of_first(lambda one: one.streamed(one.descriptor() + b"\0"))),
    ("bytes", "streamed-none", of_first(lambda one: one.streamed(b""))),
    ("lies", "streamed-crc", streamed(0, crc=1)), ("lies", "streamed-packed", streamed(0, packed=1)),
    ("lies", "streamed-size", streamed(0, size=1)), ("lies", "streamed-stored-size", streamed(1, size=1)),
    ("lies", "streamed-8", streamed(0, b"PK\7\x08", "<LQQ")), ("lies", "streamed-4", wide_stream("<LLL")),
    ("lies", "streamed-header", of_first(lambda one: one.streamed(None, size=7, packed=7, crc=7))),
    ("lies", "flag-central", of_first(lambda one: one.central.update(flags=8))),
    ("lies", "flag-local", of_first(lambda one: one.local.update(flags=8))),
    ("-", "version-64", both(version=64)), ("-", "version-64-local", local(version=64)),
    ("-", "patch", both(flags=1 << 5)), ("-", "patch-local", local(flags=1 << 5)),
    ("-", "encrypted-local", local(flags=1)), ("-", "method-local", local(method=0)),
    ("lies", "crc-local", local(crc=0)), ("lies", "sizes-local", local(packed=0, size=0)),
    ("lies", "name-local", local(name=b"demo/A.py")),
    ("lies", "wide-lie", wide_local(lambda one: (1, 2), ())), ("lies", "wide-half", wide_local(lambda one: (9,), ())),
    ("lies", "wide-more", wide_local(lambda one: (len(one.data), len(one.body), 0))),
    ("lies", "wide-twice", set_all(extra=wide() * 2)), ("lies", "wide-spare", set_all(central_extra=wide(1, 2))),
    ("-", "field-twice", set_all(extra=extra(0x5455, b"\1\0\0\0\0") * 2)),
    ("a name", "unicode-path", set_all(central_extra=extra(0x7075, b"\1" + struct.pack("<L", zlib.crc32(b"demo/a.py"))
                                                          + b"demo/z.py"))),
    ("lies", "end-count", wide_end({"count": 3, "size": ONES, "offset": ONES})),
    ("lies", "end-offset", wide_end({"count": 0xffff, "size": ONES, "offset": 3})),
    ("bytes", "comment-end", lambda files, end: end.update(comment=b"PK\5\6")),
    ("bytes", "comment-member", lambda files, end: end.update(comment=b"PK\3\4" + bytes(30))),
    ("bytes", "member-comment", set_all(comment=b"PK\1\2" + bytes(42))),
    ("-", "name-256", put("demo/" + "a" * 256)), ("-", "name-256-folder", put("demo/" + "ü" * 128 + "/a")),
    ("-", "path-4200", put("demo/" + "abcdefg/" * 525 + "a")), ("-", "tab", put("demo/a\tb")),
    ("-", "below-file", put("demo/a.py/c.py")), ("-", "folder-and-file", put("demo/a.py/", "")),
    ("a path", "dots", put("demo/../../a")), ("a path", "absolute", put("/absent/a")),
    ("a path", "backslash", put("..\\a")),
    ("a path", "drive", put("C:/a")), ("a path", "empty-part", put("demo//a")), ("twice", "twice", put("demo/b.txt")),
] + [("-", f"unseen-{ord(sign):x}", put(f"demo/a{sign}b")) for sign in
     "\xad\u061c\u0600\u180e\u200b\u200d\u200e\u202e\u2060\u2066\ufeff\ufff9\ue000\U0001d173\U000e0061\U00013430"]


def main(out):
    class Index(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *given):
            super().__init__(*given, directory=out)

        def log_message(self, *given):
            pass

        def do_GET(self):
            if not self.path.endswith("/demo/"):
                return super().do_GET()
            page = f'<a href="{FILE}">{FILE}</a>'.encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Index)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    def judged(hides, form, change):
        folder = f"{out}/{form}/demo"
        os.makedirs(folder)
        path = f"{folder}/{FILE}"
        with open(path, "wb") as file:
            file.write(archive(change))
        try:
            zipfile.ZipFile(path).testzip()
        except Exception:
            return hides, "zipfile", path
        # No two forms have an address or a path in common, so they share what uv found out about Python alone.
        index = ["--index-url", f"http://127.0.0.1:{server.server_port}/{form}", "demo"]
        for client, asked in ("index", index), ("uv", [path]):
            uv = ["uv", "pip", "install", "-q", "--no-deps", "--no-config", "--python", sys.executable,
                  "--cache-dir", f"{out}/cache", "--target", f"{out}/{form}/{client}", *asked]
            if subprocess.run(uv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode != 0:
                return hides, client, path
        return hides, "-", path

    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        for line in threads.map(lambda form: judged(*form), FORMS):
            print(*line, sep="\t")


main(sys.argv[1])
