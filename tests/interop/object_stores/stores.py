#!/usr/bin/python3
"""Serves the folders of a folder as buckets, until standard input ends.

    stores.py BUCKETS SCRATCH KEY SECRET

Prints the URLs of four servers as a line of JSON:

    seaweedfs   S3, with signatures of KEY, and without any for all buckets but `private`
    rclone      S3, with signatures of KEY
    ranges      index pages and ranges, by rclone
    whole       index pages and no ranges, by Python

rclone and Python serve BUCKETS itself. SeaweedFS gets a copy, of the bucket `many` the first MANY objects.
"""

import concurrent.futures
import glob
import http.client
import json
import os
import pathlib
import socket
import subprocess
import sys
import time

MANY = 1200
HOST = "127.0.0.1"


def free_ports(count):
    sockets = [socket.create_server((HOST, 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def answers(port, path="/", statuses=(200, 400, 403)):
    """Waits until a server has one of these answers."""
    for _ in range(1200):
        try:
            connection = http.client.HTTPConnection(HOST, port)
            connection.request("GET", path)
            if connection.getresponse().status in statuses:
                return
        except (OSError, http.client.HTTPException):
            pass
        time.sleep(0.05)
    sys.exit(f"nothing answers at port {port}")


def put(port, objects):
    connection = http.client.HTTPConnection(HOST, port)
    for path, content in objects:
        connection.request("PUT", path, content)
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200, (path, answer.status)


def seaweedfs(ports, buckets, scratch, key, secret):
    readable = [f"{action}:{name}" for name in buckets if name != "private" for action in ("Read", "List")]
    identities = [
        {"name": "owner", "credentials": [{"accessKey": key, "secretKey": secret}],
         "actions": ["Admin", "Read", "List", "Write"]},
        {"name": "anonymous", "actions": [*readable, "Write:many"]},
    ]
    config = scratch / "identities.json"
    config.write_text(json.dumps({"identities": identities}))
    names = ["s3.port", "s3.port.grpc", "master.port", "master.port.grpc", "volume.port", "volume.port.grpc",
             "filer.port", "filer.port.grpc", "admin.port", "admin.port.grpc"]
    return [
        "weed", "mini", f"-dir={scratch}", f"-ip={HOST}", f"-ip.bind={HOST}", f"-s3.config={config}",
        f"-bucket={','.join(buckets)}", "-master.telemetry=false", "-webdav=false", "-admin.ui=false",
        "-s3.port.iceberg=0", "-s3.port.lance=0", f"-filer.localSocket={scratch}/filer.sock",
        f"-s3.localSocket={scratch}/s3.sock", *(f"-{name}={port}" for name, port in zip(names, ports)),
    ]


def upload(port, buckets, environment):
    """rclone copies most; for many objects, plain requests are faster."""
    many = sorted(path.name for path in (buckets / "many").iterdir())[:MANY]
    objects = [(f"/many/{name}", b"") for name in many]
    with concurrent.futures.ThreadPoolExecutor(5) as pool:
        jobs = [pool.submit(put, port, objects[first::4]) for first in range(4)]
        copy = ["rclone", "copy", buckets, ":s3:", "--exclude", "/many/**", "--no-check-dest", "--s3-no-head",
                "--s3-no-check-bucket", "--transfers", "8"]
        jobs.append(pool.submit(subprocess.run, copy, env=environment, check=True, stdout=sys.stderr))
        for job in jobs:
            job.result()


def main(buckets, scratch, key, secret):
    buckets, scratch = pathlib.Path(buckets), pathlib.Path(scratch)
    names = sorted((path.name for path in buckets.iterdir()), key=lambda name: name == "public")
    *ports, s3, ranges, whole = free_ports(13)
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(scratch), "TMPDIR": str(scratch), "RCLONE_CONFIG": "/dev/null",
        "RCLONE_S3_PROVIDER": "SeaweedFS", "RCLONE_S3_ENDPOINT": f"http://{HOST}:{ports[0]}",
        "RCLONE_S3_ACCESS_KEY_ID": key, "RCLONE_S3_SECRET_ACCESS_KEY": secret,
    }
    commands = [
        seaweedfs(ports, names, scratch, key, secret),
        ["rclone", "serve", "s3", buckets, "--addr", f"{HOST}:{s3}", "--auth-key", f"{key},{secret}"],
        ["rclone", "serve", "http", buckets, "--addr", f"{HOST}:{ranges}"],
        [sys.executable, "-m", "http.server", "--bind", HOST, "--directory", buckets, str(whole)],
    ]
    log = (scratch / "log").open("w")
    started = [subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
               for command in commands]
    try:
        # It makes the buckets after it begins to answer, the last one last.
        answers(ports[0], "/public?list-type=2", [200])
        upload(ports[0], buckets, environment)
        for port in (s3, ranges, whole):
            answers(port)
        found = {"seaweedfs": ports[0], "rclone": s3, "ranges": ranges, "whole": whole}
        print(json.dumps({name: f"http://{HOST}:{port}" for name, port in found.items()}), flush=True)
        sys.stdin.read()
    finally:
        for process in started:
            process.kill()
        for port in ports:
            for socket_file in glob.glob(f"/tmp/seaweedfs-*-{port}.sock"):
                os.unlink(socket_file)


main(*sys.argv[1:])
