// SPDX-License-Identifier: Apache-2.0
#include "curtail/gateway/static_files.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "curtail/base/strings.h"

namespace curtail::gateway {
namespace {

// The page loads what its gateway serves, and nothing else; no other page may frame it. A script that someone has
// smuggled into it as text does not run.
constexpr std::string_view kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "media-src 'self' blob:; "  // blob: is what the page's own script gives a player, piece by piece
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

// Empty for an ending that is not in the table.
std::string_view TypeOf(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kTypes = {{
      {".css", "text/css; charset=utf-8"},
      {".html", "text/html; charset=utf-8"},
      {".ico", "image/x-icon"},
      {".js", "text/javascript; charset=utf-8"},
      {".json", "application/json"},
      {".png", "image/png"},
      {".svg", "image/svg+xml"},
      {".txt", "text/plain; charset=utf-8"},
      {".woff2", "font/woff2"},
  }};
  const auto* const found =
      std::ranges::find_if(kTypes, [&](const auto& type) { return name.ends_with(type.first); });
  return found == kTypes.end() ? std::string_view() : found->second;
}

bool IsName(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-' || c == '/';
  });
}

// By FNV-1a of 64 bits: two versions of one file are to differ, whoever made them.
std::string EtagOf(std::string_view bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return Join("\"", bytes.size(), "-", hash, "\"");
}

// RFC 9110, 13.1.2: a list of tags, or "*". Weak ones count.
bool Has(std::string_view tags, std::string_view etag) {
  while (!tags.empty()) {
    const size_t comma = std::min(tags.find(','), tags.size());
    std::string_view tag = tags.substr(0, comma);
    tags.remove_prefix(std::min(comma + 1, tags.size()));
    while (tag.starts_with(' ')) tag.remove_prefix(1);
    while (tag.ends_with(' ')) tag.remove_suffix(1);
    if (tag.starts_with("W/")) tag.remove_prefix(2);
    if (tag == etag || tag == "*") return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<StaticFiles> StaticFiles::Make(std::vector<StaticFile> files) {
  StaticFiles made;
  for (StaticFile& file : files) {
    const std::string_view type = TypeOf(file.name);
    if (!IsName(file.name)) {
      return absl::InvalidArgumentError(
          Join("file \"", file.name, "\": not a name of letters, digits and ._-/"));
    }
    if (type.empty()) return absl::InvalidArgumentError(Join("file ", file.name, ": no type has its ending"));
    File made_file{std::string(type), EtagOf(file.bytes), std::move(file.bytes)};
    if (file.name == "index.html") made.files_.emplace("/", made_file);
    if (!made.files_.emplace(Join("/", file.name), std::move(made_file)).second) {
      return absl::InvalidArgumentError(Join("file ", file.name, " comes twice"));
    }
  }
  return made;
}

const StaticFiles::File* StaticFiles::Find(std::string_view path) const {
  const auto found = files_.find(path);
  return found == files_.end() ? nullptr : &found->second;
}

std::vector<std::string_view> StaticFiles::paths() const {
  std::vector<std::string_view> paths;
  for (const auto& [path, file] : files_) paths.push_back(path);
  return paths;
}

absl::StatusOr<HttpReply> StaticFiles::Answer(const File& file, const HttpRequest& request) {
  if (request.verb != "GET" && request.verb != "HEAD") return absl::UnimplementedError("GET, HEAD");
  HttpReply reply;
  // "no-cache": a browser keeps it and asks whether it is still the same.
  reply.headers = {{"etag", file.etag},
                   {"cache-control", "no-cache"},
                   {"content-security-policy", std::string(kPolicy)},
                   {"referrer-policy", "no-referrer"}};
  if (Has(request.headers.Find("if-none-match").value_or(""), file.etag)) {
    reply.status = 304;
    return reply;
  }
  reply.headers.emplace_back("content-type", file.type);
  reply.body = file.bytes;
  return reply;
}

}  // namespace curtail::gateway
