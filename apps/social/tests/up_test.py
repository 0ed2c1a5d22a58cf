#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Starts the whole application, loads it, and uses it over REST. Usage: up_test.py FORM CURTAIL SOCIAL"""
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../kit/testing"))
from rest import MAX_WAIT_S, rest, use_page  # noqa: E402

FORMS = {"processes": ["--stores", "redis", "--scale", "2", "--set", "hedge_after=50"], "monolith": ["--monolith"]}
PROCESSES = {"processes": 35, "monolith": 3}
SIZES = {"processes": ["users=12", "follows=30", "posts=30"], "monolith": ["graph=FOLDER/ring", "posts=30"]}


def image_rest(address, path, token=None, data=None, kind="image/png"):
    """Status, type and bytes; uploads `data` if there are any."""
    headers = {"authorization": f"Bearer {token}"} if token else {}
    if data is not None:
        headers["content-type"] = kind
    request = urllib.request.Request(f"http://{address}{path}", data, headers)
    try:
        with urllib.request.urlopen(request, timeout=MAX_WAIT_S) as reply:
            return reply.status, reply.headers["content-type"], reply.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers["content-type"], error.read()


def use_ranges(address, path, whole):
    """Parts of a file, as browsers ask for them."""
    for said, status, part, told in (("bytes=2-5", 206, whole[2:6], f"bytes 2-5/{len(whole)}"),
                                     ("bytes=-4", 206, whole[-4:], f"bytes {len(whole) - 4}-{len(whole) - 1}/{len(whole)}"),
                                     ("bytes=0-1,4-5", 200, whole, None),
                                     (f"bytes={len(whole)}-", 416, None, f"bytes */{len(whole)}")):
        request = urllib.request.Request(f"http://{address}{path}", headers={"range": said})
        try:
            reply = urllib.request.urlopen(request, timeout=MAX_WAIT_S)
        except urllib.error.HTTPError as error:
            reply = error
        with reply:
            assert (reply.status, reply.headers["content-range"]) == (status, told), (said, reply.status, reply.headers)
            assert reply.headers["accept-ranges"] == "bytes", reply.headers
            assert part is None or reply.read() == part, said


def use_images(address, token):
    """An image goes in, belongs to a post, comes out, and goes with the post."""
    png = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 300
    status, _, item = image_rest(address, "/v1/media", token, png)
    assert status == 200, item
    item = json.loads(item)
    assert (item["type"], item["bytes"]) == ("image/png", str(len(png))), item
    assert image_rest(address, "/v1/media", token, png, "image/gif")[0] == 400
    assert image_rest(address, "/v1/media", token, b"<script>")[0] == 400
    assert image_rest(address, "/v1/media", None, png)[0] == 401
    path = f"/v1/media/{item['id']}"
    assert image_rest(address, path)[0] == 404, "it is in no post yet"
    status, post = rest(address, "POST", "/v1/posts", {"media": [{"id": item["id"]}]}, token)
    assert status == 200 and post["media"] == [item], post
    assert image_rest(address, path) == (200, "image/png", png)
    use_ranges(address, path, png)
    assert rest(address, "POST", "/v1/posts", {"media": [{"id": item["id"]}]}, token)[0] == 400
    assert rest(address, "DELETE", f"/v1/posts/{post['id']}", token=token)[0] == 200
    assert image_rest(address, path)[0] == 404


def use_video(address, token):
    """A video comes in two parts, and out as one."""
    mp4 = b"\0\0\0\x18ftypisom\0\0\2\0isommp42" + bytes(range(256)) * 20000
    size = 4 << 20
    status, _, item = image_rest(address, f"/v1/media?size={len(mp4)}", token, mp4[:size], "video/mp4")
    assert status == 200, item
    path = f"/v1/media/{json.loads(item)['id']}"
    request = urllib.request.Request(f"http://{address}{path}?from={size}", mp4[size:],
                                     {"authorization": f"Bearer {token}", "content-type": "video/mp4"}, method="PUT")
    with urllib.request.urlopen(request, timeout=MAX_WAIT_S) as reply:
        assert reply.status == 200
    status, post = rest(address, "POST", "/v1/posts", {"media": [{"id": path.split("/")[-1]}]}, token)
    assert status == 200, post
    assert image_rest(address, path) == (200, "video/mp4", mp4)
    assert rest(address, "DELETE", f"/v1/posts/{post['id']}", token=token)[0] == 200


def expect_ends(address, token):
    """A front end that did not end the session itself may take the token for a second more."""
    deadline = time.monotonic() + MAX_WAIT_S
    while (status := rest(address, "GET", "/v1/home", token=token)[0]) != 401:
        assert status == 200 and time.monotonic() < deadline, status


def use(address):
    """What a client of HTTP does: two users, a post, its end."""
    tokens = {}
    for name in ("ann", "bob"):
        status, session = rest(address, "POST", "/v1/users", {"name": name, "password": "a password"})
        assert status == 200, session
        tokens[name] = session["token"]
    assert rest(address, "POST", "/v1/users", {"name": "ann", "password": "a password"})[0] == 409
    assert rest(address, "POST", "/v1/sessions", {"name": "ann", "password": "wrong one"})[0] == 401
    assert rest(address, "GET", "/v1/home")[0] == 401
    assert rest(address, "PUT", "/v1/following/ann", token=tokens["bob"]) == (200, {"changed": True})
    people = rest(address, "GET", "/v1/users/ann/followers")[1]["people"]
    assert [person["name"] for person in people] == ["bob"], people

    status, post = rest(address, "POST", "/v1/posts", token=tokens["ann"],
                        body={"text": "hello @bob http://example.org/", "media": [{"type": "image/png", "bytes": "7"}]})
    assert status == 200 and post["author"]["name"] == "ann" and post["mentions"][0]["name"] == "bob", post
    code = post["urls"][0]["code"]
    assert rest(address, "GET", f"/v1/urls/{code}")[1]["url"] == "http://example.org/"
    status, posts = rest(address, "GET", "/v1/users/ann/posts?limit=5", token=tokens["bob"])
    assert status == 200 and posts["posts"] == [post], posts
    assert rest(address, "PUT", f"/v1/favorites/{post['id']}", token=tokens["bob"]) == (200, {"changed": True})
    status, reply = rest(address, "POST", "/v1/posts", {"text": "an answer", "reply_to": post["id"]}, tokens["bob"])
    assert status == 200 and reply["replyTo"] == post["id"], reply
    status, repost = rest(address, "POST", "/v1/posts", {"repost_of": post["id"]}, tokens["bob"])
    assert status == 200, repost
    seen = rest(address, "GET", f"/v1/posts/{post['id']}")[1]
    assert (seen["favorites"], seen["replies"], seen["reposts"]) == ("1", "1", "1"), seen
    for path, ids in ((f"/v1/posts/{post['id']}/replies", [reply["id"]]), ("/v1/users/bob/favorites", [post["id"]]),
                      (f"/v1/posts/{post['id']}/reposts", [repost["id"]])):
        assert [one["id"] for one in rest(address, "GET", path)[1]["posts"]] == ids, path
    assert rest(address, "GET", f"/v1/posts/{post['id']}/favorites")[1]["people"][0]["name"] == "bob"
    assert rest(address, "DELETE", f"/v1/favorites/{post['id']}", token=tokens["bob"])[0] == 200
    found = rest(address, "GET", "/v1/search/users?prefix=an")[1]["people"]
    assert [person["name"] for person in found] == ["ann"], found
    deadline = time.monotonic() + MAX_WAIT_S
    while not (found := rest(address, "GET", "/v1/search/posts?text=hello+BOB&newest=true")[1]):
        assert time.monotonic() < deadline, "the index does not get the post"
    assert [one["id"] for one in found["posts"]] == [post["id"]], found

    assert rest(address, "DELETE", f"/v1/posts/{post['id']}", token=tokens["bob"])[0] == 403
    assert rest(address, "DELETE", f"/v1/posts/{post['id']}", token=tokens["ann"])[0] == 200
    assert rest(address, "GET", f"/v1/urls/{code}")[0] == 404
    use_images(address, tokens["ann"])
    use_video(address, tokens["ann"])
    status, message = rest(address, "POST", "/v1/messages/bob", {"text": "a word"}, tokens["ann"], key="one word")
    assert status == 200 and message["from"]["name"] == "ann", message
    again = rest(address, "POST", "/v1/messages/bob", {"text": "a word"}, tokens["ann"], key="one word")
    assert again == (200, message), again
    assert rest(address, "POST", "/v1/messages/bob", {"text": "another"}, tokens["ann"], key="one word")[0] == 409
    assert rest(address, "GET", "/v1/messages/ann", token=tokens["bob"])[1]["messages"] == [message]
    listed = rest(address, "GET", "/v1/messages", token=tokens["bob"])[1]["conversations"]
    assert listed == [{"with": message["from"], "last": message}], listed
    assert rest(address, "DELETE", f"/v1/messages/{message['id']}", token=tokens["bob"])[0] == 403
    assert rest(address, "DELETE", f"/v1/messages/{message['id']}", token=tokens["ann"])[0] == 200
    status, ad = rest(address, "POST", "/v1/ads", {"title": "Pears", "url": "http://example.org/", "topic": "fruit"},
                      tokens["ann"])
    assert status == 200, ad
    deadline = time.monotonic() + MAX_WAIT_S
    while ad not in rest(address, "GET", "/v1/ads?limit=10", token=tokens["bob"])[1]["ads"]:
        assert time.monotonic() < deadline, "the ad is never drawn"
    assert rest(address, "POST", f"/v1/ads/{ad['id']}/click", token=tokens["bob"]) == (200, ad)
    assert rest(address, "POST", f"/v1/ads/{ad['id']}/click", token=tokens["bob"])[0] == 400
    assert rest(address, "DELETE", f"/v1/ads/{ad['id']}", token=tokens["ann"])[0] == 200
    status, people = rest(address, "GET", "/v1/suggestions?limit=3", token=tokens["bob"])
    assert status == 200 and len(people["people"]) == 3, people
    assert rest(address, "GET", "/v1/users/ann/statistics")[1] == {"followers": "1"}
    assert rest(address, "PUT", "/v1/blocked/bob", token=tokens["ann"])[0] == 200
    assert rest(address, "PUT", "/v1/following/ann", token=tokens["bob"])[0] == 403
    assert rest(address, "GET", "/v1/profile", token=tokens["ann"])[1]["user"]["name"] == "ann"
    assert [one["name"] for one in rest(address, "GET", "/v1/blocked", token=tokens["ann"])[1]["people"]] == ["bob"]
    ad = rest(address, "POST", "/v1/ads", {"title": "Plums", "url": "http://example.org/", "topic": "fruit"},
              tokens["ann"])[1]
    assert rest(address, "GET", "/v1/profile/ads", token=tokens["ann"]) == (200, {"ads": [ad]})

    fresh = rest(address, "POST", "/v1/passwords", {"name": "bob", "password": "a password", "new_password": "another one"})[1]
    expect_ends(address, tokens["bob"])
    assert rest(address, "GET", "/v1/home", token=fresh["token"])[0] == 200
    assert rest(address, "DELETE", "/v1/sessions", token=fresh["token"]) == (200, {"changed": True})
    expect_ends(address, fresh["token"])

    def delete(password):
        return rest(address, "POST", "/v1/deletions", {"name": "ann", "password": password})

    assert delete("wrong one")[0] == 401
    assert delete("a password") == (200, {"changed": True})
    assert rest(address, "GET", "/v1/users/ann/posts")[0] == 404
    assert rest(address, "POST", "/v1/posts", {"text": "late"}, tokens["ann"])[0] == 401


def sends(address, request):
    """Sends these bytes on a connection of their own. The status, the type and the body of the answer."""
    host, port = address.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=MAX_WAIT_S) as peer:
        peer.sendall(request)
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += peer.recv(65536)
        head, _, body = answer.partition(b"\r\n\r\n")
        fields = dict(line.split(b": ", 1) for line in head.split(b"\r\n")[1:])
        while len(body) < int(fields[b"content-length"]):
            body += peer.recv(65536)
    return int(head.split()[1]), fields[b"content-type"].decode(), body.decode()


def expect_said(address, request, answer):
    got = sends(address, request)
    assert got == (200, "text/plain", answer + "\n"), (request, got)


def graph_script(path, form):
    """What scripts/init_social_graph.py of DeathStarBench sends, by aiohttp."""
    return (f"POST /wrk2-api/{path} HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nAccept: */*\r\n"
            f"Accept-Encoding: gzip, deflate\r\nUser-Agent: Python/3.11 aiohttp/3.8.4\r\n"
            f"Content-Length: {len(form)}\r\n"
            f"Content-Type: application/x-www-form-urlencoded\r\n\r\n{form}").encode()


def wrk_script(verb, path, form=None):
    """What wrk2/scripts/social-network/*.lua of DeathStarBench send, by wrk.format(): the target is a whole URL."""
    length = f"Content-Length: {len(form)}\r\n" if form else ""
    return (f"{verb} http://localhost:8080/wrk2-api/{path} HTTP/1.1\r\n"
            f"Content-Type: application/x-www-form-urlencoded\r\n{length}Host: localhost:8080\r\n\r\n"
            f"{form or ''}").encode()


def use_wrk2(address):
    """The scripts of DeathStarBench: users, follows, posts, timelines."""
    for n in range(3):
        user = (f"first_name=first_name_{n}&last_name=last_name_{n}&username=username_{n}"
                f"&password=password_{n}&user_id={n}")
        expect_said(address, graph_script("user/register", user), "Success!")
    assert sends(address, graph_script("user/register", user))[0] == 409
    assert sends(address, graph_script("user/register", user.replace("user_id=2", "user_id=7")))[0] == 400
    assert sends(address, graph_script("user/register", "username=username_9"))[0] == 400
    for follow in ("user_name=username_1&followee_name=username_0", "user_id=2&followee_id=0"):
        expect_said(address, graph_script("user/follow", follow), "Success!")
    assert sends(address, graph_script("user/unfollow", "user_id=2&followee_id=0"))[0] == 200
    assert sends(address, graph_script("user/follow", "user_name=username_1&followee_name=username_8"))[0] == 404
    quoted = ("username=username_0&user_id=0&text=first+%40username_2+http%3A%2F%2Fexample.org"
              "&media_ids=%5B%22123456789012345678%22%5D&media_types=%5B%22png%22%5D&post_type=0")
    expect_said(address, graph_script("post/compose", quoted), "Successfully upload post")
    url = "http://" + "qWe4" * 16
    form = (f"username=username_0&user_id=0&text={'aB3' * 85}x @username_2 @username_1 {url}"
            '&media_ids=["123456789012345678","876543210987654321"]&media_types=["png","png"]&post_type=0')
    expect_said(address, wrk_script("POST", "post/compose", form), "Successfully upload post")
    assert sends(address, wrk_script("POST", "post/compose", "username=username_0&user_id=0&text="))[0] == 400

    def read(kind, query):
        status, content, body = sends(address, wrk_script("GET", f"{kind}-timeline/read?{query}"))
        assert (status, content) == (200, "application/json"), body
        return json.loads(body)

    second, first = read("user", "user_id=0&start=0&stop=10")
    assert first["text"].startswith("first @username_2 http://short-url/"), first
    assert second["creator"] == {"user_id": "0", "username": "username_0"}, second
    assert sorted(one["user_id"] for one in second["user_mentions"]) == ["1", "2"], second
    assert [one["media_type"] for one in second["media"]] == ["png", "png"], second
    assert second["urls"][0]["expanded_url"] == url and second["urls"][0]["shortened_url"] in second["text"], second
    assert int(second["post_id"]) > int(first["post_id"]) and int(second["timestamp"]) > 0, second
    assert read("user", "user_id=0&start=1&stop=11") == [first]
    assert read("user", "user_id=0&start=57&stop=67") == []
    deadline = time.monotonic() + MAX_WAIT_S
    while read("home", "user_id=1&start=0&stop=10") != [second, first]:
        assert time.monotonic() < deadline, "the home timeline does not get the posts"
    assert read("home", "user_id=1&start=1&stop=2") == [first]
    assert sends(address, wrk_script("GET", "home-timeline/read?user_id=1&start=0"))[0] == 400
    assert sends(address, wrk_script("GET", "home-timeline/read?user_id=8&start=0&stop=10"))[0] == 404


def main(form, curtail, social):
    with tempfile.TemporaryDirectory() as scratch:
        env = {**os.environ, "XDG_RUNTIME_DIR": scratch, "XDG_STATE_HOME": scratch + "/state", "NO_COLOR": "1",
               "PATH": os.path.dirname(social) + ":" + os.environ["PATH"]}

        def run(*args, codes=(0,)):
            done = subprocess.run([curtail, *args], env=env, text=True, capture_output=True, timeout=MAX_WAIT_S)
            print("$ curtail", *args, f"-> {done.returncode}\n{done.stdout}{done.stderr}")
            assert done.returncode in codes, done.returncode
            return done.stdout

        sizes = [word for text in SIZES[form] for word in ("--set", text.replace("FOLDER", scratch))]
        with open(scratch + "/ring", "w", encoding="ascii") as ring:
            ring.writelines(f"{user} {user % 12 + 1}\n" for user in range(1, 13))
        said = run("up", "social", "--detach", *sizes, "--set", "wrk2_without_authentication=on", *FORMS[form])
        try:
            processes = json.loads(run("ps", "--json"))[0]["processes"]
            assert len(processes) == PROCESSES[form], processes
            run("load", "social", "--rps", "40", "--duration", "2s", "--warmup", "100ms", "--timeout", "10s", "--json",
                scratch + "/run.json", codes=(0, 98))
            requests = json.load(open(scratch + "/run.json"))["runs"][0]["requests"]
            assert requests["ok"] > 0 and requests["ok"] == requests["sent"], requests

            # Through the load balancer, as the documents say.
            with open(scratch + "/state/curtail/social/load-users", encoding="ascii") as users:
                tokens = [line.split()[2] for line in users]
            with open(scratch + "/home.jsonl", "w", encoding="ascii") as file:
                file.writelines(json.dumps({"token": token, "limit": 10}) + "\n" for token in tokens)
            balancer = next(p["address"] for p in processes if p["service"] == "load-balancer")
            for target in ([f"http://{balancer}/curtail.social.Social/ReadHomeTimeline", "--data", f"@{scratch}/home.jsonl"],
                           [f"http://{balancer}/v1/home?limit=10", "-H", f"authorization: Bearer {tokens[0]}", "--http2"]):
                run("load", *target, "--rps", "40", "--requests", "20", "--timeout", "10s", "--json", scratch + "/run.json",
                    codes=(0, 98))
                requests = json.load(open(scratch + "/run.json"))["runs"][0]["requests"]
                assert requests["ok"] == requests["sent"] == 20, requests

            fronts = [p for p in processes if p["service"] == "front-end"]
            entry = fronts[0]["address"]
            # As on a cluster, where the stores are in other folders.
            done = subprocess.run([social, "fill", "--target", entry, "--data", scratch + "/apart", "--users", "12",
                                   "--follows", "0", "--posts", "0", "--ads", "0", "--train", "--quiet"], env=env, text=True,
                                  capture_output=True, timeout=MAX_WAIT_S)
            assert done.returncode == 0 and "nothing is learned" in done.stderr, done
            assert f"http://{balancer}/" in said, said
            use_page(balancer)
            if form == "monolith":
                people = rest(balancer, "GET", "/v1/users/user_0/followers")[1]["people"]
                assert sorted(person["name"] for person in people) == ["user_1", "user_11"], people
            use(balancer)
            use_wrk2(balancer)
            calls = [json.loads(run("status", "social/" + p["name"], "--json"))["begun"] for p in fronts]
            assert form == "monolith" or all(count > 20 for count in calls), calls
            for service in ("read-post", "compose-post", "text") if form == "processes" else ():
                calls = [json.loads(run("status", "social/" + p["name"], "--json"))["begun"] for p in processes
                         if p["service"] == service]
                assert len(calls) == 2 and all(calls), (service, calls)
            keeper = next(p["name"] for p in processes
                          if p["service"] == ("post-storage" if form == "processes" else "front-end"))
            stores = json.loads(run("status", f"social/{keeper}", "--json"))["stores"]
            assert [(one["name"].split()[0], one["up"]) for one in stores] == [("memcached", True)], stores
        finally:
            run("down", "social")


if __name__ == "__main__":
    main(*sys.argv[1:])
