// SPDX-License-Identifier: Apache-2.0
//
// log_line.h - the lines of JSON of log.h and request_log.h.
#pragma once

#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>

#include "curtail/base/log.h"

namespace curtail::internal {

// How a process writes its log. Value type.
struct LogForm {
  bool json = false;
  std::string service, instance;

  static LogForm FromEnvironment();
};

// Of this process.
const LogForm& ProcessLogForm();

// A LogLine is one line, field after field. Any bytes of a text make valid JSON: those beyond ASCII become the characters
// of their numbers. Not thread-safe.
class LogLine {
 public:
  // {"time":"2026-01-31T12:00:00.123456Z"; where the form is JSON, with severity, service and instance.
  LogLine(const LogForm& form, Severity severity, const timespec& now);
  LogLine& Add(std::string_view name, std::string_view text);
  LogLine& Add(std::string_view name, int64_t number);
  // With its end.
  std::string Take() &&;

 private:
  std::string line_;
};

// By CURTAIL_LOG_LEVEL; says on stderr if that is not a level.
Severity LevelFromEnvironment();

// The present time for a line.
timespec LogTime();

// The line that Log() writes.
std::string LogText(const LogForm& form, const timespec& now, Severity severity, std::string_view message,
                    std::initializer_list<LogField> fields, std::string_view from);

}  // namespace curtail::internal
