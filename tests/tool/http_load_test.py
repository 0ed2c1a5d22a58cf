#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs `curtail load` against servers of HTTP by others: Python's http.server (HTTP/1.1) and nghttpd (HTTP/2).

Usage: http_load_test.py CASE CURTAIL HDSEARCH SCRATCH_FOLDER

Nothing here depends on how fast the machine is: each request is to be answered; latencies may be what they are.
"""

import http.server
import json
import os
import re
import ssl
import subprocess
import threading

from tooling import MAX_WAIT_S, expect_nothing_left, expect_valid, run_case

BRIEF = ("--rps", "200", "--duration", "1s", "--warmup", "100ms", "--timeout", "30s")


class Handler(http.server.BaseHTTPRequestHandler):
    """GET answers with a length, POST echoes in chunks, DELETE closes the connection, /missing is missing."""

    protocol_version = "HTTP/1.1"
    seen = []  # requests as (verb, path, headers, body)
    wbufsize = -1  # a reply leaves in one piece

    def answer(self, body, *fields, status=200):
        self.send_response(status)
        for name, value in fields:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def note(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        self.seen.append((self.command, self.path, dict(self.headers), body))
        return body

    def do_GET(self):
        self.note()
        if self.path == "/missing":
            return self.answer(b"no such thing", ("content-length", "13"), status=404)
        self.answer(b"hello", ("content-length", "5"))

    def do_POST(self):
        body = self.note()
        self.answer(b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body), ("transfer-encoding", "chunked"))

    def do_DELETE(self):
        self.note()
        self.close_connection = True
        self.answer(b"gone", ("connection", "close"), ("content-length", "4"))

    def log_message(self, *_):
        pass


def serve_python(context=None):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f"127.0.0.1:{server.server_address[1]}"


def certificate(tools):
    cert, key = tools.path("cert.pem"), tools.path("key.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                    "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert], check=True,
                   capture_output=True, timeout=MAX_WAIT_S)
    return cert, key


def expect_all_ok(tools, *args):
    path = tools.path("run.json")
    code, out, err = tools.run("load", *args, "--json", path)
    assert code in (0, 98), code  # a busy machine may make a run void
    expect_valid("report", path)
    with open(path) as file:
        result = json.load(file)
    (run,) = result["runs"]
    assert set(run["codes"]) == {"OK"} and run["codes"]["OK"] > 10, run["codes"]
    return result, out


def expect_refusal(result, *parts):
    code, out, err = result
    assert code in (1, 104) and all(part in err for part in parts), (code, out, err)


def test_http1(tools):
    server, address = serve_python()
    url = f"http://{address}/search?q=1"
    result, out = expect_all_ok(tools, url, *BRIEF)
    assert f"GET /search?q=1 HTTP/1.1 at {url}: open loop" in out, out
    expect_all_ok(tools, url, "--closed", "4", "--requests", "100", "--timeout", "30s")
    Handler.seen.clear()
    expect_all_ok(tools, url, "--closed", "2", "--requests", "50", "--timeout", "30s", "--data", '{"n": {{uniform 1 9}}}',
                  "-H", "x-id: {{uuid}}", "-H", "Host: other")
    for verb, path, headers, body in Handler.seen:
        assert verb == "POST" and path == "/search?q=1" and re.fullmatch(rb'\{"n": [1-9]\}', body), (verb, path, body)
        assert headers["content-type"] == "application/json" and headers["host"] == "other", headers
    assert len({headers["x-id"] for _, _, headers, _ in Handler.seen[2:]}) == len(Handler.seen) - 2, "each has its own"
    expect_all_ok(tools, url, "-X", "DELETE", "--closed", "2", "--requests", "50", "--timeout", "30s")  # reconnects
    lines = tools.path("bodies.jsonl")
    with open(lines, "w") as file:
        file.write('{"a": 1}\n{"a": 2}\n')
    Handler.seen.clear()
    expect_all_ok(tools, url, "-X", "POST", "--data", "@" + lines, "--closed", "1", "--requests", "40", "--timeout", "30s")
    assert {body for _, _, _, body in Handler.seen} == {b'{"a": 1}', b'{"a": 2}'}, "each line is a body"
    server.shutdown()


def test_drawn(tools):
    """Paths with placeholders, and checks of what comes back."""
    server, address = serve_python()
    Handler.seen.clear()
    result, out = expect_all_ok(tools, f"http://{address}/users/{{{{uniform 1 3}}}}?n={{{{index}}}}", "--closed", "2",
                                "--requests", "60", "--timeout", "30s", "--data", '{"id": 7, "tags": ["red"]}',
                                "--check", ".id == 7", "--check", ".tags.length > 1", "--check", '. contains "red"')
    assert "POST /users/{{uniform 1 3}}?n={{index}} HTTP/1.1 at http://" in out and "3 checks of each reply" in out, out
    assert "replies       60 checked, 60 failed a check (100 %)" in out and "60 x .tags.length > 1: it is 1" in out, out
    checks = result["runs"][0]["reply_checks"]
    assert [check["failed"] for check in checks["checks"]] == [0, 60, 0], checks
    paths = {re.fullmatch(r"/users/(\d)\?n=\d+", path)[1] for _, path, _, _ in Handler.seen}
    assert paths == {"1", "2", "3"} and len({path for _, path, _, _ in Handler.seen}) >= 60, paths
    Handler.seen.clear()
    result, out = expect_all_ok(tools, f"http://{address}/?n={{{{index}}}}", "--closed", "3", "--threads", "3",
                                "--requests", "60", "--timeout", "30s")
    assert "1 connection, 3 threads" in out and result["plan"]["threads"] == 3, out
    assert result["runs"][0]["requests"]["ok"] == 60, result["runs"][0]["requests"]
    assert len({path for _, path, _, _ in Handler.seen}) == 60, "no two threads send the same"
    expect_refusal(tools.run("load", f"http://{address}/", "--closed", "1", "--threads", "2"), "--closed must be at least --threads, 2")
    once = ("load", f"http://{address}/", "--closed", "1", "-n", "5", "--timeout", "30s", "--data", '{"id": 7}')
    for limit, wanted in (("checks<=0", 99), ("checks<=100%", 0)):
        code, out, err = tools.run(*once, "--check", ".id == 8", "--fail-if", limit)
        assert code in (wanted, 98), (limit, code, out, err)
    file = tools.path("all.checks")
    with open(file, "w") as lines:
        lines.write("# of the reply\n.id == 7\n.id < 7\n")
    code, out, err = tools.run(*once, "--check", "@" + file, "--debug")
    assert code == 0 and "held    .id == 7\nFAILED  .id < 7: it is 7\n" in out, (code, out, err)
    expect_refusal(tools.run(*once, "--fail-if", "checks<1%"), "add --check '.FIELD == VALUE'")
    expect_refusal(tools.run(*once, "--check", ".id = 7"), "--check: check '.id = 7'", "write ==")
    expect_refusal(tools.run("load", f"http://{{{{index}}}}.local/", "--rps", "1"), "in the path and the query only")
    expect_refusal(tools.run("load", f"http://{address}/{{{{pick a#b}}}}", "--rps", "1"), "the path of the URL, '/{{pick a': a placeholder has no end")
    server.shutdown()


def test_answers(tools):
    server, address = serve_python()
    path = tools.path("run.json")
    code, out, _ = tools.run("load", f"http://{address}/missing", "--closed", "2", "--requests", "50", "--timeout", "30s",
                             "--json", path, "--fail-if", "errors<1%")
    assert code == 99 and "HTTP 404 50" in out and "50 x HTTP 404: Not Found" in out, (code, out)
    expect_valid("report", path)
    with open(path) as file:
        result = json.load(file)
    assert result["runs"][0]["codes"] == {"HTTP 404": 50}, result["runs"][0]["codes"]
    code, out, err = tools.run("load", f"http://{address}/", "--data", "@/dev/null", "--debug")
    assert code == 0 and "OK, 0 bytes" in err, (code, out, err)
    code, out, err = tools.run("load", f"http://{address}/", "--data", "text", "--debug")
    assert code == 0 and out == "text\n", (code, out, err)
    expect_refusal(tools.run("load", f"http://{address}/missing", "--debug"), "HTTP 404: Not Found")
    expect_refusal(tools.run("load", f"http://{address}/", "--http2", *BRIEF), "HTTP/2", "leave --http2 out")
    expect_refusal(tools.run("load", f"https://{address}/", *BRIEF), "hint: ")
    server.shutdown()
    server.server_close()
    expect_refusal(tools.run("load", "http://127.0.0.1:1/", *BRIEF), "cannot connect", "hint: is the server running")
    for args, part in ((("-X", "GET T"), "-X"), (("-H", "content-length: 3"), "cannot be sent"), (("--list",), "--list"),
                       (("--method", "a.B/C"), "use -X"), (("--tls",), "https://"), (("--data", "{{nonsense}}"), "--data"),
                       (("--pick", "uniform"), "--pick"), (("-X", "CONNECT"), "CONNECT")):
        expect_refusal(tools.run("load", f"http://{address}/", *BRIEF, *args), part)
    expect_refusal(tools.run("load", address, *BRIEF, "--http2", "--method", "a.B/C"), "http://HOST:PORT/PATH")
    expect_refusal(tools.run("load", f"http://{address}/", f"https://{address}/", *BRIEF), "some targets are http://")
    expect_refusal(tools.run("load", "http://a b/", *BRIEF), "%20")
    expect_refusal(tools.run("train", f"http://{address}/", "--admin", "unix:/x", "--out", path), "gRPC")


def test_https(tools):
    cert, key = certificate(tools)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    context.set_alpn_protocols(["http/1.1"])
    server, address = serve_python(context)
    expect_all_ok(tools, f"https://{address}/", "--ca", cert, "--closed", "2", "--requests", "50", "--timeout", "30s")
    expect_refusal(tools.run("load", f"https://{address}/", *BRIEF), "not trusted", "--ca FILE")
    expect_refusal(tools.run("load", f"https://{address}/", "--insecure", "--http2", *BRIEF), "HTTP/2")
    server.shutdown()


def start_nghttpd(tools, *args):
    folder = tools.path("site")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "index.html"), "w") as file:
        file.write("hello")
    server = subprocess.Popen(["nghttpd", "--address=127.0.0.1", f"--htdocs={folder}", "0", *args], env=tools.env,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return server


def test_http2(tools):
    cert, key = certificate(tools)
    for scheme, args in (("http", ("--no-tls",)), ("https", (key, cert))):
        server = start_nghttpd(tools, *args)
        try:
            port = listening_port(server.pid)
            threading.Thread(target=server.stdout.read, daemon=True).start()
            url = f"{scheme}://127.0.0.1:{port}/index.html"
            trust = ("--ca", cert) if scheme == "https" else ()
            _, out = expect_all_ok(tools, url, "--http2", *trust, *BRIEF)
            assert "GET /index.html HTTP/2 at" in out, out
            expect_all_ok(tools, url, "--http2", *trust, "--closed", "20", "--requests", "500", "--connections", "2",
                          "--timeout", "30s")
            code, out, err = tools.run("load", url, "--http2", *trust, "--debug")
            assert code == 0 and out == "hello\n", (code, out, err)
            missing = url.replace("index", "missing")
            expect_refusal(tools.run("load", missing, "--http2", *trust, "--debug"), "HTTP 404")
            expect_refusal(tools.run("load", url, *trust, *BRIEF), "--http2")
        finally:
            server.terminate()
            server.wait(timeout=MAX_WAIT_S)
    expect_nothing_left()


def listening_port(pid):
    """The port at which a process has come to listen; the test's own time limit bounds the wait."""
    while True:
        inodes = set()
        for fd in os.listdir(f"/proc/{pid}/fd"):
            try:
                inodes.update(re.findall(r"socket:\[(\d+)\]", os.readlink(f"/proc/{pid}/fd/{fd}")))
            except OSError:
                continue
        with open("/proc/net/tcp") as file:
            for line in file.readlines()[1:]:
                fields = line.split()
                if fields[3] == "0A" and fields[9] in inodes:
                    return int(fields[1].split(":")[1], 16)


if __name__ == "__main__":
    run_case(globals())
