#!/usr/bin/python3
"""Passes requests on, and writes them down.

    recorder.py LOG [--to URL] [--stall BYTES] [--certificate FILE]

Prints its port. A request for a path goes to URL with all its headers, as signatures need them. One for a whole URL
goes to that one, and CONNECT opens a tunnel, as proxies have it. LOG gets a line of JSON of each request before it
is answered. After BYTES of a body no more of it comes, and the connection stays open. With a certificate and its
key in FILE, clients have to speak TLS.
"""

import argparse
import http.client
import http.server
import io
import json
import socket
import ssl
import threading
import urllib.parse

HOP = {"connection", "keep-alive", "proxy-connection", "transfer-encoding"}
PIECE = 1 << 16

parser = argparse.ArgumentParser()
parser.add_argument("log")
parser.add_argument("--to", default="")
parser.add_argument("--stall", type=int)
parser.add_argument("--certificate")
options = parser.parse_args()
log = open(options.log, "a", buffering=1)


def copy(source, target):
    try:
        while piece := source.recv(PIECE):
            target.sendall(piece)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # One side has gone.


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def note(self, **more):
        asked = {"method": self.command, "target": self.path, "range": self.headers["range"]}
        log.write(json.dumps(asked | more) + "\n")

    def do_CONNECT(self):
        self.note()
        host, port = self.path.rsplit(":", 1)
        with socket.create_connection((host, int(port))) as upstream:
            self.send_response_only(200)
            self.end_headers()
            back = threading.Thread(target=copy, args=(upstream, self.connection))
            back.start()
            copy(self.connection, upstream)
            back.join()
        self.close_connection = True

    def do_GET(self):
        to = urllib.parse.urlsplit(self.path if "://" in self.path else options.to)
        whole = urllib.parse.urlsplit(self.path)
        upstream = http.client.HTTPConnection(to.netloc)
        path = f"{whole.path}?{whole.query}" if whole.query else whole.path
        upstream.putrequest(self.command, path or "/", skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            if name.lower() not in HOP:
                upstream.putheader(name, value)
        upstream.endheaders()
        answer = upstream.getresponse()
        length = answer.length
        body = answer
        if length is None:
            content = answer.read()
            length, body = len(content), io.BytesIO(content)
        self.note(status=answer.status, bytes=length)
        self.send_response_only(answer.status, answer.reason)
        for name, value in answer.getheaders():
            if name.lower() not in HOP | {"content-length"}:
                self.send_header(name, value)
        self.send_header("Content-Length", str(length))
        self.end_headers()
        self.pass_on(body)
        upstream.close()

    def pass_on(self, body):
        left = options.stall
        while piece := body.read(PIECE if left is None else min(PIECE, left)):
            self.wfile.write(piece)
            if left is not None:
                left -= len(piece)
        if left == 0:
            threading.Event().wait()

    do_HEAD = do_GET


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass  # Clients that are killed are part of the tests.


server = Server(("127.0.0.1", 0), Handler)
if options.certificate:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(options.certificate)
    server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_port, flush=True)
server.serve_forever()
