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
    if (std::ranges::count(out_.segments_, Kind::kRest, &Segment::kind) > 1)
      return Error("\"**\" is there more than once");
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

bool PathTemplate::IsMoreSpecificThan(const PathTemplate& other) const {
  if (verb_.empty() != other.verb_.empty()) return !verb_.empty();
  const auto [own, others] =
      std::ranges::mismatch(segments_, other.segments_, {}, &Segment::kind, &Segment::kind);
  if (own == segments_.end() || others == other.segments_.end())
    return segments_.size() > other.segments_.size();
  return own->kind < others->kind;
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
  // Segments before "**" take parts from the front, those behind it from the back. "**" takes what is left, slashes
  // included, or nothing.
  const size_t rest =
      static_cast<size_t>(std::ranges::find(segments_, Kind::kRest, &Segment::kind) - segments_.begin());
  std::vector<std::string_view> parts(segments_.size());
  bool left = true;
  for (size_t i = 0; i < rest; ++i) {
    if (!left) return false;
    const size_t end = path.find('/');
    parts[i] = path.substr(0, end);
    left = end != std::string_view::npos;
    path.remove_prefix(left ? end + 1 : path.size());
  }
  for (size_t i = segments_.size(); i-- > rest + 1;) {
    if (!left) return false;
    const size_t slash = path.rfind('/');
    left = slash != std::string_view::npos;
    parts[i] = path.substr(left ? slash + 1 : 0);
    path = path.substr(0, left ? slash : 0);
  }
  if (rest < segments_.size()) {
    parts[rest] = path;
  } else if (left) {
    return false;  // there is more
  }
  for (size_t i = 0; i < segments_.size(); ++i) {
    const Segment& segment = segments_[i];
    // Three bytes stand for one at most: a long part costs each route no more than a short one.
    if (segment.kind == Kind::kLiteral &&
        (parts[i].size() > 3 * segment.literal.size() || DecodePath(parts[i], false) != segment.literal)) {
      return false;
    }
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
