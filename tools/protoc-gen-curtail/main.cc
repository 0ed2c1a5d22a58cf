// SPDX-License-Identifier: Apache-2.0
//
// protoc-gen-curtail - the protoc plugin behind `--curtail_out`.
#include <google/protobuf/compiler/plugin.h>
#include <unistd.h>

#include <cstdio>
#include <string_view>

#include "generator.h"

namespace {

constexpr char kHelp[] =
    "protoc-gen-curtail " CURTAIL_VERSION
    ": a plugin of protoc, which starts it.\n\n"
    "  protoc --cpp_out=DIR --curtail_out=DIR x.proto      with the plugin in PATH, or\n"
    "  protoc --plugin=protoc-gen-curtail=PATH ...         with it anywhere else\n\n"
    "Writes DIR/x.curtail.h and DIR/x.curtail.cc beside x.pb.h and x.pb.cc: per service a stub, and a base\n"
    "class to derive from for each kind of handler. In CMake use curtail_proto(TARGET PROTOS x.proto).\n";

}  // namespace

int main(int argc, char** argv) {
  const std::string_view argument = argc > 1 ? argv[1] : "";
  if (argument == "--version") {
    std::puts("protoc-gen-curtail " CURTAIL_VERSION);
    return 0;
  }
  if (argument == "--help" || argument == "-h") {
    std::fputs(kHelp, stdout);
    return 0;
  }
  // Started by hand it would wait for a request that no one types.
  if (argc == 1 && isatty(STDIN_FILENO)) {
    std::fputs(kHelp, stderr);
    return 2;
  }
  const curtail::Generator generator;
  return google::protobuf::compiler::PluginMain(argc, argv, &generator);
}
