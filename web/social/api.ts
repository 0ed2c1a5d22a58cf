// SPDX-License-Identifier: Apache-2.0
// api.ts - the calls of apps/social/social.proto, and the session that they carry.
import type { Person, Url } from "./text";

export interface Session { name: string; token: string; expiresS: string }
export interface MediaItem { id: string; type: string }
export interface Post {
  id: string; author: Person; text?: string; urls?: Url[]; mentions?: Person[]; media?: MediaItem[]; createdMs: string;
  replyTo?: string; original?: Post; favorites?: string; replies?: string; reposts?: string;
}
export interface Posts { posts?: Post[]; next?: string }
export interface People { people?: Person[]; next?: string }
export interface Statistics { posts?: string; followers?: string; following?: string; likesReceived?: string }
export interface Changed { changed?: boolean }

export class Refused extends Error {
  constructor(readonly status: number, message: string) {
    super(message);
  }
}

const TIMEOUT_MS = 30_000;
const KEY = "curtail-social-session";

// Of this tab and this origin; no request carries it by itself, as one carries a cookie.
export function session(): Session | null {
  try {
    const kept = JSON.parse(sessionStorage.getItem(KEY) ?? "null") as Session | null;
    return kept?.token && kept.name ? kept : null;
  } catch {
    return null;
  }
}

export function keepSession(made: Session | null): void {
  if (made) sessionStorage.setItem(KEY, JSON.stringify({ name: made.name, token: made.token, expiresS: made.expiresS }));
  else sessionStorage.removeItem(KEY);
}

// A Blob goes as bytes of its type, an object as JSON.
export async function call<T>(verb: string, path: string, body?: object): Promise<T> {
  const headers: Record<string, string> = {};
  const token = session()?.token;
  if (token) headers["authorization"] = `Bearer ${token}`;
  const init: RequestInit = { method: verb, headers, credentials: "omit", signal: AbortSignal.timeout(TIMEOUT_MS) };
  if (body) {
    const bytes = body instanceof Blob;
    headers["content-type"] = bytes ? body.type : "application/json";
    init.body = bytes ? body : JSON.stringify(body);
  }
  const reply = await fetch(`/v1/${path}`, init).catch(() => {
    throw new Refused(0, "the server does not answer");
  });
  const read = (await reply.json().catch(() => ({}))) as T & { message?: string };
  if (!reply.ok) throw new Refused(reply.status, read.message ?? `the server answers ${reply.status}`);
  return read;
}

export const part = encodeURIComponent;
