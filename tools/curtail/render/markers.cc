// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/render/markers.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace curtail::tool {
namespace {

constexpr char kOpen[] = "«";
constexpr char kClose[] = "»";
constexpr std::string_view kPort = ":port";
constexpr char kHttpPort[] = "80";
constexpr size_t kOpenSize = sizeof(kOpen) - 1;
constexpr size_t kCloseSize = sizeof(kClose) - 1;

struct Condition {
  std::string path;
  bool wanted = true;
};

// How a reader of the markers writes what they stand for.
struct Reader {
  std::function<std::string(std::string_view path)> value;
  std::function<std::string(std::string_view path)> port;
  // Lines, set in so far.
  std::function<std::string(std::string_view path, size_t indent)> block;
  // Around the lines of a condition; nothing for lines that are left out.
  std::function<std::optional<std::pair<std::string, std::string>>(const Condition&)> around;
  bool escapes = false;
};

std::vector<std::string> PathParts(std::string_view path) { return absl::StrSplit(std::string(path), '.'); }

bool IsIndex(const std::string& part) {
  return !part.empty() && std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// ".Values.services.leaf.replicas"; "(index .Values.services.store.addresses 3)".
std::string HelmPath(std::string_view path) {
  if (path.starts_with("Release.")) return absl::StrCat(".", std::string(path));
  std::vector<std::string> parts = PathParts(path);
  if (!IsIndex(parts.back())) return absl::StrCat(".Values.", std::string(path));
  const std::string index = std::move(parts.back());
  parts.pop_back();
  return absl::StrCat("(index .Values.", absl::StrJoin(parts, "."), " ", index, ")");
}

size_t Indent(std::string_view line) { return std::min(line.find_first_not_of(' '), line.size()); }

// Takes the condition in front of a line's key or item out of it.
std::optional<Condition> TakeCondition(std::string* line) {
  size_t at = Indent(*line);
  if (line->compare(at, 2, "- ") == 0) at += 2;
  if (at < line->size() && (*line)[at] == '"') ++at;
  const bool wanted = line->compare(at, kOpenSize + 1, absl::StrCat(kOpen, "?")) == 0;
  if (!wanted && line->compare(at, kOpenSize + 1, absl::StrCat(kOpen, "!")) != 0) return std::nullopt;
  const size_t begin = at + kOpenSize + 1;
  const size_t end = line->find(kClose, begin);
  if (end == line->npos) return std::nullopt;
  Condition condition{line->substr(begin, end - begin), wanted};
  line->erase(at, end + kCloseSize - at);
  return condition;
}

// The path of a line that is a block; empty if it is none.
std::string_view BlockIn(std::string_view line) {
  line.remove_prefix(Indent(line));
  if (line.starts_with('"')) line.remove_prefix(1);
  if (!line.starts_with(absl::StrCat(kOpen, "*"))) return {};
  line.remove_prefix(kOpenSize + 1);
  return line.substr(0, line.find(kClose));
}

// The port of "otlp=http://HOST:PORT/PATH".
std::string PortIn(std::string_view url) {
  const size_t scheme = url.find("://");
  const size_t host = scheme == url.npos ? 0 : scheme + 3;
  const std::string_view authority = url.substr(host, url.find('/', host) - host);
  const size_t colon = authority.rfind(':');
  if (colon == authority.npos || !IsIndex(std::string(authority.substr(colon + 1)))) return kHttpPort;
  return std::string(authority.substr(colon + 1));
}

std::string WithValues(std::string_view line, const Reader& reader) {
  std::string out;
  while (true) {
    const size_t open = line.find(kOpen);
    const size_t close = open == line.npos ? open : line.find(kClose, open);
    std::string before(line.substr(0, close == line.npos ? line.npos : open));
    out += reader.escapes ? absl::StrReplaceAll(before, {{"{{", "{{ \"{{\" }}"}}) : before;
    if (close == line.npos) return out;
    const std::string_view path = line.substr(open + kOpenSize, close - open - kOpenSize);
    out +=
        path.ends_with(kPort) ? reader.port(path.substr(0, path.size() - kPort.size())) : reader.value(path);
    line.remove_prefix(close + kCloseSize);
  }
}

void Read(const std::vector<std::string>& lines, size_t begin, size_t end, const Reader& reader,
          std::string* out) {
  for (size_t i = begin; i < end;) {
    std::string line = lines[i];
    size_t below = i + 1;  // the first line that is not set in further
    while (below < end && Indent(lines[below]) > Indent(line)) ++below;
    const std::optional<Condition> condition = TakeCondition(&line);
    const auto around = condition ? reader.around(*condition) : std::pair<std::string, std::string>();
    if (around) {
      const std::string_view block = BlockIn(line);
      absl::StrAppend(out, around->first,
                      block.empty() ? WithValues(line, reader) + "\n" : reader.block(block, Indent(line)));
      // An item's own lines may begin with a condition, so they are read on their own.
      Read(lines, i + 1, below, reader, out);
      absl::StrAppend(out, around->second);
    }
    i = below;
  }
}

std::string Read(std::string_view text, const Reader& reader) {
  std::vector<std::string> lines = absl::StrSplit(std::string(text), '\n');
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  std::string out;
  Read(lines, 0, lines.size(), reader, &out);
  return out;
}

}  // namespace

std::string ValueOf(std::string_view path) { return absl::StrCat(kOpen, std::string(path), kClose); }
std::string If(std::string_view path) { return absl::StrCat(kOpen, "?", std::string(path), kClose); }
std::string IfNot(std::string_view path) { return absl::StrCat(kOpen, "!", std::string(path), kClose); }
std::string PortOfUrl(std::string_view path) {
  return absl::StrCat(kOpen, std::string(path), std::string(kPort), kClose);
}
std::string BlockOf(std::string_view path) { return absl::StrCat(kOpen, "*", std::string(path), kClose); }
bool HasMarkers(std::string_view text) { return text.find(kOpen) != text.npos; }

const Yaml* At(const Yaml& values, std::string_view path) {
  const Yaml* at = &values;
  for (const std::string& part : PathParts(path)) {
    if (at == nullptr) return nullptr;
    if (at->kind() == Yaml::Kind::kList) {
      const size_t index = IsIndex(part) ? std::stoul(part) : at->items().size();
      at = index < at->items().size() ? &at->items()[index] : nullptr;
    } else {
      at = at->Find(part);
    }
  }
  return at;
}

std::string FillIn(std::string_view text, const Yaml& values) {
  Reader reader;
  reader.value = [&values](std::string_view path) { return At(values, path)->text(); };
  reader.port = [&values](std::string_view path) { return PortIn(At(values, path)->text()); };
  reader.block = [&values](std::string_view path, size_t indent) {
    const std::string spaces(indent, ' ');
    std::string text = At(values, path)->Write();
    text.pop_back();  // the end of the last line
    return absl::StrCat(spaces, absl::StrReplaceAll(text, {{"\n", "\n" + spaces}}), "\n");
  };
  reader.around =
      [&values](const Condition& condition) -> std::optional<std::pair<std::string, std::string>> {
    if (At(values, condition.path)->IsTrue() != condition.wanted) return std::nullopt;
    return std::pair<std::string, std::string>();
  };
  return Read(text, reader);
}

std::string AsTemplate(std::string_view text) {
  Reader reader;
  reader.escapes = true;
  reader.value = [](std::string_view path) { return absl::StrCat("{{ ", HelmPath(path), " }}"); };
  reader.port = [](std::string_view path) {
    return absl::StrCat("{{ ", HelmPath(path),
                        R"( | regexFind ":[0-9]+(/.*)?$" | regexFind "[0-9]+" | default ")", kHttpPort,
                        "\" }}");
  };
  reader.block = [](std::string_view path, size_t indent) {
    return absl::StrCat(std::string(indent, ' '), "{{- toYaml ", HelmPath(path), " | nindent ", indent,
                        " }}\n");
  };
  reader.around = [](const Condition& condition) -> std::optional<std::pair<std::string, std::string>> {
    return std::pair(
        absl::StrCat("{{- if ", condition.wanted ? "" : "not ", HelmPath(condition.path), " }}\n"),
        std::string("{{- end }}\n"));
  };
  return Read(text, reader);
}

std::string TemplateIf(std::string_view path, std::string_view text) {
  return absl::StrCat("{{- if ", HelmPath(path), " }}\n", std::string(text), "{{- end }}\n");
}

}  // namespace curtail::tool
