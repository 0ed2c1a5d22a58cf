// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/load/http_setup.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "curtail/load/drive/runner.h"
#include "curtail/load/message/http_workload.h"
#include "curtail/load/message/json_workload.h"
#include "curtail/load/message/metadata_template.h"
#include "curtail/wire/http_url.h"

namespace curtail::tool {
namespace {

// Of a target of HTTP/1.1 where none were asked for.
constexpr int kHttp1Connections = 64;
constexpr char kPathLine[] = ":path: ";

// True if requests over HTTP have a body.
bool HasBody(const LoadFlags& flags) {
  return !flags.data.empty() || !flags.data_hex.empty() || !flags.data_binary.empty();
}

bool LooksLikeJson(const LoadFlags& flags) {
  const std::string& data = flags.data;
  if (absl::StartsWith(data, "@")) return absl::EndsWith(data, ".json") || absl::EndsWith(data, ".jsonl");
  const size_t first = data.find_first_not_of(" \t\r\n");
  return first != std::string::npos && (data[first] == '{' || data[first] == '[');
}

// The bodies of --data and the like.
absl::StatusOr<HttpSource> ReadBodies(const LoadFlags& flags) {
  HttpSource source{.choice = flags.pick};
  if (absl::StartsWith(flags.data, "@")) {
    const absl::StatusOr<JsonSource> file = ReadJsonFile(flags.data.substr(1));
    if (!file.ok()) return FlagError("--data", file.status());
    source.bodies = absl::EndsWith(flags.data, ".jsonl") ? BodiesOfLines(file->text)
                                                         : std::vector<std::string>{file->text};
  } else if (!flags.data.empty()) {
    source.bodies = {flags.data};
  } else if (HasBody(flags)) {
    const absl::StatusOr<std::string> bytes = ReadBytes(flags);
    if (!bytes.ok()) return bytes.status();
    source.bodies = {*bytes};
    source.drawn = false;
  }
  return source;
}

}  // namespace

absl::Status DrawPaths(LoadFlags* flags) {
  std::string path;
  for (std::string& target : flags->targets) {
    if (!HttpUrl::Is(target)) continue;
    const size_t begin = std::min(target.find_first_of("/?", target.find("://") + 3), target.size());
    const std::string drawn = target.substr(begin, target.find('#', begin) - begin);
    if (target.find("{{") < begin) {
      return absl::InvalidArgumentError(
          absl::StrCat(target, ": placeholders may stand in the path and the query only"));
    }
    if (drawn.find("{{") == std::string::npos) continue;
    const std::string rooted = absl::StrCat(drawn.starts_with('?') ? "/" : "", drawn);
    if (flags->targets.size() > 1 && !path.empty() && path != rooted)
      return absl::InvalidArgumentError("URLs with placeholders must all have the same path");
    path = rooted;
    target.resize(begin);
    target += '/';
  }
  if (path.empty()) return absl::OkStatus();
  const bool others =
      std::any_of(flags->targets.begin(), flags->targets.end(), [](const std::string& target) {
        const absl::StatusOr<HttpUrl> url = HttpUrl::Parse(target);
        return !url.ok() || url->path != "/";
      });
  if (others) return absl::InvalidArgumentError("URLs with placeholders must all have the same path");
  const std::string line = kPathLine + path;
  const absl::Status read = MetadataTemplate::Parse({line}, 0, MetadataTemplate::Rules::kHttp).status();
  if (!read.ok()) {
    absl::string_view why = read.message();
    const bool named = absl::ConsumePrefix(&why, absl::StrCat("'", kPathLine));
    return absl::InvalidArgumentError(
        absl::StrCat(named ? "the path of the URL, '" : "the path of the URL: ", why));
  }
  flags->metadata.push_back(line);
  return absl::OkStatus();
}

std::vector<std::string> HeaderLines(const LoadFlags& flags, bool http) {
  std::vector<std::string> lines = flags.metadata;
  const bool typed = std::any_of(lines.begin(), lines.end(), [](const std::string& line) {
    return absl::StartsWithIgnoreCase(absl::StripLeadingAsciiWhitespace(line), "content-type");
  });
  if (http && HasBody(flags) && !typed) {
    lines.push_back(LooksLikeJson(flags) ? "content-type: application/json"
                                         : "content-type: application/octet-stream");
  }
  return lines;
}

absl::StatusOr<WorkloadMaker> MakeHttpRequests(const LoadFlags& flags, const LoadTargets& targets) {
  if (!targets.application.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(targets.application, " is called over gRPC; write HOST:PORT, or leave its name out"));
  }
  for (const auto& [given, flag] :
       {std::pair(!flags.method.empty(), "--method"), {!flags.protos.empty(), "--proto"}}) {
    if (given)
      return absl::InvalidArgumentError(absl::StrCat(flag, " is for gRPC; with an http:// target use -X"));
  }
  absl::StatusOr<HttpSource> source = ReadBodies(flags);
  if (!source.ok()) return source.status();
  if (flags.pick != LoadFlags().pick && source->bodies.size() < 2)
    return absl::InvalidArgumentError(
        "--pick chooses among the lines of a file: give one as --data @FILE.jsonl, or leave --pick out");
  const absl::StatusOr<HttpUrl> url = HttpUrl::Parse(targets.addresses.front());
  if (!url.ok()) return url.status();
  std::string path = url->path;
  for (const std::string& line : flags.metadata) {
    if (line.starts_with(kPathLine)) path = line.substr(sizeof kPathLine - 1);
  }
  source->name = absl::StrCat(targets.http->verb, " ", path, targets.http->http2 ? " HTTP/2" : " HTTP/1.1");
  return [source = *std::move(source)](uint64_t seed) -> absl::StatusOr<std::shared_ptr<const Workload>> {
    absl::StatusOr<std::unique_ptr<Workload>> workload = MakeHttpWorkload(source, seed);
    if (!workload.ok()) return FlagError("--data", workload.status());
    return *std::move(workload);
  };
}

absl::Status ReadUrls(const LoadFlags& flags, LoadTargets* targets) {
  const std::vector<std::string>& urls = targets->addresses;
  for (const std::string& url : urls) {
    const size_t scheme = url.find("://");
    const bool target = url.starts_with("unix:") || url.starts_with("dns:") || url.starts_with("ipv");
    if (HttpUrl::Is(url) || scheme == url.npos || target) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("\"", url, "\": there is no scheme ", url.substr(0, scheme),
                     "; write http:// or https:// for HTTP, and for gRPC HOST:PORT or unix:PATH"));
  }
  if (std::none_of(urls.begin(), urls.end(), HttpUrl::Is)) {
    if (!flags.http2 && flags.verb.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        "-X and --http2 are for HTTP: write the target as http://HOST:PORT/PATH");
  }
  std::optional<bool> secure;
  for (const std::string& text : urls) {
    const absl::StatusOr<HttpUrl> url = HttpUrl::Parse(text);
    if (!HttpUrl::Is(text))
      return absl::InvalidArgumentError(absl::StrCat(
          "\"", text, "\" is not a URL, and others are; give only URLs, or only gRPC addresses"));
    if (!url.ok()) return url.status();
    if (secure.value_or(url->secure) != url->secure)
      return absl::InvalidArgumentError(
          "some targets are http:// and others https://: give all the same scheme");
    secure = url->secure;
  }
  if (flags.tls && !*secure) return absl::InvalidArgumentError("--tls: write the target as https://");
  HttpOptions& http = targets->http.emplace();
  http.http2 = flags.http2;
  if (!flags.verb.empty() || HasBody(flags)) http.verb = flags.verb.empty() ? "POST" : flags.verb;
  const bool word = std::all_of(http.verb.begin(), http.verb.end(),
                                [](unsigned char c) { return absl::ascii_isalpha(c) || c == '-'; });
  if (!word || http.verb == "CONNECT")
    return absl::InvalidArgumentError(
        absl::StrCat("-X: '", http.verb, "' is not a verb of HTTP; write one such as GET, POST or PUT"));
  // Over HTTP/1.1 a connection carries one request at a time.
  if (!http.http2 && !flags.connections) {
    const int of_thread = (flags.closed + flags.threads - 1) / std::max(flags.threads, 1);
    targets->channel.connections = of_thread > 0 ? std::min(of_thread, kMaxConnections) : kHttp1Connections;
  }
  return absl::OkStatus();
}

}  // namespace curtail::tool
