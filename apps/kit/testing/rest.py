# SPDX-License-Identifier: Apache-2.0
"""Calls of an application's REST interface, for tests."""
import json
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
