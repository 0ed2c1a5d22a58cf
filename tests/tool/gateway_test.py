#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs curtail-gateway in front of a server, and asks it as a client of HTTP by others does.

Usage: gateway_test.py CURTAIL_GATEWAY LIBRARY_SERVER [sanitized]

A program under UndefinedBehaviorSanitizer needs descriptors to look at an object's type: `sanitized` leaves the case
out in which there are none.
"""

import http.client
import json
import re
import resource
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time

MAX_WAIT_S = 60


def start(*command, descriptors=None):
    limit = descriptors and (lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors)))
    process = subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=limit)
    line = process.stdout.readline()
    match = re.search(r"(?:listening on|ready) (\S+)", line)
    assert match, f"{command}: {line!r} {process.stderr.read() if process.poll() is not None else ''}"
    return process, match.group(1)


def ends(process):
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=MAX_WAIT_S)
    return process.returncode, out + err


def ask(connection, verb, path, body=None, **headers):
    """Status, headers and body."""
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(verb, path, body=body, headers=headers)
    reply = connection.getresponse()
    return reply.status, reply.headers, reply.read()


def check_answers(address):
    connection = http.client.HTTPConnection(address, timeout=MAX_WAIT_S)
    status, headers, body = ask(connection, "GET", "/v1/shelves/1/books/2?asOf=1970-01-01T00:00:07Z")
    assert (status, json.loads(body)) == (200, {"name": "shelves/1/books/2", "title": "as of 7"}), (status, body)
    assert headers["content-type"] == "application/json"
    status, _, body = ask(connection, "PATCH", "/v1/shelves/1/books/2?force=true",
                          json.dumps({"author": {"name": "\u00e9"}}), content_type="application/json")
    assert status == 200 and json.loads(body)["author"]["name"] == "\u00e9", body
    status, _, body = ask(connection, "GET", "/v1/shelves/1/books/404")
    assert status == 404 and json.loads(body)["code"] == 5, body
    # gRPC-Web: a book request without fields, in a frame of its own.
    status, headers, body = ask(connection, "POST", "/library.Library/GetBook", b"\0\0\0\0\0",
                                content_type="application/grpc-web+proto", x_grpc_web="1")
    assert status == 200 and body[0] == 0 and b"grpc-status:0\r\n" in body, body
    status, headers, body = ask(connection, "GET", "/v1/watch/7?count=3&failWith=8")
    lines = [json.loads(line) for line in body.splitlines()]
    assert status == 200 and headers["content-type"] == "application/x-ndjson", (status, headers)
    assert [line["result"]["name"] for line in lines[:3]] == ["7/0", "7/1", "7/2"], lines
    assert lines[3:] == [{"error": {"code": 8, "message": "the shelf fell", "details": []}}], lines
    connection.close()


def check_refuses(gateway, server_address, address):
    with tempfile.NamedTemporaryFile("w", suffix=".proto") as empty:
        empty.write('syntax = "proto3";')
        empty.flush()
        for words, error in (
            ((server_address, "--listen", address), "in use"),
            (("127.0.0.1:1",), "cannot read the methods of 127.0.0.1:1: "),
            (("127.0.0.1:1",), "; is the server running?"),
            ((server_address, "--tls"), "; leave --tls out"),
            ((server_address, "--timeout", "soon"), '--timeout: "soon" is not a time above 0'),
            ((server_address, "--timeout", "0s"), '--timeout: "0s" is not a time above 0'),
            ((server_address, "--max-held", "0"), "--max-held: 0 is not from 65536 to"),
            ((server_address, "--max-held", "64KB"), "--max-held: 64000 is not from 65536 to"),
            ((server_address, "--max-body", "4MX"), '--max-body: "4MX" is not a number of bytes'),
            ((server_address, "--max-rate", "0"),
             "--max-rate: 0 is not a rate; write more than 0, or leave the flag out"),
            ((server_address, "--max-requests", "-1"), "--max-requests: -1 is not from 1 to 1000000000"),
            ((server_address, "--max-connections", "0"), "--max-connections: 0 is not from 1 to 1000000000"),
            ((server_address, "--ca-file", "c.pem"), "--ca-file needs --tls"),
            ((server_address, "--allow-origin", "app.example"), "write https://app.example"),
            ((server_address, "--balancer", "rr"), '--balancer: there is no balancer "rr"'),
            ((server_address, "--alow-host", "x"), 'did you mean "--allow-host"?\n'),
            ((server_address, "127.0.0.1:2"), "write several servers as one word, HOST:PORT,HOST:PORT"),
            ((server_address, "--proto", empty.name), "has no service; give the .proto file that declares one"),
        ):
            refused = subprocess.run([gateway, *words], text=True, capture_output=True, timeout=MAX_WAIT_S, check=False)
            assert refused.returncode == 104, (words, refused)
            assert refused.stderr.startswith("curtail-gateway: ") and error in refused.stderr, (words, refused)


def check_tls(gateway, server_address):
    """OpenSSL's client, which picks the version of HTTP by ALPN."""
    with tempfile.TemporaryDirectory() as folder:
        files = ["--tls-cert", f"{folder}/crt", "--tls-key", f"{folder}/key"]
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                        "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1",
                        "-out", files[1], "-keyout", files[3]], capture_output=True, timeout=MAX_WAIT_S, check=True)
        front, address = start(gateway, server_address, "--listen", "127.0.0.1:0", *files)
        host, port = address.rsplit(":", 1)
        for offer, agreed in ((["h2", "http/1.1"], "h2"), (["http/1.1"], "http/1.1"), ([], None)):
            context = ssl.create_default_context(cafile=files[1])
            if offer:
                context.set_alpn_protocols(offer)
            with socket.create_connection((host, int(port)), timeout=MAX_WAIT_S) as plain:
                with context.wrap_socket(plain, server_hostname=host) as stream:
                    assert stream.selected_alpn_protocol() == agreed, (offer, stream.selected_alpn_protocol())
        connection = http.client.HTTPSConnection(address, timeout=MAX_WAIT_S, context=context)
        status, _, body = ask(connection, "GET", "/v1/watch/7?count=2")
        assert status == 200 and len(body.splitlines()) == 2, (status, body)
        connection.close()
        # HTTP/1.0 ends a body by closing: a body that broke off may not end with TLS's goodbye.
        with socket.create_connection((host, int(port)), timeout=MAX_WAIT_S) as plain:
            with context.wrap_socket(plain, server_hostname=host, suppress_ragged_eofs=False) as stream:
                stream.sendall(b"GET /v1/scan/a?count=1&titleBytes=3&failWith=13 HTTP/1.0\r\n\r\n")
                try:
                    while stream.recv(4096):
                        pass
                    assert False, "an orderly end"
                except (ConnectionResetError, ssl.SSLEOFError):
                    pass
        code, text = ends(front)
        assert code == 0 and "2 requests, 1 failed" in text, (code, text)
        half = subprocess.run([gateway, server_address, *files[:2]], text=True, capture_output=True,
                              timeout=MAX_WAIT_S, check=False)
        assert half.returncode == 104 and "private key" in half.stderr, half


def check_out_of_descriptors(gateway, server_address):
    """More connections than there are descriptors: once they are gone, the next is served."""
    front, address = start(gateway, server_address, "--listen", "127.0.0.1:0", descriptors=64)
    try:
        host, port = address.rsplit(":", 1)
        crowd = [socket.create_connection((host, int(port)), timeout=MAX_WAIT_S) for _ in range(100)]
        for one in crowd:
            one.close()
        # 503 for as long as there is none for the target.
        until = time.monotonic() + MAX_WAIT_S
        status = None
        while status != 200 and time.monotonic() < until:
            connection = http.client.HTTPConnection(address, timeout=MAX_WAIT_S)
            status = ask(connection, "GET", "/v1/shelves/1/books/2")[0]
            connection.close()
            assert status in (200, 503), status
        assert status == 200, status
    finally:
        code, text = ends(front)
    assert code == 0, (code, text)


def check_replacement(gateway, server_address):
    """One gateway is replaced by another under load. A balancer leaves the old one out late: no request fails."""
    old, old_address = start(gateway, server_address, "--listen", "127.0.0.1:0", "--linger", "10s")
    new, new_address = start(gateway, server_address, "--listen", "127.0.0.1:0")
    told = threading.Event()  # as the balancer is, of the end of the old one
    over = threading.Event()
    away = "sent away"
    counts = {old_address: 0, new_address: 0, away: 0}
    problems = []

    def client():
        try:
            while not over.is_set():
                address = new_address if told.is_set() else old_address
                connection = http.client.HTTPConnection(address, timeout=MAX_WAIT_S)
                kept = True
                while kept and not over.is_set():
                    status, headers, _ = ask(connection, "GET", "/v1/shelves/1/books/2")
                    assert status == 200, status
                    counts[address] += 1
                    kept = headers["connection"] != "close"
                    counts[away] += not kept
                connection.close()
        except (OSError, AssertionError, http.client.HTTPException) as error:
            problems.append(repr(error))

    def until(which, count):
        while counts[which] < count and not problems:
            assert time.monotonic() < limit, counts
            time.sleep(0.01)  # between looks

    limit = time.monotonic() + MAX_WAIT_S
    clients = [threading.Thread(target=client) for _ in range(4)]
    for thread in clients:
        thread.start()
    try:
        until(old_address, 100)
        old.send_signal(signal.SIGTERM)
        until(away, 10)  # on new connections after the first four, since the balancer is late
        told.set()
        text = "".join(old.communicate(timeout=MAX_WAIT_S))
        until(new_address, 100)
    finally:
        over.set()
        for thread in clients:
            thread.join(MAX_WAIT_S)
    assert not problems, problems
    assert old.returncode == 0 and " 0 failed, 0 refused" in text, (old.returncode, text)
    assert ends(new)[0] == 0
    print("replaced under load:", counts)


def check_documents(gateway):
    page = subprocess.run([gateway, "--man"], text=True, capture_output=True, check=True, timeout=MAX_WAIT_S).stdout
    assert page.startswith(".TH CURTAIL-GATEWAY 1 ") and "\\-\\-forward\\-header" in page, page[:300]
    for shell in ("bash", "zsh", "fish"):
        script = subprocess.run([gateway, "--completion", shell], text=True, capture_output=True, check=True,
                                timeout=MAX_WAIT_S).stdout
        assert "forward-header" in script and "curtail-gateway" in script, (shell, script[:300])


def main():
    gateway, library_server, *sanitized = sys.argv[1:]
    server, server_address = start(library_server, "--listen", "127.0.0.1:0")
    front = None
    try:
        front, address = start(gateway, server_address, "--listen", "127.0.0.1:0")
        check_documents(gateway)
        check_answers(address)
        check_refuses(gateway, server_address, address)
        check_tls(gateway, server_address)
        check_replacement(gateway, server_address)
        if not sanitized:
            check_out_of_descriptors(gateway, server_address)
        code, text = ends(front)
        assert code == 0 and re.search(r"5 requests, 0 failed", text), (code, text)
    finally:
        for process in (front, server):
            if process is not None and process.poll() is None:
                process.kill()
                process.wait()


main()
