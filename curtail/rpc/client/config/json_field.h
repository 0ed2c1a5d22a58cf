// SPDX-License-Identifier: Apache-2.0
//
// json_field.h - a JSON value and its place in the text, for readers whose every error names that place.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "curtail/base/clock.h"
#include "curtail/base/strings.h"

namespace curtail::internal {

// A value of the text.
struct Json {
  enum class Kind { kNull, kBool, kNumber, kString, kObject, kArray };

  Json(Kind k) : kind(k) {}

  Kind kind;
  bool boolean = false;
  double number = 0;
  std::optional<uint64_t> whole;  // a number that is one
  std::string text;
  std::vector<std::string> names;  // of an object's members
  std::vector<Json> values;        // of an object's members, or a list
};

// A value and its place in the text.
class Field {
 public:
  // Reads one member of an object.
  struct Reader {
    std::string_view name;
    std::function<absl::Status(const Field&)> read;
  };

  Field(const Json& json, std::string place) : json_(json), place_(std::move(place)) {}

  absl::Status Wrong(std::string_view what) const {
    return absl::InvalidArgumentError(Join("service config: ", place_, place_.empty() ? "" : ": ", what));
  }
  const std::string& place() const { return place_; }

  // Reads each member by the reader of its name. Members without one are passed over, as gRPC does: they may be of another
  // implementation, or of a later version.
  absl::Status Object(const std::vector<Reader>& readers) const {
    if (json_.kind != Json::Kind::kObject) return Wrong("expected an object");
    std::vector<bool> seen(readers.size());
    for (size_t at = 0; at < json_.values.size(); ++at) {
      const std::string& name = json_.names[at];
      const Field field(json_.values[at], Join(place_, place_.empty() ? "" : ".", name));
      size_t i = 0;
      while (i < readers.size() && readers[i].name != name) ++i;
      if (i == readers.size()) continue;
      if (seen[i]) return field.Wrong("this field is there twice");
      seen[i] = true;
      if (absl::Status status = readers[i].read(field); !status.ok()) return status;
    }
    return absl::OkStatus();
  }
  template <class Read>
  absl::Status Each(const Read& read) const {
    if (json_.kind != Json::Kind::kArray) return Wrong("expected a list");
    for (size_t i = 0; i < json_.values.size(); ++i) {
      if (absl::Status status = read(Field(json_.values[i], Join(place_, "[", i, "]"))); !status.ok())
        return status;
    }
    return absl::OkStatus();
  }
  // The only member of an object: its name, and its value.
  absl::Status Single(std::string* name, const std::function<absl::Status(const Field&)>& read) const {
    if (json_.kind != Json::Kind::kObject || json_.values.size() != 1)
      return Wrong("expected an object with one member");
    *name = json_.names[0];
    return read(Field(json_.values[0], Join(place_, ".", *name)));
  }

  absl::Status Text(std::string* text) const {
    if (json_.kind != Json::Kind::kString) return Wrong("expected a string");
    *text = json_.text;
    return absl::OkStatus();
  }
  absl::Status Bool(std::optional<bool>* value) const {
    if (json_.kind != Json::Kind::kBool) return Wrong("expected true or false");
    *value = json_.boolean;
    return absl::OkStatus();
  }
  // A whole number from `least` to `most`; as gRPC has it, perhaps in quotes.
  absl::Status Whole(uint64_t least, uint64_t most, uint64_t* value) const {
    bool good = json_.whole.has_value();
    if (good) *value = *json_.whole;
    if (json_.kind == Json::Kind::kString) {
      const std::string_view text = json_.text;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
      good = error == std::errc() && end == text.data() + text.size();
    }
    if (good && *value >= least && *value <= most) return absl::OkStatus();
    return Wrong(Join("expected a whole number from ", least, " to ", most));
  }
  absl::Status Number(double above, double most, double* value) const {
    const bool number = json_.kind == Json::Kind::kNumber;
    if (number) *value = json_.number;
    if (number && *value > above && *value <= most) return absl::OkStatus();
    return Wrong(Join("expected a number above ", static_cast<int64_t>(above), ", at most ",
                      static_cast<int64_t>(most)));
  }
  // "1.5s" or ".5s": positive, or `zero`, with up to nine digits after the point.
  absl::Status Duration(Nanos* value, bool zero = false) const {
    const auto wrong = [&] {
      return Wrong(Join("expected a time ", zero ? "" : "above zero ", "such as \"0.5s\""));
    };
    if (json_.kind != Json::Kind::kString) return wrong();
    std::string_view text = json_.text;
    if (!text.ends_with('s')) return wrong();
    text.remove_suffix(1);
    const std::string_view whole = text.substr(0, text.find('.'));
    const std::string_view part = whole.size() == text.size() ? "" : text.substr(whole.size() + 1);
    const auto digits = [](std::string_view s) { return s.find_first_not_of("0123456789") == s.npos; };
    if (whole.size() > 9 || part.size() > 9 || !digits(whole) || !digits(part)) return wrong();
    if (whole.empty() && part.empty()) return wrong();
    int64_t ns = 0;
    for (const char c : whole) ns = ns * 10 + (c - '0');
    for (size_t i = 0; i < 9; ++i) ns = ns * 10 + (i < part.size() ? part[i] - '0' : 0);
    if (ns == 0 && !zero) return wrong();
    *value = Nanos(ns);
    return absl::OkStatus();
  }
  absl::Status Code(absl::StatusCode* code) const {
    if (json_.whole && *json_.whole >= 1 && *json_.whole <= 16) {
      *code = static_cast<absl::StatusCode>(*json_.whole);
      return absl::OkStatus();
    }
    for (int i = 1; i <= 16 && json_.kind == Json::Kind::kString; ++i) {
      *code = static_cast<absl::StatusCode>(i);
      if (absl::StatusCodeToString(*code) == json_.text) return absl::OkStatus();
    }
    return Wrong("expected the name of a status code such as \"UNAVAILABLE\", or its number");
  }

 private:
  const Json& json_;
  const std::string place_;
};

}  // namespace curtail::internal
