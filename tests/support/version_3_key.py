"""Writes the RSA key in the file of `gpg --armor --export-secret-keys`, without a passphrase, to stdout in binary form.
The only signature of its user id is of version 3."""

import base64
import hashlib
import sys

SHA256 = bytes.fromhex("3031300d060960864801650304020105000420")


def packets(data):
    at = 0
    while at < len(data):
        head, size = data[at], {0: 1, 1: 2, 2: 4}[data[at] & 3]
        length = int.from_bytes(data[at + 1 : at + 1 + size], "big")
        start = at + 1 + size
        yield head >> 2 & 15, data[start : start + length]
        at = start + length


def packet(tag, body):
    return bytes([0xC0 | tag, 0xFF]) + len(body).to_bytes(4, "big") + body


def number(data, at):
    size = (int.from_bytes(data[at : at + 2], "big") + 7) // 8
    return int.from_bytes(data[at + 2 : at + 2 + size], "big"), at + 2 + size


text = open(sys.argv[1]).read().split("\n\n", 1)[1].split("\n=", 1)[0]
found = list(packets(base64.b64decode(text)))
secret = next(body for tag, body in found if tag == 5)
user = next(body for tag, body in found if tag == 13)
modulus, at = number(secret, 6)
_, end = number(secret, at)
exponent, _ = number(secret, end + 1)
public = secret[:end]
key = b"\x99" + len(public).to_bytes(2, "big") + public
issuer = hashlib.sha1(key).digest()[-8:]
made = secret[1:5]
digest = hashlib.sha256(key + user + b"\x13" + made).digest()
size = (modulus.bit_length() + 7) // 8
padded = b"\0\1" + b"\xff" * (size - 3 - len(SHA256 + digest)) + b"\0" + SHA256 + digest
signed = pow(int.from_bytes(padded, "big"), exponent, modulus)
signature = b"\3\5\x13" + made + issuer + b"\1\x08" + digest[:2]
signature += signed.bit_length().to_bytes(2, "big") + signed.to_bytes((signed.bit_length() + 7) // 8, "big")
sys.stdout.buffer.write(packet(5, secret) + packet(13, user) + packet(2, signature))
