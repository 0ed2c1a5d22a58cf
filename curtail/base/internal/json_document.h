// SPDX-License-Identifier: Apache-2.0
//
// json_document.h - reads JSON that somebody else may have written: sizes are bounded, keys stand once in an object, and
// every complaint says where.
//
// Not part of the interface: nlohmann's header is heavy, so include this in source files only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "curtail/base/clock.h"
#include "nlohmann/json.hpp"

namespace curtail::internal {

using Json = nlohmann::ordered_json;

// The permitted form of a kind of document.
struct JsonKind {
  std::string_view name;  // "load report"
  int max_depth;
  size_t max_keys;  // of an object
};

// Errors: INVALID_ARGUMENT, to be read after the name of the document: "is not JSON at 3:1" for line 3, column 1,
// "is not a load report: ...".
absl::StatusOr<Json> ParseJson(std::string_view text, const JsonKind& kind);
// Puts the name of a file before such an error: "FILE:3:1: this is not JSON", "FILE is not a load report: ...".
std::string JsonFileError(std::string_view file, const absl::Status& status);
// That its schema_version is `known`. Errors: as above; `hint` is added when it is another one.
absl::Status CheckSchemaVersion(const Json& json, const JsonKind& kind, int known,
                                std::string_view hint = {});

// On one line. Replaces what is no UTF-8: texts may come from a peer.
std::string Compact(const Json& json);

// A JsonNode is a value and where it stands. The first problem of a document is kept, and every read returns some
// default from then on, so that callers need not check each step. Thread-compatible.
class JsonNode {
 public:
  // The root. Both outlive it and what is made of it, as each node outlives its members.
  JsonNode(const Json* value, std::string* problem) : value_(value), problem_(problem) {}

  // A member. REQUIRES: `key` outlives the node, as literals do.
  JsonNode operator[](const char* key) const;
  bool Contains(const char* key) const { return value_ != nullptr && value_->contains(key); }
  // Complains about members that are not among these.
  void AllowOnly(std::initializer_list<std::string_view> keys) const;
  // Calls `each` with every item.
  template <class F>
  void ForItems(size_t at_most, F each) const {
    if (!CheckArray(at_most)) return;
    for (size_t i = 0; i < value_->size() && problem_->empty(); ++i) {
      JsonNode child(this, nullptr);
      child.index_ = i;
      child.value_ = &(*value_)[i];
      each(child);
    }
  }
  // Calls `each` with every key and value.
  template <class F>
  void ForMembers(F each) const {
    if (!Has(Json::value_t::object, "an object")) return;
    for (const auto& [key, member] : value_->items()) {
      JsonNode child(this, key.c_str());
      child.value_ = &member;
      each(key, child);
    }
  }

  bool IsNull() const { return value_ != nullptr && value_->is_null(); }
  bool Flag() const { return Has(Json::value_t::boolean, "true or false") && value_->get<bool>(); }
  std::string Text(size_t at_most = size_t{1} << 20) const;
  double Number(double low, double high) const;
  std::optional<double> NumberOrNull(double low, double high) const;
  uint64_t Count(uint64_t high = UINT64_MAX) const;
  int Int(int high) const { return static_cast<int>(Count(static_cast<uint64_t>(high))); }
  // Times that are written in microseconds or seconds; not negative.
  Nanos Us() const;
  Nanos Sec() const;

  // "runs[0].plan.seed WHAT" becomes the problem, unless there is one.
  void Complain(std::string_view what) const;

 private:
  JsonNode(const JsonNode* parent, const char* key)
      : parent_(parent), key_(key), problem_(parent->problem_) {}
  bool Has(Json::value_t type, std::string_view name) const;
  bool CheckArray(size_t at_most) const;
  std::string Path() const;

  const JsonNode* parent_ = nullptr;
  const char* key_ = nullptr;  // null: an item of an array
  size_t index_ = 0;
  const Json* value_ = nullptr;  // null: missing
  std::string* problem_;
};

}  // namespace curtail::internal
