// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/load/load_setup.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "apps/shipped/application.h"
#include "curtail/deploy/admin_client.h"
#include "curtail/load/drive/shape.h"
#include "curtail/load/message/choice.h"
#include "curtail/load/message/json_workload.h"
#include "curtail/load/message/metadata_template.h"
#include "curtail/observe/trace/trace_exporter.h"
#include "curtail/rpc/client/balancer/balancer.h"
#include "curtail/rpc/client/resolver/target.h"
#include "curtail/rpc/retries.h"
#include "curtail/wire/http_url.h"
#include "google/api/annotations.pb.h"
#include "google/api/httpbody.pb.h"
#include "tools/curtail/deploy/run_folder.h"
#include "tools/curtail/deploy/target.h"
#include "tools/curtail/load/http_setup.h"
#include "tools/curtail/load/journey_file.h"
#include "tools/curtail/load/load_share.h"
#include "tools/curtail/term/flags.h"

namespace curtail::tool {
namespace {

constexpr Nanos kMaxBackoff = std::chrono::milliseconds(250);
constexpr Nanos kResolveInterval = std::chrono::seconds(1);
constexpr Nanos kAdminTimeout = std::chrono::seconds(2);
constexpr Nanos kReflectionTimeout = std::chrono::seconds(5);
// Of an application: different requests at most, and how many replies are judged.
constexpr size_t kRequests = 10000;
constexpr Nanos kDefaultDuration = std::chrono::seconds(10);
constexpr Nanos kLongest = std::chrono::hours(24);

absl::StatusOr<MetadataTemplate> ReadMetadata(const LoadFlags& flags, uint64_t seed, bool http = false) {
  absl::StatusOr<MetadataTemplate> metadata = MetadataTemplate::Parse(
      HeaderLines(flags, http), seed, http ? MetadataTemplate::Rules::kHttp : MetadataTemplate::Rules::kGrpc);
  if (!metadata.ok()) return FlagError("--metadata", metadata.status());
  return metadata;
}

// How long a run may take until all of --requests are sent.
Nanos LongEnough(const LoadFlags& flags) {
  if (flags.closed > 0) return kLongest;
  // The Poisson arrivals of one sender take longer than this once in 10^20 runs.
  const absl::StatusOr<LoadShare> share = ParseShare(flags.share);
  const auto n = static_cast<double>(flags.requests);
  const double senders = flags.threads * (share.ok() ? share->of : 1.0);
  const double seconds = (n + 10 * std::sqrt(n * senders) + 30 * senders) / flags.rps;
  return seconds > 86400 ? kLongest : Nanos(std::llround(seconds * 1e9));
}

// The length of the measured part that --duration asks for; absent if the flag is.
absl::StatusOr<std::optional<Nanos>> LengthOf(const LoadFlags& flags) {
  std::optional<Nanos> length;
  if (flags.duration.empty() && flags.requests > 0 && flags.schedule.empty()) length = LongEnough(flags);
  if (flags.duration.empty()) return length;
  const absl::StatusOr<Nanos> given = TimeLimitOf("--duration", flags.duration);
  if (!given.ok()) return given.status();
  return std::optional<Nanos>(*given);
}

// "/package.Service/Method", however it was written.
absl::StatusOr<std::string> MethodPath(const std::string& name) {
  std::string path = absl::StartsWith(name, "/") ? name : absl::StrCat("/", name);
  const size_t slash = path.find('/', 1);
  if (slash == std::string::npos || slash == 1 || slash + 1 == path.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--method: '", name, "' is not a full name; write package.Service/Method"));
  }
  return path;
}

absl::StatusOr<std::shared_ptr<const Workload>> MakeFixed(const LoadFlags& flags) {
  absl::StatusOr<std::string> path = MethodPath(flags.method);
  if (!path.ok()) return path.status();
  absl::StatusOr<std::string> message = ReadBytes(flags);
  if (!message.ok()) return message.status();
  return std::make_shared<FixedWorkload>(*std::move(path), *std::move(message));
}

// The error of a method that is of another kind than it is called as, or that its service does not have. Bytes need no
// description, so a server that does not describe the service is fine; files of --proto must.
absl::Status CheckKind(const LoadFlags& flags, const LoadTargets& targets) {
  const bool files = !flags.protos.empty();
  if (flags.dry_run && !files) return absl::OkStatus();  // asks no server
  const absl::StatusOr<Catalog> catalog = MakeCatalog(flags, targets);
  if (!catalog.ok())
    return files || absl::IsInvalidArgument(catalog.status()) ? catalog.status() : absl::OkStatus();
  const absl::Status found = catalog->FindMethod(flags.method, flags.stream > 0).status();
  return files || absl::IsInvalidArgument(found) || catalog->Describes(flags.method) ? found
                                                                                     : absl::OkStatus();
}

// The names of flags: "--records", "-k".
std::string FlagOf(std::string_view name) {
  return absl::StrCat(name.size() == 1 ? "-" : "--", std::string(name));
}

// The error of a flag of applications that the one that is called does not have, or without an application.
absl::Status CheckOwn(const LoadFlags& flags, const std::string& application) {
  const std::map<std::string, std::vector<std::string>> owners = apps::OwnersOfOptions();
  for (const auto& [name, value] : flags.own) {
    const auto of = owners.find(name);
    if (of == owners.end() || absl::c_linear_search(of->second, application)) continue;
    const std::string whose = absl::StrCat("it is for ", absl::StrJoin(of->second, ", "));
    return absl::InvalidArgumentError(
        application.empty()
            ? absl::StrCat(FlagOf(name), ": ", whose, "; leave it out, or name the application")
            : absl::StrCat(FlagOf(name), ": ", application, " has no such flag; ", whose));
  }
  return absl::OkStatus();
}

absl::StatusOr<JsonSource> ReadData(const std::string& data) {
  if (!absl::StartsWith(data, "@")) return JsonSource{.text = data, .name = "--data"};
  absl::StatusOr<JsonSource> source = ReadJsonFile(data.substr(1));
  if (!source.ok()) return FlagError("--data", source.status());
  return source;
}

// The requests of `workload` in the order of --pick.
WorkloadMaker Picked(const std::string& pick, std::shared_ptr<const Workload> workload) {
  return [pick,
          workload = std::move(workload)](uint64_t seed) -> absl::StatusOr<std::shared_ptr<const Workload>> {
    if (pick == LoadFlags().pick) return workload;
    if (workload->distinct() == 0) {
      return absl::InvalidArgumentError(
          "--pick chooses among the lines of a file or the queries of an application, and there are none: "
          "leave it out");
    }
    absl::StatusOr<ItemChoice> choice = ParseItemChoice(pick, workload->distinct(), seed);
    if (!choice.ok()) return FlagError("--pick", choice.status());
    return std::make_shared<ChosenWorkload>(workload, *std::move(choice));
  };
}

absl::Status CheckCombination(const LoadFlags& flags) {
  if ((flags.rps > 0) + (flags.closed > 0) + !flags.schedule.empty() != 1) {
    return absl::InvalidArgumentError("say how much to send: --rps N, --schedule SHAPE or --closed N");
  }
  if (flags.schedule.empty() && (flags.rate_scale != 1 || flags.time_scale != 1)) {
    return absl::InvalidArgumentError(
        "--rate-scale and --time-scale stretch a --schedule: give one, or leave them out");
  }
  if (flags.closed > 0 && flags.arrivals != LoadFlags().arrivals) {
    return absl::InvalidArgumentError(
        "--arrivals: a closed loop sends when a reply comes; leave --arrivals or --closed out");
  }
  if (!flags.trace_to.empty()) {
    const absl::Status target = observe::ParseTraceTarget(flags.trace_to).status();
    if (!target.ok()) return FlagError("--trace-to", target);
  }
  if (!flags.trace_to.empty() && flags.stream > 0) {
    return absl::InvalidArgumentError(
        "--trace-to: the messages of a stream share its trace; leave --stream out");
  }
  if (absl::Status status = CheckJourney(flags); !status.ok()) return status;
  if (flags.find_max.empty()) return absl::OkStatus();
  if (flags.rps <= 0) return absl::InvalidArgumentError("--find-max: give the rate to begin with, --rps N");
  if (!flags.fail_if.empty() || flags.repeat != 1) {
    return absl::InvalidArgumentError(
        "--find-max has its own condition and repeats: leave --fail-if and --repeat out");
  }
  return absl::OkStatus();
}

// The errors of targets and of --balancer that calls would find; looks nothing up.
absl::Status CheckChannels(const LoadFlags& flags, const std::vector<std::string>& addresses) {
  for (const std::string& address : addresses) {
    if (const absl::Status status = internal::ParseTarget(address).status(); !status.ok()) return status;
  }
  if (internal::IsBalancer(flags.balancer)) return absl::OkStatus();
  return FlagError("--balancer", internal::MakeBalancer({.name = flags.balancer}, {}).status());
}

// The run folder of the application that all `targets`, APP or APP/SERVICE, are of; empty where there is none.
std::string FolderOf(std::vector<std::string> targets) {
  if (targets.size() > 1 && apps::IsApplication(targets.front())) targets.erase(targets.begin());
  std::string of;
  for (const std::string& target : targets) {
    const std::string name = target.substr(0, target.find('/'));
    if (!of.empty() && name != of) return "";
    of = name;
  }
  return IsUp(of) ? RunFolderOf(of) : "";
}

}  // namespace

absl::StatusOr<LoadTargets> MakeTargets(const LoadFlags& flags) {
  LoadTargets targets;
  targets.addresses = flags.targets;
  targets.run_folder = FolderOf(flags.targets);
  if (!targets.addresses.empty() && apps::IsApplication(targets.addresses.front())) {
    targets.application = targets.addresses.front();
    targets.addresses.erase(targets.addresses.begin());
    const absl::StatusOr<UpState> up = ReadUpState(targets.application);
    if (targets.addresses.empty()) {
      if (!up.ok() || up->entry.empty()) {
        return absl::InvalidArgumentError(absl::StrCat(targets.application,
                                                       " is not up here: start it with `curtail up ",
                                                       targets.application, "`, or give its address"));
      }
      targets.addresses.push_back(up->entry);
    }
    if (up.ok() && targets.addresses == std::vector<std::string>{up->entry}) targets.settings = up->settings;
  }
  if (targets.addresses.empty() && !(flags.list && !flags.protos.empty())) {
    return absl::InvalidArgumentError(
        "there is no target: give HOST:PORT, unix:PATH, or APP/SERVICE of what is up");
  }
  if (absl::Status own = CheckOwn(flags, targets.application); !own.ok()) return own;
  targets.channel.connections = flags.connections.value_or(1);
  if (absl::Status status = ReadUrls(flags, &targets); !status.ok()) return status;
  if (!targets.http) {
    absl::StatusOr<std::vector<std::string>> addresses = ToAddresses(targets.addresses);
    if (!addresses.ok()) return addresses.status();
    targets.addresses = *std::move(addresses);
    if (absl::Status fit = CheckChannels(flags, targets.addresses); !fit.ok()) return fit;
  }
  // A server that is back should be seen to be back: the defaults spare real ones a storm of callers.
  targets.channel.max_backoff = kMaxBackoff;
  targets.channel.min_resolve_interval = kResolveInterval;
  targets.channel.balancer = flags.balancer;
  const bool tls_flags = !flags.ca.empty() || !flags.cert.empty() || !flags.key.empty() ||
                         !flags.server_name.empty() || flags.insecure;
  const bool secure = flags.tls || (targets.http && HttpUrl::Parse(targets.addresses.front())->secure);
  if (tls_flags && !secure) {
    return absl::InvalidArgumentError(
        "--ca, --cert, --key, --server-name and --insecure need --tls, or a target https://");
  }
  if (!secure) return targets;
  if (flags.cert.empty() != flags.key.empty()) {
    return absl::InvalidArgumentError("--cert and --key need each other: give both");
  }
  absl::StatusOr<std::shared_ptr<const ClientTls>> tls =
      ClientTls::Load({.ca_file = flags.ca,
                       .certificate_file = flags.cert,
                       .key_file = flags.key,
                       .server_name = flags.server_name,
                       .insecure_skip_verify = flags.insecure});
  if (!tls.ok()) return FlagError("--tls", tls.status());
  targets.channel.tls = *std::move(tls);
  return targets;
}

absl::StatusOr<Catalog> MakeCatalog(const LoadFlags& flags, const LoadTargets& targets) {
  if (!flags.protos.empty()) {
    // Has google/api/*.proto linked, which these may import without an --import-path.
    google::protobuf::LinkExtensionReflection(google::api::http);
    google::protobuf::LinkMessageReflection<google::api::HttpBody>();
    return Catalog::FromProtoFiles(flags.protos, flags.import_paths);
  }
  const absl::StatusOr<Nanos> timeout = TimeLimitOf("--timeout", flags.timeout);
  if (!timeout.ok()) return timeout.status();
  const absl::StatusOr<MetadataTemplate> metadata = ReadMetadata(flags, flags.seed);
  if (!metadata.ok()) return metadata.status();
  return Catalog::FromServer(targets.addresses.front(), targets.channel,
                             std::max(*timeout, kReflectionTimeout), flags.method, metadata->Render(0));
}

absl::Status CheckNamed(const LoadFlags& flags, bool application) {
  if (!flags.journey.empty() || application == flags.method.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "say what to send: either --method package.Service/Method, --journey FILE, or, of an application "
      "that curtail has, its name: ",
      apps::ApplicationNames()));
}

absl::StatusOr<WorkloadMaker> MakeWorkloads(const LoadFlags& flags, const LoadTargets& targets, bool quiet) {
  if (!flags.journey.empty()) return MakeJourneys(flags, targets);
  if (targets.http) return MakeHttpRequests(flags, targets);
  if (absl::Status named = CheckNamed(flags, !targets.application.empty()); !named.ok()) return named;
  if (!targets.application.empty()) {
    apps::RequestOptions options;
    options.data = flags.corpus;
    options.count = kRequests;
    options.own = {flags.own.begin(), flags.own.end()};
    options.leaves = flags.leaves;
    options.judged = flags.judged;
    options.quiet = quiet;
    absl::StatusOr<std::shared_ptr<const Workload>> workload =
        apps::MakeRequests(targets.application, options, targets.settings);
    if (!workload.ok()) return workload.status();
    return Picked(flags.pick, *std::move(workload));
  }
  if (flags.data.empty()) {
    absl::StatusOr<std::shared_ptr<const Workload>> workload = MakeFixed(flags);
    if (!workload.ok()) return workload.status();
    if (absl::Status status = CheckKind(flags, targets); !status.ok()) return status;
    return Picked(flags.pick, *std::move(workload));
  }
  absl::StatusOr<Catalog> catalog = MakeCatalog(flags, targets);
  if (!catalog.ok()) return catalog.status();
  const absl::StatusOr<CatalogMethod> method = catalog->FindMethod(flags.method, flags.stream > 0);
  if (!method.ok()) return method.status();
  // Read once for all runs: a pipe cannot be read again.
  absl::StatusOr<JsonSource> source = ReadData(flags.data);
  if (!source.ok()) return source.status();
  source->choice = flags.pick;
  return [catalog = *std::move(catalog), method = *method,
          source = *std::move(source)](uint64_t seed) -> absl::StatusOr<std::shared_ptr<const Workload>> {
    return MakeJsonWorkload(method, source, seed);
  };
}

absl::StatusOr<RateCurve> MakeCurve(const LoadFlags& flags, Nanos warmup, uint64_t seed) {
  const bool trace = flags.schedule.find('/') != std::string::npos || absl::EndsWith(flags.schedule, ".csv");
  const absl::StatusOr<std::optional<Nanos>> given = LengthOf(flags);
  if (!given.ok()) return given.status();
  std::optional<Nanos> length = *given;
  if (!length && !trace) length = kDefaultDuration;
  absl::StatusOr<RateCurve> curve = flags.schedule.empty()
                                        ? RateCurve::Constant(flags.rps, *length)
                                        : ParseShape(flags.schedule, {.length = length,
                                                                      .seed = seed,
                                                                      .rate_scale = flags.rate_scale,
                                                                      .time_scale = flags.time_scale});
  if (!curve.ok()) return FlagError(flags.schedule.empty() ? "--rps" : "--schedule", curve.status());
  curve = curve->WithLeadIn(warmup);
  if (!curve.ok()) return FlagError("--warmup", curve.status());
  return curve;
}

absl::Status SetStream(const LoadFlags& flags, const LoadTargets& targets, RunOptions* options) {
  if (flags.stream == 0) return absl::OkStatus();
  if (targets.http || flags.method.empty()) {
    return absl::InvalidArgumentError("--stream is for gRPC methods: name one with --method");
  }
  const absl::StatusOr<Catalog> catalog = MakeCatalog(flags, targets);
  if (!catalog.ok()) return catalog.status();
  const absl::StatusOr<CatalogMethod> method = catalog->FindMethod(flags.method, /*streaming=*/true);
  if (!method.ok()) return method.status();
  StreamOptions& stream = options->stream.emplace();
  stream.count = flags.stream;
  stream.kind = !method->server_streaming  ? StreamOptions::Kind::kRequests
                : method->client_streaming ? StreamOptions::Kind::kBoth
                                           : StreamOptions::Kind::kReplies;
  if (stream.kind != StreamOptions::Kind::kReplies || stream.count == 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "--stream: a request to a method that streams replies is one whole stream; write --stream 1, and with "
      "--rps or --closed how many");
}

absl::Status SetRetries(const LoadFlags& flags, const LoadTargets& targets, RunOptions* options) {
  if (flags.retries == 0) return absl::OkStatus();
  if (targets.http || flags.stream > 0) {
    return absl::InvalidArgumentError("--retries: only unary calls of gRPC are made again; leave it out");
  }
  options->retries = flags.retries;
  std::vector<std::string> methods;  // none: those of the application, which this program knows
  if (!flags.method.empty() || !flags.journey.empty()) {
    const absl::StatusOr<Catalog> catalog = MakeCatalog(flags, targets);
    if (!catalog.ok()) return catalog.status();
    methods = catalog->IdempotentMethods();
    if (methods.empty() && !flags.journey.empty())
      return absl::InvalidArgumentError("--retries: no method of this server is declared idempotent");
    if (!flags.method.empty()) {
      const absl::StatusOr<CatalogMethod> method = catalog->FindMethod(flags.method);
      if (!method.ok()) return method.status();
      if (!method->idempotent) {
        return absl::InvalidArgumentError(
            absl::StrCat("--retries: ", method->path.substr(1),
                         " may do harm when it runs twice; if not, write "
                         "option idempotency_level = IDEMPOTENT; in its .proto"));
      }
      methods = {method->path};
    }
  }
  options->channel.service_config = RetryConfig(flags.retries, methods);
  return absl::OkStatus();
}

absl::Status SetMetadata(const LoadFlags& flags, uint64_t seed, RunOptions* options) {
  absl::StatusOr<MetadataTemplate> metadata = ReadMetadata(flags, seed, options->http.has_value());
  if (!metadata.ok()) return metadata.status();
  options->metadata = metadata->Render(0);
  options->drawn_metadata.reset();
  if (!metadata->fixed())
    options->drawn_metadata = std::make_shared<const MetadataTemplate>(*std::move(metadata));
  return absl::OkStatus();
}

absl::StatusOr<LoadSetup> MakeSetup(const LoadFlags& flags, const LoadTargets& targets) {
  LoadSetup s;
  if (absl::Status status = CheckCombination(flags); !status.ok()) return status;
  const absl::StatusOr<std::optional<Nanos>> length = LengthOf(flags);
  if (!length.ok()) return length.status();
  s.duration = length->value_or(kDefaultDuration);
  s.options.requests = flags.requests;
  if (flags.requests > 0) s.options.warmup = Nanos::zero();
  if (!flags.warmup.empty()) {
    const absl::StatusOr<Nanos> warmup = DurationOf("--warmup", flags.warmup);
    if (!warmup.ok()) return warmup.status();
    s.options.warmup = *warmup;
  }
  const absl::StatusOr<Nanos> timeout = TimeLimitOf("--timeout", flags.timeout);
  if (!timeout.ok()) return timeout.status();
  s.options.timeout = *timeout;
  if (flags.spin != "auto") {
    const absl::StatusOr<Nanos> spin = DurationOf("--spin", flags.spin);
    if (!spin.ok()) return spin.status();
    s.options.spin = *spin;
  }
  s.options.http = targets.http;
  if (absl::Status status = SetMetadata(flags, flags.seed, &s.options); !status.ok()) return status;
  s.options.targets = targets.addresses;
  s.options.first_must_succeed = !targets.application.empty();
  s.options.channel = targets.channel;
  s.options.realtime = flags.realtime;
  const bool json = !targets.http && (!flags.data.empty() || !flags.journey.empty());
  s.options.workload_name = targets.application.empty() ? (json ? "json" : "") : targets.application;
  for (const auto& [name, value] : flags.own)
    absl::StrAppend(&s.options.workload_name, " ", FlagOf(name), " ", value);
  s.options.schedule_name = flags.schedule;
  if (flags.closed == 0) {
    absl::StatusOr<RateCurve> curve = MakeCurve(flags, s.options.warmup, flags.seed);
    if (!curve.ok()) return curve.status();
    s.duration = curve->length() - s.options.warmup;
    s.curve = *std::move(curve);
    const absl::StatusOr<Gaps> gaps = ParseGaps(flags.arrivals);
    if (!gaps.ok()) return FlagError("--arrivals", gaps.status());
    s.gaps = *gaps;
  }
  for (const auto& [flag, text, out] : {std::tuple("--fail-if", &flags.fail_if, &s.thresholds),
                                        std::tuple("--find-max", &flags.find_max, &s.find_max)}) {
    if (text->empty()) continue;
    absl::StatusOr<std::vector<Threshold>> thresholds = ParseThresholds(*text);
    if (!thresholds.ok()) return FlagError(flag, thresholds.status());
    *out = *std::move(thresholds);
  }
  if (absl::Status status = SetShare(flags, &s); !status.ok()) return status;
  return s;
}

absl::Status ExplainUnknown(const LoadFlags& flags, const LoadTargets& targets, const absl::Status& status) {
  if (!absl::IsUnimplemented(status) || flags.method.empty() || targets.http) return status;
  LoadFlags ask = flags;
  ask.protos.clear();  // the server's own word
  const absl::StatusOr<Catalog> catalog = MakeCatalog(ask, targets);
  if (!catalog.ok()) return status;
  const absl::Status found = catalog->FindMethod(flags.method, flags.stream > 0).status();
  return absl::IsNotFound(found) ? absl::UnimplementedError(found.message()) : status;
}

absl::Status CheckAdmin(const std::string& admin) {
  if (admin.empty()) return absl::OkStatus();
  const absl::Status status = deploy::AdminClient(admin).GetConfig(kAdminTimeout).status();
  if (status.ok()) return status;
  absl::string_view why = status.message();
  absl::ConsumePrefix(&why, absl::StrCat(admin, ": "));
  return absl::Status(status.code(),
                      absl::StrCat("--admin ", admin, ": ", why, "; is this the server's --admin?"));
}

}  // namespace curtail::tool
