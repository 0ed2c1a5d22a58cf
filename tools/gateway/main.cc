// SPDX-License-Identifier: Apache-2.0
//
// curtail-gateway: HTTP/1.1 and HTTP/2 in front of a gRPC server, as JSON or gRPC-Web.
#include <pthread.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <iostream>
#include <sstream>
#include <thread>

#include "absl/time/time.h"
#include "curtail/base/internal/flag_error.h"
#include "curtail/base/internal/flag_units.h"
#include "curtail/base/log.h"
#include "curtail/base/strings.h"
#include "curtail/base/terminal.h"
#include "curtail/gateway/gateway.h"
#include "curtail/gateway/page/page.h"
#include "curtail/rpc/retries.h"
#include "tools/docs/program_docs.h"

namespace curtail::gateway {
namespace {

constexpr int kBadConfiguration = 104;
constexpr uint64_t kLeastHeld = 64u << 10;
constexpr uint64_t kMostHeld = uint64_t{1} << 53;
constexpr uint64_t kMostAtOnce = 1'000'000'000;
constexpr Nanos kCatalogTimeout = std::chrono::seconds(5);
constexpr Nanos kResolveInterval = std::chrono::seconds(5);  // as the services of a cluster

constexpr char kFooter[] =
    "Every method answers POST /package.Service/Method, and the paths of its google.api.http option.\n"
    "Examples:\n"
    "  curtail-gateway 127.0.0.1:8080\n"
    "  curtail-gateway 127.0.0.1:8080 --listen 0.0.0.0:80 --allow-origin https://app.example\n"
    "  curl -d '{\"name\": \"you\"}' -H 'content-type: application/json' localhost:8000/hello.Greeter/Greet";

struct Flags {
  GatewayOptions options;
  std::vector<std::string> protos;
  std::vector<std::string> import_paths;
  std::string timeout = "30s";
  std::string stream_timeout = "1h";
  std::string drain = "10s";
  std::string linger = "0s";
  ServerTlsOptions front_tls;
  bool tls = false;
  TlsOptions tls_options;
};

std::string CheckRate(std::string& text) {
  if (ParseNumber(text).value_or(0) > 0) return "";
  return Join(text.empty() ? "\"\"" : text, " is not a rate; write more than 0, or leave the flag out");
}

std::string ReadSize(std::string& text) { return curtail::internal::SizeToNumber(&text); }

void AddFlags(CLI::App& app, Flags* f) {
  f->options.listen = "127.0.0.1:8000";
  f->options.channel.balancer = "round_robin";
  f->options.channel.min_resolve_interval = kResolveInterval;
  f->options.retries = 2;
  app.set_version_flag("--version", "curtail-gateway " CURTAIL_VERSION);
  app.add_option("TARGET", f->options.target,
                 "The gRPC server, HOST:PORT, dns:///NAME:PORT or unix:PATH, or several, HOST:PORT,HOST:PORT")
      ->required();
  app.add_option("--listen", f->options.listen, "Where HTTP is served; port 0 takes a free one")
      ->capture_default_str();
  app.add_option("--tls-cert", f->front_tls.certificate_file,
                 "Serve HTTP over TLS: the gateway's certificate (chain), PEM");
  app.add_option("--tls-key", f->front_tls.key_file, "Its private key, PEM");
  app.add_option("--tls-client-ca", f->front_tls.client_ca_file,
                 "Serve only clients whose certificate these authorities vouch for");
  app.add_option("--proto", f->protos,
                 "The .proto file of a service; by default the server's reflection is asked");
  app.add_option("-I,--import-path", f->import_paths, "Where --proto finds imports");
  app.add_option("--service", f->options.services,
                 "A service whose methods are served, by its full name; may be repeated [all that TARGET "
                 "has, and its page]");
  app.add_option("--forward-header", f->options.forward_headers,
                 "A header that calls carry as metadata; no others do, credentials included");
  app.add_option(
      "--allow-host", f->options.allowed_hosts,
      "A name by which clients ask, or * for all; localhost, addresses and this machine's name always may");
  app.add_option("--allow-origin", f->options.allowed_origins,
                 "An origin whose web pages may call: https://app.example, or * for all");
  app.add_flag("--accept-forms", f->options.accept_forms,
               "Take application/x-www-form-urlencoded bodies, which web pages may send without asking");
  app.add_option("--timeout", f->timeout, "Of a call without grpc-timeout; longer ones are cut to it")
      ->capture_default_str();
  app.add_option(
         "--retries", f->options.retries,
         "How often a call that ends with UNAVAILABLE is made again at most, if its method is declared "
         "idempotent")
      ->check(CLI::Range(0, kMaxRetries))
      ->capture_default_str();
  app.add_option("--stream-timeout", f->stream_timeout, "The same of methods that stream")
      ->capture_default_str();
  app.add_option("--drain", f->drain,
                 "For requests in flight, after SIGTERM or Ctrl-C; streams end halfway through")
      ->capture_default_str();
  app.add_option("--linger", f->linger,
                 "After SIGTERM or Ctrl-C it goes on serving for so long, and sends clients away one by one: "
                 "behind a balancer, longer than that needs to leave it out")
      ->capture_default_str();
  app.add_option("--max-connections", f->options.max_connections,
                 "Beyond it a newcomer takes the place of a silent one")
      ->check(CLI::Range(uint64_t{1}, kMostAtOnce))
      ->capture_default_str();
  app.add_option("--max-requests", f->options.max_requests, "In flight; more are answered 503")
      ->check(CLI::Range(uint64_t{1}, kMostAtOnce))
      ->capture_default_str();
  app.add_option(
         "--max-rate", f->options.max_rate,
         "Calls that may begin a second, over all clients; more are answered 429 with Retry-After [no bound]")
      ->check(CLI::Validator(&CheckRate, "POSITIVE"));
  app.add_option("--max-burst", f->options.max_burst, "With --max-rate: at once [those of a second]")
      ->check(CLI::Range(1.0, 1e9))
      ->needs("--max-rate");
  app.add_option("--max-body", f->options.http.max_body_bytes,
                 "Bytes of a request's body; longer ones get 413")
      ->check(CLI::Range(uint64_t{0}, kMostHeld))
      ->transform(CLI::Validator(&ReadSize, ""))
      ->capture_default_str();
  app.add_option("--max-held", f->options.max_held_bytes,
                 "Bytes over all connections: half for requests in flight, more get 503, and half for "
                 "unfinished requests and answers [256 MiB, or half of the memory limit if that is less]")
      ->check(CLI::Range(kLeastHeld, kMostHeld))
      ->transform(CLI::Validator(&ReadSize, ""));
  app.add_option("--balancer", f->options.channel.balancer, "How calls spread over several servers")
      ->capture_default_str();
  app.add_flag("--tls", f->tls, "Speak TLS to the target");
  app.add_option("--ca-file", f->tls_options.ca_file, "With --tls: the authorities to trust [the system's]")
      ->needs("--tls");
  app.add_flag("--man")->description("Print the man page and stop: curtail-gateway --man | man -l -");
  app.add_option("--completion", "Print the completion of this shell and stop: bash, zsh or fish")
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  app.footer(kFooter);
}

absl::StatusOr<Nanos> TimeOf(const std::string& flag, const std::string& text, bool or_none = false) {
  absl::Duration time;
  if (!absl::ParseDuration(text, &time) || time < absl::ZeroDuration() || time > absl::Hours(24) ||
      (time == absl::ZeroDuration() && !or_none)) {
    return absl::InvalidArgumentError(Join(flag, ": \"", text, "\" is not a time ",
                                           or_none ? "from 0" : "above 0",
                                           " to 24h; write 500ms, 30s or 5m"));
  }
  return absl::ToChronoNanoseconds(time);
}

// Returns what to do about a target that did not answer.
std::string_view AdviceOn(const absl::Status& status) {
  const auto says = [&](std::string_view words) {
    return Message(status).find(words) != std::string_view::npos;
  };
  if (says("the server speaks TLS")) return "; add --tls";
  if (says("not speak TLS")) return "; leave --tls out";
  return says("refused") ? "; is the server running?" : "";
}

absl::StatusOr<Catalog> CatalogOf(const Flags& flags) {
  if (!flags.protos.empty()) {
    absl::StatusOr<Catalog> catalog = Catalog::FromProtoFiles(flags.protos, flags.import_paths);
    if (!catalog.ok() || !catalog->services().empty()) return catalog;
    return absl::InvalidArgumentError(
        Join(flags.protos.front(), " has no service; give the .proto file that declares one"));
  }
  absl::StatusOr<Catalog> catalog =
      Catalog::FromServer(flags.options.target, flags.options.channel, kCatalogTimeout);
  if (catalog.ok()) return catalog;
  return absl::Status(catalog.status().code(), Join("cannot read the methods of ", flags.options.target, ": ",
                                                    Message(catalog.status()), AdviceOn(catalog.status())));
}

// How long the gateway takes to end.
struct Ending {
  Nanos linger{};
  Nanos drain{};
};

absl::StatusOr<std::unique_ptr<Gateway>> StartGateway(Flags& flags, Ending* ending) {
  const absl::StatusOr<Nanos> timeout = TimeOf("--timeout", flags.timeout);
  if (!timeout.ok()) return timeout.status();
  const absl::StatusOr<Nanos> stream_timeout = TimeOf("--stream-timeout", flags.stream_timeout);
  if (!stream_timeout.ok()) return stream_timeout.status();
  const absl::StatusOr<Nanos> drain_time = TimeOf("--drain", flags.drain);
  if (!drain_time.ok()) return drain_time.status();
  const absl::StatusOr<Nanos> linger = TimeOf("--linger", flags.linger, /*or_none=*/true);
  if (!linger.ok()) return linger.status();
  flags.options.timeout = *timeout;
  flags.options.stream_timeout = *stream_timeout;
  *ending = {.linger = *linger, .drain = *drain_time};
  if (absl::Status good = CheckOptions(flags.options); !good.ok()) return good;
  if (const ServerTlsOptions& front = flags.front_tls;
      !front.certificate_file.empty() || !front.key_file.empty() || !front.client_ca_file.empty()) {
    absl::StatusOr<std::shared_ptr<const ServerTls>> tls = ServerTls::Load(front);
    if (!tls.ok()) return tls.status();
    flags.options.tls = *std::move(tls);
  }
  if (flags.tls) {
    absl::StatusOr<std::shared_ptr<const ClientTls>> tls = ClientTls::Load(flags.tls_options);
    if (!tls.ok()) return tls.status();
    flags.options.channel.tls = *std::move(tls);
  }
  absl::StatusOr<Catalog> catalog = CatalogOf(flags);
  if (!catalog.ok()) return catalog.status();
  const std::vector<std::string>& services = flags.options.services;
  const bool has_page =
      services.empty() || std::find(services.begin(), services.end(), kPageService) != services.end();
  if (has_page && catalog->FindMethod(kPageMethod).ok()) {
    absl::StatusOr<std::vector<StaticFile>> page =
        ReadPage(flags.options.target, flags.options.channel, kCatalogTimeout);
    if (!page.ok()) {
      return absl::Status(page.status().code(), Join("cannot read the page of ", flags.options.target, ": ",
                                                     Message(page.status())));
    }
    flags.options.files = *std::move(page);
  }
  return Gateway::Start(flags.options, *std::move(catalog));
}

// A line on stdout; where the log is JSON, a line of that.
void Say(const std::string& text) {
  if (LogsJson()) return Log(Severity::kInfo, text);
  std::cout << text << std::endl;
}

// The text that --man or --completion, alone, asks for; else nothing.
std::string DocumentOf(const CLI::App& app, int argc, char** argv) {
  const std::string_view flag = argc > 1 ? argv[1] : "";
  if (argc == 2 && flag == "--man") return tool::ProgramManPage(app, "curtail-gateway", CURTAIL_VERSION);
  if (argc == 3 && flag == "--completion") return tool::ProgramCompletion(app, "curtail-gateway", argv[2]);
  return "";
}

// Returns the error for a command line with words which the gateway does not know.
std::string Unknown(const CLI::App& app) {
  const std::string text = tool::UnknownWord(app.remaining(), {&app});
  if (text.ends_with('?')) return text;
  return Join(text, text.starts_with('-') ? "; see --help"
                                          : "; write several servers as one word, HOST:PORT,HOST:PORT");
}

int Main(int argc, char** argv) {
  // Before any thread starts, so that the signals come to sigwait() alone.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  CLI::App app("HTTP/1.1 and HTTP/2 in front of a gRPC server: JSON for curl, gRPC-Web for browsers");
  Flags flags;
  AddFlags(app, &flags);
  if (const std::string document = DocumentOf(app, argc, argv); !document.empty()) {
    std::cout << document;
    return 0;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      std::ostringstream help, nothing;
      app.exit(error, help, nothing);
      std::cout << HelpForTerminal(help.str());
      return 0;
    }
    const bool unknown = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
    const std::string text = unknown ? Unknown(app) : curtail::internal::PlainFlagError(error.what());
    Log(Severity::kError, text, {}, "curtail-gateway");
    return kBadConfiguration;
  }
  Ending ending;
  const absl::StatusOr<std::unique_ptr<Gateway>> gateway = StartGateway(flags, &ending);
  if (!gateway.ok()) {
    Log(Severity::kError, Message(gateway.status()), {}, "curtail-gateway");
    return kBadConfiguration;
  }
  Say(Join("listening on ", (*gateway)->address(), " for ", flags.options.target, ", ",
           (*gateway)->route_count(), " routes"));
  int signal = 0;
  sigwait(&signals, &signal);
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);  // a second one ends the process
  if (LogsJson()) Log(Severity::kInfo, "draining", {{"signal", signal == SIGTERM ? "SIGTERM" : "SIGINT"}});
  if (ending.linger > Nanos::zero()) {
    (*gateway)->LastCall();
    std::this_thread::sleep_for(ending.linger);
  }
  const bool all = (*gateway)->Stop(Deadline::In(ending.drain));
  const GatewayStats stats = (*gateway)->stats();
  Say(Join(stats.requests, " requests, ", stats.failed, " failed, ", stats.refused, " refused, ",
           stats.retried, " retries, ", stats.cancelled, " cancelled, ", stats.timed_out,
           " connections timed out, ", stats.evicted, " made room", all ? "" : "; some were not answered"));
  return all ? 0 : 1;
}

}  // namespace
}  // namespace curtail::gateway

int main(int argc, char** argv) { return curtail::gateway::Main(argc, argv); }
