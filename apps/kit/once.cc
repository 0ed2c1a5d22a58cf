// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/once.h"

#include <google/protobuf/message_lite.h>

#include <chrono>
#include <utility>

#include "apps/kit/digest.h"
#include "curtail/base/strings.h"

namespace curtail::apps {

const char kOnceSchema[] =
    "CREATE TABLE requests(caller INTEGER, name TEXT, content TEXT NOT NULL, reply BLOB NOT NULL,"
    " done INTEGER NOT NULL, kept_s INTEGER NOT NULL, PRIMARY KEY(caller, name)) STRICT;"
    "CREATE INDEX requests_kept ON requests(kept_s);";

namespace {

constexpr char kName[] = "idempotency-key", kContent[] = "idempotency-content";
constexpr size_t kMostNameBytes = 128;
constexpr int64_t kKeptS = 24 * 3600;
constexpr int kRemovedAtOnce = 16;
// A script returns this for another content. Scripts of services return greater numbers.
constexpr int64_t kOtherContent = -100;

int64_t NowS() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

absl::Status OtherContentError() {
  return absl::AlreadyExistsError(
      "the idempotency key was given to another request of this caller; take a new one for each request");
}

}  // namespace

absl::Status NameRequest(Context& ctx, std::string_view method, const google::protobuf::MessageLite& content,
                         std::string_view part) {
  const std::optional<std::string_view> name = ctx.metadata().Find(kName);
  if (!name) return absl::OkStatus();
  if (name->empty() || name->size() > kMostNameBytes)
    return absl::InvalidArgumentError(Join("an idempotency key has 1 to ", kMostNameBytes, " characters"));
  ctx.AddMetadata(kName, Join(*name, part));
  ctx.AddMetadata(kContent, Digest(Join(method, "\n", content.SerializeAsString())));
  return absl::OkStatus();
}

Once::Once(const Context& ctx, uint64_t caller) : caller_(caller) {
  const std::optional<std::string_view> content = ctx.metadata().Find(kContent);
  if (!content) return;
  name_ = ctx.metadata().Find(kName).value_or("");
  content_ = *content;
}

void Once::HandOn(Context& ctx) const {
  if (!named()) return;
  ctx.AddMetadata(kName, name_);
  ctx.AddMetadata(kContent, content_);
}

absl::Status Once::Look(SqlSession& s, google::protobuf::MessageLite* reply) {
  seen_ = Seen::kNever;
  if (!named()) return absl::OkStatus();
  bool same = true;
  absl::Status status =
      s.Query("SELECT content, done, reply FROM requests WHERE caller = ?1 AND name = ?2 AND kept_s > ?3",
              {caller_, name_, NowS() - kKeptS}, [&](const SqlRow& row) {
                same = row.Text(0) == content_;
                seen_ = row.Integer(1) != 0 ? Seen::kDone : Seen::kBegun;
                const std::string_view bytes = row.Text(2);
                same = same && reply->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
              });
  return status.ok() && !same ? OtherContentError() : status;
}

absl::Status Once::Keep(SqlSession& s, const google::protobuf::MessageLite& reply, Seen seen) const {
  if (!named()) return absl::OkStatus();
  const int64_t now = NowS();
  const std::string bytes = reply.SerializeAsString();
  absl::Status status = s.Execute(
      "INSERT INTO requests(caller, name, content, reply, done, kept_s) VALUES (?1, ?2, ?3, ?4, ?5, ?6)"
      " ON CONFLICT(caller, name) DO UPDATE SET content = excluded.content, reply = excluded.reply,"
      " done = excluded.done, kept_s = excluded.kept_s",
      {caller_, name_, content_, SqlValue::Bytes(bytes), seen == Seen::kDone ? 1 : 0, now});
  if (!status.ok()) return status;
  return s.Execute(
      "DELETE FROM requests WHERE (caller, name) IN"
      " (SELECT caller, name FROM requests WHERE kept_s <= ?1 ORDER BY kept_s LIMIT ?2)",
      {now - kKeptS, kRemovedAtOnce});
}

absl::Status ForgetRequests(SqlSession& s, uint64_t caller) {
  return s.Execute("DELETE FROM requests WHERE caller = ?1", {caller});
}

absl::Status Once::Forget(SqlSession& s) const {
  if (!named()) return absl::OkStatus();
  return s.Execute("DELETE FROM requests WHERE caller = ?1 AND name = ?2", {caller_, name_});
}

std::string Once::RedisScript(std::string_view body) {
  return Join("local function write() ", body, R"( end
local key, content = KEYS[#KEYS], ARGV[#ARGV]
if content == '' then return {write(), 0} end
local seen = redis.call('GET', key)
if seen then
  if string.sub(seen, 1, #content) ~= content then return {)",
              kOtherContent, R"(, 1} end
  return {tonumber(string.sub(seen, #content + 1)), 1}
end
local made = write()
if made >= 0 then redis.call('SET', key, content .. made, 'EX', )",
              kKeptS, R"() end
return {made, 0})");
}

std::vector<std::string> Once::RedisWords(std::string script, std::string_view prefix,
                                          std::vector<std::string> keys,
                                          std::vector<std::string> args) const {
  std::vector<std::string> words = {"EVAL", std::move(script), Join(keys.size() + 1)};
  words.insert(words.end(), keys.begin(), keys.end());
  words.push_back(RedisKey(prefix));
  words.insert(words.end(), args.begin(), args.end());
  words.push_back(content_);
  return words;
}

std::string Once::RedisKey(std::string_view prefix) const { return Join(prefix, caller_, ":", name_); }

absl::Status Once::RedisAnswered(int64_t number, bool repeated) {
  seen_ = repeated ? Seen::kDone : Seen::kNever;
  return number == kOtherContent ? OtherContentError() : absl::OkStatus();
}

}  // namespace curtail::apps
