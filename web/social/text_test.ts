// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { isWebUrl, piecesOf } from "./text";

const bob = { id: "1", name: "bob" };

test("a text without marks is one piece, whatever it holds", () => {
  const text = '<script>alert("x")</script> a@b.example @nobody http://short-url/none';
  assert.deepEqual(piecesOf(text, [], [bob]), [{ kind: "text", text }]);
  assert.deepEqual(piecesOf("", [], []), []);
});

test("mentions and short URLs are pieces, and the rest stays around them", () => {
  const urls = [{ code: "aB3", url: "https://example.org/?a=<b>" }];
  assert.deepEqual(piecesOf("@bob: http://short-url/aB3!", urls, [bob]), [
    { kind: "person", name: "bob" },
    { kind: "text", text: ": " },
    { kind: "link", url: "https://example.org/?a=<b>" },
    { kind: "text", text: "!" },
  ]);
});

test("the name that is mentioned is the whole name", () => {
  assert.deepEqual(piecesOf("@bobby", [], [bob]), [{ kind: "text", text: "@bobby" }]);
});

test("no other scheme becomes a link", () => {
  assert.ok(!isWebUrl("javascript:alert(1)"));
  assert.ok(!isWebUrl("data:text/html,x"));
  assert.ok(!isWebUrl("not a url"));
  assert.deepEqual(piecesOf("http://short-url/x", [{ code: "x", url: "javascript:alert(1)" }], []), [{ kind: "text", text: "http://short-url/x" }]);
});
