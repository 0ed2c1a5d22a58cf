// SPDX-License-Identifier: Apache-2.0
#include "curtail/base/log.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "curtail/base/internal/log_line.h"
#include "curtail/base/strings.h"

namespace curtail {
namespace internal {
namespace {

void AppendEscaped(std::string_view text, std::string* out) {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out->push_back('\\');
      out->push_back(c);
    } else if (byte < 0x20 || byte >= 0x7f) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", byte);
      out->append(code);
    } else {
      out->push_back(c);
    }
  }
}

// Without bytes that a terminal acts upon, or, unless `lines`, that begin a line which nobody has logged.
std::string Printable(std::string_view text, bool lines) {
  std::string printable;
  unsigned char before = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool second = before == 0xc2 && byte >= 0x80 && byte < 0xa0;  // of U+0080 to U+009F
    if ((byte < 0x20 && !(lines && c == '\n')) || byte == 0x7f || second) {
      AppendEscaped({&c, 1}, &printable);
    } else {
      printable.push_back(c);
    }
    before = byte;
  }
  return printable;
}

std::string Upper(std::string_view text) {
  std::string upper(text);
  for (char& c : upper) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return upper;
}

std::string Variable(const char* name, std::string otherwise) {
  const char* const value = std::getenv(name);
  return value == nullptr || *value == '\0' ? std::move(otherwise) : value;
}

void Warn(const LogForm& form, std::string_view message) {
  const std::string line = LogText(form, LogTime(), Severity::kWarning, message, {}, "curtail");
  std::fputs(line.c_str(), stderr);
}

std::string HostName() {
  char name[HOST_NAME_MAX + 1] = {};
  gethostname(name, HOST_NAME_MAX);
  return name;
}

}  // namespace

LogForm LogForm::FromEnvironment() {
  const std::string format = Variable("CURTAIL_LOG_FORMAT", "text");
  LogForm form{.json = format == "json",
               .service = Variable("CURTAIL_LOG_SERVICE", program_invocation_short_name),
               .instance = Variable("CURTAIL_LOG_INSTANCE", HostName())};
  if (!form.json && format != "text") {
    Warn(form, Join("CURTAIL_LOG_FORMAT: \"", format, "\" is not a format; write text or json"));
  }
  return form;
}

const LogForm& ProcessLogForm() {
  static const LogForm form = LogForm::FromEnvironment();
  return form;
}

LogLine::LogLine(const LogForm& form, Severity severity, const timespec& now) {
  tm parts;
  gmtime_r(&now.tv_sec, &parts);
  char date[32], time[64];
  std::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(time, sizeof time, "%s.%06ldZ", date, now.tv_nsec / 1000);
  line_ = Join("{\"time\":\"", time, "\"");
  if (form.json)
    Add("severity", Upper(SeverityName(severity)))
        .Add("service", form.service)
        .Add("instance", form.instance);
}

LogLine& LogLine::Add(std::string_view name, std::string_view text) {
  line_.append(",\"").append(name).append("\":\"");
  AppendEscaped(text, &line_);
  line_.push_back('"');
  return *this;
}

LogLine& LogLine::Add(std::string_view name, int64_t number) {
  line_ += Join(",\"", name, "\":", number);
  return *this;
}

std::string LogLine::Take() && {
  line_ += "}\n";
  return std::move(line_);
}

timespec LogTime() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return now;
}

std::string LogText(const LogForm& form, const timespec& now, Severity severity, std::string_view message,
                    std::initializer_list<LogField> fields, std::string_view from) {
  if (!form.json && from.empty()) return Join(Printable(message, /*lines=*/true), "\n");
  if (!form.json) return Join(Printable(from, false), ": ", Printable(message, false), "\n");
  LogLine line(form, severity, now);
  line.Add("message", message);
  for (const LogField& field : fields) {
    std::visit([&](const auto& value) { line.Add(field.name, value); }, field.value);
  }
  return std::move(line).Take();
}

Severity LevelFromEnvironment() {
  const std::string text = Variable("CURTAIL_LOG_LEVEL", "info");
  if (const std::optional<Severity> level = ParseSeverity(text)) return *level;
  Warn(ProcessLogForm(),
       Join("CURTAIL_LOG_LEVEL: \"", text, "\" is not a level; write debug, info, warning or error"));
  return Severity::kInfo;
}

}  // namespace internal

namespace {

// Atomic, relaxed: a line may still go by the level before.
std::atomic<Severity>& Level() {
  static std::atomic<Severity> level{internal::LevelFromEnvironment()};
  return level;
}

}  // namespace

std::optional<Severity> ParseSeverity(std::string_view text) {
  for (const Severity severity : {Severity::kDebug, Severity::kInfo, Severity::kWarning, Severity::kError}) {
    if (internal::Upper(text) == internal::Upper(SeverityName(severity))) return severity;
  }
  return std::nullopt;
}

std::string_view SeverityName(Severity severity) {
  switch (severity) {
    case Severity::kDebug:
      return "debug";
    case Severity::kInfo:
      return "info";
    case Severity::kWarning:
      return "warning";
    case Severity::kError:
      return "error";
  }
  return "";
}

Severity LogLevel() { return Level().load(std::memory_order_relaxed); }
void SetLogLevel(Severity least) { Level().store(least, std::memory_order_relaxed); }

void Log(Severity severity, std::string_view message, std::initializer_list<LogField> fields,
         std::string_view from) {
  if (!Logs(severity)) return;
  const std::string line =
      internal::LogText(internal::ProcessLogForm(), internal::LogTime(), severity, message, fields, from);
  std::fputs(line.c_str(), stderr);
}

bool LogsJson() { return internal::ProcessLogForm().json; }

}  // namespace curtail
