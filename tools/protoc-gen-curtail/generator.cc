// SPDX-License-Identifier: Apache-2.0
//
// The generated code names the parts of libraries from the global namespace, so that packages,
// messages and methods may be called as they like; names.h has the C++ names of those that are taken.
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
bool Streams(const MethodDescriptor& m) { return !IsUnary(m); }
bool Any(const MethodDescriptor&) { return true; }

template <class Descriptor>
std::string Comment(const Descriptor& of, absl::string_view indent) {
  SourceLocation location;
  return of.GetSourceLocation(&location) ? CommentLines(location.leading_comments, indent) : "";
}

Variables ServiceVariables(const ServiceDescriptor& service) {
  return {{"service", CppServiceName(service)}, {"full_name", service.full_name()}};
}

Variables MethodVariables(const MethodDescriptor& method) {
  return {{"service", CppServiceName(*method.service())},
          {"full_name", method.full_name()},
          {"method", CppMethodName(method)},
          {"name", method.name()},
          {"constant", ConstantOf(method)},
          {"path", absl::StrCat("/", method.service()->full_name(), "/", method.name())},
          {"request", TypeName(*method.input_type(), *method.service())},
          {"reply", TypeName(*method.output_type(), *method.service())}};
}

// Calls visit(method) for each method of `service` for which `want` holds.
template <class Want, class Visit>
void ForEachMethod(const ServiceDescriptor& service, Want want, Visit visit) {
  for (int i = 0; i < service.method_count(); ++i) {
    if (want(*service.method(i))) visit(*service.method(i));
  }
}

template <class Want>
bool Has(const ServiceDescriptor& service, Want want) {
  bool any = false;
  ForEachMethod(service, want, [&](const MethodDescriptor&) { any = true; });
  return any;
}
bool HasUnary(const ServiceDescriptor& service) { return Has(service, IsUnary); }

// The variables of a method in which the client, the server or both stream: how its handler is written, and its
// call. `async` is "Async" for those of coroutines, else empty.
Variables StreamVariables(const MethodDescriptor& method, absl::string_view async = "") {
  Variables v = MethodVariables(method);
  const std::string request = v["request"], reply = v["reply"];
  const std::string prefix = absl::StrCat("::curtail::", async);
  if (!method.client_streaming()) {
    v["wrapper"] = absl::StrCat(async, "ServerStreamingMethod");
    v["parameters"] =
        absl::StrCat("const ", request, "& request, ", prefix, "StreamWriter<", reply, ">& writer");
    v["types"] = absl::StrCat("const ", request, "&, ", prefix, "StreamWriter<", reply, ">&");
    v["names"] = "request, writer";
    v["call"] = absl::StrCat(prefix, "ClientReader<", reply, ">");
    v["call_parameters"] = absl::StrCat(", const ", request, "& request");
    v["call_names"] = ", request";
  } else if (!method.server_streaming()) {
    v["wrapper"] = absl::StrCat(async, "ClientStreamingMethod");
    v["parameters"] = absl::StrCat(prefix, "StreamReader<", request, ">& reader, ", reply, "* reply");
    v["types"] = absl::StrCat(prefix, "StreamReader<", request, ">&, ", reply, "*");
    v["names"] = "reader, reply";
    v["call"] = absl::StrCat(prefix, "ClientWriter<", request, ", ", reply, ">");
    v["call_parameters"] = v["call_names"] = "";
  } else {
    v["wrapper"] = absl::StrCat(async, "BidirectionalMethod");
    v["parameters"] = absl::StrCat(prefix, "ServerStream<", request, ", ", reply, ">& stream");
    v["types"] = absl::StrCat(prefix, "ServerStream<", request, ", ", reply, ">&");
    v["names"] = "stream";
    v["call"] = absl::StrCat(prefix, "ClientStream<", request, ", ", reply, ">");
    v["call_parameters"] = v["call_names"] = "";
  }
  return v;
}

// The texts for a method in which somebody streams.
constexpr char kStreamDeclaration[] = R"(    virtual ::absl::Status $method$(
        ::curtail::Context& ctx, $parameters$);
)";
constexpr char kStreamDefinition[] =
    R"(::absl::Status $service$::$base$::$method$(::curtail::Context&, $types$) {
  return ::curtail::internal::NotImplemented("$full_name$");
}

)";
constexpr char kAsyncStreamDeclaration[] = R"(    virtual ::curtail::Coroutine $method$(
        ::curtail::Context& ctx, $parameters$);
)";
constexpr char kAsyncStreamDefinition[] =
    R"(::curtail::Coroutine $service$::$base$::$method$(::curtail::Context&, $types$) {
  co_return ::curtail::internal::NotImplemented("$full_name$");
}

)";
constexpr char kStreamHandler[] = R"(  handlers.push_back(::curtail::internal::$wrapper$<$request$, $reply$>(
      "$name$", [this](::curtail::Context& ctx, $parameters$) {
        return this->$method$(ctx, $names$);
      }));
)";

// One of the classes that services derive from. The texts are templates: the first ones for the service, the
// later ones for each of the unary methods, the last for those that stream.
struct Base {
  const char* name;
  bool (*has)(const MethodDescriptor&);
  const char* opening;  // with its comment, to the first method
  const char* closing;  // from Handlers() on
  const char* declaration;
  const char* definition;
  const char* handler;
  const char* async = "";  // see StreamVariables()
  const char* stream_declaration = kStreamDeclaration;
  const char* stream_definition = kStreamDefinition;
};

constexpr Base kStraightLine = {
    .name = "Service",
    .has = Any,
    .opening = R"(
  // Straight-line handlers, for the synchronous and fiber models; those of streams for all models. Derive and
  // override; what is not overridden answers UNIMPLEMENTED. Runs on many threads at once.
  class Service : public ::curtail::Service {
   public:
    // `never_waits`: no handler waits for other services, so that they run under the asynchronous models too.
    explicit Service(bool never_waits = false) : never_waits_(never_waits) {}

)",
    .closing = R"(
   private:
    [[maybe_unused]] const bool never_waits_;
  };
)",
    .declaration = R"(    virtual ::absl::Status $method$(
        ::curtail::Context& ctx, const $request$& request, $reply$* reply);
)",
    .definition =
        R"(::absl::Status $service$::Service::$method$(::curtail::Context&, const $request$&, $reply$*) {
  return ::curtail::internal::NotImplemented("$full_name$");
}

)",
    .handler = R"(  handlers.push_back(::curtail::internal::StraightLineMethod<$request$, $reply$>(
      "$name$", never_waits_,
      [this](::curtail::Context& ctx, const $request$& request, $reply$* reply) {
        return this->$method$(ctx, request, reply);
      }));
)"};

constexpr Base kCoroutine = {
    .name = "CoroutineService",
    .has = Any,
    .opening = R"(
  // Coroutine handlers, for all models; `ctx` and the other parameters live until the coroutine has ended. Else
  // as Service.
  class CoroutineService : public ::curtail::Service {
   public:
)",
    .closing = "  };\n",
    .declaration = R"(    virtual ::curtail::Coroutine $method$(
        ::curtail::Context& ctx, const $request$& request, $reply$* reply);
)",
    .definition =
        R"(::curtail::Coroutine $service$::CoroutineService::$method$(
    ::curtail::Context&, const $request$&, $reply$*) {
  return ::curtail::internal::NotImplementedCoroutine("$full_name$");
}

)",
    .handler = R"(  handlers.push_back(::curtail::internal::CoroutineMethod<$request$, $reply$>(
      "$name$", [this](::curtail::Context& ctx, const $request$& request, $reply$* reply) {
        return this->$method$(ctx, request, reply);
      }));
)",
    .async = "Async",
    .stream_declaration = kAsyncStreamDeclaration,
    .stream_definition = kAsyncStreamDefinition};

constexpr Base kContinuation = {
    .name = "ContinuationService",
    .has = IsUnary,
    .opening = R"(
  // Continuation handlers, for the asynchronous models: each begins a request and returns, and `responder` gives
  // the answer, from any thread. `ctx` lives until it did, `request` until the handler returns. Else as Service.
  // Methods that stream exist in the other two only.
  class ContinuationService : public ::curtail::Service {
   public:
)",
    .closing = "  };\n",
    .declaration = R"(    virtual void Process$method$(
        ::curtail::Context& ctx, const $request$& request, ::curtail::TypedResponder<$reply$> responder);
)",
    .definition =
        R"(void $service$::ContinuationService::Process$method$(
    ::curtail::Context&, const $request$&, ::curtail::TypedResponder<$reply$> responder) {
  responder.Fail(::curtail::internal::NotImplemented("$full_name$"));
}

)",
    .handler = R"(  handlers.push_back(::curtail::internal::ContinuationMethod<$request$, $reply$>("$name$",
      [this](::curtail::Context& ctx, const $request$& request, ::curtail::TypedResponder<$reply$> responder) {
        this->Process$method$(ctx, request, ::std::move(responder));
      }));
)"};

// Calls visit(base) for each class written for `service`. One without methods has the first only.
template <class Visit>
void ForEachBase(const ServiceDescriptor& service, Visit visit) {
  visit(kStraightLine);
  if (Has(service, Any)) visit(kCoroutine);
  if (HasUnary(service)) visit(kContinuation);
}

void PrintBase(const ServiceDescriptor& service, const Base& base, Printer& out) {
  out.PrintRaw(base.opening);
  ForEachMethod(service, base.has, [&](const MethodDescriptor& method) {
    out.PrintRaw(Comment(method, "    "));
    if (Streams(method)) return out.Print(StreamVariables(method, base.async), base.stream_declaration);
    out.Print(MethodVariables(method), base.declaration);
  });
  out.Print(R"(
    ::std::string_view FullName() const final;
    ::std::vector<::curtail::MethodHandler> Handlers() final;
)");
  out.PrintRaw(base.closing);
}

void PrintStub(const ServiceDescriptor& service, Printer& out) {
  out.Print(ServiceVariables(service), R"(
  // Typed calls on a channel, which outlives the stub. Thread-safe.
  class Stub final {
   public:
    static constexpr ::std::string_view kServiceName = "$full_name$";
    explicit Stub(::curtail::Channel* channel) : channel_(channel) {}
    ::curtail::Channel* channel() const { return channel_; }

)");
  ForEachMethod(service, IsUnary, [&](const MethodDescriptor& method) {
    out.PrintRaw(Comment(method, "    "));
    out.Print(MethodVariables(method), R"(    [[nodiscard]] ::absl::Status $method$(
        ::curtail::Context& ctx, const $request$& request, $reply$* reply,
        ::curtail::ReplyMetadata* metadata = nullptr) const;
)");
  });
  ForEachMethod(service, Streams, [&](const MethodDescriptor& method) {
    out.PrintRaw(Comment(method, "    "));
    out.Print(StreamVariables(method), R"(    [[nodiscard]] $call$ $method$(
        ::curtail::Context& ctx$call_parameters$) const;
)");
    out.Print(StreamVariables(method, "Async"), R"(    [[nodiscard]] $call$ $method$(
        ::curtail::Context& ctx$call_parameters$, ::curtail::Async) const;
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

  static constexpr ::std::string_view kServiceName = "$full_name$";
)");
  ForEachMethod(service, IsUnary, [&](const MethodDescriptor& method) {
    out.Print(MethodVariables(method),
              R"(  static constexpr ::curtail::Method<$request$, $reply$> $constant${"$path$"};
)");
  });
  ForEachBase(service, [&](const Base& base) { PrintBase(service, base, out); });
  PrintStub(service, out);
  out.Print("};\n\n");
}

void PrintBaseBodies(const ServiceDescriptor& service, const Base& base, Printer& out) {
  const auto print = [&](const MethodDescriptor& method, const char* unary, const char* stream) {
    Variables variables = Streams(method) ? StreamVariables(method, base.async) : MethodVariables(method);
    variables["base"] = base.name;
    out.Print(variables, Streams(method) ? stream : unary);
  };
  ForEachMethod(service, base.has, [&](const MethodDescriptor& method) {
    print(method, base.definition, base.stream_definition);
  });
  Variables variables = ServiceVariables(service);
  variables["base"] = base.name;
  out.Print(variables,
            R"(::std::string_view $service$::$base$::FullName() const { return $service$::kServiceName; }

::std::vector<::curtail::MethodHandler> $service$::$base$::Handlers() {
  ::std::vector<::curtail::MethodHandler> handlers;
)");
  ForEachMethod(service, base.has,
                [&](const MethodDescriptor& method) { print(method, base.handler, kStreamHandler); });
  out.Print("  return handlers;\n}\n\n");
}

void PrintStubBodies(const ServiceDescriptor& service, Printer& out) {
  ForEachMethod(service, IsUnary, [&](const MethodDescriptor& method) {
    out.Print(MethodVariables(method), R"(::absl::Status $service$::Stub::$method$(
    ::curtail::Context& ctx, const $request$& request, $reply$* reply,
    ::curtail::ReplyMetadata* metadata) const {
  return channel_->Call(ctx, $service$::$constant$.path, request, reply, metadata);
}

)");
  });
  ForEachMethod(service, Streams, [&](const MethodDescriptor& method) {
    out.Print(StreamVariables(method), R"($call$ $service$::Stub::$method$(
    ::curtail::Context& ctx$call_parameters$) const {
  return $call$(::curtail::internal::OpenStream(ctx, *channel_, "$path$"$call_names$));
}

)");
    out.Print(StreamVariables(method, "Async"), R"($call$ $service$::Stub::$method$(
    ::curtail::Context& ctx$call_parameters$, ::curtail::Async) const {
  return $call$(::curtail::internal::OpenAsyncStream(ctx, *channel_, "$path$"$call_names$));
}

)");
  });
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

template <class Has>
bool AnyHas(const FileDescriptor& file, Has has) {
  for (int i = 0; i < file.service_count(); ++i) {
    if (has(*file.service(i))) return true;
  }
  return false;
}
bool HasStreams(const ServiceDescriptor& service) { return Has(service, Streams); }

void WriteHeader(const FileDescriptor& file, GeneratorContext* context) {
  OutputFile output(file, ".curtail.h", context);
  Printer& out = output.printer();
  const Variables variables = {{"stem", FileStem(file)}, {"namespace", CppNamespace(file)}};
  out.Print("#pragma once\n\n");
  if (file.service_count() > 0) {
    out.Print("#include <string_view>\n#include <vector>\n\n#include \"absl/status/status.h\"\n");
    if (AnyHas(file, HasStreams)) out.Print("#include \"curtail/rpc/async_stream.h\"\n");
    out.Print("#include \"curtail/rpc/channel.h\"\n#include \"curtail/rpc/context.h\"\n");
    if (AnyHas(file, HasUnary))
      out.Print("#include \"curtail/rpc/continuation.h\"\n#include \"curtail/rpc/coroutine.h\"\n");
    out.Print(
        "#include \"curtail/rpc/method.h\"\n#include \"curtail/rpc/service.h\"\n"
        "#include \"curtail/rpc/stream.h\"\n");
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
  if (AnyHas(file, HasUnary)) out.Print("#include <utility>\n\n");
  if (!file.package().empty()) out.Print(variables, "namespace $namespace$ {\n\n");
  for (int i = 0; i < file.service_count(); ++i) {
    const ServiceDescriptor& service = *file.service(i);
    ForEachBase(service, [&](const Base& base) { PrintBaseBodies(service, base, out); });
    PrintStubBodies(service, out);
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
