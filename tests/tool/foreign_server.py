#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A server that knows nothing of curtail: gRPC health checks over plain HTTP/2, or only a port.

Usage: foreign_server.py ADDRESS MODE [WORD...]

MODE: serving, no-health (UNIMPLEMENTED), not-serving, port (accepts connections and says nothing), silent (does not
listen), fails (ends with code 3), count (serving, and the toy application's service Count). ADDRESS is HOST:PORT. The words are printed.
"""

import signal
import socket
import struct
import sys
import threading

DATA, HEADERS, SETTINGS, PING, WINDOW_UPDATE = 0, 1, 4, 6, 8
END_STREAM, ACK = 1, 1


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def fields(**named):
    """HPACK: literals that are not indexed."""
    block = b""
    for name, value in named.items():
        name = name.replace("_", "-").replace("pseudo-", ":")
        block += b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()
    return block


def read(connection, size):
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise ConnectionError
        data += more
    return data


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 0x80:
            return value, at


def count(message):
    """Of the gRPC message Words{text}: Words{number}. Its first field is the text."""
    size, at = varint(message, 6)
    words = len(message[at:at + size].decode().split())
    return b"\x10" + bytes([words & 0x7F | 0x80, words >> 7])


def answer(mode, stream, message):
    start = fields(pseudo_status="200", content_type="application/grpc")
    if mode == "no-health":
        return frame(HEADERS, 4 | END_STREAM, stream, start + fields(grpc_status="12"))
    reply = b"\x08\x02" if mode == "not-serving" else b"\x08\x01"
    if mode == "count" and len(message) > 5:  # a health check of the whole server is an empty message
        reply = count(message)
    return (frame(HEADERS, 4, stream, start) + frame(DATA, 0, stream, struct.pack(">xI", len(reply)) + reply)
            + frame(HEADERS, 4 | END_STREAM, stream, fields(grpc_status="0")))


def serve(connection, mode):
    try:
        read(connection, 24)  # the preface
        connection.sendall(frame(SETTINGS, 0, 0))
        messages = {}
        while True:
            head = read(connection, 9)
            payload = read(connection, int.from_bytes(head[:3], "big"))
            kind, flags, stream = head[3], head[4], int.from_bytes(head[5:], "big") & 0x7FFFFFFF
            if kind in (SETTINGS, PING) and not flags & ACK:
                connection.sendall(frame(kind, ACK, 0, payload if kind == PING else b""))
            if kind == DATA and payload:
                messages[stream] = messages.get(stream, b"") + payload
                connection.sendall(frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", len(payload))))
            if kind in (HEADERS, DATA) and flags & END_STREAM:
                connection.sendall(answer(mode, stream, messages.pop(stream, b"")))
    except OSError:
        pass


def main():
    address, mode = sys.argv[1:3]
    print("words:", *sys.argv[3:], flush=True)
    if mode == "fails":
        print("the disk is on fire", file=sys.stderr)
        sys.exit(3)
    if mode == "silent":
        signal.pause()
    host, port = address.rsplit(":", 1)
    listener = socket.create_server((host, int(port)))
    connections = []
    while True:
        connections.append(listener.accept()[0])
        if mode != "port":
            threading.Thread(target=serve, args=(connections[-1], mode), daemon=True).start()


main()
