// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. The state changes once, when the server begins to drain. Its connections hear of that anyway, each on its
// strand (ServerConnection::HandleGoodbye), and tell their calls. So watchers need no list of their own. A watch ends
// then, behind its last message: a drain that waited for watchers to leave would last until its deadline.
#include "curtail/rpc/server/health_watch_call.h"

#include <string>
#include <utility>

namespace curtail::internal {
namespace {

// Owned by the strand's holder.
class HealthWatchCall final : public ServerCall {
 public:
  void OnMessage(std::string&& message, wire::Session&) override {
    ++messages_;
    request_.swap(message);
  }
  bool OnRequestEnd(TimePoint) override { return true; }
  size_t queued_bytes() const override { return request_.size(); }
  void Run(const WaitHint&) override {}  // it is answered in line

  void AnswerInLine(wire::Session& session) override {
    if (messages_ == 1) return Tell(session);
    session.EndCall(id_, absl::UnimplementedError("a call to watch carries exactly one message"));
  }
  void OnGoodbye(wire::Session& session) override {
    if (ended) Tell(session);
  }

 private:
  void Free() override { delete this; }
  void NeverRun(absl::StatusCode) override {}

  void Tell(wire::Session& session) {
    if (over_) return;
    std::string state;
    const absl::Status status = method_->handler.handler(context_, request_, &state);
    if (!state.empty()) session.SendMessage(id_, std::move(state));
    over_ = !status.ok();
    if (over_) session.EndCall(id_, status);
  }

  int messages_ = 0;
  std::string request_;
  bool over_ = false;  // its end was sent
};

}  // namespace

ServerCall* NewHealthWatchCall() { return new HealthWatchCall; }

}  // namespace curtail::internal
