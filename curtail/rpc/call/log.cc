// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/log.h"

#include <cstdio>
#include <variant>

#include "curtail/base/internal/log_line.h"
#include "curtail/base/strings.h"
#include "curtail/observe/trace/trace_context.h"
#include "curtail/rpc/call/observed_call.h"

namespace curtail {
namespace {

constexpr size_t kShortTrace = 8;

std::string LogTextOf(const Context& ctx, Severity severity, std::string_view message,
                      std::initializer_list<LogField> fields) {
  const internal::LogForm& form = internal::ProcessLogForm();
  const TraceIds ids = TraceIdsOf(ctx);
  if (!form.json) {
    const std::string trace = ids.trace.empty() ? "" : Join(" [", ids.trace.substr(0, kShortTrace), "]");
    return Join(form.service, ": ", message, trace, "\n");
  }
  internal::LogLine line(form, severity, internal::LogTime());
  line.Add("message", message);
  if (!ids.trace.empty()) line.Add("trace_id", ids.trace);
  if (!ids.span.empty()) line.Add("span_id", ids.span);
  for (const LogField& field : fields) {
    std::visit([&](const auto& value) { line.Add(field.name, value); }, field.value);
  }
  return std::move(line).Take();
}

}  // namespace

TraceIds TraceIdsOf(const Context& ctx) {
  // As child calls carry them: call 0 of a request is the request itself.
  wire::TraceParent parent;
  const internal::ObservedCall* const observed = ctx.observed();
  if (observed != nullptr && observed->wants(kChildLeaves)) {
    wire::Metadata ignored;
    observed->ChildLeaves({}, {.metadata = ignored, .trace_parent = &parent});
  }
  if (parent.set) {  // "00-TRACE-SPAN-FLAGS"
    const std::string_view text = parent.view();
    return {std::string(text.substr(3, 32)), std::string(text.substr(36, 16))};
  }
  if (ctx.metadata().empty()) return {};
  observe::TraceErrors errors;
  const observe::TraceContext received = observe::ReadTraceContext(ctx.metadata(), &errors);
  if (!received.valid()) return {};
  char trace[32];
  observe::WriteHex(received.trace.high, trace);
  observe::WriteHex(received.trace.low, trace + 16);
  return {std::string(trace, sizeof trace), ""};
}

void Log(const Context& ctx, Severity severity, std::string_view message,
         std::initializer_list<LogField> fields) {
  if (!Logs(severity)) return;
  std::fputs(LogTextOf(ctx, severity, message, fields).c_str(), stderr);
}

}  // namespace curtail
