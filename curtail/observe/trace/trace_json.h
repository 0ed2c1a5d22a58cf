// SPDX-License-Identifier: Apache-2.0
//
// trace_json.h - spans as the page /traces has them. docs/observe.md describes it.
#pragma once

#include <string>
#include <string_view>

#include "curtail/observe/trace/span.h"
#include "curtail/observe/trace/trace_exporter.h"

namespace curtail::observe {

// A TracesJson is written once. Thread-compatible.
class TracesJson {
 public:
  // `service` is the name of the server.
  explicit TracesJson(std::string_view service);
  void Add(const Span& span, const WallClock& clock);
  // The whole document; the object is empty then.
  std::string Finish();

 private:
  void AddChild(const Span& span, const ChildSpan& child);

  bool first_ = true;
  std::string text_;
};

}  // namespace curtail::observe
