// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/server/builtin/builtin_services.h"

#include <algorithm>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "curtail/base/mutex.h"
#include "curtail/base/strings.h"
#include "curtail/rpc/async_stream.h"
#include "curtail/rpc/call/message_bytes.h"
#include "google/protobuf/compiler/parser.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/descriptor.pb.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"

namespace curtail::internal {
namespace {

using google::protobuf::DescriptorPool;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;
using google::protobuf::FileDescriptorProto;
using google::protobuf::MethodDescriptor;
using google::protobuf::ServiceDescriptor;

class HealthService final : public Service {
 public:
  HealthService(std::vector<std::string> names, std::function<bool()> draining)
      : names_(names.begin(), names.end()), draining_(std::move(draining)) {}

  std::string_view FullName() const override { return "grpc.health.v1.Health"; }

  std::vector<MethodHandler> Handlers() override {
    return {{.name = "Check",
             .handler = [this](Context&, std::string_view request,
                               std::string* reply) { return Check(request, reply); },
             .never_waits = true},
            {.name = "Watch",
             .kind = MethodHandler::Kind::kStream,
             .handler = [this](Context&, std::string_view request,
                               std::string* reply) { return Watch(request, reply); },
             .never_waits = true}};
  }

 private:
  enum State { kServing = 1, kNotServing = 2, kServiceUnknown = 3 };

  absl::Status Check(std::string_view request, std::string* reply) const {
    absl::StatusOr<std::string> service = ServiceOf(request);
    if (!service.ok()) return service.status();
    if (!Knows(*service)) return absl::NotFoundError(Join("no service \"", *service, "\" here"));
    *reply = Encode(draining_() ? kNotServing : kServing);
    return absl::OkStatus();
  }

  absl::Status Watch(std::string_view request, std::string* reply) const {
    absl::StatusOr<std::string> service = ServiceOf(request);
    if (!service.ok()) return service.status();
    const bool draining = draining_();
    *reply = Encode(!Knows(*service) ? kServiceUnknown : draining ? kNotServing : kServing);
    return draining ? absl::UnavailableError("the server is going away") : absl::OkStatus();
  }

  static absl::StatusOr<std::string> ServiceOf(std::string_view request) {
    std::string service;
    if (!ForEachField(request, [&](int field, std::string_view bytes, uint64_t) {
          if (field == 1) service = bytes;
        })) {
      return absl::InternalError("request is not a valid grpc.health.v1.HealthCheckRequest");
    }
    return service;
  }
  bool Knows(const std::string& service) const { return service.empty() || names_.contains(service); }
  static std::string Encode(State state) {
    MessageWriter out;
    out.Int(1, state);
    return out.Take();
  }

  const std::set<std::string> names_;
  const std::function<bool()> draining_;
};

// Finds descriptors in what is linked into the program, and in the built-in files, which no generated code
// provides. Services and methods that are not served do not exist in them.
class DescriptorSource {
 public:
  explicit DescriptorSource(std::function<bool(std::string_view)> served) : served_(std::move(served)) {
    for (const BuiltinProto* proto : {&kHealthProto, &kReflectionProto, &kReflectionAlphaProto})
      AddBuiltin(*proto);
  }

  const FileDescriptor* ByName(const std::string& name) const {
    const FileDescriptor* file = DescriptorPool::generated_pool()->FindFileByName(name);
    return file != nullptr ? file : builtin_.FindFileByName(name);
  }
  const FileDescriptor* BySymbol(const std::string& symbol) const {
    for (const DescriptorPool* pool : {DescriptorPool::generated_pool(), &builtin_}) {
      const FileDescriptor* const file = pool->FindFileContainingSymbol(symbol);
      if (file == nullptr) continue;
      const ServiceDescriptor* const service = pool->FindServiceByName(symbol);
      if (service != nullptr && !Serves(*service)) return nullptr;
      const MethodDescriptor* const method = pool->FindMethodByName(symbol);
      return method != nullptr && !Serves(*method) ? nullptr : file;
    }
    return nullptr;
  }
  // The file as it is served, serialized: each is made once, as a client may ask a thousand times in a frame.
  const std::string& Bytes(const FileDescriptor& file) const {
    {
      MutexLock lock(mu_);
      if (const auto made = bytes_.find(&file); made != bytes_.end()) return made->second;
    }
    std::string bytes = Describe(file).SerializeAsString();
    MutexLock lock(mu_);
    return bytes_.try_emplace(&file, std::move(bytes)).first->second;
  }
  const FieldDescriptor* Extension(const std::string& type, int number) const {
    const auto* message = DescriptorPool::generated_pool()->FindMessageTypeByName(type);
    return message == nullptr ? nullptr
                              : DescriptorPool::generated_pool()->FindExtensionByNumber(message, number);
  }

 private:
  bool Serves(const MethodDescriptor& method) const {
    return served_(Join("/", method.service()->full_name(), "/", method.name()));
  }
  bool Serves(const ServiceDescriptor& service) const {
    for (int m = 0; m < service.method_count(); ++m) {
      if (Serves(*service.method(m))) return true;
    }
    return false;
  }
  FileDescriptorProto Describe(const FileDescriptor& file) const {
    FileDescriptorProto proto;
    file.CopyTo(&proto);
    for (int s = file.service_count() - 1; s >= 0; --s) {
      const ServiceDescriptor& service = *file.service(s);
      auto& methods = *proto.mutable_service(s)->mutable_method();
      for (int m = service.method_count() - 1; m >= 0; --m) {
        if (!Serves(*service.method(m))) methods.DeleteSubrange(m, 1);
      }
      if (methods.empty()) proto.mutable_service()->DeleteSubrange(s, 1);
    }
    return proto;
  }
  void AddBuiltin(const BuiltinProto& proto) {
    google::protobuf::io::ArrayInputStream text(proto.source,
                                                static_cast<int>(std::string_view(proto.source).size()));
    google::protobuf::io::Tokenizer tokenizer(&text, nullptr);
    FileDescriptorProto file;
    google::protobuf::compiler::Parser parser;
    if (!parser.Parse(&tokenizer, &file)) return;
    file.set_name(proto.file);
    builtin_.BuildFile(file);
  }

  const std::function<bool(std::string_view)> served_;
  DescriptorPool builtin_;
  mutable Mutex mu_;
  // One for each file that is linked, at most; none moves.
  mutable std::map<const FileDescriptor*, std::string> bytes_ CURTAIL_GUARDED_BY(mu_);
};

// A stream may hold a thread or a fiber for as long as its client likes, so a service has few of them.
class ReflectionService final : public Service {
 public:
  ReflectionService(std::string name, std::vector<std::string> services,
                    std::shared_ptr<const DescriptorSource> descriptors)
      : name_(std::move(name)), services_(std::move(services)), descriptors_(std::move(descriptors)) {}

  std::string_view FullName() const override { return name_; }

  std::vector<MethodHandler> Handlers() override {
    return {AsyncStreamMethod("ServerReflectionInfo", [this](Context& context, Exchange messages) {
      return Serve(context, *messages.stream);
    })};
  }

 private:
  enum Request { kHost = 1, kByFile = 3, kBySymbol = 4, kByExtension = 5, kExtensionNumbers = 6, kList = 7 };
  enum Response { kValidHost = 1, kOriginal = 2, kFiles = 4, kNumbers = 5, kServices = 6, kError = 7 };

  // The open streams, the one whose last request is longest ago first. Thread-safe.
  class Streams {
    struct Open {
      Context& context;
      bool gone = false;  // another stream has its place
    };

   public:
    // A Place is of one stream, which it does not outlive. The stream that comes when there are too many takes that of
    // the first, which is cancelled: that blocks nothing. A client that has its share gets none.
    class Place {
     public:
      Place(Streams& all, Context& context) : all_(all) {
        MutexLock lock(all.mu_);
        const auto of_client = std::ranges::count(all.open_, context.peer(),
                                                  [](const Open& open) { return open.context.peer(); });
        if (of_client >= kMostReflectionStreamsOfClient) return;
        if (all.open_.size() >= kMostReflectionStreams) {
          const auto first = std::ranges::find(all.open_, false, &Open::gone);
          if (first != all.open_.end()) first->gone = true, first->context.Cancel();
        }
        at_ = all.open_.insert(all.open_.end(), {context});
      }
      ~Place() {
        MutexLock lock(all_.mu_);
        if (at_) all_.open_.erase(*at_);
      }
      Place(const Place&) = delete;
      Place& operator=(const Place&) = delete;

      bool taken() const { return at_.has_value(); }
      void Asks() {
        MutexLock lock(all_.mu_);
        all_.open_.splice(all_.open_.end(), all_.open_, *at_);
      }
      // Another stream has taken it.
      bool gone() const {
        MutexLock lock(all_.mu_);
        return at_ && (*at_)->gone;
      }

     private:
      Streams& all_;
      std::optional<std::list<Open>::iterator> at_;
    };

   private:
    Mutex mu_;
    std::list<Open> open_ CURTAIL_GUARDED_BY(mu_);
  };

  Coroutine Serve(Context& context, MessageStream& stream) {
    Streams::Place place(streams_, context);
    if (!place.taken()) {
      co_return absl::ResourceExhaustedError(Join("this connection has ", kMostReflectionStreamsOfClient,
                                                  " streams of ", name_, ", and may have no more"));
    }
    std::string request, reply;
    while (co_await StepAwaiter(stream, StreamStep::Kind::kRead, &request)) {
      place.Asks();
      absl::Status status = Answer(request, &reply);
      if (!status.ok()) co_return status;
      if (!co_await StepAwaiter(stream, StreamStep::Kind::kWrite, &reply)) break;
    }
    if (place.gone()) {
      co_return absl::ResourceExhaustedError(Join("this server has ", kMostReflectionStreams, " streams of ",
                                                  name_, ", and others asked later"));
    }
    co_return stream.status();
  }

  absl::Status Answer(std::string_view request, std::string* reply) const {
    MessageWriter out;
    int kind = 0;
    std::string argument;
    std::string host;
    if (!ForEachField(request, [&](int field, std::string_view bytes, uint64_t) {
          if (field == kHost) host = bytes;
          if (field >= kByFile && field <= kList) kind = field, argument = bytes;
        })) {
      return absl::InternalError("request is not a valid ServerReflectionRequest");
    }
    out.Bytes(kValidHost, host);
    out.Bytes(kOriginal, request);
    switch (kind) {
      case kByFile:
        AnswerFile(descriptors_->ByName(argument), argument, &out);
        break;
      case kBySymbol:
        AnswerFile(descriptors_->BySymbol(argument), argument, &out);
        break;
      case kByExtension:
        AnswerExtension(argument, &out);
        break;
      case kExtensionNumbers:
        AnswerNumbers(argument, &out);
        break;
      case kList:
        AnswerList(&out);
        break;
      default:
        AnswerError(absl::StatusCode::kInvalidArgument, "no such kind of request", &out);
    }
    *reply = out.Take();
    return absl::OkStatus();
  }

  static void AnswerError(absl::StatusCode code, std::string_view message, MessageWriter* out) {
    MessageWriter error;
    error.Int(1, static_cast<int>(code));
    error.Bytes(2, message);
    out->Bytes(kError, error.Take());
  }

  // The file and all that it imports.
  void AnswerFile(const FileDescriptor* file, std::string_view what, MessageWriter* out) const {
    if (file == nullptr) return AnswerError(absl::StatusCode::kNotFound, Join("not found: ", what), out);
    MessageWriter files;
    std::set<const FileDescriptor*> seen = {file};
    std::vector<const FileDescriptor*> queue = {file};
    for (size_t i = 0; i < queue.size(); ++i) {
      files.Bytes(1, descriptors_->Bytes(*queue[i]));
      for (int d = 0; d < queue[i]->dependency_count(); ++d) {
        if (seen.insert(queue[i]->dependency(d)).second) queue.push_back(queue[i]->dependency(d));
      }
    }
    out->Bytes(kFiles, files.Take());
  }

  void AnswerExtension(const std::string& argument, MessageWriter* out) const {
    std::string type;
    int number = 0;
    ForEachField(argument, [&](int field, std::string_view bytes, uint64_t value) {
      if (field == 1) type = bytes;
      if (field == 2) number = static_cast<int>(value);
    });
    const FieldDescriptor* extension = descriptors_->Extension(type, number);
    AnswerFile(extension == nullptr ? nullptr : extension->file(), Join(type, " extension ", number), out);
  }

  void AnswerNumbers(const std::string& type, MessageWriter* out) const {
    const auto* message = DescriptorPool::generated_pool()->FindMessageTypeByName(type);
    if (message == nullptr) return AnswerError(absl::StatusCode::kNotFound, Join("not found: ", type), out);
    std::vector<const FieldDescriptor*> extensions;
    DescriptorPool::generated_pool()->FindAllExtensions(message, &extensions);
    MessageWriter numbers;
    numbers.Bytes(1, type);
    for (const FieldDescriptor* extension : extensions) numbers.Int(2, extension->number());
    out->Bytes(kNumbers, numbers.Take());
  }

  void AnswerList(MessageWriter* out) const {
    MessageWriter list;
    for (const std::string& name : services_) {
      MessageWriter service;
      service.Bytes(1, name);
      list.Bytes(1, service.Take());
    }
    out->Bytes(kServices, list.Take());
  }

  const std::string name_;
  const std::vector<std::string> services_;
  const std::shared_ptr<const DescriptorSource> descriptors_;
  Streams streams_;
};

}  // namespace

std::unique_ptr<Service> NewHealthService(std::vector<std::string> names, std::function<bool()> draining) {
  return std::make_unique<HealthService>(std::move(names), std::move(draining));
}

std::vector<std::unique_ptr<Service>> NewReflectionServices(std::vector<std::string> names, bool health,
                                                            std::function<bool(std::string_view)> served) {
  const std::vector<std::string> own = {"grpc.reflection.v1.ServerReflection",
                                        "grpc.reflection.v1alpha.ServerReflection"};
  if (health) names.push_back("grpc.health.v1.Health");
  names.insert(names.end(), own.begin(), own.end());
  std::sort(names.begin(), names.end());
  const auto descriptors = std::make_shared<const DescriptorSource>(std::move(served));
  std::vector<std::unique_ptr<Service>> services;
  for (const std::string& name : own)
    services.push_back(std::make_unique<ReflectionService>(name, names, descriptors));
  return services;
}

}  // namespace curtail::internal
