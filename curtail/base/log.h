// SPDX-License-Identifier: Apache-2.0
//
// log.h - what a process tells its operator on stderr: a line of text, or a line of JSON.
//
//   curtail::Log(curtail::Severity::kWarning, "the disk is nearly full", {{"free_mib", 12}});
//
//   curtail: the disk is nearly full
//   {"time":"2026-01-31T12:00:00.123456Z","severity":"WARNING","service":"cart",
//    "instance":"shop-cart-6f7d-x2x","message":"the disk is nearly full","free_mib":12}
//
// The environment chooses, so that a process has one form from its first line on, a wrong command
// line included: CURTAIL_LOG_FORMAT=json. CURTAIL_LOG_SERVICE and CURTAIL_LOG_INSTANCE name the
// process; without them it is the program and the machine. It is read once, at the first line.
// CURTAIL_LOG_LEVEL is the level at the start: debug, info, warning or error.
//
// A handler logs by Log() of curtail/rpc/log.h, so that its lines name the trace of its request.
//
// For what an operator may have to act on, not for requests: those are RequestLog's. A line is
// written at once, and waits for a reader of stderr that is behind. Any thread.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <variant>

namespace curtail {

enum class Severity : uint8_t { kDebug, kInfo, kWarning, kError };

// "debug", "info", "warning" or "error", in whatever case.
std::optional<Severity> ParseSeverity(std::string_view text);
std::string_view SeverityName(Severity severity);  // in lower case

// The least severe lines that this process writes: kInfo at first. It is one of the few values that
// a whole process shares, as stderr is. An operator changes it while the process serves.
Severity LogLevel();
void SetLogLevel(Severity least);
// True if a line of this severity is written: a caller whose message is dear to make asks first.
inline bool Logs(Severity severity) { return severity >= LogLevel(); }

// A LogField is for programs to search by, beside the message. Its texts live as long as the call.
struct LogField {
  LogField(std::string_view n, std::string_view text) : name(n), value(text) {}
  LogField(std::string_view n, const char* text) : name(n), value(std::string_view(text)) {}
  LogField(std::string_view n, std::integral auto number) : name(n), value(static_cast<int64_t>(number)) {}

  std::string_view name;
  std::variant<std::string_view, int64_t> value;
};

// Writes "FROM: MESSAGE" on one line, if Logs(severity), with control characters as \u001b; without
// FROM the message alone, with its ends of lines. `fields` are in the JSON only, so `message` says
// all to people. The names of fields are other ones than above.
void Log(Severity severity, std::string_view message, std::initializer_list<LogField> fields = {},
         std::string_view from = "curtail");

// True if the lines of this process are JSON. Then a program has no other text on stdout either,
// unless it is a result that its caller asked for.
bool LogsJson();

}  // namespace curtail
