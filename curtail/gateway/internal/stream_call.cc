// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. Backpressure goes through: what a reader does not take stays in its connection up to kMaxUnsent, then in replies_
// up to kMaxReplies, and then the target's window for the stream runs out. The head leaves with the first message, or at the
// next Look(): so an error that comes with it is still the status of the answer. Raw bytes have no place for a later one: it
// breaks their answer off. Once other answers need the room that is left, a stream goes on only when its reader has taken
// all. A stream that holds replies while all connections together hold too much is cut short when the next one comes, so
// the windows of many streams do not add up.
#include "curtail/gateway/internal/stream_call.h"

#include <algorithm>

#include "curtail/base/boundary.h"
#include "curtail/base/strings.h"

namespace curtail::gateway::internal {
namespace {

constexpr size_t kMaxUnsent = 128u << 10;
constexpr size_t kMaxReplies = 64u << 10;
// A line of requests; the gateway's only thread reads it at one go.
constexpr size_t kMaxLine = 256u << 10;

}  // namespace

absl::StatusOr<bool> RequestSource::Next(std::string* message) {
  if (one_) {
    *message = std::exchange(body_, {});
    return std::exchange(at_, 1) == 0;
  }
  constexpr std::string_view kSpace = " \t\r\n";
  while (at_ < body_.size()) {
    const size_t end = std::min(body_.find('\n', at_), body_.size());
    const std::string_view line = std::string_view(body_).substr(at_, end - at_);
    at_ = end + 1;
    if (line.find_first_not_of(kSpace) == std::string_view::npos) continue;
    if (line.size() > kMaxLine)
      return absl::InvalidArgumentError(Join("a line of the stream has ", line.size(),
                                             " bytes, and may have ", kMaxLine,
                                             "; send longer messages by gRPC"));
    absl::StatusOr<std::string> request = transcoder_->Request(match_, query_, line);
    if (!request.ok()) return request.status();
    *message = *std::move(request);
    return true;
  }
  body_ = {};
  return false;
}

StreamCall::StreamCall(Owner* owner, Asker asker, RequestSource requests)
    : owner_(owner), asker_(std::move(asker)), requests_(std::move(requests)) {
  if (const auto connection = asker_.connection.lock()) {
    connection->Attach(asker_.stream, this);
    ++connection->streams;
  }
  under_way_ = requests_.size();
  owner_->OnUnderWay(static_cast<ptrdiff_t>(under_way_));
}

StreamCall::~StreamCall() {
  if (const auto connection = asker_.connection.lock()) {
    if (!given_up_) connection->Detach(asker_.stream);
    --connection->streams;
  }
  owner_->OnHeld(-static_cast<ptrdiff_t>(held_));
  OnRequestsLeft();
}

void StreamCall::Account() {
  const size_t held = replies_.bytes();
  owner_->OnHeld(static_cast<ptrdiff_t>(held) - static_cast<ptrdiff_t>(std::exchange(held_, held)));
}

size_t StreamCall::unsent() const {
  const auto connection = asker_.connection.lock();
  return connection == nullptr || given_up_ ? 0 : connection->unsent(asker_.stream);
}

bool StreamCall::over() const { return gone() && (given_up_ || (answered_ && unsent() == 0)); }

void StreamCall::Look() {
  if (given_up_ || answered_) return;
  if (under_way_ > 0) PostTurn();
  if (streams() && head_come_ && !head_sent_ && !end_ && !asker_.form.raw())
    SendHead(reply_head(), kJsonLines);
  Pump();
}

void StreamCall::End(absl::Status why) {
  replies_.Clear();
  Account();
  Cancel(std::move(why));
}

void StreamCall::BreakOff(absl::Status why) {
  const auto connection = asker_.connection.lock();
  GiveUp();
  if (connection != nullptr) {
    connection->Detach(asker_.stream);
    connection->Abort(asker_.stream);
    if (!connection->closed()) owner_->OnOutput(connection);
  }
  Cancel(std::move(why));
}

void StreamCall::OnGivenUp() {
  if (!end_) owner_->OnCancelled();
  GiveUp();
}

void StreamCall::GiveUp() {
  given_up_ = true;
  End(absl::CancelledError("the client has gone"));
}

bool StreamCall::NextRequest(std::string* message) {
  absl::StatusOr<bool> more = absl::InternalError("the request cannot be read");
  Contain("gateway", [&] { more = requests_.Next(message); });
  if (more.ok()) return *more;
  End(more.status());
  return false;
}

void StreamCall::OnReply(std::string&& message) {
  if (given_up_) return;
  if (!streams() && !replies_.empty()) {
    return End(absl::UnimplementedError("more than one message in answer to a call of one reply"));
  }
  if (streams() && !replies_.empty() && !owner_->MayRead()) {
    owner_->OnCutShort();
    return BreakOff(absl::ResourceExhaustedError("the gateway holds too much"));
  }
  replies_.Push(std::move(message));
  Account();
  Pump();
}

void StreamCall::OnEnd(const absl::Status& status, ReplyMetadata&& metadata) {
  OnRequestsLeft();
  end_ = status;
  metadata_ = std::move(metadata);
  if (!given_up_) Pump();
}

void StreamCall::Pump() {
  if (const auto connection = asker_.connection.lock()) connection->Within([this] { MakeParts(); });
}

void StreamCall::MakeParts() {
  std::string message;
  while (streams() && !given_up_ && !replies_.empty() && unsent() <= kMaxUnsent) {
    replies_.Pop(&message);
    const absl::StatusOr<RawReply> part = asker_.form.Part(message);
    if (part.ok()) {
      if (!head_sent_) SendHead(end_ ? metadata_.initial : reply_head(), part->type);
      AddBody(part->bytes, /*last=*/false);
    } else if (end_) {
      replies_.Clear();
      end_ = part.status();
    } else {
      End(part.status());
    }
  }
  if (given_up_) return;
  Account();
  Read(replies_.bytes() <= kMaxReplies && (unsent() == 0 || owner_->MayStream()));
  if (end_ && !answered_ && (replies_.empty() || !streams())) Finish();
}

void StreamCall::SendHead(const Metadata& initial, std::string_view type) {
  head_sent_ = true;
  owner_->Answer(asker_, asker_.form.Head(initial, type));
}

void StreamCall::AddBody(std::string_view bytes, bool last) {
  const auto connection = asker_.connection.lock();
  if (connection == nullptr || connection->closed()) return;
  connection->AddBody(asker_.stream, bytes, last);
  owner_->OnOutput(connection);
}

void StreamCall::Finish() {
  answered_ = true;
  const bool whole = !streams() || (!head_sent_ && !end_->ok());
  if (whole) {
    std::string reply;
    const bool one = !replies_.empty();
    if (one) replies_.Pop(&reply);
    Account();
    if (end_->ok() && !one && !streams()) end_ = absl::UnimplementedError("no message in answer to a call");
    return owner_->Answer(asker_, asker_.form.Whole(*end_, reply, metadata_));
  }
  owner_->OnStreamEnd(*end_);
  if (asker_.form.raw() && !end_->ok()) return BreakOff(*end_);
  if (!head_sent_) SendHead(metadata_.initial, asker_.form.raw() ? kAnyBytes : kJsonLines);
  AddBody(asker_.form.End(*end_, metadata_.trailing), /*last=*/true);
}

}  // namespace curtail::gateway::internal
