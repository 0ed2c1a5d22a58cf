// SPDX-License-Identifier: Apache-2.0
#include "tests/model/stream_ends.h"

#include <utility>

#include "tests/model/kernel.h"

namespace curtail::model {

using internal::StreamStep;

// ServerPipe ---------------------------------------------------------------------------------------------

void* ServerPipe::operator new(size_t bytes) { return FreshMemory(bytes); }
void ServerPipe::operator delete(void* memory, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) static_cast<volatile unsigned char*>(memory)[i] = 0xdd;
}

ServerPipe::ServerPipe(World& world) : StreamPipe(world.ctx, nullptr), world_(world) {
  world.link->Open(this);
}

void ServerPipe::Unref() {
  if (refs_.fetch_sub(1) != 1) return;
  ++world_.released;
  delete this;
}

void ServerPipe::End() {
  {
    MutexLock lock(mu_);
    Discard(/*credit=*/false);
  }
  EndWrites();
}

void ServerPipe::Over(absl::Status status) {
  const bool ok = status.ok();
  OnOver(std::move(status), ok);
  Unref();
}

// ClientPipe ---------------------------------------------------------------------------------------------

ClientPipe::ClientPipe(World& world, Lane* lane) : StreamPipe(world.ctx, lane), world_(world) {
  world.link->Open(this);
  ctx_.Attach(*this);
}

ClientPipe::~ClientPipe() {
  ctx_.Detach(*this);
  Cancel();
  BeforeSleep();
  Do({.kind = StreamStep::Kind::kGone});
}

void ClientPipe::Cancel() {
  {
    MutexLock lock(mu_);
    if (ended_) return;
    CutOff(absl::CancelledError("cancelled by the caller"));
    if (std::exchange(cancelling_, true)) return;
  }
  world_.link->Post(&cancel_);
  world_.link->Kick(internal::Connection::kPosted, nullptr);
}

bool ClientPipe::Try(StreamStep& step) {
  if (step.kind == StreamStep::Kind::kGone) return ended_ && !posted_ && (!cancelling_ || cancel_handled_);
  if (step.kind == StreamStep::Kind::kEnd) return ended_ || cut_;
  return StreamPipe::Try(step);
}

void ClientPipe::WaitFor(Waiter& waiter, Deadline deadline) {
  lane_ == nullptr ? waiter.WaitOnFiber(deadline) : lane_->Wait(waiter, deadline, nullptr);
}

void ClientPipe::CancelHandled() {
  MutexLock lock(mu_);
  cancel_handled_ = true;
  WakeAll();
}

void ClientPipe::Over(absl::Status status) {
  OnOver(std::move(status), /*whole=*/true);
  MutexLock lock(mu_);
  ended_ = true;
  WakeAll();
}

}  // namespace curtail::model
