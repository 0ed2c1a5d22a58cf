// SPDX-License-Identifier: Apache-2.0
//
// What the generated code takes from libraries is written from the global namespace, so that packages,
// messages and methods may be called as they like; FindNameConflict() tells of the few names that cannot be.
//
// Not offered: methods in which only one side streams. They are left out, with a comment, and answer
// UNIMPLEMENTED.
#include "generator.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/printer.h>
#include <google/protobuf/io/zero_copy_stream.h>

#include <map>
#include <memory>

#include "absl/strings/str_cat.h"
#include "names.h"

namespace curtail {
namespace {

using google::protobuf::FileDescriptor;
using google::protobuf::MethodDescriptor;
using google::protobuf::ServiceDescriptor;
using google::protobuf::SourceLocation;
using google::protobuf::compiler::GeneratorContext;
using google::protobuf::io::Printer;
using Variables = std::map<std::string, std::string>;

bool IsUnary(const MethodDescriptor& m) { return !m.client_streaming() && !m.server_streaming(); }
bool IsEachMessage(const MethodDescriptor& m) { return m.client_streaming() && m.server_streaming(); }

template <class Descriptor>
std::string Comment(const Descriptor& of, absl::string_view indent) {
  SourceLocation location;
  return of.GetSourceLocation(&location) ? CommentLines(location.leading_comments, indent) : "";
}

Variables ServiceVariables(const ServiceDescriptor& service) {
  return {{"service", service.name()}, {"full_name", service.full_name()}};
}

Variables MethodVariables(const MethodDescriptor& method) {
  return {{"service", method.service()->name()},
          {"full_name", method.full_name()},
          {"method", method.name()},
          {"constant", ConstantName(method.name())},
          {"path", absl::StrCat("/", method.service()->full_name(), "/", method.name())},
          {"request", TypeName(*method.input_type(), *method.service())},
          {"reply", TypeName(*method.output_type(), *method.service())},
          {"kind", IsUnary(method) ? "kUnary" : "kEachMessage"}};
}

// Calls visit(method) for each method of `service` for which `want` holds.
template <class Want, class Visit>
void ForEachMethod(const ServiceDescriptor& service, Want want, Visit visit) {
  for (int i = 0; i < service.method_count(); ++i) {
    if (want(*service.method(i))) visit(*service.method(i));
  }
}

bool IsServed(const MethodDescriptor& m) { return IsUnary(m) || IsEachMessage(m); }
bool IsLeftOut(const MethodDescriptor& m) { return !IsServed(m); }

void PrintServiceBase(const ServiceDescriptor& service, Printer& out) {
  out.Print(R"(
  // Derive and override; what is not overridden answers UNIMPLEMENTED. Runs on many threads at once.
  class Service : public ::curtail::Service {
   public:
)");
  ForEachMethod(service, IsServed, [&](const MethodDescriptor& method) {
    out.PrintRaw(Comment(method, "    "));
    if (IsEachMessage(method)) {
      out.Print(R"(    // Called for each message of the stream, in order; each is answered with one message.
    // An error ends the stream.
)");
    }
    out.Print(MethodVariables(method), R"(    virtual ::absl::Status $method$(
        ::curtail::Context& ctx, const $request$& request, $reply$* reply);
)");
  });
  ForEachMethod(service, IsLeftOut, [&](const MethodDescriptor& method) {
    out.Print(MethodVariables(method), R"(    // $method$ streams in one direction, which is not supported.
)");
  });
  out.Print(R"(
    std::string_view FullName() const final;
    std::vector<::curtail::MethodHandler> Handlers() final;
  };
)");
}

void PrintStub(const ServiceDescriptor& service, Printer& out) {
  out.Print(R"(
  // Typed calls on a channel, which outlives the stub. Thread-safe.
  class Stub final {
   public:
    explicit Stub(::curtail::Channel* channel) : channel_(channel) {}

)");
  ForEachMethod(service, IsUnary, [&](const MethodDescriptor& method) {
    out.PrintRaw(Comment(method, "    "));
    out.Print(MethodVariables(method), R"(    [[nodiscard]] ::absl::Status $method$(
        ::curtail::Context& ctx, const $request$& request, $reply$* reply) const;
)");
  });
  out.Print(R"(
   private:
    [[maybe_unused]] ::curtail::Channel* channel_;
  };
)");
}

void PrintServiceClass(const ServiceDescriptor& service, Printer& out) {
  out.PrintRaw(Comment(service, ""));
  out.Print(ServiceVariables(service), R"(class $service$ final {
 public:
  $service$() = delete;

  static constexpr std::string_view kServiceName = "$full_name$";
)");
  ForEachMethod(service, IsUnary, [&](const MethodDescriptor& method) {
    out.Print(MethodVariables(method),
              R"(  static constexpr ::curtail::Method<$request$, $reply$> $constant${"$path$"};
)");
  });
  PrintServiceBase(service, out);
  PrintStub(service, out);
  out.Print("};\n\n");
}

void PrintMethodBodies(const ServiceDescriptor& service, Printer& out) {
  ForEachMethod(service, IsServed, [&](const MethodDescriptor& method) {
    out.Print(
        MethodVariables(method),
        R"(::absl::Status $service$::Service::$method$(::curtail::Context&, const $request$&, $reply$*) {
  return ::absl::UnimplementedError("$full_name$ is not implemented");
}

)");
  });
  ForEachMethod(service, IsUnary, [&](const MethodDescriptor& method) {
    out.Print(MethodVariables(method), R"(::absl::Status $service$::Stub::$method$(
    ::curtail::Context& ctx, const $request$& request, $reply$* reply) const {
  return channel_->Call(ctx, $service$::$constant$.path, request, reply);
}

)");
  });
}

void PrintHandlers(const ServiceDescriptor& service, Printer& out) {
  out.Print(ServiceVariables(service),
            R"(std::string_view $service$::Service::FullName() const { return $service$::kServiceName; }

std::vector<::curtail::MethodHandler> $service$::Service::Handlers() {
  std::vector<::curtail::MethodHandler> handlers;
)");
  ForEachMethod(service, IsServed, [&](const MethodDescriptor& method) {
    out.Print(MethodVariables(method),
              R"(  handlers.push_back({"$method$", ::curtail::MethodHandler::Kind::$kind$,
      ::curtail::internal::UnaryHandler<$request$, $reply$>(
          [this](::curtail::Context& ctx, const $request$& request, $reply$* reply) {
            return this->$method$(ctx, request, reply);
          })});
)");
  });
  out.Print("  return handlers;\n}\n\n");
}

// Opens one of the two files and writes what both begin with.
class OutputFile {
 public:
  OutputFile(const FileDescriptor& file, const char* extension, GeneratorContext* context)
      : stream_(context->Open(absl::StrCat(FileStem(file), extension))), printer_(stream_.get(), '$') {
    printer_.PrintRaw(
        absl::StrCat("// Generated by protoc-gen-curtail from ", file.name(), ". Do not edit.\n"));
  }
  Printer& printer() { return printer_; }

 private:
  std::unique_ptr<google::protobuf::io::ZeroCopyOutputStream> stream_;
  Printer printer_;
};

void WriteHeader(const FileDescriptor& file, GeneratorContext* context) {
  OutputFile output(file, ".curtail.h", context);
  Printer& out = output.printer();
  const Variables variables = {{"stem", FileStem(file)}, {"namespace", CppNamespace(file)}};
  out.Print("#pragma once\n\n");
  if (file.service_count() > 0) {
    out.Print(
        "#include <string_view>\n#include <vector>\n\n#include \"absl/status/status.h\"\n"
        "#include \"curtail/rpc/channel.h\"\n#include \"curtail/rpc/context.h\"\n"
        "#include \"curtail/rpc/method.h\"\n#include \"curtail/rpc/service.h\"\n");
  }
  out.Print(variables, "#include \"$stem$.pb.h\"\n");
  if (file.service_count() == 0) return;
  out.Print("\n");
  if (!file.package().empty()) out.Print(variables, "namespace $namespace$ {\n\n");
  for (int i = 0; i < file.service_count(); ++i) PrintServiceClass(*file.service(i), out);
  if (!file.package().empty()) out.Print(variables, "}  // namespace $namespace$\n");
}

void WriteSource(const FileDescriptor& file, GeneratorContext* context) {
  OutputFile output(file, ".curtail.cc", context);
  Printer& out = output.printer();
  const Variables variables = {{"stem", FileStem(file)}, {"namespace", CppNamespace(file)}};
  out.Print(variables, "#include \"$stem$.curtail.h\"\n");
  if (file.service_count() == 0) return;
  out.Print("\n");
  if (!file.package().empty()) out.Print(variables, "namespace $namespace$ {\n\n");
  for (int i = 0; i < file.service_count(); ++i) {
    PrintMethodBodies(*file.service(i), out);
    PrintHandlers(*file.service(i), out);
  }
  if (!file.package().empty()) out.Print(variables, "}  // namespace $namespace$\n");
}

}  // namespace

bool Generator::Generate(const FileDescriptor* file, const std::string& parameter, GeneratorContext* output,
                         std::string* error) const {
  if (!parameter.empty()) {
    *error = absl::StrCat("protoc-gen-curtail takes no options, but was given \"", parameter, "\"");
    return false;
  }
  if (std::optional<std::string> conflict = FindNameConflict(*file)) {
    *error = *conflict;
    return false;
  }
  WriteHeader(*file, output);
  WriteSource(*file, output);
  return true;
}

}  // namespace curtail
