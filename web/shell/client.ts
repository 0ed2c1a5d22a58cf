// SPDX-License-Identifier: Apache-2.0
// client.ts - calls of an application through its gateway, and the session that they carry.

export interface Session { name: string; token: string; expiresS: string }

// The server refused a call, or gave no answer: status 0.
export class Refused extends Error {
  constructor(readonly status: number, message: string) {
    super(message);
  }
}

const TIMEOUT_MS = 30_000;
const KEY = "curtail-session", GUEST_KEY = "curtail-guest";

function kept(key: string): Session | null {
  try {
    const found = JSON.parse(sessionStorage.getItem(key) ?? "null") as Session | null;
    return found?.token ? found : null;
  } catch {
    return null;
  }
}

function keep(key: string, made: Session | null): void {
  if (made) sessionStorage.setItem(key, JSON.stringify({ name: made.name, token: made.token, expiresS: made.expiresS }));
  else sessionStorage.removeItem(key);
}

// Of this tab and this origin; no request carries it by itself, as one carries a cookie.
export const session = () => (kept(KEY)?.name ? kept(KEY) : null);
export const keepSession = (made: Session | null) => keep(KEY, made);

export const hasExpired = ({ expiresS }: Session) => Number(expiresS) * 1000 < Date.now();
// Of somebody who has not logged in, where an application has such sessions. Calls have its token while there is no session.
export function guest(): Session | null {
  const found = kept(GUEST_KEY);
  return found && !hasExpired(found) ? found : null;
}
export const keepGuest = (made: Session | null) => keep(GUEST_KEY, made);

export interface CallOptions {
  key?: string; // of a write that may be repeated; once() makes one
  visit?: AbortSignal; // ends the call, whose promise is rejected with the signal's reason
}

// The answer of a call, which `parse` reads. It is not whole if that throws, or gives null.
async function answerOf<T>(verb: string, path: string, body: object | undefined, { key, visit }: CallOptions, parse: (reply: Response) => Promise<T | null>): Promise<T> {
  const headers: Record<string, string> = {}, token = (session() ?? guest())?.token;
  if (token) headers["authorization"] = `Bearer ${token}`;
  if (key) headers["idempotency-key"] = key;
  const timeout = AbortSignal.timeout(TIMEOUT_MS);
  const init: RequestInit = { method: verb, headers, credentials: "omit", signal: visit ? AbortSignal.any([visit, timeout]) : timeout };
  if (body) {
    const bytes = body instanceof Blob;
    headers["content-type"] = bytes ? body.type : "application/json";
    init.body = bytes ? body : JSON.stringify(body);
  }
  const reply = await fetch(`/v1/${path}`, init).catch(() => {
    visit?.throwIfAborted();
    throw new Refused(0, "the server does not answer");
  });
  const answer = reply.ok ? await parse(reply).catch(() => null) : null;
  const refusal = reply.ok ? null : ((await reply.json().catch(() => null)) as { message?: string } | null);
  visit?.throwIfAborted();
  if (!reply.ok) throw new Refused(reply.status, refusal?.message ?? `the server answers ${reply.status}`);
  if (!answer) throw new Refused(0, "the server's answer is not whole");
  return answer;
}

// Makes a call to `path` below /v1/. A Blob goes as bytes of its type, an object as JSON. Throws Refused.
export const call = <T>(verb: string, path: string, body?: object, options: CallOptions = {}) => answerOf<T>(verb, path, body, options, (reply) => reply.json());
// The bytes of a file. Throws Refused.
export const readBytes = (path: string, visit: AbortSignal) => answerOf<Blob>("GET", path, undefined, { visit }, (reply) => reply.blob());

export const read = <T>(path: string, visit: AbortSignal) => call<T>("GET", path, undefined, { visit });
export const part = encodeURIComponent;

// Whether a refused write may still take effect.
const mayHappen = (error: unknown) => !(error instanceof Refused) || [0, 408, 409].includes(error.status) || error.status >= 500;

// Makes a write happen once: a repetition has the key of before until an answer reports its outcome. The same body after that is another
// write.
export function once<Body extends object, Reply>(write: (body: Body, key: string) => Promise<Reply>): (body: Body) => Promise<Reply> {
  const keys = new Map<string, string>(); // of writes that may still take effect, by their bodies
  return async (body) => {
    const content = JSON.stringify(body), key = keys.get(content) ?? crypto.getRandomValues(new Uint32Array(4)).join("-");
    keys.set(content, key);
    try {
      const reply = await write(body, key);
      keys.delete(content);
      return reply;
    } catch (error) {
      if (!mayHappen(error)) keys.delete(content);
      throw error;
    }
  };
}
