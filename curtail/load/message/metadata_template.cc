// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/message/metadata_template.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "curtail/base/strings.h"
#include "curtail/load/message/internal/text_template.h"

namespace curtail {
namespace {

using internal::Placeholder;
using internal::TextPart;
using internal::TextTemplate;

constexpr std::string_view kPathField = ":path";

absl::Status CannotBeSent(const std::string& line) {
  return absl::InvalidArgumentError(
      Join("'", line,
           "' cannot be sent; keys are of a-z, 0-9, '-', '_' and '.' and not reserved, values printable, and "
           "base64 for keys in -bin"));
}

absl::Status IsNoField(const std::string& line) {
  return absl::InvalidArgumentError(Join(
      "'", line,
      "' cannot be sent; names are as HTTP has them, values printable, and the lengths and the connection "
      "are curtail's own"));
}

// True if requests of HTTP may have the field `name`, in lower case. Those that frame messages are not for callers.
bool IsHttpField(std::string_view name) {
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  const auto fits = [kMarks](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || kMarks.find(c) != kMarks.npos;
  };
  constexpr std::string_view kOwn[] = {"connection", "content-length",    "http2-settings",
                                       "keep-alive", "proxy-connection",  "te",
                                       "trailer",    "transfer-encoding", "upgrade"};
  if (name == kPathField) return true;
  return !name.empty() && std::all_of(name.begin(), name.end(), fits) &&
         std::find(std::begin(kOwn), std::end(kOwn), name) == std::end(kOwn);
}

absl::Status IsNoPath(std::string_view text) {
  return absl::InvalidArgumentError(
      Join("'", text,
           "' is not a path of a URL: it begins with '/', and other characters than letters, digits and "
           "-._~:/?@!$&'()*+,;=% are written as %20 and so on"));
}

// True if all that the parts give may stand in a path with a query.
bool FitPath(const std::vector<TextPart>& parts) {
  const auto fits = [](std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](char c) {
      return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
             std::string_view("-._~:/?@!$&'()*+,;=%").find(c) != std::string_view::npos;
    });
  };
  return std::all_of(parts.begin(), parts.end(), [&](const TextPart& part) {
    return part.drawn ? std::all_of(part.drawn->words().begin(), part.drawn->words().end(), fits)
                      : fits(part.text);
  });
}

// The words of {{pick}} and all text must be what metadata may hold.
bool IsPrintable(const Placeholder& placeholder) {
  return placeholder.kind() != Placeholder::Kind::kBytes && !placeholder.bytes_of_reply() &&
         std::all_of(placeholder.words().begin(), placeholder.words().end(),
                     [](const std::string& word) { return wire::IsTextValue(word); });
}

// False: the parts make no value. Decodes the text of a binary one.
bool CheckParts(std::vector<TextPart>& parts, bool binary) {
  for (TextPart& part : parts) {
    if (binary && parts.size() > 1) return false;
    if (part.drawn) {
      if (!binary && !IsPrintable(*part.drawn)) return false;
      continue;
    }
    // Spaces at the ends are gone; between parts they may stand.
    if (!binary) {
      if (!wire::IsTextValue(Join(".", part.text, "."))) return false;
      continue;
    }
    const std::optional<std::string> bytes = wire::Base64Decode(part.text);
    if (!bytes) return false;
    part.text = *bytes;
  }
  return true;
}

}  // namespace

struct MetadataTemplate::Entry {
  std::string key;
  TextTemplate value;
};

absl::StatusOr<MetadataTemplate> MetadataTemplate::Parse(const std::vector<std::string>& lines, uint64_t seed,
                                                         Rules rules, internal::ReplyFields* replies) {
  const bool http = rules == Rules::kHttp;
  std::vector<Entry> entries;
  for (const std::string& line : lines) {
    const size_t colon = line.find(':', 1);
    if (colon == std::string::npos) {
      return absl::InvalidArgumentError(Join("'", line, "' has no colon; write 'authorization: Bearer abc'"));
    }
    std::string key = absl::AsciiStrToLower(absl::StripAsciiWhitespace(line.substr(0, colon)));
    if (http ? !IsHttpField(key) : !wire::IsCustomKey(key))
      return http ? IsNoField(line) : CannotBeSent(line);
    const std::string text(absl::StripAsciiWhitespace(line.substr(colon + 1)));
    // Each line draws for itself.
    absl::StatusOr<TextTemplate> value =
        TextTemplate::Parse(text, seed + 1000 * (entries.size() + 1), replies);
    if (!value.ok()) return absl::InvalidArgumentError(Join("'", line, "': ", Message(value.status())));
    if (!CheckParts(value->parts(), !http && absl::EndsWith(key, "-bin")))
      return http ? IsNoField(line) : CannotBeSent(line);
    if (key == kPathField && (!text.starts_with('/') || !FitPath(value->parts()))) return IsNoPath(text);
    entries.push_back({std::move(key), *std::move(value)});
  }
  MetadataTemplate made;
  made.entries_ = std::make_shared<const std::vector<Entry>>(std::move(entries));
  return made;
}

wire::Metadata MetadataTemplate::Render(uint64_t request) const {
  wire::Metadata metadata;
  std::string value;
  for (const Entry& entry : *entries_) {
    value.clear();
    entry.value.Append(request, &value);
    metadata.Add(entry.key, value);
  }
  return metadata;
}

absl::Status MetadataTemplate::AddTo(uint64_t request, const KeptValues& kept,
                                     wire::Metadata* metadata) const {
  absl::Status error;
  internal::Draw draw(request);
  draw.kept = &kept;
  draw.error = &error;
  std::string value;
  for (const Entry& entry : *entries_) {
    value.clear();
    entry.value.Append(draw, &value);
    if (!error.ok()) return error;
    if (!absl::EndsWith(entry.key, "-bin") && !wire::IsTextValue(value)) {
      return absl::InvalidArgumentError(Join("the value of the metadata ", entry.key, " is not printable"));
    }
    metadata->Add(entry.key, value);
  }
  return absl::OkStatus();
}

bool MetadataTemplate::fixed() const {
  return std::all_of(entries_->begin(), entries_->end(),
                     [](const Entry& entry) { return entry.value.fixed(); });
}

}  // namespace curtail
