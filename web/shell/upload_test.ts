// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { call, Refused } from "./client";
import { forget, upload } from "./upload";

const PART = 512 * 2 ** 10;
const ignore = () => {};

// The bytes of an upload by the rules of social.proto, and `refuse`, which has the requests fail that it gives a status for.
function server(refuse: (request: string, times: number) => number) {
  const log: string[] = [], waits: number[] = [];
  let held: Blob[] = [], size = 0, ids = 0;
  const bytes = () => held.reduce((sum, blob) => sum + blob.size, 0);
  const send = async (verb: string, path: string, body?: object) => {
    const request = `${verb} ${path}`, status = refuse(request, log.filter((line) => line === request).length);
    log.push(request);
    if (status !== 0) throw new Refused(status < 0 ? 0 : status, "refused");
    const part = body as Blob;
    if (verb === "POST") {
      [held, size] = [[part], Number(/size=(\d+)/.exec(path)![1])];
      return { id: String(++ids), type: part.type };
    }
    const [, id, from] = /^media\/(\d+)\?from=(\d+)$/.exec(path)!;
    if (id !== String(ids)) throw new Refused(404, "there is no such upload");
    if (Number(from) !== bytes()) throw new Refused(400, `the next byte is that at ${bytes()}`);
    held.push(part);
    return { id, type: part.type };
  };
  return { log, waits, send: send as typeof call, wait: async (ms: number) => void waits.push(ms), whole: () => new Blob(held), complete: () => bytes() === size };
}

function film(size: number): File {
  return new File([Uint8Array.from({ length: size }, (_, i) => (i * i) >> 7)], "film.mp4", { type: "video/mp4" });
}

async function expectWhole(to: ReturnType<typeof server>, file: File): Promise<void> {
  assert.ok(to.complete());
  assert.deepEqual(new Uint8Array(await to.whole().arrayBuffer()), new Uint8Array(await file.arrayBuffer()));
}

async function expectRefused(status: number, act: Promise<unknown>): Promise<void> {
  const error = await act.then(() => null, (why: unknown) => why);
  assert.ok(error instanceof Refused);
  assert.equal((error as Refused).status, status);
}

test("a file goes in parts that a slow line can send in time, a small one at once", async () => {
  const to = server(() => 0), file = film(2 * PART + 1), told: number[][] = [];
  assert.equal(await upload(file, (...so) => told.push(so), to.send, to.wait), "1");
  assert.deepEqual(told, [0, PART, 2 * PART].map((done) => [done, file.size]));
  assert.deepEqual(to.log, [`POST media?size=${file.size}`, `PUT media/1?from=${PART}`, `PUT media/1?from=${2 * PART}`]);
  await expectWhole(to, file);
  const small = server(() => 0);
  await upload(film(PART), ignore, small.send, small.wait);
  assert.equal(small.log.length, 1);
});

test("a part that fails for a while is sent again, later each time", async () => {
  const second = `PUT media/1?from=${PART}`, passing = [503, -1, 409];
  const to = server((request, times) => (request === second ? passing[times] ?? 0 : 0)), file = film(3 * PART);
  await upload(file, ignore, to.send, to.wait);
  assert.deepEqual(to.waits, [500, 1000, 2000]);
  await expectWhole(to, file);
});

test("the next try goes on with the same upload", async () => {
  let down = true;
  const to = server((request) => (down && request.endsWith(`=${2 * PART}`) ? 503 : 0)), file = film(4 * PART);
  await expectRefused(503, upload(file, ignore, to.send, to.wait));
  await expectRefused(503, upload(file, ignore, to.send, to.wait));
  assert.equal(to.log.filter((line) => line.startsWith("POST")).length, 1);
  down = false;
  assert.equal(await upload(file, ignore, to.send, to.wait), "1");
  assert.equal(to.log.filter((line) => line.endsWith(`from=${PART}`)).length, 1);
  await expectWhole(to, file);
  const before = to.log.length;
  assert.equal(await upload(file, ignore, to.send, to.wait), "1"); // it waits for a post
  assert.equal(to.log.length, before);
});

test("an upload that is gone is begun anew by the next try, and nothing is sent in vain", async () => {
  const to = server((request) => (request === `PUT media/1?from=${PART}` ? 404 : 0)), file = film(2 * PART);
  await expectRefused(404, upload(file, ignore, to.send, to.wait));
  assert.deepEqual(to.waits, []);
  assert.equal(await upload(file, ignore, to.send, to.wait), "2");
  await expectWhole(to, file);
});

test("an upload that no post takes is begun anew by the next try", async () => {
  const to = server(() => 0), file = film(2 * PART);
  assert.equal(await upload(file, ignore, to.send, to.wait), "1");
  forget(file, new Refused(503, "the server does not answer"));
  assert.equal(await upload(file, ignore, to.send, to.wait), "1"); // it may be there
  for (const [status, next] of [[400, "2"], [404, "3"]] as const) {
    forget(file, new Refused(status, "no media that its author uploaded whole for a post"));
    assert.equal(await upload(file, ignore, to.send, to.wait), next);
    await expectWhole(to, file);
  }
});
