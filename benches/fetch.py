#!/usr/bin/python3
"""Measures `rockpack fetch` beside curl, from a server on loopback.

    fetch.py ROCKPACK SCRATCH [ROUNDS] [COUNT] [MEGABYTES]

SCRATCH is a folder that exists; in memory (/dev/shm), or the disk is measured, too. It gets COUNT (4) random
artifacts of so many MEGABYTES (200), which do not compress, with their checksums. Each of the ROUNDS (5) fetches them
all: curl one after the other; curl all at once; rockpack, which compares the checksums and syncs each file; and
curl all at once with sha256sum, which is the same work. The order is reversed in every second round. Printed
are medians of wall and CPU seconds, and of the ratios of the wall times to that of rockpack in the round: above 1,
rockpack is faster. The server sends files by sendfile, so that it takes little of the processor.
"""

import http.server
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / ".ci"))
sys.dont_write_bytecode = True
import measure  # noqa: E402


class Handler(http.server.BaseHTTPRequestHandler):
    """An index page for folders, and files or ranges of them."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        path = pathlib.Path(self.server.folder + self.path)
        if path.is_dir():
            page = "".join(f'<a href="{name}">{name}</a>\n' for name in os.listdir(path)).encode()
            self.head(200, len(page))
            self.wfile.write(page)
            return
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            first, last = 0, size - 1
            asked = self.headers["range"]
            if asked:
                first, last = (int(end or size - 1) for end in asked.removeprefix("bytes=").split("-"))
                self.head(206, last + 1 - first, ("Content-Range", f"bytes {first}-{last}/{size}"))
            else:
                self.head(200, size)
            while first <= last:
                first += os.sendfile(self.connection.fileno(), file.fileno(), first, last + 1 - first)

    def head(self, status, length, *more):
        self.send_response(status)
        for name, value in (("Content-Length", str(length)), ("ETag", '"1"'), *more):
            self.send_header(name, value)
        self.end_headers()


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *_):
        pass  # Clients may close connections as they like.


def serve(folder):
    server = Server(("127.0.0.1", 0), Handler)
    server.folder = folder
    print(server.server_port, flush=True)
    server.serve_forever()


def artifacts(folder, count, megabytes):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for number in range(count):
        name = f"part{number}_lib_generic.tar.zst"
        with open(folder / name, "wb") as file:
            for _ in range(megabytes):
                file.write(os.urandom(1_000_000))
        with open(folder / f"{name}.sha256sum", "wb") as file:
            subprocess.run(["sha256sum", name], cwd=folder, stdout=file, check=True)
    return sorted(path.name for path in folder.iterdir())


def commands(rockpack, url, names):
    curl = ["curl", "-sf", "--no-progress-meter", "--remote-name-all", *(f"{url}/{name}" for name in names)]
    check = '"$@" && sha256sum --quiet -c -- *.sha256sum'
    return {
        "curl, one by one": curl,
        "curl, all at once": [*curl, "-Z"],
        "rockpack": [rockpack, "fetch", "-q", f"{url}/", "--out", "out"],
        "curl, all at once, and sha256sum": ["sh", "-c", check, "sh", *curl, "-Z"],
    }


def main(rockpack, scratch, rounds=5, count=4, megabytes=200):
    rockpack, scratch = pathlib.Path(rockpack).resolve(), pathlib.Path(scratch).resolve() / "fetch"
    names = artifacts(scratch / "served/shard", int(count), int(megabytes))
    server = subprocess.Popen([sys.executable, __file__, "serve", scratch / "served"], stdout=subprocess.PIPE)
    url = f"http://127.0.0.1:{int(server.stdout.readline())}/shard"
    figures, ratios = {}, {}
    try:
        for number in range(int(rounds)):
            walls = {}
            for name, command in list(commands(rockpack, url, names).items())[::1 - number % 2 * 2]:
                room = scratch / "room"
                room.mkdir()
                figure = measure.run(command, None, cwd=room, stdout=subprocess.DEVNULL)
                found = [path for path in room.rglob("*") if path.is_file()]
                assert len(found) == len(names), found
                shutil.rmtree(room)
                figures.setdefault(name, []).append((figure["wall"], figure["user"] + figure["sys"]))
                walls[name] = figure["wall"]
            for name in walls:
                ratios.setdefault(name, []).append(walls[name] / walls["rockpack"])
    finally:
        server.kill()
        shutil.rmtree(scratch)
    print("| | wall s | MB/s | CPU s | wall by that of rockpack |\n|---|---|---|---|---|")
    for name, found in figures.items():
        wall, cpu = map(statistics.median, zip(*found))
        speed = int(count) * int(megabytes) / wall
        print(f"| {name} | {wall:.2f} | {speed:.0f} | {cpu:.2f} | {statistics.median(ratios[name]):.2f} |")


if sys.argv[1:2] == ["serve"]:
    serve(*sys.argv[2:])
elif len(sys.argv) < 3:
    sys.exit(__doc__)
else:
    main(*sys.argv[1:])
