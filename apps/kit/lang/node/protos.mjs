// SPDX-License-Identifier: Apache-2.0
//
// The .proto files of an application.
import { join } from "node:path";
import grpc from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import protobuf from "protobufjs";

// Removes fields that have their default: C++ does not send those, and equal messages have equal bytes then.
function strip(message, type) {
  for (const field of type.fieldsArray) {
    if (!Object.hasOwn(message, field.name)) continue;
    const value = message[field.name], inner = field.resolvedType instanceof protobuf.Type ? field.resolvedType : undefined;
    if (inner) for (const one of field.map ? Object.values(value) : [].concat(value)) strip(one, inner);
    const isDefault = value === field.defaultValue || value.isZero?.() || value.length === 0;
    if (!inner && !field.repeated && !field.map && !field.partOf && isDefault) delete message[field.name];
  }
  return message;
}

const serializer = (type) => (object) => type.encode(strip(type.fromObject(object), type)).finish();

// The packages of a .proto: 64-bit numbers are texts, enums are numbers.
export function protos(file) {
  const folder = join(process.env.CURTAIL_APP_HOME, "protos"), options = { keepCase: true, includeDirs: [folder] };
  const definition = loadSync(file, { ...options, longs: String, defaults: true }), root = new protobuf.Root();
  root.resolvePath = (_, path) => (protobuf.common.get(path) ? path : join(folder, path));
  root.loadSync(file, options).resolveAll();
  for (const [name, methods] of Object.entries(definition)) {
    if (methods.format) continue; // a message
    for (const [method, one] of Object.entries(methods)) {
      const { resolvedRequestType, resolvedResponseType } = root.lookupService(name).methods[method];
      one.requestSerialize = serializer(resolvedRequestType), one.responseSerialize = serializer(resolvedResponseType);
    }
  }
  return grpc.loadPackageDefinition(definition);
}
