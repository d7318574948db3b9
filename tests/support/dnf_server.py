#!/usr/bin/python3
"""Runs dnf in forks of a process that has loaded its modules.

Usage: dnf_server.py SOCKET [ARGUMENT]...   dnf with these arguments, run by the server
       dnf_server.py --serve SOCKET         the server, until its standard input ends
"""

import posix
import sys

import _socket

if sys.argv[1] != "--serve":
    server = _socket.socket(_socket.AF_UNIX)
    server.connect(sys.argv[1])
    files = b"".join(number.to_bytes(4, sys.byteorder) for number in range(3))
    server.sendmsg([b"."], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, files)])
    server.sendall(repr((sys.argv[2:], posix.getcwdb(), posix.environ)).encode())
    server.shutdown(_socket.SHUT_WR)
    # Nothing comes from a server that was killed.
    sys.exit((server.recv(1) or b"\xff")[0])

# As dnf does: no module is imported from the folder of the program.
del sys.path[0]

import ast
import gc
import os
import select
import signal
import socket

from dnf.cli import main


def run(client):
    """Runs dnf with the files, arguments, folder and environment of a client."""
    _, files, _, _ = socket.recv_fds(client, 1, 3)
    arguments, folder, environment = ast.literal_eval(client.makefile().read())
    child = os.fork()
    if child:
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        client.sendall(bytes([code % 256]))
        os._exit(0)
    client.close()
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(folder)
    os.environb.clear()
    os.environb.update(environment)
    sys.argv = ["/usr/bin/dnf", *arguments]
    main.user_main(arguments, exit_code=True)


# What is loaded is shared by all forks: no collection of one writes to it.
gc.freeze()
with socket.socket(socket.AF_UNIX) as clients:
    clients.bind(sys.argv[2])
    clients.listen(100)
    print("ready", flush=True)
    while clients in select.select([clients, sys.stdin], [], [])[0]:
        client, _ = clients.accept()
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            clients.close()
            run(client)
        client.close()
