// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/main/request_flags.h"

#include <cmath>

#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "apps/shipped/application.h"
#include "curtail/base/strings.h"
#include "tools/curtail/load/load_flags.h"
#include "tools/curtail/term/flags.h"

namespace curtail::tool {

CLI::Validator Between(double low, double high) {
  const CLI::Validator finite(
      [](std::string& text) {
        double number = 0;
        const bool good = CLI::detail::lexical_cast(text, number) && std::isfinite(number);
        return good ? std::string() : text + " is not a number";
      },
      "");
  return CLI::Range(low, high) & finite;
}

CLI::Validator Number() {
  return CLI::Validator(
      [](std::string& text) {
        const absl::StatusOr<double> number = ParseNumber(text);
        if (!number.ok()) return std::string(number.status().message());
        text = absl::StrFormat("%.17g", *number);
        return std::string();
      },
      "");
}

void AddMessageFlags(CLI::App& load, LoadFlags* f) {
  const char* const group = "Requests";
  CLI::Option* method = load.add_option("--method", f->method, "package.Service/Method")->group(group);
  load.add_option("--journey", f->journey,
                  "A file of steps that use earlier replies; each journey through them counts as a request; "
                  "see below")
      ->excludes(method)
      ->group(group);
  CLI::Option* data = load.add_option("--data", f->data,
                                      "The message as JSON, or @FILE with JSON or JSON lines; over HTTP the "
                                      "body, as text or @FILE; empty "
                                      "by default")
                          ->group(group);
  CLI::Option* hex =
      load.add_option("--data-hex", f->data_hex, "The message as bytes in hexadecimal")->group(group);
  CLI::Option* binary =
      load.add_option("--data-binary", f->data_binary, "The message from a file")->group(group);
  data->excludes(hex)->excludes(binary);
  hex->excludes(binary);
  load.add_option("--proto", f->protos, "Describes the messages; by default the server is asked (reflection)")
      ->allow_extra_args(false)
      ->group(group);
  load.add_option("--import-path", f->import_paths, "Where the imports of --proto lie")
      ->allow_extra_args(false)
      ->group(group);
  load.add_option("--stream", f->stream,
                  "The method streams: over N streams that stay open; of requests only, N messages a stream; "
                  "of replies only, 1")
      ->check(CLI::Range(1, 100'000))
      ->group(group);
  load.add_option("--pick", f->pick, "Which line or query is next: in-turn, uniform, zipf:S, skew:S")
      ->capture_default_str()
      ->group(group);
}

void AddOwnOptions(CLI::App& command, const char* group,
                   const std::function<void(const std::string& name, const std::string& value)>& set) {
  for (const auto& [name, help] : apps::OwnOptions()) {
    command
        .add_option_function<std::string>(
            Join(name.size() == 1 ? "-" : "--", name),
            [set, name = name](const std::string& value) { set(name, value); }, help)
        ->group(group);
  }
}

}  // namespace curtail::tool
