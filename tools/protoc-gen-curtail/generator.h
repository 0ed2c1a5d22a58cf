// SPDX-License-Identifier: Apache-2.0
//
// generator.h - writes x.curtail.h and x.curtail.cc, the service bases and stubs of x.proto.
//
// The plugin is this class behind protoc's plugin protocol (main.cc); tests call it directly. It is a build
// tool: it links libprotoc and nothing of the curtail library.
#pragma once

#include <google/protobuf/compiler/code_generator.h>

#include <cstdint>
#include <string>

namespace curtail {

// A Generator turns the services of one .proto file into C++. Stateless, hence thread-safe.
class Generator final : public google::protobuf::compiler::CodeGenerator {
 public:
  // Writes both files, with nothing but an include in them when `file` has no services. False, and what is
  // wrong in `error` as "x.proto:LINE:COLUMN: ...", when a name of the file cannot be one in C++. Takes no
  // `parameter`.
  bool Generate(const google::protobuf::FileDescriptor* file, const std::string& parameter,
                google::protobuf::compiler::GeneratorContext* output, std::string* error) const override;

  uint64_t GetSupportedFeatures() const override { return FEATURE_PROTO3_OPTIONAL; }
};

}  // namespace curtail
