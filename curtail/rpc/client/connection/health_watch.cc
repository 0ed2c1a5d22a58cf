// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. A connection of a channel with a health check begins with a watch. What it hears holds for the server on all
// connections, as balancers know servers, not connections:
//
//  H1  Until the first answer a connection counts as one that is being made: calls go elsewhere if they can.
//  H2  A server that says anything but SERVING gets no new calls (Backend::not_serving), until any watch hears SERVING.
//  H3  UNIMPLEMENTED means that the server has no opinion: it counts as healthy.
//  H4  A watch that ends otherwise on a connection that lives is begun again kRestart later. Until then the server
//      counts as not serving.
//  H5  A connection that ends takes along what its watch was the last to say: the next one asks afresh.
//  H6  Waiting threads move the bytes, so a watch is heard when a thread uses its poller. Calls that find no server look
//      at those of their own poller (Servers::LookAtHealth), and now and then so does one that found another server.
//  H7  The watch ends with the goodbye of either side, or it would keep the connection open.
#include "curtail/rpc/client/connection/health_watch.h"

#include "curtail/rpc/call/message_bytes.h"

namespace curtail::internal {
namespace {

constexpr Nanos kRestart = std::chrono::seconds(1);
constexpr uint64_t kServing = 1;  // HealthCheckResponse.SERVING

std::string Request(const std::string& service) {
  MessageWriter out;
  if (!service.empty()) out.Bytes(1, service);
  return out.Take();
}

}  // namespace

HealthWatch::HealthWatch(SharedBackend& server, const std::string& service)
    : server_(server), request_(Request(service)) {
  head.path = "/grpc.health.v1.Health/Watch";
  message = request_;
  stream = this;
  whole_request = true;
  watch = true;
}

bool HealthWatch::TakeStart(TimePoint now) {
  if (state_.load(std::memory_order_relaxed) != State::kEnded) return false;
  if (now < TimePoint(Nanos(ended_at_.load(std::memory_order_relaxed))) + kRestart) return false;
  State ended = State::kEnded;
  return state_.compare_exchange_strong(ended, State::kWatching, std::memory_order_acq_rel);
}

void HealthWatch::Prepare() {
  ResetOutcome();
  message = request_;
}

void HealthWatch::Tell(bool serves) {
  server_.not_serving.store(serves ? nullptr : this, std::memory_order_relaxed);  // H2
  known_.store(true, std::memory_order_release);                                  // H1
}

void HealthWatch::OnMessage(std::string&& bytes, wire::Session&, wire::StreamId) {
  uint64_t state = 0;
  const bool understood = ForEachField(
      bytes, [&](int field, std::string_view, uint64_t number) { state = field == 1 ? number : state; });
  Tell(understood && state == kServing);
}

void HealthWatch::Finished() {
  if (absl::IsUnimplemented(status)) return Tell(true);  // H3
  if (!connection_lives) {                               // H5
    const void* self = this;
    server_.not_serving.compare_exchange_strong(self, nullptr, std::memory_order_relaxed);
    known_.store(true, std::memory_order_release);
  } else {
    Tell(false);  // H4
  }
  ended_at_.store(Now().time_since_epoch().count(), std::memory_order_relaxed);
  state_.store(State::kEnded, std::memory_order_release);
}

}  // namespace curtail::internal
