// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/responder.h"

#include <utility>

namespace curtail {

Responder::~Responder() {
  if (call_ != nullptr) call_->GiveUp();
}

void Responder::Finish(absl::Status status, std::string reply) {
  *call_->ReplyBytes() = std::move(reply);
  Finish(std::move(status));
}

std::string* Responder::reply() { return call_->ReplyBytes(); }

void Responder::Finish(absl::Status status) { std::exchange(call_, nullptr)->Finish(std::move(status)); }

}  // namespace curtail
