// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/message/internal/reflection_client.h"

#include "curtail/base/strings.h"
#include "curtail/rpc/call/message_bytes.h"

namespace curtail::internal {
namespace {

constexpr const char* kPaths[] = {"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
                                  "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"};

// An event-driven call to wait for.
struct OneCall final : Completion {
  void Done(absl::Status&& end, std::string&& message) override {
    status = std::move(end);
    reply = std::move(message);
    done = true;
  }
  absl::Status status;
  std::string reply;
  bool done = false;
};

absl::Status Malformed() { return absl::DataLossError("not an answer of server reflection"); }

absl::Status ParseError(std::string_view error) {
  uint64_t code = 0;
  std::string message;
  const bool valid = ForEachField(error, [&](int field, std::string_view bytes, uint64_t number) {
    if (field == 1) code = number;
    if (field == 2) message = bytes;
  });
  if (!valid || code == 0 || code > 16) return Malformed();
  return absl::Status(static_cast<absl::StatusCode>(code), message);
}

}  // namespace

ReflectionClient::ReflectionClient(const std::string& target, const ChannelOptions& options,
                                   Deadline deadline, const Metadata& metadata)
    : target_(target), deadline_(deadline), metadata_(metadata), channel_(&client_, target, options) {}

absl::StatusOr<std::string> ReflectionClient::Unary(std::string_view path, const std::string& request) {
  OneCall call;
  channel_.Start(path, deadline_, metadata_, request, &call);
  while (!call.done)
    client_.Poll(deadline_.Expired() ? Deadline::In(std::chrono::milliseconds(10)) : deadline_);
  if (!call.status.ok()) return call.status;
  return std::move(call.reply);
}

absl::StatusOr<std::string> ReflectionClient::Exchange(const std::string& request) {
  while (true) {
    absl::StatusOr<std::string> reply = Unary(kPaths[version_], request);
    if (!absl::IsUnimplemented(reply.status()) || version_ + 1 == std::size(kPaths)) return reply;
    ++version_;
  }
}

absl::Status ReflectionClient::Explain(const absl::Status& status) const {
  switch (status.code()) {
    case absl::StatusCode::kUnimplemented:
      return absl::UnimplementedError(
          Join(target_, " has no server reflection; name the .proto file of the service with --proto"));
    case absl::StatusCode::kDeadlineExceeded:
      return absl::DeadlineExceededError(
          Join(target_, " did not answer a question of server reflection in time"));
    case absl::StatusCode::kInvalidArgument:  // the target or the options, not the server
      return status;
    default:
      return absl::Status(status.code(), Join("server reflection of ", target_, ": ", Message(status)));
  }
}

absl::StatusOr<std::string> ReflectionClient::Ask(Question question, std::string_view argument,
                                                  Answer answer) {
  MessageWriter request;
  request.Bytes(question, argument);
  const absl::StatusOr<std::string> reply = Exchange(request.Take());
  if (!reply.ok()) return Explain(reply.status());
  std::string found;
  std::string error;
  bool answered = false;
  const bool valid = ForEachField(*reply, [&](int field, std::string_view bytes, uint64_t) {
    if (field == answer) found = bytes, answered = true;
    if (field == kError) error = bytes;
  });
  if (!valid || (!answered && error.empty())) return Explain(Malformed());
  if (!answered) return Explain(ParseError(error));
  return found;
}

absl::StatusOr<std::vector<std::string>> ReflectionClient::ListServices() {
  const absl::StatusOr<std::string> answer = Ask(kListServices, "*", kServices);
  if (!answer.ok()) return answer.status();
  std::vector<std::string> names;
  const bool valid = ForEachField(*answer, [&](int field, std::string_view service, uint64_t) {
    if (field != 1 || names.size() == kMaxServices) return;
    ForEachField(service, [&](int inner, std::string_view name, uint64_t) {
      if (inner == 1) names.emplace_back(name);
    });
  });
  if (!valid) return Explain(Malformed());
  return names;
}

absl::Status ReflectionClient::AddFiles(std::string_view answer, ProtoFiles* files) {
  bool parsed = true;
  const bool valid = ForEachField(answer, [&](int field, std::string_view bytes, uint64_t) {
    if (field != 1) return;
    google::protobuf::FileDescriptorProto file;
    parsed = parsed && file.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
    file_bytes_ += bytes.size();
    if (parsed) files->emplace(file.name(), std::move(file));
  });
  if (!valid || !parsed) return Explain(Malformed());
  if (files->size() <= kMaxFiles && file_bytes_ <= kMaxFileBytes) return absl::OkStatus();
  return Explain(absl::ResourceExhaustedError(
      Join("more than ", kMaxFiles, " files, or ", kMaxFileBytes >> 20, " MiB of them")));
}

absl::Status ReflectionClient::FetchSymbol(const std::string& symbol, ProtoFiles* files) {
  const absl::StatusOr<std::string> answer = Ask(kFileContainingSymbol, symbol, kFiles);
  if (!answer.ok()) return answer.status();
  if (absl::Status status = AddFiles(*answer, files); !status.ok()) return status;
  // Servers may send the file alone. What cannot be had is left out: whoever needs it will say so.
  while (true) {
    std::vector<std::string> missing;
    for (const auto& [name, file] : *files) {
      for (const std::string& import : file.dependency()) {
        if (!files->contains(import) && asked_.insert(import).second) missing.push_back(import);
      }
    }
    if (missing.empty()) return absl::OkStatus();
    for (const std::string& name : missing) {
      const absl::StatusOr<std::string> imported = Ask(kFileByName, name, kFiles);
      if (absl::IsNotFound(imported.status())) continue;
      if (!imported.ok()) return imported.status();
      if (absl::Status status = AddFiles(*imported, files); !status.ok()) return status;
    }
  }
}

}  // namespace curtail::internal
