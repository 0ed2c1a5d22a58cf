// SPDX-License-Identifier: Apache-2.0
#include "curtail/gateway/internal/target_calls.h"

#include <algorithm>
#include <utility>

#include "curtail/base/boundary.h"
#include "curtail/gateway/grpc_web.h"
#include "curtail/gateway/internal/request_rules.h"

namespace curtail::gateway::internal {
namespace {

// A request of so many bytes finds room whatever is under way.
constexpr size_t kSmall = 4u << 10;
// While all streams have their places.
constexpr Nanos kBetweenStreamLooks = std::chrono::milliseconds(10);

}  // namespace

// A request that the other thread reads, until its call begins.
struct TargetCalls::Converting final : Answerer {
  Converting(Incoming i, Transcoder::Match m, std::string_view q, Metadata more, Deadline d)
      : query(q), in(std::move(i)), match(std::move(m)), metadata(std::move(more)), deadline(d) {}
  void OnGivenUp() override { given_up = true; }

  const std::string query;  // first: `in` had it
  Incoming in;
  const Transcoder::Match match;
  Metadata metadata;
  const Deadline deadline;
  bool given_up = false;  // the gateway's thread alone
  absl::StatusOr<std::string> message = absl::InternalError("the request could not be read");
};

absl::Status TargetCalls::Begin(Incoming& in, Transcoder::Match match, std::string_view query,
                                Metadata metadata) {
  const CatalogMethod& method = match.route->method;
  const absl::StatusOr<Deadline> deadline =
      DeadlineOf(in.request, method.unary() ? options_.timeout : options_.stream_timeout);
  if (!deadline.ok()) return deadline.status();
  if (method.client_streaming && !match.route->body.empty() && !in.asker.form.web()) {
    RequestSource lines(&transcoder_, std::move(match), std::string(query), std::move(in.request.body));
    return BeginStream(in.asker, method, std::move(lines), std::move(metadata), *deadline);
  }
  if (in.request.body.size() > HttpConnection::kLittle && !busy())
    return BeginAside(in, std::move(match), query, std::move(metadata), *deadline);
  return BeginWith(in.asker, method, MessageOf(in, match, query), std::move(metadata), *deadline);
}

absl::Status TargetCalls::BeginAside(Incoming& in, Transcoder::Match match, std::string_view query,
                                     Metadata metadata, Deadline deadline) {
  if (absl::Status full = Admit(in.request.body.size()); !full.ok()) return full;
  const std::string kept(query);
  const auto one =
      std::make_shared<Converting>(std::move(in), std::move(match), kept, std::move(metadata), deadline);
  AddUnderWay(static_cast<ptrdiff_t>(one->in.request.body.size()));
  if (const auto connection = one->in.asker.connection.lock())
    connection->Attach(one->in.asker.stream, one.get());
  aside_.Do([this, one] { one->message = MessageOf(one->in, one->match, one->query); },
            [this, one] { Converted(*one); });
  return absl::OkStatus();
}

void TargetCalls::Converted(Converting& request) {
  reserved_ = request.in.request.body.size();
  BeginConverted(request);
  AddUnderWay(-static_cast<ptrdiff_t>(std::exchange(reserved_, 0)));
}

void TargetCalls::BeginConverted(Converting& request) {
  const Asker& asker = request.in.asker;
  const auto connection = asker.connection.lock();
  if (request.given_up || connection == nullptr) return;
  connection->Detach(asker.stream);
  connection->Within([&] {
    const absl::Status begun = BeginWith(asker, request.match.route->method, std::move(request.message),
                                         std::move(request.metadata), request.deadline);
    if (!begun.ok()) owner_.Answer(asker, asker.form.Whole(begun, {}, {}));
  });
}

absl::Status TargetCalls::BeginWith(const Asker& asker, const CatalogMethod& method,
                                    absl::StatusOr<std::string> message, Metadata metadata,
                                    Deadline deadline) {
  if (!message.ok()) return message.status();
  if (method.unary()) return BeginCall(asker, method, *message, metadata, deadline);
  return BeginStream(asker, method, RequestSource(*std::move(message)), std::move(metadata), deadline);
}

absl::StatusOr<std::string> TargetCalls::MessageOf(const Incoming& in, const Transcoder::Match& match,
                                                   std::string_view query) const {
  if (in.asker.form.web()) return WebMessage(*in.asker.form.web(), in.request.body);
  return transcoder_.Request(match, query, in.request.body, HeaderOf(in.request, "content-type"));
}

absl::Status TargetCalls::Admit(size_t bytes) {
  const size_t share = options_.max_held_bytes / 2;
  const size_t others = under_way_ - reserved_;
  if (bytes <= std::max(kSmall, reserved_) || others == 0 || others + bytes <= share) return absl::OkStatus();
  owner_.OnRefused();
  return absl::UnavailableError("the requests in flight hold too much");
}

absl::Status TargetCalls::BeginCall(const Asker& asker, const CatalogMethod& method,
                                    const std::string& message, const Metadata& metadata, Deadline deadline) {
  if (absl::Status full = Admit(message.size()); !full.ok()) return full;
  if (free_calls_.empty()) {
    calls_.push_back(std::make_unique<Call>());
    free_calls_.push_back(calls_.back().get());
  }
  Call* const call = free_calls_.back();
  free_calls_.pop_back();
  call->all = this;
  call->asker.emplace(asker);
  if (const auto connection = asker.connection.lock()) connection->Attach(asker.stream, call);
  call->under_way = static_cast<ptrdiff_t>(message.size() + metadata.bytes());
  AddUnderWay(call->under_way);
  const bool started =
      Contain("gateway", [&] { call->id = channel_.Start(method.path, deadline, metadata, message, call); });
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

void TargetCalls::AnswerLong() {
  struct Answering {
    AnswerForm form;
    std::string message;
    ReplyMetadata metadata;
    std::optional<HttpReply> reply;
  };
  while (!long_replies_.empty()) {
    Call* const call = long_replies_.front();
    long_replies_.pop_front();
    if (!call->asker) {
      Answer(call, absl::OkStatus(), {});
      continue;
    }
    const auto one = std::make_shared<Answering>(
        Answering{call->asker->form, *std::move(call->reply), std::move(call->metadata), std::nullopt});
    return aside_.Do([one] { one->reply = one->form.Whole(absl::OkStatus(), one->message, one->metadata); },
                     [this, call, one] {
                       AnswerWith(call, [&] {
                         if (one->reply) return *std::move(one->reply);
                         return one->form.Whole(absl::InternalError("the reply has no form"), {}, {});
                       });
                     });
  }
}

void TargetCalls::Answer(Call* call, const absl::Status& status, const std::string& reply) {
  AnswerWith(call, [&] { return call->asker->form.Whole(status, reply, call->metadata); });
}

void TargetCalls::AnswerWith(Call* call, const std::function<HttpReply()>& make) {
  const auto connection = call->asker ? call->asker->connection.lock() : nullptr;
  if (connection != nullptr) {
    connection->Detach(call->asker->stream);
    connection->Within([&] { owner_.Answer(*call->asker, make()); });
  }
  AddUnderWay(-std::exchange(call->under_way, 0));
  call->asker.reset();
  call->reply.reset();
  call->metadata.Clear();
  free_calls_.push_back(call);
}

void TargetCalls::OnGivenUp(Call* call) {
  call->asker.reset();
  if (call->reply) return;  // the target has done it
  owner_.OnCancelled();
  channel_.Cancel(call->id);
}

absl::Status TargetCalls::TakePlace(const Asker& asker) {
  constexpr size_t kLooks = 16;
  if (streams_.size() < options_.max_streams) return absl::OkStatus();
  // Not for each request: a look costs as much as there are streams.
  if (const TimePoint now = Now(); now - looked_ >= kBetweenStreamLooks) {
    looked_ = now;
    LookAtStreams();
  }
  if (streams_.size() < options_.max_streams) return absl::OkStatus();
  const auto of = [](const std::shared_ptr<HttpConnection>& connection) {
    return connection == nullptr ? 0 : connection->streams;
  };
  StreamCall* most = nullptr;
  for (size_t i = 0; i < std::min(kLooks, streams_.size()); ++i) {
    StreamCall* const one = streams_[next_looked_at_++ % streams_.size()].get();
    if (!one->ended() && (most == nullptr || of(one->reader()) > of(most->reader()))) most = one;
  }
  owner_.OnRefused();
  if (most == nullptr || of(most->reader()) <= of(asker.connection.lock()) + 1)
    return absl::ResourceExhaustedError("the gateway has too many streams");
  most->End(absl::ResourceExhaustedError("clients with fewer streams want one"));
  return absl::OkStatus();
}

absl::Status TargetCalls::BeginStream(const Asker& asker, const CatalogMethod& method, RequestSource requests,
                                      Metadata metadata, Deadline deadline) {
  if (absl::Status full = Admit(requests.size()); !full.ok()) return full;
  if (absl::Status full = TakePlace(asker); !full.ok()) return full;
  auto call = std::make_unique<StreamCall>(&owner_, asker, std::move(requests));
  if (absl::Status begun = call->Begin(channel_, method.path, std::move(metadata), deadline); !begun.ok()) {
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
