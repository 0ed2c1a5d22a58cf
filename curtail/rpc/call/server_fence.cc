// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/call/server_fence.h"

#include <string>

#include "curtail/base/internal/closest.h"
#include "curtail/base/log.h"
#include "curtail/base/strings.h"
#include "curtail/exec/executor.h"
#include "curtail/fence/path_id.h"
#include "curtail/rpc/call/call_metadata.h"
#include "curtail/rpc/context.h"
#include "curtail/rpc/service.h"

namespace curtail::internal {

void ServerFence::AddMethod(std::string_view path, const MethodHandler& handler,
                            const std::optional<std::vector<std::string>>& calls, TaskKind* kind) {
  const bool learn = fence_.options().learn;
  const bool stream = handler.kind == MethodHandler::Kind::kStream;
  if (calls && !stream && !learn) {
    classes_.AddDeclared(path, kind, *calls);
    declared_.insert(calls->begin(), calls->end());
  } else if (stream || (handler.never_waits && !learn)) {
    classes_.AddDeclared(path, kind, {});
  } else {
    classes_.AddLearned(path, kind);
    undeclared_ = true;
  }
}

absl::Status ServerFence::CheckLimits() const {
  if (undeclared_) return absl::OkStatus();
  const std::vector<std::string> names(declared_.begin(), declared_.end());
  for (const ClassLimit& limit : fence_.options().limits) {
    for (const std::string& service : limit.services) {
      if (declared_.contains(service)) continue;
      return absl::InvalidArgumentError(
          Join("--fence-limit: this service does not call ", service, NamesHint(service, names)));
    }
  }
  return absl::OkStatus();
}

uint32_t ServerFence::PathIn(const Metadata& metadata) {
  const std::optional<std::string_view> text = metadata.Find(kPathKey);
  return text ? ParsePathId(*text).value_or(0) : 0;
}

PermitEnd ServerFence::EndOfError(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kUnavailable:
      return PermitEnd::kDropped;
    case absl::StatusCode::kCancelled:
      return PermitEnd::kCancelled;
    default:
      return PermitEnd::kAnswered;
  }
}

void ServerFence::ReturnHere(uint8_t permit, PermitEnd end, bool* look) {
  if (permit == Fence::kLocal) return;
  if (fence_.meter() != nullptr) return ReturnMeasured(permit, end, look);
  if (fence_.End(permit)) [[unlikely]]
    GiveToHeld(look);
}

void ServerFence::ReturnMeasured(uint8_t permit, PermitEnd end, bool* look) {
  fence_.meter()->Leave(permit, Now(), end);
  if (fence_.End(permit)) [[unlikely]]
    GiveToHeld(look);
}

void ServerFence::Return(uint8_t permit, PermitEnd end) { ReturnHere(permit, end, nullptr); }

void ServerFence::Ended(uint32_t method, uint8_t permit, PermitEnd end, bool* look) {
  if (end != PermitEnd::kUnused) classes_.Ended(method, /*whole=*/end == PermitEnd::kAnswered);
  ReturnHere(permit, end, look);
}

void ServerFence::CalledNew(uint32_t method, std::string_view path) {
  if (classes_.Called(method, path)) WarnOfCall(method, path);
}

void ServerFence::GiveToHeld(bool* look) {
  if (look != nullptr) {
    *look = true;
    return;
  }
  TaskList none;
  executor_->Submit(none);
}

absl::Status ServerFence::Refuse(uint8_t path_class, Context* context) const {
  context->AddTrailingMetadata(kPushbackKey, std::to_string(fence_.retry_after_ms(path_class)));
  return absl::ResourceExhaustedError(
      Join("too many requests wait for the same services: ", classes_.Name(path_class)));
}

void ServerFence::CountRefusal(uint8_t path_class, Refusal reason) {
  Refusals& of = refusals_[path_class];
  const bool late = reason == Refusal::kCameTooLate || reason == Refusal::kQueuedTooLong;
  std::atomic<uint64_t>& counter = late ? of.late : reason == Refusal::kNoCredit ? of.no_credit : of.shed;
  counter.fetch_add(1, std::memory_order_relaxed);
}

FenceStats ServerFence::Sample() const {
  FenceStats stats{
      .mode = fence_.options().mode, .limiter = fence_.options().limit, .undeclared = classes_.Undeclared()};
  std::vector<std::string> names = classes_.Names();
  std::vector<std::vector<std::string>> methods = classes_.Methods();
  for (size_t i = 0; i < names.size(); ++i) {
    FenceClassStats sample = fence_.Sample(static_cast<uint8_t>(i));
    const Refusals& refusals = refusals_[i];
    sample.shed += refusals.shed.load(std::memory_order_relaxed);
    sample.late = refusals.late.load(std::memory_order_relaxed);
    sample.no_credit = refusals.no_credit.load(std::memory_order_relaxed);
    const uint64_t seen = sample.begun + sample.shed + sample.late + sample.no_credit;
    if (sample.limit == 0 && seen == 0) continue;
    sample.name = std::move(names[i]);
    sample.methods = std::move(methods[i]);
    stats.classes.push_back(std::move(sample));
  }
  return stats;
}

void ServerFence::WarnOfCall(uint32_t method, std::string_view path) const {
  const auto caller = classes_.PathOf(method);
  Log(Severity::kWarning, Join(caller, " calls ", path, ", a service that it has not declared (Paths())"),
      {{"path", caller}, {"calls", path}});
}

}  // namespace curtail::internal
