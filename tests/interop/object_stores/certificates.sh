#!/bin/sh
# Makes a certificate authority (ca.pem), another one (other.pem), and a certificate of the first for loopback
# with its key (server.pem).
set -eu
set -- -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes
for name in ca other; do
  openssl req -x509 "$@" -subj "/CN=$name" -days 2 -keyout "$name.key" -out "$name.pem" 2>/dev/null
done
openssl req "$@" -subj /CN=localhost -keyout server.key -out server.csr 2>/dev/null
echo 'subjectAltName=DNS:localhost,IP:127.0.0.1' >server.ext
openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile server.ext \
  -out server.crt 2>/dev/null
cat server.crt server.key >server.pem
