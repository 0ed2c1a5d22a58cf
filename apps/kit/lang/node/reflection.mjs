// SPDX-License-Identifier: Apache-2.0
//
// Reflection (v1) from the descriptors that protoc has written, as gateways and load generators read them. Libraries for node write
// descriptors again and lose the options of methods.
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import grpc from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import descriptor from "protobufjs/ext/descriptor/index.js";

const here = dirname(fileURLToPath(import.meta.url));
const loaded = grpc.loadPackageDefinition(loadSync(join(here, "reflection.proto"), { keepCase: true, oneofs: true }));
const { ServerReflection } = loaded.grpc.reflection.v1;

// The bytes of each file of a FileDescriptorSet: field 1, again and again.
function* filesOf(set) {
  for (let at = 0; at < set.length;) {
    let size = 0, shift = 0;
    for (++at; set[at] & 0x80; ++at, shift += 7) size |= (set[at] & 0x7f) << shift;
    size |= set[at++] << shift;
    yield set.subarray(at, at += size);
  }
}

// Adds the service to `server`. `names`: the services that it lists.
export function addReflection(server, names) {
  const byName = {}, bySymbol = {};
  for (const bytes of filesOf(readFileSync(join(process.env.CURTAIL_APP_HOME, "protos.protoset")))) {
    const file = descriptor.FileDescriptorProto.decode(bytes), from = file.package ? `${file.package}.` : "";
    byName[file.name] = bytes;
    for (const { name } of [...file.messageType, ...file.enumType, ...file.extension]) bySymbol[from + name] = bytes;
    for (const { name, method } of file.service) {
      bySymbol[from + name] = bytes;
      for (const one of method) bySymbol[`${from}${name}.${one.name}`] = bytes;
    }
  }
  const answer = (request) => {
    if (request.list_services !== undefined) return { list_services_response: { service: names.map((name) => ({ name })) } };
    const file = byName[request.file_by_filename] ?? bySymbol[request.file_containing_symbol];
    if (file) return { file_descriptor_response: { file_descriptor_proto: [file] } };
    return { error_response: { error_code: grpc.status.NOT_FOUND, error_message: "nothing here has this name" } };
  };
  server.addService(ServerReflection.service, {
    ServerReflectionInfo: (stream) => {
      stream.on("data", (request) => stream.write({ valid_host: request.host, original_request: request, ...answer(request) }));
      stream.on("end", () => stream.end());
    },
  });
}
