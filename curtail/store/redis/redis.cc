// SPDX-License-Identifier: Apache-2.0
#include "curtail/store/redis/redis.h"

#include <hiredis/hiredis.h>

#include <array>
#include <cstdlib>
#include <new>
#include <utility>

#include "curtail/base/read_file.h"
#include "curtail/base/strings.h"
#include "curtail/store/redis/redis_replies.h"

namespace curtail {
namespace {

// In all arrays of a batch's replies: 19 MiB of empty elements.
constexpr size_t kMaxElements = size_t{1} << 18;

struct ErrorCode {
  std::string_view word;  // the first of the message
  absl::StatusCode code;
};
constexpr std::array<ErrorCode, 12> kErrors = {{
    {"OOM", absl::StatusCode::kResourceExhausted},
    {"LOADING", absl::StatusCode::kUnavailable},
    {"BUSY", absl::StatusCode::kUnavailable},
    {"MASTERDOWN", absl::StatusCode::kUnavailable},
    {"READONLY", absl::StatusCode::kUnavailable},
    {"MISCONF", absl::StatusCode::kUnavailable},
    {"NOAUTH", absl::StatusCode::kPermissionDenied},
    {"NOPERM", absl::StatusCode::kPermissionDenied},
    {"WRONGPASS", absl::StatusCode::kPermissionDenied},
    {"WRONGTYPE", absl::StatusCode::kFailedPrecondition},
    {"BUSYGROUP", absl::StatusCode::kAlreadyExists},
    {"NOGROUP", absl::StatusCode::kNotFound},
}};

constexpr size_t kMaxPassword = 64u << 10;

std::string FromEnvironment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// The password, and where it is from; empty: there is none. Errors: FAILED_PRECONDITION.
struct Password {
  std::string text, origin;
};
absl::StatusOr<Password> FindPassword(const StoreAddress& address) {
  std::string file = address.password_file;
  if (file.empty()) file = FromEnvironment("REDIS_PASSWORD_FILE");
  if (file.empty()) return Password{FromEnvironment("REDIS_PASSWORD"), "REDIS_PASSWORD"};
  absl::StatusOr<std::string> text = ReadWholeFile(file, kMaxPassword);
  if (!text.ok())
    return absl::FailedPreconditionError(
        Join("redis ", address.text, ": no password: ", Message(text.status())));
  while (text->ends_with('\n') || text->ends_with('\r')) text->pop_back();
  if (text->empty())
    return absl::FailedPreconditionError(Join("redis ", address.text, ": no password: ", file, " is empty"));
  return Password{*std::move(text), file};
}

bool AsksForPassword(const RedisReply& reply) {
  return reply.kind == RedisReply::Kind::kError && reply.text.starts_with("NOAUTH");
}

}  // namespace

absl::Status RedisReply::status() const {
  if (kind != Kind::kError) return absl::OkStatus();
  const std::string_view word = std::string_view(text).substr(0, text.find(' '));
  for (const ErrorCode& error : kErrors) {
    if (error.word == word) return absl::Status(error.code, text);
  }
  return absl::InvalidArgumentError(text);
}

void RedisBatch::Add(std::span<const std::string_view> words) {
  std::vector<const char*> starts;
  std::vector<size_t> sizes;
  for (const std::string_view word : words) {
    starts.push_back(word.data());
    sizes.push_back(word.size());
  }
  char* command = nullptr;
  const long long size =
      redisFormatCommandArgv(&command, static_cast<int>(words.size()), starts.data(), sizes.data());
  if (size < 0) throw std::bad_alloc();
  bytes_.append(command, static_cast<size_t>(size));
  redisFreeCommand(command);
  ++size_;
}

Redis::Redis(StoreAddress address, RedisOptions options)
    : options_(options), pool_(std::move(address), "redis", options.connections) {}

Redis::~Redis() = default;

absl::Status Redis::Exchange(const RedisBatch& batch, Deadline deadline, Stream& stream,
                             std::vector<RedisReply>* replies) const {
  if (absl::Status sent = stream.Send({batch.bytes()}, deadline); !sent.ok()) return sent;
  internal::RedisReplies reader(kMaxElements + batch.size());
  size_t read = 0;
  while (replies->size() < batch.size()) {
    if (read > options_.max_reply_bytes) {
      return absl::ResourceExhaustedError(
          Join("redis ", address(), " replied with more than ", options_.max_reply_bytes, " bytes"));
    }
    if (absl::Status got = stream.Receive(0, deadline); !got.ok()) return got;
    const std::string_view bytes = stream.received().substr(read);
    read = stream.received().size();
    if (absl::Status fed = reader.Feed(bytes, replies); !fed.ok()) {
      return absl::Status(fed.code(), Join("redis ", address(), ": ", Message(fed)));
    }
  }
  if (replies->size() == batch.size()) return absl::OkStatus();
  return absl::UnavailableError(Join("redis ", address(), " answered what was not asked"));
}

absl::Status Redis::Take(Deadline deadline, StreamPool::Lease* lease) {
  if (absl::Status taken = pool_.Take(false, deadline, lease); !taken.ok()) return taken;
  // Redis was restarted, or closed what was idle for long.
  if (lease->reused() && (*lease)->TryReceive() != Stream::State::kQuiet) {
    lease->Remove();
    if (absl::Status taken = pool_.Take(true, deadline, lease); !taken.ok()) return taken;
  }
  if (lease->reused()) return absl::OkStatus();
  absl::Status in = LogIn(deadline, **lease);
  if (!in.ok()) lease->Remove();
  return in;
}

absl::Status Redis::LogIn(Deadline deadline, Stream& stream) const {
  const absl::StatusOr<Password> password = FindPassword(pool_.address());
  if (!password.ok()) return password.status();
  if (password->text.empty()) return absl::OkStatus();
  std::string user = pool_.address().user;
  if (user.empty()) user = FromEnvironment("REDIS_USER");
  RedisBatch batch;
  if (user.empty()) batch.Add({"AUTH", password->text});
  else batch.Add({"AUTH", user, password->text});
  std::vector<RedisReply> replies;
  if (absl::Status sent = Exchange(batch, deadline, stream, &replies); !sent.ok()) return sent;
  const absl::Status taken = replies.front().status();
  if (taken.ok()) return taken;
  return absl::PermissionDeniedError(Join("redis ", address(), " does not take the password of ",
                                          password->origin, user.empty() ? "" : Join(" for the user ", user),
                                          ": ", Message(taken)));
}

absl::StatusOr<std::vector<RedisReply>> Redis::Run(const RedisBatch& batch, Deadline deadline) {
  std::vector<RedisReply> replies;
  if (batch.size() == 0) return replies;
  if (deadline.Expired()) {
    return absl::DeadlineExceededError(Join("redis ", address(), " was not asked: no time is left"));
  }
  StreamPool::Lease lease;
  if (absl::Status taken = Take(deadline, &lease); !taken.ok()) return taken;
  replies.reserve(batch.size());
  if (absl::Status status = Exchange(batch, deadline, *lease, &replies); !status.ok()) {
    lease.Remove();
    return status;
  }
  // It got a password since; the next connection logs in.
  if (AsksForPassword(replies.front())) lease.Remove();
  return replies;
}

absl::StatusOr<RedisReply> Redis::Run(std::initializer_list<std::string_view> words, Deadline deadline) {
  RedisBatch batch;
  batch.Add(words);
  absl::StatusOr<std::vector<RedisReply>> replies = Run(batch, deadline);
  if (!replies.ok()) return replies.status();
  if (absl::Status status = replies->front().status(); !status.ok()) {
    if (!AsksForPassword(replies->front())) return status;
    return absl::PermissionDeniedError(
        Join("redis ", address(),
             " asks for a password: set REDIS_PASSWORD_FILE, or write the address as "
             "redis://HOST:PORT?password-file=FILE"));
  }
  return std::move(replies->front());
}

absl::Status Redis::Check(Deadline deadline) { return Run({"PING"}, deadline).status(); }

}  // namespace curtail
