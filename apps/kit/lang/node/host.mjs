// SPDX-License-Identifier: Apache-2.0
//
// The main() of a program of services, with the flags of curtail's own host: docs/languages.md.
import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import grpc from "@grpc/grpc-js";
import { HealthImplementation } from "grpc-health-check";
import { current, log, logsJson, Tracer } from "./observe.mjs";
import { addReflection } from "./reflection.mjs";

const maxMessage = 32 << 20, badConfig = 104, lookAgainMs = 200;
const switches = ["quiet", "any-machine", "fence-learn", "health-checks", "no-sync"];
const channelOptions = {
  "grpc.max_receive_message_length": maxMessage, "grpc.max_send_message_length": maxMessage,
  "grpc.initial_reconnect_backoff_ms": 100, "grpc.max_reconnect_backoff_ms": 1000,
};
export const { status: Code } = grpc;

// What a handler throws to end its call with a status. `metadata` becomes trailers.
export class Refused extends Error {
  constructor(code, details, metadata) { super(details), Object.assign(this, { code, details, metadata }); }
}

// "--name value" and "--name=value". Flags of the C++ host that mean nothing here are kept and not read.
function parse(words) {
  const flags = {};
  for (let i = 0; i < words.length; ++i) {
    const [, name, equals, value] = /^-*([^=]*)(=?)(.*)$/s.exec(words[i]);
    const next = !equals && !switches.includes(name) && i + 1 < words.length;
    (flags[name] ??= []).push(next ? words[++i] : value);
  }
  return flags;
}

class Host {
  constructor(application, words) {
    this.application = application, this.flags = parse(words), this.service = this.flag("service", "");
    this.tracer = new Tracer(this.service, this.flag("trace-to", ""), Number(this.flag("trace-sample", "0.001")));
  }

  flag(name, otherwise) { return this.flags[name]?.at(-1) ?? otherwise; }

  // What --peer or --store has for a name.
  addresses(flag, name) {
    const given = (this.flags[flag] ?? []).filter((value) => value.startsWith(`${name}=`));
    return given.flatMap((value) => value.slice(name.length + 1).split(","));
  }

  dataFolder() {
    const given = this.flag("data", "auto");
    return given === "auto" ? join(process.env.XDG_STATE_HOME || `${homedir()}/.local/state`, "curtail", this.application) : given;
  }

  // A service that --peer names: peer.Method(request, metadata, { withinMs }) resolves to the reply. Its instances get calls in
  // turn. A call has the deadline of the request in which it is made, ends when that is cancelled, and carries its trace.
  peer(name, type) {
    let addresses = this.addresses("peer", name), turn = 0, looked = 0;
    if (addresses.length === 0)
      throw Error(`${this.service} calls ${name}: say where it is, --peer ${name}=ADDR,ADDR; in a topology add ${name} to its calls`);
    const file = addresses[0].startsWith("file:") ? addresses[0].slice(5) : "", clients = {};
    const pick = () => {
      if (file && Date.now() - looked > lookAgainMs) {
        addresses = readFileSync(file, "utf8").split("\n").filter(Boolean), looked = Date.now();
      }
      const address = addresses[turn++ % addresses.length];
      return (clients[address] ??= new type(address, grpc.credentials.createInsecure(), channelOptions));
    };
    return new Proxy({}, {
      get: (_, method) => (request, entries = {}, { withinMs = Infinity } = {}) => new Promise((resolve, reject) => {
        const { call, span } = current.getStore() ?? {}, metadata = new grpc.Metadata();
        if (span) metadata.set("traceparent", `00-${span.trace}-${span.id}-0${span.chosen}`);
        for (const [key, value] of Object.entries(entries)) metadata.set(key, value);
        const done = (error, reply) => (error ? reject(error) : resolve(reply));
        pick()[method](request, metadata, { parent: call, deadline: Date.now() + withinMs }, done);
      }),
    });
  }

  // A handler of grpc-js of one of ours: async (request, call) => reply.
  wrap(path, handler) {
    return async (call, answer) => {
      const span = this.tracer.begin(String(call.metadata.get("traceparent"))), began = Date.now();
      let code = 0;
      try {
        const reply = await current.run({ call, span }, () => handler(call.request, call));
        answer(null, reply);
      } catch (error) {
        code = error.code > 0 ? error.code : Code.INTERNAL;
        if (!(error.code > 0)) current.run({ span }, () => this.log("ERROR", String(error.stack), { path }));
        answer({ code, details: error.code > 0 ? error.details : "the handler failed", metadata: error.metadata });
      }
      this.tracer.end(span, path, began, code);
    };
  }

  log(severity, message, fields) { log(this.application, severity, message, fields); }
}

// Serves the service of `services`, NAME: (host) => [type, handlers], that --service names, until SIGTERM or SIGINT.
export async function main(application, services) {
  const server = new grpc.Server(channelOptions), alive = new HealthImplementation({ "": "SERVING" });
  let host;
  try {
    host = new Host(application, process.argv.slice(2));
    if (!services[host.service]) throw Error(`--service ${host.service}: there are ${Object.keys(services)}`);
    const [type, handlers] = services[host.service](host);
    const wrapped = Object.entries(type.service).map(([method, { path }]) => [method, handlers[method] && host.wrap(path, handlers[method])]);
    server.addService(type.service, Object.fromEntries(wrapped.filter(([, handler]) => handler)));
    alive.addToServer(server);
    addReflection(server, [Object.values(type.service)[0].path.split("/")[1]]);
    for (const address of host.flags.listen ?? ["127.0.0.1:0"]) {
      const port = await new Promise((resolve, reject) =>
        server.bindAsync(address, grpc.ServerCredentials.createInsecure(), (error, bound) => (error ? reject(error) : resolve(bound))));
      const at = address.startsWith("unix:") ? address : `${address.slice(0, address.lastIndexOf(":"))}:${port}`;
      if (logsJson) host.log("INFO", `ready ${at}`, { address: at });
      else console.log(`ready ${at}`);
    }
  } catch (broken) {
    log(application, "ERROR", broken.message);
    process.exit(badConfig);
  }
  await new Promise((stop) => process.on("SIGTERM", stop).on("SIGINT", stop));
  alive.setStatus("", "NOT_SERVING");
  const late = setTimeout(() => server.forceShutdown(), 1000 * Number(host.flag("drain", "10")));
  await new Promise((done) => server.tryShutdown(done));
  clearTimeout(late);
  await host.tracer.close();
  process.exit(0);
}
