// SPDX-License-Identifier: Apache-2.0
#include "curtail/exec/internal/ticker.h"

#include <pthread.h>

#include <system_error>
#include <utility>

#include "curtail/base/boundary.h"
#include "curtail/base/strings.h"
#include "curtail/exec/signals.h"

namespace curtail {
namespace {

constexpr Nanos kAfterException = std::chrono::seconds(1);

}  // namespace

absl::Status Ticker::Start(const char* name, Tick tick) {
  tick_ = std::move(tick);
  const SignalsKeptOut kept_out;
  try {
    thread_ = std::thread([this] { Run(); });
  } catch (const std::system_error& e) {
    return absl::ResourceExhaustedError(Join("cannot start thread ", name, ": ", e.what()));
  }
  pthread_setname_np(thread_.native_handle(), name);
  return absl::OkStatus();
}

void Ticker::Stop() {
  if (!thread_.joinable()) return;
  parker_.Notify(kStop);
  thread_.join();
}

void Ticker::Run() {
  while (true) {
    const uint32_t ticket = parker_.Ticket();
    if (ticket & kStop) return;
    Nanos sleep{};
    if (!Contain("a ticker", [&] { sleep = tick_(Now()); })) sleep = kAfterException;
    const Deadline next = Deadline::In(sleep);
    while (parker_.Ticket() == ticket && !next.Expired()) parker_.Wait(ticket, next);
  }
}

}  // namespace curtail
