// SPDX-License-Identifier: Apache-2.0
//
// status_details.h - typed access to the details of a status: messages that travel beside its code
// and text, as in google.rpc.Status.
//
// The details are the payloads of the absl::Status, keyed by type URL. A handler that returns a
// status sends them; the caller's status has them, in every form of call. A status holds one detail
// of a type. They may take 12 KiB in base64, and half of the header fields that the caller accepts:
// beyond that they are left out, and the status's message says so.
//
//   absl::Status status = absl::ResourceExhaustedError("no seats left");
//   curtail::AddDetail(status, retry_info);
//   return status;
//
//   if (auto info = curtail::GetDetail<google::rpc::RetryInfo>(status)) ...
//
// Stateless; any thread.
//
// Code: call/status_details.cc.
#pragma once

#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/cord.h"

namespace google::protobuf {
class MessageLite;
}

namespace curtail {

namespace internal {

// Reads the payload of the message's type; false if there is none, or it is not such a message.
bool FindDetail(const absl::Status& status, google::protobuf::MessageLite* detail);

}  // namespace internal

// Adds `detail`, in place of one of the same type. No effect on an OK status.
void AddDetail(absl::Status& status, const google::protobuf::MessageLite& detail);

// The detail of this type, if `status` has one that can be parsed.
template <class Message>
std::optional<Message> GetDetail(const absl::Status& status) {
  std::optional<Message> detail(std::in_place);
  if (!internal::FindDetail(status, &*detail)) detail.reset();
  return detail;
}

}  // namespace curtail
