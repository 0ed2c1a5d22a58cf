// SPDX-License-Identifier: Apache-2.0
//
// Direct message: conversations of two users each.
//
// A message is a row. A conversation has two more, one for each party, which name its last message, so that a list of
// conversations reads nothing else.
//
// A conversation goes with either party, the messages of both included. It is found by the name of the other, so
// what stayed could be neither read nor deleted.
#include <algorithm>
#include <chrono>
#include <unordered_map>
#include <unordered_set>

#include "apps/kit/accounts/gone.h"
#include "apps/kit/once.h"
#include "apps/social/common/page.h"
#include "apps/social/data.h"
#include "content.curtail.h"
#include "curtail/rpc/host.h"
#include "curtail/rpc/when_all.h"
#include "messages.curtail.h"
#include "users.curtail.h"

namespace curtail::social {

constexpr size_t kMostMessageBytes = 4096;
// Conversations that one transaction of ForgetUser() deletes at most, by two statements each.
constexpr int kConversationsAtOnce = 50;

const char kMessageSchema[] =
    "CREATE TABLE messages(id INTEGER PRIMARY KEY, low INTEGER NOT NULL, high INTEGER NOT NULL,"
    " author INTEGER NOT NULL, text TEXT NOT NULL, created_ms INTEGER NOT NULL) STRICT;"
    "CREATE INDEX messages_of ON messages(low, high, id);"
    "CREATE TABLE conversations(user INTEGER, other INTEGER, last INTEGER NOT NULL, PRIMARY KEY(user, other))"
    " STRICT, WITHOUT ROWID;"
    "CREATE INDEX newest ON conversations(user, last);";

struct DirectMessageService final : DirectMessaging::CoroutineService {
  DirectMessageService(SqlDatabase& d, Env& e) : db(d), env(e) {}

  Coroutine Send(Context& ctx, const MessageDraft& request, DirectMessage* reply) override {
    if (request.text().empty() || request.text().size() > kMostMessageBytes)
      co_return absl::InvalidArgumentError("a message has 1 to 4096 bytes");
    if (request.from() == request.to()) co_return absl::InvalidArgumentError("nobody writes to itself");
    IdCount one;
    one.set_count(1);
    Ids author;
    author.add_ids(request.from());
    auto all = co_await WhenAllOk(ctx, Ask(unique_id, UniqueId::kNext, one), Ask(user, User::kById, author),
                                  Ask(block_user, BlockUser::kHidden, LookAt(request.from(), request.to())));
    if (!all.ok()) co_return all.status();
    auto& [ids, people, hidden] = *all;
    if (!hidden.ids().empty()) co_return absl::PermissionDeniedError("one of the two blocks the other");
    if (people.people_size() != 1) co_return apps::GoneError();
    reply->set_id(ids.ids(0));
    *reply->mutable_from() = people.people(0);
    reply->set_text(request.text());
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    reply->set_created_ms(std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
    const uint64_t low = std::min(request.from(), request.to()),
                   high = std::max(request.from(), request.to());
    co_return co_await apps::WriteOnce(db, ctx, request.from(), reply, [&](SqlSession& s) {
      absl::Status status = s.Execute(
          "INSERT INTO messages(id, low, high, author, text, created_ms) SELECT ?1, ?2, ?3, ?4, ?5, ?6"
          " WHERE NOT EXISTS (SELECT 1 FROM gone WHERE user IN (?2, ?3))",
          {reply->id(), low, high, request.from(), request.text(), reply->created_ms()});
      if (!status.ok()) return status;
      if (s.changes() == 0) return apps::CheckBothThere(s, request.from(), request.to());
      return NoteLast(s, low, high);
    });
  }

  Coroutine List(Context& ctx, const MessagePage& request, Conversations* reply) override {
    Conversations found;
    Ids people;
    const uint32_t limit = apps::LimitOf(request.limit());
    absl::Status read = co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      return s.Query(
          "SELECT id, author, text, created_ms, other FROM conversations JOIN messages ON id = last"
          " WHERE user = ?1 AND last < ?2 ORDER BY last DESC LIMIT ?3",
          {request.user(), apps::BeforeOf(request.before()), uint64_t{limit}}, [&](const SqlRow& row) {
            Conversation* const one = found.add_conversations();
            Put(row, one->mutable_last());
            one->mutable_with()->set_id(row.Unsigned(4));
            people.add_ids(row.Unsigned(4));
          });
    });
    if (!read.ok() || found.conversations().empty()) co_return read;
    LookRequest look;
    look.set_viewer(request.user());
    *look.mutable_authors() = people.ids();
    people.add_ids(request.user());
    auto both =
        co_await WhenAllOk(ctx, Ask(user, User::kById, people), Ask(block_user, BlockUser::kHidden, look));
    if (!both.ok()) co_return both.status();
    auto& [named, looked] = *both;
    const std::unordered_set<uint64_t> hidden(looked.ids().begin(), looked.ids().end());
    const auto names = NamesOf(named);
    if (found.conversations_size() == static_cast<int>(limit)) {
      reply->set_next(found.conversations().rbegin()->last().id());
    }
    for (Conversation& one : *found.mutable_conversations()) {
      if (hidden.contains(one.with().id())) continue;
      Name(names, one.mutable_with());
      Name(names, one.mutable_last()->mutable_from());
      reply->add_conversations()->Swap(&one);
    }
    co_return absl::OkStatus();
  }

  Coroutine Read(Context& ctx, const MessagePage& request, DirectMessages* reply) override {
    const uint64_t low = std::min(request.user(), request.other()),
                   high = std::max(request.user(), request.other());
    const uint32_t limit = apps::LimitOf(request.limit());
    Ids people;
    people.add_ids(low), people.add_ids(high);
    auto both =
        co_await WhenAllOk(ctx, Ask(user, User::kById, people),
                           Ask(block_user, BlockUser::kHidden, LookAt(request.user(), request.other())));
    if (!both.ok()) co_return both.status();
    auto& [named, hidden] = *both;
    if (!hidden.ids().empty()) co_return absl::OkStatus();
    const auto names = NamesOf(named);
    absl::Status read = co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      return s.Query(
          "SELECT id, author, text, created_ms FROM messages"
          " WHERE low = ?1 AND high = ?2 AND id < ?3 ORDER BY id DESC LIMIT ?4",
          {low, high, apps::BeforeOf(request.before()), uint64_t{limit}}, [&](const SqlRow& row) {
            DirectMessage* const message = reply->add_messages();
            Put(row, message);
            Name(names, message->mutable_from());
          });
    });
    if (reply->messages_size() == static_cast<int>(limit)) reply->set_next(reply->messages().rbegin()->id());
    co_return read;
  }

  Coroutine Delete(Context& ctx, const MessageOfUser& request, Nothing* reply) override {
    co_return co_await apps::WriteOnce(db, ctx, request.user(), reply, [&](SqlSession& s) {
      uint64_t low = 0, high = 0, author = 0;
      absl::Status status = s.Query("SELECT low, high, author FROM messages WHERE id = ?1",
                                    {request.message()}, [&](const SqlRow& row) {
                                      low = row.Unsigned(0), high = row.Unsigned(1), author = row.Unsigned(2);
                                    });
      if (!status.ok()) return status;
      // To others it is as if there were none.
      if (request.user() != low && request.user() != high)
        return absl::NotFoundError("there is no such message");
      if (request.user() != author) return absl::PermissionDeniedError("the other wrote it");
      status = s.Execute("DELETE FROM messages WHERE id = ?1", {request.message()});
      return status.ok() ? NoteLast(s, low, high) : status;
    });
  }

  Coroutine ForgetUser(Context& ctx, const UserId& request, Nothing*) override {
    return apps::Forgetting(
        db, ctx.deadline(), request.user(), [user = request.user()](SqlSession& s, bool* more) {
          std::vector<uint64_t> others;
          absl::Status status = s.Query("SELECT other FROM conversations WHERE user = ?1 LIMIT ?2",
                                        {user, kConversationsAtOnce},
                                        [&](const SqlRow& row) { others.push_back(row.Unsigned(0)); });
          *more = !others.empty();
          int64_t left = apps::kMostForgotten;
          for (const uint64_t other : others) {
            if (status.ok() && left > 0) status = ForgetConversation(s, user, other, &left);
          }
          return status;
        });
  }

  // Deletes up to `left` messages, and lessens it by those. At 0 the conversation is there still.
  static absl::Status ForgetConversation(SqlSession& s, uint64_t user, uint64_t other, int64_t* left) {
    // The last one last, as the list of conversations shows it.
    absl::Status status = s.Execute(
        "DELETE FROM messages WHERE id IN"
        " (SELECT id FROM messages WHERE low = ?1 AND high = ?2 ORDER BY id LIMIT ?3)",
        {std::min(user, other), std::max(user, other), *left});
    if (!status.ok()) return status;
    *left -= s.changes();
    if (*left == 0) return status;
    return s.Execute(
        "DELETE FROM conversations WHERE (user = ?1 AND other = ?2) OR (user = ?2 AND other = ?1)",
        {user, other});
  }

  // Brings the conversation's two rows to its last message.
  static absl::Status NoteLast(SqlSession& s, uint64_t low, uint64_t high) {
    uint64_t last = 0;
    absl::Status status = s.Query("SELECT max(id) FROM messages WHERE low = ?1 AND high = ?2", {low, high},
                                  [&](const SqlRow& row) { last = row.Unsigned(0); });
    for (const auto& [one, other] : {std::pair(low, high), std::pair(high, low)}) {
      if (!status.ok()) return status;
      status = last == 0 ? s.Execute("DELETE FROM conversations WHERE user = ?1 AND other = ?2", {one, other})
                         : s.Execute(
                               "INSERT INTO conversations VALUES (?1, ?2, ?3) "
                               "ON CONFLICT(user, other) DO UPDATE SET last = excluded.last",
                               {one, other, last});
    }
    return status;
  }

  static void Put(const SqlRow& row, DirectMessage* message) {
    message->set_id(row.Unsigned(0));
    message->mutable_from()->set_id(row.Unsigned(1));
    message->set_text(std::string(row.Text(2)));
    message->set_created_ms(row.Integer(3));
  }
  static std::unordered_map<uint64_t, std::string> NamesOf(const People& people) {
    std::unordered_map<uint64_t, std::string> names;
    for (const Person& person : people.people()) names[person.id()] = person.name();
    return names;
  }
  static void Name(const std::unordered_map<uint64_t, std::string>& names, Person* person) {
    if (const auto found = names.find(person->id()); found != names.end()) person->set_name(found->second);
  }
  static LookRequest LookAt(uint64_t viewer, uint64_t other) {
    LookRequest look;
    look.set_viewer(viewer);
    look.add_authors(other);
    return look;
  }

  std::vector<DeclaredPath> Paths() const override {
    return {{"Send", {unique_id, user, block_user}},
            {"List", {user, block_user}},
            {"Read", {user, block_user}},
            {"Delete", {}},
            {"ForgetUser", {}}};
  }

  SqlDatabase& db;
  Env& env;
  const UniqueId::Stub unique_id = env.Stub<UniqueId>("unique-id");
  const User::Stub user = env.Stub<User>("user");
  const BlockUser::Stub block_user = env.Stub<BlockUser>("block-user");
};

HostedService HostedDirectMessage() {
  return apps::HostedWithData<DirectMessageService>(kApplication, "direct-message",
                                                    {kMessageSchema, apps::kGoneSchema, apps::kOnceSchema});
}

}  // namespace curtail::social
