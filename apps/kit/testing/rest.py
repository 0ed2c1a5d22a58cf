# SPDX-License-Identifier: Apache-2.0
"""Calls of an application's REST interface, for tests."""
import json
import re
import urllib.error
import urllib.request

MAX_WAIT_S = 90


def rest(address, verb, path, body=None, token=None, key=None):
    """Status and JSON."""
    headers = {"content-type": "application/json"}
    if key:
        headers["Idempotency-Key"] = key
    if token:
        headers["authorization"] = f"Bearer {token}"
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"http://{address}{path}", data, headers, method=verb)
    try:
        with urllib.request.urlopen(request, timeout=MAX_WAIT_S) as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def use_page(address):
    """Reads the files of the page for browsers."""
    with urllib.request.urlopen(f"http://{address}/", timeout=MAX_WAIT_S) as reply:
        page, etag = reply.read().decode(), reply.headers["etag"]
        assert reply.headers["content-type"].startswith("text/html"), reply.headers
        assert "default-src 'none'" in reply.headers["content-security-policy"], reply.headers
    for name in re.findall(r'(?:href|src)="(app[.]\w+)"', page):
        with urllib.request.urlopen(f"http://{address}/{name}", timeout=MAX_WAIT_S) as reply:
            assert reply.read(), name
    try:
        urllib.request.urlopen(urllib.request.Request(f"http://{address}/", headers={"if-none-match": etag}))
        assert False, "the page is sent again"
    except urllib.error.HTTPError as error:
        assert error.code == 304, error.code
