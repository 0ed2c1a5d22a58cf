// SPDX-License-Identifier: Apache-2.0
//
// The service of probe.proto.
import { setTimeout as wait } from "node:timers/promises";
import grpc from "@grpc/grpc-js";
import { main, Refused } from "./host.mjs";
import { protos } from "./protos.mjs";

const { curtail: { probe } } = protos("probe.proto");

main("probe", {
  probe: (host) => {
    const leaf = host.peer("leaf", probe.Probe);
    return [probe.Probe, {
      Echo: async (request) => request, // this library compresses no replies
      Fail: async ({ code, message, detail, trailer }) => {
        if (code === 0) throw Error(message);
        const trailers = new grpc.Metadata();
        if (trailer) trailers.set("probe-trailer", trailer);
        if (detail) trailers.set("grpc-status-details-bin", probe.RpcStatus.serialize({ code, message, details: [detail] }));
        throw new Refused(code, message, trailers);
      },
      Relay: (request) => leaf.Wait(request),
      Wait: async ({ ms }, call) => {
        const gone = new AbortController();
        call.on("cancelled", () => gone.abort());
        await wait(ms, undefined, { signal: gone.signal }).catch(() => undefined);
        return {};
      },
    }];
  },
});
