// SPDX-License-Identifier: Apache-2.0
//
// User: names, passwords and sessions.
#include <algorithm>
#include <chrono>

#include "apps/kit/once.h"
#include "apps/social/data.h"
#include "apps/social/page.h"
#include "apps/social/secrets.h"
#include "apps/social/words.h"
#include "content.curtail.h"
#include "curtail/exec/aside.h"
#include "curtail/exec/semaphore.h"
#include "curtail/rpc/host.h"
#include "curtail/rpc/when_all.h"
#include "users.curtail.h"

namespace curtail::social {

// That wait to be hashed: some 5 s of two CPUs.
constexpr size_t kMostPasswords = 256;

struct UserOptions {
  DataOptions data;
  double session_h = 24;
  int hashes = 4;  // passwords that are hashed at once; each takes 16 MiB
};

absl::Status CheckName(const std::string& name) {
  const bool named = !name.empty() && name.size() <= 32 && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
  return named ? absl::OkStatus() : absl::InvalidArgumentError("a name is 1 to 32 of a-z, 0-9 and _");
}

absl::Status CheckCredentials(const Credentials& given) {
  if (absl::Status status = CheckName(given.name()); !status.ok()) return status;
  const std::string& password = given.password();
  if (password.size() < 8 || password.size() > 256) {
    return absl::InvalidArgumentError("a password has 8 to 256 bytes");
  }
  // HMAC, and so scrypt, takes one with zeros at its end for the same.
  if (password.find('\0') != std::string::npos) {
    return absl::InvalidArgumentError("a password has no zero bytes");
  }
  return absl::OkStatus();
}

struct UserService final : User::CoroutineService {
  UserService(const UserOptions& o, std::string s, SqlDatabase& d, UniqueId::Stub u)
      : options(o), secret(std::move(s)), db(d), unique_id(u), hashing(o.hashes, kMostPasswords) {}

  Coroutine Register(Context& ctx, const Credentials& request, Session* reply) override {
    if (absl::Status status = CheckCredentials(request); !status.ok()) co_return status;
    IdCount one;
    one.set_count(1);
    auto [ids] = co_await WhenAll(ctx, Ask(unique_id, UniqueId::kNext, one));
    if (!ids.ok()) co_return ids.status();
    const absl::StatusOr<std::string> hash =
        co_await Hash(ctx, [&] { return HashPassword(Composed(request.password())); });
    if (!hash.ok()) co_return hash.status();
    const uint64_t id = ids->ids(0);
    apps::Once once(ctx, /*caller=*/0);
    Session kept;  // without the token, which follows from it
    kept.set_user(id);
    kept.set_expires_s(NowS() + SessionS());
    absl::Status written = co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      return once.Write(s, &kept, [&] {
        absl::Status inserted = s.Execute("INSERT INTO users(id, name, hash) VALUES (?1, ?2, ?3)",
                                          {id, request.name(), SqlValue::Bytes(*hash)});
        return absl::IsAlreadyExists(inserted) ? NameTaken() : inserted;
      });
    });
    if (written.ok() && once.repeated()) {  // by whoever knows the password
      const absl::StatusOr<uint64_t> known = co_await Authenticate(ctx, request, /*closed_too=*/false);
      written = absl::IsUnauthenticated(known.status()) ? NameTaken() : known.status();
    }
    if (written.ok()) Open(kept.user(), request.name(), kept.expires_s(), reply);
    co_return written;
  }
  static absl::Status NameTaken() { return absl::AlreadyExistsError("the name is taken"); }

  Coroutine Login(Context& ctx, const Credentials& request, Session* reply) override {
    const absl::StatusOr<uint64_t> id = co_await Authenticate(ctx, request, /*closed_too=*/false);
    if (!id.ok()) co_return id.status();
    Open(*id, request.name(), NowS() + SessionS(), reply);
    co_return absl::OkStatus();
  }

  Coroutine Close(Context& ctx, const Credentials& request, UserId* reply) override {
    const absl::StatusOr<uint64_t> id = co_await Authenticate(ctx, request, /*closed_too=*/true);
    if (!id.ok()) co_return id.status();
    reply->set_user(*id);
    co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      return s.Execute("UPDATE users SET closed = 1 WHERE id = ?1", {*id});
    });
  }

  Coroutine Remove(Context& ctx, const UserId& request, Nothing*) override {
    co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      return s.Execute("DELETE FROM users WHERE id = ?1 AND closed = 1", {request.user()});
    });
  }

  Coroutine ListClosed(Context& ctx, const EdgePage& request, Ids* reply) override {
    co_return co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      return s.Query("SELECT id FROM users WHERE closed = 1 AND id > ?1 ORDER BY id LIMIT ?2",
                     {request.after(), uint64_t{EdgeLimitOf(request.limit())}},
                     [&](const SqlRow& row) { reply->add_ids(row.Unsigned(0)); });
    });
  }

  // The user of these credentials. UNAUTHENTICATED: there is none.
  Co<absl::StatusOr<uint64_t>> Authenticate(Context& ctx, const Credentials& request, bool closed_too) {
    if (absl::Status status = CheckCredentials(request); !status.ok()) co_return status;
    uint64_t id = 0;
    std::string hash;
    absl::Status read = co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      return s.Query("SELECT id, hash FROM users WHERE name = ?1 AND closed <= ?2",
                     {request.name(), closed_too ? 1 : 0},
                     [&](const SqlRow& row) { id = row.Unsigned(0), hash = row.Text(1); });
    });
    if (!read.ok()) co_return read;
    // An unknown name takes as long, so that the time does not tell which names there are.
    const absl::StatusOr<std::string> right = co_await Hash(ctx, [&]() -> absl::StatusOr<std::string> {
      const std::string composed = Composed(request.password());
      // One that was stored as it was typed is right, too.
      const bool is = IsPassword(composed, hash) ||
                      (composed != request.password() && IsPassword(request.password(), hash));
      return is ? "yes" : "";
    });
    if (!right.ok()) co_return right.status();
    if (right->empty()) co_return absl::UnauthenticatedError("the name or the password is wrong");
    co_return id;
  }

  Coroutine ById(Context& ctx, const Ids& request, People* reply) override {
    if (absl::Status status = CheckCount(request.ids_size(), kMostIds, "ids"); !status.ok()) co_return status;
    co_return co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      return s.QueryEach("SELECT id, name FROM users WHERE id = ?1 AND closed = 0", 1, Each(request.ids()),
                         [&](size_t, const SqlRow& row) { Put(row, reply->add_people()); });
    });
  }

  Coroutine ByName(Context& ctx, const Names& request, People* reply) override {
    if (absl::Status status = CheckCount(request.names_size(), kMostIds, "names"); !status.ok()) {
      co_return status;
    }
    co_return co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      return s.QueryEach("SELECT id, name FROM users WHERE name = ?1 AND closed = 0", 1,
                         Each(request.names()),
                         [&](size_t, const SqlRow& row) { Put(row, reply->add_people()); });
    });
  }

  Coroutine Search(Context& ctx, const NamePage& request, FoundPeople* reply) override {
    if (absl::Status status = CheckName(request.prefix()); !status.ok()) co_return status;
    const std::string end = request.prefix() + '{';  // after z, the last letter of names
    const uint32_t limit = LimitOf(request.limit());
    absl::Status read = co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      return s.Query(
          "SELECT id, name FROM users WHERE name >= ?1 AND name < ?2 AND name > ?3 AND closed = 0"
          " ORDER BY name LIMIT ?4",
          {request.prefix(), end, request.after(), uint64_t{limit}},
          [&](const SqlRow& row) { Put(row, reply->add_people()); });
    });
    if (reply->people_size() == static_cast<int>(limit)) reply->set_next(reply->people().rbegin()->name());
    co_return read;
  }

  std::vector<DeclaredPath> Paths() const override {
    return {{"Register", {std::string(UniqueId::kServiceName)}},
            {"Login", {}},
            {"Close", {}},
            {"Remove", {}},
            {"ListClosed", {}},
            {"ById", {}},
            {"ByName", {}},
            {"Search", {}}};
  }

  static void Put(const SqlRow& row, Person* person) {
    person->set_id(row.Unsigned(0));
    person->set_name(std::string(row.Text(1)));
  }

  // Runs `f`, which takes long, aside, when it has one of the places that there is memory for.
  template <class F>
  Co<absl::StatusOr<std::string>> Hash(const Context& ctx, F f) {
    const absl::StatusOr<Semaphore::Permit> permit = co_await hashing.Acquire(ctx);
    if (!permit.ok()) co_return permit.status();
    co_return co_await Offloading(f);
  }

  static int64_t NowS() {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::seconds>(now).count();
  }
  int64_t SessionS() const { return static_cast<int64_t>(options.session_h * 3600); }
  void Open(uint64_t id, const std::string& name, int64_t expires_s, Session* session) const {
    session->set_user(id);
    session->set_name(name);
    session->set_expires_s(expires_s);
    session->set_token(SignToken(secret, id, expires_s - SessionS(), expires_s));
  }

  const UserOptions options;
  const std::string secret;
  SqlDatabase& db;
  const UniqueId::Stub unique_id;
  Semaphore hashing;
};

HostedService HostedUser() {
  auto options = std::make_shared<UserOptions>();
  return {
      .name = "user",
      .calls = {"unique-id"},
      .flags =
          [options](Flags& flags) {
            AddDataFlags(flags, &options->data);
            flags.Add("--session", &options->session_h, "user: hours that a token is valid", {1e-3, 8760});
            flags.Add("--hashes", &options->hashes, "user: passwords that are hashed at once; 256 more wait",
                      {1, 64});
          },
      .make = [options](Env& env) -> MadeService {
        auto db = OpenData(env, options->data, "user",
                           {"CREATE TABLE users(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,"
                            " hash BLOB NOT NULL) STRICT",
                            "ALTER TABLE users ADD COLUMN closed INTEGER NOT NULL DEFAULT 0",
                            "CREATE INDEX closed_users ON users(id) WHERE closed = 1", apps::kOnceSchema});
        if (!db.ok()) return db.status();
        auto secret = TokenSecret(options->data);
        if (!secret.ok()) return secret.status();
        return std::make_unique<UserService>(*options, *std::move(secret), **db,
                                             env.Stub<UniqueId>("unique-id"));
      }};
}

}  // namespace curtail::social
