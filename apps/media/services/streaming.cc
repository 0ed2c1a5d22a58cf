// SPDX-License-Identifier: Apache-2.0
//
// Streaming: passes for the files of a rented movie, and these files.
//
// A pass is a token (HS256) of the user, the movie, the rental and its end. It says no more than that the rental was active: each use
// asks `rent`, so that a pass is worth nothing after a refund. Only segments count as watching.
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>

#include "apps/kit/accounts/signed_token.h"
#include "apps/kit/blobs/range_headers.h"
#include "apps/kit/digits.h"
#include "apps/kit/registry/registry.h"
#include "apps/kit/wall_clock.h"
#include "apps/media/common/video_catalog.h"
#include "curtail/base/strings.h"
#include "curtail/rpc/async_stream.h"
#include "curtail/rpc/jwt.h"
#include "rentals.curtail.h"
#include "streams.curtail.h"

namespace curtail::media {

constexpr char kPassIssuer[] = "media streams";
constexpr size_t kChunkBytes = 256u << 10;
constexpr int64_t kKeptS =
    366 * int64_t{86'400};  // for so long a pass of a rental that has ended is known as that

using Bodies = AsyncStreamWriter<google::api::HttpBody>;

// Sends a range of a file.
Coroutine SendFile(std::FILE* file, std::string_view type, apps::ByteRange range, Bodies& stream) {
  if (std::fseek(file, static_cast<long>(range.from), SEEK_SET) != 0)
    co_return absl::DataLossError("bytes of the file are missing");
  for (uint64_t left = range.bytes, bytes = 0; left > 0; left -= bytes) {
    bytes = std::min<uint64_t>(left, kChunkBytes);
    google::api::HttpBody part;
    part.set_content_type(std::string(type));
    std::string& into = *part.mutable_data();
    into.resize(bytes);
    const size_t got = co_await Offloading([&] { return std::fread(into.data(), 1, into.size(), file); });
    if (got != bytes) co_return absl::DataLossError("bytes of the file are missing");
    if (!co_await stream.Write(part)) co_return stream.status();
  }
  co_return absl::OkStatus();
}

struct OpenFile {
  apps::MediaFiles::Reader reader;
  uint64_t size = 0;
};
OpenFile Open(const std::string& path) {
  OpenFile file{.reader = apps::MediaFiles::Reader(std::fopen(path.c_str(), "rbe"))};
  struct stat there = {};
  if (file.reader != nullptr && fstat(fileno(file.reader.get()), &there) == 0)
    file.size = static_cast<uint64_t>(there.st_size);
  return file;
}

struct StreamingService final : Streaming::CoroutineService {
  StreamingService(VideoCatalog& c, Env& e, std::string s, std::unique_ptr<JwtVerifier> v)
      : catalog(c), env(e), secret(std::move(s)), verifier(std::move(v)) {}
  static MadeService Make(VideoCatalog& catalog, Env& env, const apps::DataOptions& data);

  Coroutine Open(Context& ctx, const StreamOrder& request, StreamTicket* reply) override {
    Video ignored;
    Rental rental;
    if (absl::Status found = co_await Find(ctx, request, &rental, &ignored); !found.ok()) co_return found;
    const std::string id = Join(request.movie(), ".", rental.id(), ".", rental.ends_ms());
    reply->set_pass(apps::SignToken(secret, kPassIssuer, request.user(), id, apps::NowMs() / 1000,
                                    rental.ends_ms() / 1000 + kKeptS));
    reply->set_playlist(Join("/v1/streams/", request.movie(), "/", reply->pass(), "/main.m3u8"));
    reply->set_ends_ms(rental.ends_ms());
    co_return absl::OkStatus();
  }

  Coroutine Find(Context& ctx, const StreamOrder& order, Rental* rental, Video* video) {
    RentOrder of;
    of.set_user(order.user());
    of.set_movie(order.movie());
    VideoQuery query;
    query.set_movie(order.movie());
    auto found = co_await WhenAllOk(ctx, Ask(videos, Videos::kOf, query), Ask(rent, Rent::kCurrent, of));
    if (found.ok()) std::tie(*video, *rental) = *std::move(found);
    co_return found.status();
  }

  Coroutine Check(Context& ctx, const StreamPass& request, Video* reply) override {
    RentalQuery query;
    if (absl::Status read = Read(request, &query); !read.ok()) co_return read;
    const auto& use = IsSegment(request.file()) ? Rent::kWatched : Rent::kState;
    auto [rental] = co_await WhenAll(ctx, Ask(rent, use, query));
    if (absl::IsNotFound(rental.status()) || (rental.ok() && rental->movie() != request.movie()))
      co_return absl::PermissionDeniedError("the pass is of no rental of this movie");
    if (!rental.ok()) co_return rental.status();
    if (rental->state() == Rental::EXPIRED) co_return Ended();
    if (rental->state() != Rental::ACTIVE) co_return absl::PermissionDeniedError("the rental was refunded");
    co_return co_await catalog.Find(request.movie(), reply);
  }

  // Checks all of a pass that `rent` need not be asked for.
  absl::Status Read(const StreamPass& pass, RentalQuery* query) const {
    const int64_t now_ms = apps::NowMs();
    const absl::StatusOr<JwtClaims> claims = verifier->Verify(pass.pass(), now_ms / 1000);
    if (!claims.ok()) return absl::PermissionDeniedError("the pass is not one of this service");
    const std::string_view id = claims->id;
    const size_t dot = id.find('.'), second = id.rfind('.');
    const auto user = apps::ParseDigits(claims->subject), movie = apps::ParseDigits(id.substr(0, dot)),
               rental = apps::ParseDigits(id.substr(dot + 1, second - dot - 1)),
               ends_ms = apps::ParseDigits(id.substr(second + 1));
    if (!user || !movie || !rental || !ends_ms || *movie != pass.movie())
      return absl::PermissionDeniedError("the pass is of another movie");
    if (!IsVideoFile(pass.file())) return absl::PermissionDeniedError("no file of a movie has this name");
    if (static_cast<int64_t>(*ends_ms) <= now_ms) return Ended();
    query->set_user(*user);
    query->set_rental(*rental);
    return absl::OkStatus();
  }
  static absl::Status Ended() { return absl::UnauthenticatedError("the rental has ended"); }

  Coroutine Watch(Context& ctx, const StreamOrder& request, Bodies& stream) override {
    Video video;
    Rental rental;
    if (absl::Status found = co_await Find(ctx, request, &rental, &video); !found.ok()) co_return found;
    const auto rendition = std::ranges::find_if(video.renditions(), [&](const Rendition& one) {
      return request.rendition().empty() || one.name() == request.rendition();
    });
    if (rendition == video.renditions().end()) {
      std::string names;
      for (const Rendition& one : video.renditions()) names += Join(names.empty() ? "" : ", ", one.name());
      co_return absl::InvalidArgumentError(
          Join("the video has no rendition '", request.rendition(), "'; it has ", names));
    }
    RentalQuery query;
    query.set_user(request.user());
    query.set_rental(rental.id());
    uint64_t ends_ms = 0;  // of the segment
    for (const Segment& segment : rendition->segments()) {
      ends_ms += segment.length_ms();
      if (ends_ms <= request.from_ms()) continue;
      auto [watched] = co_await WhenAll(ctx, Ask(rent, Rent::kWatched, query));
      if (!watched.ok()) co_return watched.status();
      if (watched->state() != Rental::ACTIVE)
        co_return absl::FailedPreconditionError("the rental is not active any more");
      const std::string path = Join(catalog.folder(), "/", video.name(), "/", segment.file());
      const OpenFile file = co_await Offloading([&] { return media::Open(path); });
      if (file.reader == nullptr) co_return absl::DataLossError(Join(path, " is missing"));
      absl::Status sent = co_await SendFile(file.reader.get(), TypeOf(path), {.bytes = file.size}, stream);
      if (!sent.ok()) co_return sent;
    }
    co_return absl::OkStatus();
  }

  std::vector<DeclaredPath> Paths() const override {
    return {{"Open", {videos, rent}}, {"Check", {rent}}, {"Watch", {videos, rent}}};
  }

  VideoCatalog& catalog;
  Env& env;
  const std::string secret;
  const std::unique_ptr<JwtVerifier> verifier;
  const Videos::Stub videos = env.Stub<Videos>("videos");
  const Rent::Stub rent = env.Stub<Rent>("rent");
};

struct MovieFilesService final : MovieFiles::CoroutineService {
  explicit MovieFilesService(StreamingService& s) : streaming(s) {}

  Coroutine Get(Context& ctx, const StreamPass& request, Bodies& stream) override {
    Video video;
    absl::Status checked = co_await streaming.Check(ctx, request, &video);
    if (absl::IsUnauthenticated(checked)) {
      ctx.AddInitialMetadata("gone", "true");
      stream.SendInitialMetadata();
      co_return absl::NotFoundError(std::string(Message(checked)));
    }
    if (!checked.ok()) co_return checked;
    const std::string path = Join(streaming.catalog.folder(), "/", video.name(), "/", request.file());
    const OpenFile file = co_await Offloading([&] { return Open(path); });
    if (file.reader == nullptr) co_return absl::NotFoundError("there is no such file");
    const auto range = apps::RangeOf(ctx.metadata().Find("range").value_or(""), file.size);
    apps::AddRangeHeaders(ctx, range, file.size);
    stream.SendInitialMetadata();
    if (!range.ok()) co_return range.status();
    co_return co_await SendFile(file.reader.get(), TypeOf(path), *range, stream);
  }

  std::vector<DeclaredPath> Paths() const override { return {{"Get", {streaming.rent}}}; }

  StreamingService& streaming;
};

MadeService StreamingService::Make(VideoCatalog& catalog, Env& env, const apps::DataOptions& data) {
  auto secret = apps::TokenSecret(data);
  if (!secret.ok()) return secret.status();
  auto verifier = JwtVerifier::Load({.secret = *secret, .issuer = kPassIssuer, .leeway_s = 0});
  if (!verifier.ok()) return verifier.status();
  apps::RegisterWhileServing(env, "streaming", *secret);
  auto made = std::make_unique<StreamingService>(catalog, env, *std::move(secret), *std::move(verifier));
  env.AlsoServe(std::make_unique<MovieFilesService>(*made));
  return made;
}

HostedService HostedStreaming() {
  HostedService hosted = HostedWithVideos<StreamingService>("streaming");
  hosted.outside = {
      std::string(MovieFiles::kServiceName)};  // Streaming trusts the front end about who the user is
  return hosted;
}

}  // namespace curtail::media
