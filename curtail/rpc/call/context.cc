// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/context.h"

#include <algorithm>
#include <utility>

#include "curtail/base/strings.h"
#include "curtail/fence/path_id.h"
#include "curtail/rpc/call/memory_budget.h"
#include "curtail/rpc/call/parsed_size.h"
#include "curtail/rpc/call/server_fence.h"
#include "curtail/rpc/transport/peer_identity.h"

namespace curtail {

Context::Context(Context* parent, Deadline deadline)
    : deadline_(deadline),
      metadata_(parent->metadata_),
      added_(parent->added_),
      properties_(parent->properties_),
      options_(parent->options_),
      forwarded_(parent->forwarded_),
      refusals_(parent->refusals_),
      peer_(parent->peer_),
      identity_(parent->identity_),
      observed_(parent->observed_),
      within_(parent->within_),
      fence_(parent->fence_),
      method_(parent->method_),
      path_(parent->path_),
      depth_(parent->depth_ + 1) {}

Context::Context(Context* parent) : Context(parent, parent->deadline_) {
  parent_ = parent;
  parent->Attach(link_);
}

Context::Context(Context* parent, Call) : Context(parent) {
  metadata_ = parent->ChildMetadata();
  added_.Clear();
  properties_.Clear();
  options_.Clear();
  identity_ = nullptr;
}

Context::Context(Call, const Context& caller)
    : deadline_(caller.deadline_),
      metadata_(caller.ChildMetadata()),
      forwarded_(caller.forwarded_),
      refusals_(caller.refusals_),
      path_(caller.path_),
      depth_(caller.depth_ + 1) {}

Metadata Context::ChildMetadata() const {
  Metadata carried = added_;
  if (forwarded_ == nullptr) return carried;
  for (const auto& [key, value] : metadata_) {
    const bool named = std::find(forwarded_->begin(), forwarded_->end(), key) != forwarded_->end();
    // A caller may have sent bytes that a client of this library would not.
    if (named && !added_.Find(key) && (key.ends_with("-bin") || wire::IsTextValue(value))) {
      carried.AddLowerCase(key, value);
    }
  }
  return carried;
}

void Context::AddPathTo(Metadata* carried) const {
  if (carried->Find(kPathKey)) return;  // the handler's own
  char buffer[8];
  carried->AddLowerCase(kPathKey, FormatPathId(path_, buffer));
}

void Context::Reset(Deadline deadline, std::string_view peer) {
  deadline_ = deadline;
  metadata_.Clear();
  added_.Clear();
  initial_.Clear();
  trailing_.Clear();
  properties_.Clear();
  options_.Clear();
  peer_ = peer;
  identity_ = nullptr;
  observed_ = nullptr;
  fence_ = nullptr;
  path_ = 0;
  permit_ = 0;
  if (parsed_ > 0) [[unlikely]]
    ReturnParsed();
  cancelled_.store(false, std::memory_order_relaxed);
}

absl::Status Context::ChargeLong(std::string_view bytes, const google::protobuf::MessageLite& type) {
  ReturnParsed();
  internal::MemoryBudget& budget = charge_->budget();
  // Messages that take little are served during an attack.
  const internal::ParsedSizes most = {std::max(budget.room(), budget.share()), charge_->room()};
  const internal::ParsedSizes sizes = internal::ParsedSize(bytes, type, most);
  if (sizes.bytes > most.bytes || sizes.objects > most.objects) {
    charge_->Refuse(bytes.size());
    return absl::ResourceExhaustedError(
        sizes.bytes > most.bytes
            ? Join("a request of ", bytes.size(), " bytes takes more memory than the server has left")
            : Join("a request of ", bytes.size(), " bytes consists of too many messages and texts"));
  }
  parsed_ = sizes.bytes;
  charge_->Add(sizes.bytes, sizes.objects);
  budget.Add(static_cast<int64_t>(parsed_));
  return absl::OkStatus();
}

void Context::ReturnParsed() {
  if (parsed_ > 0) charge_->budget().Add(-static_cast<int64_t>(std::exchange(parsed_, 0)));
}

void Context::ReturnPermit() { fence_->Return(std::exchange(permit_, uint8_t{0}), PermitEnd::kAnswered); }

const PeerCertificate& Context::peer_certificate() const {
  static const PeerCertificate kNone;
  return identity_ == nullptr ? kNone : identity_->certificate();
}

Context::~Context() {
  ReturnParsed();
  if (parent_ != nullptr) parent_->Detach(link_);
}

void Context::Cancel() {
  if (cancelled_.exchange(true, std::memory_order_acq_rel)) return;
  MutexLock lock(mu_);
  for (internal::Cancellable* part = parts_; part != nullptr; part = part->next_) part->OnCancel();
}

void Context::Attach(internal::Cancellable& part) {
  MutexLock lock(mu_);
  part.prev_ = nullptr;
  part.next_ = parts_;
  if (parts_ != nullptr) parts_->prev_ = &part;
  parts_ = &part;
  if (cancelled()) part.OnCancel();  // a Cancel() that comes now finds it, and waits for the mutex
}

void Context::Detach(internal::Cancellable& part) {
  MutexLock lock(mu_);
  (part.prev_ ? part.prev_->next_ : parts_) = part.next_;
  if (part.next_ != nullptr) part.next_->prev_ = part.prev_;
}

namespace internal {

absl::Status CheckReplyMetadata(const Context& ctx) {
  absl::Status status = wire::CheckMetadata(ctx.initial_metadata());
  if (status.ok()) status = wire::CheckMetadata(ctx.trailing_metadata());
  if (status.ok()) return status;
  return absl::InternalError(Join("the handler's answer: ", Message(status)));
}

absl::Status FirstError(std::span<const absl::Status> statuses) {
  absl::Status cancelled;
  for (const absl::Status& status : statuses) {
    if (!status.ok() && !absl::IsCancelled(status)) return status;
    cancelled.Update(status);
  }
  return cancelled;
}

}  // namespace internal
}  // namespace curtail
