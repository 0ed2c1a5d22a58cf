// SPDX-License-Identifier: Apache-2.0
#include "curtail/gateway/internal/target_calls.h"

#include "curtail/base/boundary.h"
#include "curtail/gateway/grpc_web.h"
#include "curtail/gateway/internal/request_rules.h"

namespace curtail::gateway::internal {
namespace {

// A request of so many bytes finds room whatever is under way.
constexpr size_t kSmall = 4u << 10;

}  // namespace

absl::Status TargetCalls::Begin(Incoming& in, Transcoder::Match match, std::string_view query,
                                Metadata metadata) {
  const bool unary = match.route->method.unary();
  const absl::StatusOr<Deadline> deadline =
      DeadlineOf(in.request, unary ? options_.timeout : options_.stream_timeout);
  if (!deadline.ok()) return deadline.status();
  if (unary) return BeginCall(in, match, query, metadata, *deadline);
  return BeginStream(in, std::move(match), query, std::move(metadata), *deadline);
}

absl::StatusOr<std::string> TargetCalls::MessageOf(const Incoming& in, const Transcoder::Match& match,
                                                   std::string_view query) const {
  if (in.asker.form.web()) return WebMessage(*in.asker.form.web(), in.request.body);
  return transcoder_.Request(match, query, in.request.body, HeaderOf(in.request, "content-type"));
}

absl::Status TargetCalls::Admit(size_t bytes) {
  const size_t share = options_.max_held_bytes / 2;
  if (bytes <= kSmall || under_way_ == 0 || under_way_ + bytes <= share) return absl::OkStatus();
  owner_.OnRefused();
  return absl::UnavailableError("the requests in flight hold too much");
}

absl::Status TargetCalls::BeginCall(Incoming& in, const Transcoder::Match& match, std::string_view query,
                                    const Metadata& metadata, Deadline deadline) {
  const absl::StatusOr<std::string> message = MessageOf(in, match, query);
  if (!message.ok()) return message.status();
  if (absl::Status full = Admit(message->size()); !full.ok()) return full;
  if (free_calls_.empty()) {
    calls_.push_back(std::make_unique<Call>());
    free_calls_.push_back(calls_.back().get());
  }
  Call* const call = free_calls_.back();
  free_calls_.pop_back();
  call->all = this;
  call->asker.emplace(in.asker);
  if (const auto connection = in.asker.connection.lock()) connection->Attach(in.asker.stream, call);
  call->under_way = static_cast<ptrdiff_t>(message->size() + metadata.bytes());
  AddUnderWay(call->under_way);
  const bool started = Contain("gateway", [&] {
    call->id = channel_.Start(match.route->method.path, deadline, metadata, *message, call);
  });
  if (!started) Answer(call, absl::InternalError("the call could not be started"), {});
  return absl::OkStatus();
}

void TargetCalls::OnDone(Call* call, absl::Status&& status, std::string&& reply) {
  const bool waits = status.ok() && reply.size() > HttpConnection::kLittle &&
                     under_way_ + reply.size() <= options_.max_held_bytes / 2;
  if (!waits) return Answer(call, status, reply);
  call->under_way += static_cast<ptrdiff_t>(reply.size());
  AddUnderWay(static_cast<ptrdiff_t>(reply.size()));
  call->reply = std::move(reply);
  long_replies_.push_back(call);
}

bool TargetCalls::AnswerLong() {
  if (long_replies_.empty()) return false;
  Call* const call = long_replies_.front();
  long_replies_.pop_front();
  Answer(call, absl::OkStatus(), *std::exchange(call->reply, std::nullopt));
  return true;
}

void TargetCalls::Answer(Call* call, const absl::Status& status, const std::string& reply) {
  const auto connection = call->asker ? call->asker->connection.lock() : nullptr;
  if (connection != nullptr) {
    connection->Detach(call->asker->stream);
    connection->Within(
        [&] { owner_.Answer(*call->asker, call->asker->form.Whole(status, reply, call->metadata)); });
  }
  AddUnderWay(-std::exchange(call->under_way, 0));
  call->asker.reset();
  call->metadata.Clear();
  free_calls_.push_back(call);
}

void TargetCalls::OnGivenUp(Call* call) {
  call->asker.reset();
  if (call->reply) return;  // the target has done it
  owner_.OnCancelled();
  channel_.Cancel(call->id);
}

absl::Status TargetCalls::BeginStream(Incoming& in, Transcoder::Match match, std::string_view query,
                                      Metadata metadata, Deadline deadline) {
  const Route& route = *match.route;
  std::optional<RequestSource> requests;
  if (route.method.client_streaming && !route.body.empty() && !in.asker.form.web()) {
    requests.emplace(&transcoder_, std::move(match), std::string(query), std::move(in.request.body));
  } else {
    absl::StatusOr<std::string> message = MessageOf(in, match, query);
    if (!message.ok()) return message.status();
    requests.emplace(*std::move(message));
  }
  if (absl::Status full = Admit(requests->size()); !full.ok()) return full;
  auto call = std::make_unique<StreamCall>(&owner_, in.asker, *std::move(requests));
  if (absl::Status begun = call->Begin(channel_, route.method.path, std::move(metadata), deadline);
      !begun.ok()) {
    return begun;
  }
  deadlines_.Insert(*call, call->deadline().when());
  streams_.push_back(std::move(call));
  return absl::OkStatus();
}

Deadline TargetCalls::first_deadline() const {
  return deadlines_.empty() ? Deadline::Infinite() : Deadline::At(deadlines_.first().when());
}

void TargetCalls::ExpireStreams() {
  while (first_deadline().Expired()) {
    auto& call = static_cast<StreamCall&>(deadlines_.first());
    deadlines_.Remove(call);
    call.End(absl::DeadlineExceededError("deadline exceeded on a stream"));
  }
}

void TargetCalls::EndStreams(const absl::Status& why) {
  for (const auto& call : streams_) call->End(why);
}

void TargetCalls::LookAtStreams() {
  for (const auto& call : streams_) call->Look();
  std::erase_if(streams_, [this](const std::unique_ptr<StreamCall>& call) {
    if (!call->over()) return false;
    deadlines_.Remove(*call);
    return true;
  });
}

}  // namespace curtail::gateway::internal
