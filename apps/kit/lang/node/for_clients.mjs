// SPDX-License-Identifier: Apache-2.0
//
// apps/kit/accounts/for_clients.h for node: what the options of access.proto say happens before a handler runs.
import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Code, Refused } from "./host.mjs";

const checkedMs = 1000, mostChecked = 4096, mostNameBytes = 128;
const words = {
  [Code.UNKNOWN]: "the service has failed; its log says more",
  [Code.UNAVAILABLE]: "a part of the service does not answer; try again",
  [Code.DEADLINE_EXCEEDED]: "the time was over before all parts had answered",
};
words[Code.INTERNAL] = words[Code.DATA_LOSS] = words[Code.UNKNOWN];
const unauthenticated = (text) => new Refused(Code.UNAUTHENTICATED, text);
const entry = (call, key) => String(call.metadata.get(key)[0] ?? "");

// Hands the name of the client's request on, as NameRequest() of apps/kit/once.h: the entries of the metadata of a call. `content` is a
// request of `type`, a method of grpc-js.
export function nameRequest(call, path, type, content, part = "") {
  const name = entry(call, "idempotency-key");
  if (call.metadata.get("idempotency-key").length === 0) return {};
  if (name.length < 1 || name.length > mostNameBytes) {
    throw new Refused(Code.INVALID_ARGUMENT, `an idempotency key has 1 to ${mostNameBytes} characters`);
  }
  const digest = createHash("sha256").update(`${path}\n`).update(type.requestSerialize(content)).digest("hex");
  return { "idempotency-key": name + part, "idempotency-content": digest };
}

// The sessions of an application whose `user` has them, a peer.
export class Sessions {
  constructor(host, user) {
    const secret = host.flag("secret", "") || join(host.dataFolder(), "secret");
    Object.assign(this, { user, issuer: `curtail-${host.application}`, secret: readFileSync(secret), checked: new Map() });
  }

  // The session of a token, which may have been ended.
  read(call, given) {
    const token = given || /^Bearer (.*)$/.exec(entry(call, "authorization"))?.[1];
    if (!token) throw unauthenticated("log in, and send the token of the session");
    const [header, body, signature] = token.split(".");
    const own = createHmac("sha256", this.secret).update(`${header}.${body}`).digest();
    const sent = Buffer.from(signature ?? "", "base64url");
    if (own.length !== sent.length || !timingSafeEqual(own, sent)) throw unauthenticated("the token is not valid");
    const read = (part) => JSON.parse(Buffer.from(part, "base64url").toString());
    const claims = read(header).alg === "HS256" ? read(body) : {};
    if (!(claims.exp > Date.now() / 1000)) throw unauthenticated("the token has expired");
    if (claims.iss !== this.issuer) throw unauthenticated("the token is of another issuer");
    const [, epoch, number, up] = /^(\d+)\.(\d+)(\.up)?$/.exec(claims.jti) ?? [];
    if (!number || !/^\d+$/.test(claims.sub)) throw unauthenticated("the token names no session: log in again");
    return { user: claims.sub, epoch, number, expires_s: String(claims.exp), stepped_up: Boolean(up) };
  }

  // The id of the user who calls; "0": a guest whom `access` admits.
  async admit(call, access, given) {
    if (access === "PUBLIC" || (access === "GUEST" && !given && !entry(call, "authorization"))) return "0";
    const session = this.read(call, given), key = `${session.user}.${session.epoch}.${session.number}`, asked = Date.now();
    if (!(asked < this.checked.get(key) + checkedMs)) {
      await this.user.CheckSession(session);
      if (this.checked.size >= mostChecked) this.checked.clear();
      this.checked.set(key, asked);
    }
    const present = access !== "PRESENT_USER" || (await this.user.ById({ ids: [session.user] })).people.length > 0;
    if (!present) throw unauthenticated("the account was deleted");
    return session.user;
  }

  register(call, request, type) { return this.user.Register(request, nameRequest(call, type.path, type, { ...request, password: "" })); }

  async end(call, given) {
    const session = this.read(call, given);
    try {
      return await this.user.EndSession(session);
    } finally {
      this.checked.clear();
    }
  }
}

// Fills the request of `forward` from a client's; `caller` is the id of the user.
function fill(forward, toFields, given, caller) {
  const list = (value) => [].concat(value ?? []), request = {};
  const copied = list(forward.copy).map((text) => text.split("="));
  const own = new Set([...list(forward.caller), ...copied.map(([to]) => to.split(".")[0])]);
  for (const field of toFields) if (!own.has(field) && given[field] !== undefined) request[field] = given[field];
  for (const [to, from] of copied) {
    const path = to.split("."), last = path.pop();
    path.reduce((message, field) => (message[field] ??= {}), request)[last] = given[from];
  }
  for (const field of list(forward.caller)) request[field] = caller;
  return request;
}

// The handlers of `type`, a service whose methods have the options: forwards, and others as own(name), which is
// async (request, call, caller) => reply. peers(name, type) is the peer of a name, `packages` what protos() has loaded.
export function forClients(host, type, sessions, packages, peers, own) {
  const handlers = {};
  for (const [name, method] of Object.entries(type.service)) {
    const access = method.options["(apps.access)"], forward = method.options["(apps.forward)"];
    let handler = own(name);
    if (forward) {
      const [service, to] = [forward.method.slice(0, forward.method.lastIndexOf(".")), forward.method.split(".").at(-1)];
      const target = service.split(".").reduce((at, part) => at[part], packages), called = target.service[to];
      const peer = peers(forward.service, target), fields = called.requestType.type.field.map((field) => field.name);
      const changed = called.responseType.type.name === "Nothing" && method.responseType.type.name === "Changed";
      handler = async (request, call, caller) => {
        const filled = fill(forward, fields, request, caller);
        const entries = forward.caller ? nameRequest(call, called.path, called, filled) : clientAddress(call);
        const reply = await peer[to](filled, entries);
        return changed ? { changed: true } : reply;
      };
    }
    if (!handler) continue;
    handlers[name] = async (request, call) => {
      try {
        return await handler(request, call, await sessions.admit(call, access, request.token));
      } catch (error) {
        const known = error instanceof Refused || error.code > 0, text = known ? words[error.code] : words[Code.INTERNAL];
        if (text && !error.forClients) host.log("WARNING", `${method.path.slice(1)} has failed: ${error.stack}`, { method: name });
        if (text && !error.forClients) throw new Refused(known ? error.code : Code.INTERNAL, text);
        throw error instanceof Refused ? error : new Refused(error.code, error.details);
      }
    };
  }
  return handlers;
}

// Where the client of a request is, for calls of methods that anybody may call.
export function clientAddress(call) {
  const peer = call.getPeer();
  return { "x-forwarded-for": entry(call, "x-forwarded-for") || peer.slice(0, peer.lastIndexOf(":")) };
}
