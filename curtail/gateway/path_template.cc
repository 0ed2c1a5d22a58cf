// SPDX-License-Identifier: Apache-2.0
#include "curtail/gateway/path_template.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "curtail/base/strings.h"

namespace curtail::gateway {
namespace {

constexpr size_t kMaxText = 4096;
constexpr std::string_view kSpecial = "/{}=*:?#";

int HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = absl::ascii_tolower(static_cast<unsigned char>(c));
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

}  // namespace

std::string DecodePath(std::string_view text, bool keep_slashes) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const int high = text[i] == '%' && i + 2 < text.size() ? HexValue(text[i + 1]) : -1;
    const int low = high >= 0 ? HexValue(text[i + 2]) : -1;
    const char decoded = static_cast<char>(high * 16 + low);
    if (low < 0 || (keep_slashes && decoded == '/')) {
      out += text[i];
    } else {
      out += decoded;
      i += 2;
    }
  }
  return out;
}

// Reads Template = "/" Segments [ ":" LITERAL ]; Segments may hold variables, whose own hold none.
class PathTemplate::Parser {
 public:
  explicit Parser(std::string_view text) : left_(text), size_(text.size()) { out_.text_ = text; }

  absl::StatusOr<PathTemplate> Read() {
    if (size_ > kMaxText) return absl::InvalidArgumentError(Join("a path of more than ", kMaxText, " bytes"));
    if (!Take('/')) return Error("a path begins with '/'");
    if (absl::Status status = Segments(/*in_variable=*/false); !status.ok()) return status;
    if (Take(':')) {
      out_.verb_ = Literal();
      if (out_.verb_.empty()) return Error("a verb is missing after ':'");
    }
    if (!left_.empty()) return Error("unexpected text");
    for (size_t i = 0; i + 1 < out_.segments_.size(); ++i) {
      if (out_.segments_[i].kind == Kind::kRest) return Error("\"**\" must be the last segment");
    }
    return std::move(out_);
  }

 private:
  absl::Status Error(std::string_view what) const {
    return absl::InvalidArgumentError(
        Join("path \"", out_.text_, "\", character ", size_ - left_.size() + 1, ": ", what));
  }
  bool Take(char c) {
    if (left_.empty() || left_.front() != c) return false;
    left_.remove_prefix(1);
    return true;
  }
  std::string Literal() {
    const std::string text(left_.substr(0, std::min(left_.find_first_of(kSpecial), left_.size())));
    left_.remove_prefix(text.size());
    return text;
  }

  absl::Status Segments(bool in_variable) {
    do {
      if (absl::Status status = OneSegment(in_variable); !status.ok()) return status;
    } while (Take('/'));
    return absl::OkStatus();
  }

  absl::Status OneSegment(bool in_variable) {
    if (Take('*')) {
      out_.segments_.push_back({Take('*') ? Kind::kRest : Kind::kOne, {}});
      return absl::OkStatus();
    }
    if (Take('{')) return in_variable ? Error("a variable in a variable") : OneVariable();
    std::string literal = Literal();
    if (literal.empty()) return Error("a segment is missing");
    out_.segments_.push_back({Kind::kLiteral, std::move(literal)});
    return absl::OkStatus();
  }

  absl::Status OneVariable() {
    Variable variable{Literal(), out_.segments_.size(), 0};
    if (variable.field.empty()) return Error("the name of a field is missing");
    if (!Take('=')) {
      out_.segments_.push_back({Kind::kOne, {}});
    } else if (absl::Status status = Segments(/*in_variable=*/true); !status.ok()) {
      return status;
    }
    if (!Take('}')) return Error("'}' is missing");
    variable.end = out_.segments_.size();
    out_.variables_.push_back(std::move(variable));
    return absl::OkStatus();
  }

  std::string_view left_;
  const size_t size_;
  PathTemplate out_;
};

absl::StatusOr<PathTemplate> PathTemplate::Parse(std::string_view text) { return Parser(text).Read(); }

std::vector<std::string_view> PathTemplate::fields() const {
  std::vector<std::string_view> fields;
  for (const Variable& variable : variables_) fields.push_back(variable.field);
  return fields;
}

bool PathTemplate::Match(std::string_view path, std::vector<Binding>* bindings) const {
  if (path.empty() || path.front() != '/') return false;
  path.remove_prefix(1);
  if (!verb_.empty()) {
    if (!path.ends_with(verb_) || path.size() == verb_.size()) return false;
    path.remove_suffix(verb_.size());
    if (path.back() != ':') return false;
    path.remove_suffix(1);
  }
  const bool rest = segments_.back().kind == Kind::kRest;
  // With "**" the last part takes all that is left, slashes included.
  std::vector<std::string_view> parts;
  while (parts.size() < segments_.size()) {
    const bool last = rest && parts.size() + 1 == segments_.size();
    const size_t end = last ? std::string_view::npos : path.find('/');
    parts.push_back(path.substr(0, end));
    if (end == std::string_view::npos) {
      path = {};
      break;
    }
    path.remove_prefix(end + 1);
    if (parts.size() == segments_.size()) return false;  // there is more
  }
  if (parts.size() + (rest ? 1 : 0) < segments_.size()) return false;
  parts.resize(segments_.size());
  for (size_t i = 0; i < segments_.size(); ++i) {
    const Segment& segment = segments_[i];
    if (segment.kind == Kind::kLiteral && DecodePath(parts[i], false) != segment.literal) return false;
    if (segment.kind == Kind::kOne && parts[i].empty()) return false;
  }
  for (const Variable& variable : variables_) {
    const bool several = variable.end - variable.first > 1 || segments_[variable.first].kind == Kind::kRest;
    std::string value;
    for (size_t i = variable.first; i < variable.end; ++i) {
      if (i > variable.first && !(segments_[i].kind == Kind::kRest && parts[i].empty())) value += '/';
      value += DecodePath(parts[i], several);
    }
    bindings->emplace_back(variable.field, std::move(value));
  }
  return true;
}

}  // namespace curtail::gateway
