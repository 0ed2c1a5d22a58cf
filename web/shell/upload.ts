// SPDX-License-Identifier: Apache-2.0
// upload.ts - sends a file in parts, and goes on from where an earlier try has come.
//
// Each upload takes room of the user for a day, whether its bytes come or not. So a file has one, however often it is tried.
import { call, Refused } from "./client";

// The gateway gives a request 10 s from its first byte to its last: this needs 420 kbit/s.
const PART_BYTES = 512 * 2 ** 10;
const TRIES = 4; // of a part
const BACKOFF_MS = 500; // after the first; each next is twice as long
// Of refusals that pass by themselves; 0: no answer.
const PASSING = new Set([0, 408, 409, 429, 503, 504]);

interface Upload { id: string; next: number }
const uploads = new WeakMap<File, Upload>();

async function patiently(act: () => Promise<unknown>, wait: (ms: number) => Promise<void>): Promise<void> {
  for (let tried = 1; ; ++tried) {
    try {
      await act();
      return;
    } catch (error) {
      if (tried === TRIES || !(error instanceof Refused) || !PASSING.has(error.status)) throw error;
    }
    await wait(BACKOFF_MS * 2 ** (tried - 1));
  }
}

const sleep = (ms: number) => new Promise<void>((done) => setTimeout(done, ms));

// After `error`, by which a request with the file's upload failed. If the upload may have expired, or be in a post, another
// user's, or of other bytes, the next call of upload() begins another.
export function forget(file: File, error: unknown): void {
  if (error instanceof Refused && [400, 404].includes(error.status)) uploads.delete(file);
}

// The id of the upload that holds all of the file. If it fails, the next call for this file sends what is missing. Before each part
// `tell` gets the bytes that the server has, and those of the whole file.
export async function upload(file: File, tell: (done: number, whole: number) => void, send: typeof call = call, wait = sleep): Promise<string> {
  const slice = (from: number) => file.slice(from, from + PART_BYTES, file.type);
  let begun = uploads.get(file);
  if (!begun) {
    tell(0, file.size);
    // Once a call: if only the answer is lost, the room is taken.
    begun = { id: (await send<{ id: string }>("POST", `media?size=${file.size}`, slice(0))).id, next: PART_BYTES };
    uploads.set(file, begun);
  }
  const { id } = begun;
  try {
    for (; begun.next < file.size; begun.next += PART_BYTES) {
      const from = begun.next;
      tell(from, file.size);
      await patiently(() => send("PUT", `media/${id}?from=${from}`, slice(from)), wait);
    }
  } catch (error) {
    forget(file, error);
    throw error;
  }
  return id;
}
