// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/load/request_flags.h"

#include "apps/shipped/application.h"
#include "curtail/base/strings.h"
#include "curtail/load/drive/runner.h"
#include "tools/curtail/load/load_flags.h"
#include "tools/curtail/term/validators.h"

namespace curtail::tool {

void AddTargetFlags(CLI::App& load, LoadFlags* f, const char* targets) {
  const char* const group = "Target";
  load.add_option("TARGET", f->targets, targets);
  load.add_option("--connections", f->connections,
                  "To each target, used in turn [1; over HTTP/1.1 64, or as many as --closed]")
      ->check(CLI::Range(1, kMaxConnections))
      ->group(group);
  load.add_option("--balancer", f->balancer,
                  "How requests spread over the servers of a name, dns:///NAME:PORT, such as round_robin")
      ->capture_default_str()
      ->group(group);
  load.add_flag("--tls", f->tls, "Speak TLS")->group(group);
  load.add_option("--ca", f->ca, "Trust the certificates of this PEM file instead of the system's")
      ->group(group);
  load.add_option("--cert", f->cert, "Show this certificate (PEM)")->group(group);
  load.add_option("--key", f->key, "Its private key (PEM)")->group(group);
  load.add_option("--server-name", f->server_name, "The name that the certificate must have")->group(group);
  load.add_flag("--insecure", f->insecure, "Do not verify the certificate")->group(group);
  load.add_option(
          "-H,--metadata", f->metadata,
          "Send 'KEY: VALUE' with every request, a header field over HTTP; repeat it for more. Values may be "
          "drawn as in --data")
      ->allow_extra_args(false)
      ->group(group);
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
  load.add_option("--proto", f->protos,
                  "Describes the messages, a .proto or a descriptor set (.protoset); by default the server "
                  "is asked (reflection)")
      ->allow_extra_args(false)
      ->group(group);
  load.add_option("--import-path", f->import_paths, "A folder with imports of --proto")
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

void AddResultFlags(CLI::App& command, ResultFlags* f) {
  const char* const group = "Results";
  command.add_option("--json", f->json, "Write the result here as JSON; - is the standard output, as below")
      ->group(group);
  command.add_option("--html", f->html, "Write a report with charts, one self-contained file")->group(group);
  command.add_option("--hgrm", f->hgrm, "Write the percentile spectrum, as HdrHistogram's tools read it")
      ->group(group);
  command.add_option("--csv", f->csv, "Write the course of the run, a line a second")->group(group);
  command
      .add_option("--junit", f->junit,
                  "Write what --fail-if found, and whether to believe it, as test cases of JUnit")
      ->group(group);
  command.add_option("--fail-if", f->fail_if, "Conditions that must hold: 'p99<5ms,errors<0.1%'")
      ->check(Conditions())
      ->group(group);
}

}  // namespace curtail::tool
