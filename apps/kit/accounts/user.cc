// SPDX-License-Identifier: Apache-2.0
//
// User: names, passwords and sessions.
#include <algorithm>
#include <cstring>

#include "apps/kit/accounts/for_clients.h"
#include "apps/kit/accounts/hosted.h"
#include "apps/kit/accounts/one_time_code.h"
#include "apps/kit/accounts/passwords.h"
#include "apps/kit/accounts/tokens.h"
#include "apps/kit/data/data.h"
#include "apps/kit/data/secrets.h"
#include "apps/kit/fair_semaphore.h"
#include "apps/kit/index/words.h"
#include "apps/kit/once.h"
#include "apps/kit/page.h"
#include "apps/kit/wall_clock.h"
#include "curtail/base/strings.h"
#include "curtail/exec/aside.h"
#include "curtail/rpc/host.h"
#include "curtail/rpc/when_all.h"

namespace curtail::apps {
namespace {

// That wait to be hashed: some 5 s of two CPUs. Addresses have their turns one after the other.
constexpr size_t kMostPasswords = 256;
// After a session has expired its end is kept for this long, as clocks differ.
constexpr int64_t kEndKeptS = 3600;

// Tokens that are not valid although they have not expired. Those of an older epoch are not, either.
const char kEndedSchema[] =
    "ALTER TABLE users ADD COLUMN epoch INTEGER NOT NULL DEFAULT 0;"
    "CREATE TABLE ended(user INTEGER, number INTEGER, expires_s INTEGER NOT NULL,"
    " PRIMARY KEY(user, number)) STRICT, WITHOUT ROWID;"
    "CREATE INDEX ended_by_time ON ended(expires_s)";

// The secret of a user's codes, the step of the last that was taken, and how many were wrong since a time.
const char kCodesSchema[] =
    "CREATE TABLE codes(user INTEGER PRIMARY KEY, secret BLOB NOT NULL, taken INTEGER NOT NULL,"
    " wrong INTEGER NOT NULL, since_s INTEGER NOT NULL) STRICT";
constexpr size_t kCodeSecretBytes = 20;  // as RFC 4226 recommends
constexpr size_t kMostAddress = 64;      // bytes of an address that count
// Codes, and passwords, too.
constexpr int64_t kMostWrong = 5, kWrongKeptS = 15 * 60, kSteppedUpS = 5 * 60;

// How many passwords were wrong since a time, by the name and the address of whoever tried.
const char kWrongSchema[] =
    "CREATE TABLE wrong(who TEXT PRIMARY KEY, times INTEGER NOT NULL, since_s INTEGER NOT NULL)"
    " STRICT, WITHOUT ROWID;"
    "CREATE INDEX wrong_by_time ON wrong(since_s)";

struct UserOptions {
  DataOptions data;
  double session_h = 24;
  std::string ids;  // the service that gives them
  int hashes = 4;   // passwords that are hashed at once; each takes 16 MiB
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
  UserService(const UserOptions& o, Tokens t, SqlDatabase& d, Env& e)
      : options(o), tokens(std::move(t)), db(d), env(e), hashing(o.hashes, o.hashes, kMostPasswords) {}

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
    Once once(ctx, /*caller=*/0);
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
    SessionId session;
    session.set_user(kept.user());
    session.set_number(kept.user());  // so that a repetition has the same
    session.set_expires_s(kept.expires_s());
    if (written.ok() && once.repeated()) {  // by whoever knows the password
      const absl::StatusOr<Account> known = co_await Authenticate(ctx, request, /*closed_too=*/false);
      written = absl::IsUnauthenticated(known.status()) ? NameTaken() : known.status();
      if (known.ok()) session.set_epoch(known->epoch);
    }
    if (written.ok()) Open(session, request.name(), reply);
    co_return written;
  }
  static absl::Status NameTaken() { return absl::AlreadyExistsError("the name is taken"); }

  Coroutine Login(Context& ctx, const Credentials& request, Session* reply) override {
    const absl::StatusOr<Account> known = co_await Authenticate(ctx, request, /*closed_too=*/false);
    if (!known.ok()) co_return known.status();
    co_return OpenNew(*known, request.name(), reply);
  }

  Coroutine EndSession(Context& ctx, const SessionId& request, Changed* reply) override {
    co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      absl::Status status = s.Execute(
          "DELETE FROM ended WHERE (user, number) IN"
          " (SELECT user, number FROM ended WHERE expires_s < ?1 LIMIT 16)",
          {NowS() - kEndKeptS});
      if (!status.ok()) return status;
      // The session has tokens that expire later, if this one is of StepUp().
      status =
          s.Execute("INSERT INTO ended(user, number, expires_s) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING",
                    {request.user(), request.number(), std::max(request.expires_s(), NowS() + SessionS())});
      reply->set_changed(status.ok() && s.changes() > 0);
      return status;
    });
  }

  Coroutine ChangePassword(Context& ctx, const PasswordChange& request, Session* reply) override {
    Credentials known, fresh;
    known.set_name(request.name());
    known.set_password(request.password());
    fresh.set_name(request.name());
    fresh.set_password(request.new_password());
    if (absl::Status status = CheckCredentials(fresh); !status.ok()) co_return status;
    absl::StatusOr<Account> account = co_await Authenticate(ctx, known, /*closed_too=*/false);
    if (!account.ok()) co_return account.status();
    const absl::StatusOr<std::string> hash =
        co_await Hash(ctx, [&] { return HashPassword(Composed(request.new_password())); });
    if (!hash.ok()) co_return hash.status();
    absl::Status written = co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      absl::Status updated = s.Execute(
          "UPDATE users SET hash = ?3, epoch = epoch + 1 WHERE id = ?1 AND epoch = ?2 AND closed = 0",
          {account->id, account->epoch, SqlValue::Bytes(*hash)});
      if (!updated.ok() || s.changes() > 0) return updated;
      return absl::AbortedError("another change of the account came between: log in, and try again");
    });
    if (!written.ok()) co_return written;
    ++account->epoch;
    co_return OpenNew(*account, request.name(), reply);
  }

  Coroutine EnrolCodes(Context& ctx, const Credentials& request, CodeSecret* reply) override {
    const absl::StatusOr<Account> account = co_await Authenticate(ctx, request, /*closed_too=*/false);
    if (!account.ok()) co_return account.status();
    const absl::StatusOr<std::string> drawn = RandomBytes(kCodeSecretBytes);
    if (!drawn.ok()) co_return drawn.status();
    const std::string& application = options.data.application;
    reply->set_secret(InBase32(*drawn));
    reply->set_uri(Join("otpauth://totp/", application, ":", request.name(), "?secret=", reply->secret(),
                        "&issuer=", application));
    co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      absl::Status status = s.Execute(
          "INSERT INTO codes(user, secret, taken, wrong, since_s) VALUES (?1, ?2, 0, 0, 0)"
          " ON CONFLICT(user) DO UPDATE SET secret = excluded.secret WHERE codes.taken = 0",
          {account->id, SqlValue::Bytes(*drawn)});
      if (status.ok() && s.changes() == 0)
        status = absl::AlreadyExistsError("the user has codes; those of before still serve");
      return status;
    });
  }

  Coroutine StepUp(Context& ctx, const CodeProof& request, Session* reply) override {
    absl::Status judged;  // apart, so that what is wrong is kept, too
    const absl::Status written = co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      judged = absl::FailedPreconditionError("the user has no codes: enrol first");
      const int64_t now_s = NowS();
      std::string known;
      int64_t taken = 0, wrong = 0, since_s = 0;
      absl::Status status = s.Query("SELECT secret, taken, wrong, since_s FROM codes WHERE user = ?1",
                                    {request.session().user()}, [&](const SqlRow& row) {
                                      known = row.Text(0);
                                      taken = row.Integer(1), wrong = row.Integer(2),
                                      since_s = row.Integer(3);
                                    });
      if (!status.ok() || known.empty()) return status;
      if (now_s >= since_s + kWrongKeptS) wrong = 0;
      judged = absl::ResourceExhaustedError("too many codes were wrong: try again in 15 minutes");
      if (wrong >= kMostWrong) return status;
      const int64_t step = StepOf(known, request.code(), taken, now_s);
      judged =
          step > 0 ? absl::OkStatus() : absl::PermissionDeniedError("the code is wrong, or was taken before");
      return s.Execute("UPDATE codes SET taken = ?2, wrong = ?3, since_s = ?4 WHERE user = ?1",
                       {request.session().user(), std::max(taken, step), step > 0 ? 0 : wrong + 1,
                        wrong == 0 ? now_s : since_s});
    });
    if (!written.ok()) co_return written;
    if (!judged.ok()) co_return judged;
    SessionId session = request.session();
    session.set_stepped_up(true);
    session.set_expires_s(std::min(session.expires_s(), NowS() + kSteppedUpS));
    Open(session, /*name=*/"", reply);
    co_return absl::OkStatus();
  }
  // The step of a code that is later than `taken`; 0: the code is of none about now. Clocks differ by a step.
  static int64_t StepOf(std::string_view known, const std::string& code, int64_t taken, int64_t now_s) {
    const int64_t now = now_s / kCodeStepS;
    for (int64_t step = std::max(now - 1, taken + 1); step <= now + 1; ++step)
      if (CodeOf(known, step) == code) return step;
    return 0;
  }

  Coroutine CheckSession(Context& ctx, const SessionId& request, Nothing*) override {
    bool ended = false;
    absl::Status status = co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      return s.Query(
          "SELECT 1 FROM ended WHERE user = ?1 AND number = ?2"
          " UNION ALL SELECT 1 FROM users WHERE id = ?1 AND epoch <> ?3",
          {request.user(), request.number(), request.epoch()}, [&](const SqlRow&) { ended = true; });
    });
    if (status.ok() && ended) status = absl::UnauthenticatedError("the session was ended: log in again");
    co_return status;
  }

  Coroutine Close(Context& ctx, const Credentials& request, UserId* reply) override {
    const absl::StatusOr<Account> account = co_await Authenticate(ctx, request, /*closed_too=*/true);
    if (!account.ok()) co_return account.status();
    reply->set_user(account->id);
    co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      return s.Execute("UPDATE users SET closed = 1 WHERE id = ?1", {account->id});
    });
  }

  Coroutine EndUser(Context& ctx, const UserId& request, Nothing*) override {
    co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      return s.Execute("UPDATE users SET closed = 1, epoch = epoch + 1 WHERE id = ?1 AND closed = 0",
                       {request.user()});
    });
  }

  Coroutine Remove(Context& ctx, const UserId& request, Nothing*) override {
    co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      absl::Status status = s.Execute("DELETE FROM users WHERE id = ?1 AND closed = 1", {request.user()});
      if (!status.ok() || s.changes() == 0) return status;
      return s.Execute("DELETE FROM codes WHERE user = ?1", {request.user()});
    });
  }

  Coroutine ListClosed(Context& ctx, const IdPage& request, Ids* reply) override {
    co_return co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      return s.Query("SELECT id FROM users WHERE closed = 1 AND id > ?1 ORDER BY id LIMIT ?2",
                     {request.after(), uint64_t{EdgeLimitOf(request.limit())}},
                     [&](const SqlRow& row) { reply->add_ids(row.Unsigned(0)); });
    });
  }

  struct Account {
    uint64_t id = 0, epoch = 0;
  };
  // The user of these credentials. UNAUTHENTICATED: there is none.
  Co<absl::StatusOr<Account>> Authenticate(Context& ctx, const Credentials& request, bool closed_too) {
    if (absl::Status status = CheckCredentials(request); !status.ok()) co_return status;
    // Before the look at what was wrong, so that those that are tried at once are few.
    const std::string from = AddressOf(ctx);
    const absl::StatusOr<FairSemaphore::Permit> permit = co_await hashing.Acquire(ctx, from);
    if (!permit.ok()) co_return permit.status();
    const std::string who = Join(request.name(), " ", from);
    Account account;
    std::string hash;
    int64_t wrong = 0;
    absl::Status read = co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      absl::Status status = s.Query("SELECT id, hash, epoch FROM users WHERE name = ?1 AND closed <= ?2",
                                    {request.name(), closed_too ? 1 : 0}, [&](const SqlRow& row) {
                                      account = {row.Unsigned(0), row.Unsigned(2)};
                                      hash = row.Text(1);
                                    });
      status.Update(s.Query("SELECT times FROM wrong WHERE who = ?1 AND since_s > ?2",
                            {who, NowS() - kWrongKeptS}, [&](const SqlRow& row) { wrong = row.Integer(0); }));
      return status;
    });
    if (!read.ok()) co_return read;
    if (wrong >= kMostWrong)
      co_return absl::ResourceExhaustedError("too many passwords were wrong: try again in 15 minutes");
    // An unknown name takes as long, so that the time does not tell which names there are.
    const bool right = co_await Offloading([&] {
      const std::string composed = Composed(request.password());
      // One that was stored as it was typed is right, too.
      return IsPassword(composed, hash) ||
             (composed != request.password() && IsPassword(request.password(), hash));
    });
    if (!right || wrong > 0) {
      absl::Status counted = co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
        return right ? s.Execute("DELETE FROM wrong WHERE who = ?1", {who}) : CountWrong(s, who);
      });
      if (!counted.ok()) co_return counted;
    }
    if (!right) co_return absl::UnauthenticatedError("the name or the password is wrong");
    co_return account;
  }
  static absl::Status CountWrong(SqlSession& s, const std::string& who) {
    const int64_t now_s = NowS();
    absl::Status status = s.Execute(
        "DELETE FROM wrong WHERE who IN (SELECT who FROM wrong WHERE since_s <= ?1 ORDER BY since_s LIMIT "
        "16)",
        {now_s - kWrongKeptS});
    if (!status.ok()) return status;
    return s.Execute(
        "INSERT INTO wrong(who, times, since_s) VALUES (?1, 1, ?2) ON CONFLICT(who) DO UPDATE SET"
        " times = CASE WHEN wrong.since_s > ?3 THEN wrong.times + 1 ELSE 1 END,"
        " since_s = CASE WHEN wrong.since_s > ?3 THEN wrong.since_s ELSE excluded.since_s END",
        {who, now_s, now_s - kWrongKeptS});
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
    return {{"Register", {unique_id}},
            {"Login", {}},
            {"EndSession", {}},
            {"ChangePassword", {}},
            {"EnrolCodes", {}},
            {"StepUp", {}},
            {"CheckSession", {}},
            {"Close", {}},
            {"EndUser", {}},
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
    const absl::StatusOr<FairSemaphore::Permit> permit = co_await hashing.Acquire(ctx, AddressOf(ctx));
    if (!permit.ok()) co_return permit.status();
    co_return co_await Offloading(f);
  }

  static std::string AddressOf(const Context& ctx) {
    return std::string(ctx.metadata().Find(kClientAddress).value_or("").substr(0, kMostAddress));
  }
  static int64_t NowS() { return NowMs() / 1000; }
  int64_t SessionS() const { return static_cast<int64_t>(options.session_h * 3600); }
  void Open(const SessionId& id, const std::string& name, Session* session) const {
    session->set_name(name);
    tokens.Open(id, SessionS(), session);
  }
  absl::Status OpenNew(const Account& of, const std::string& name, Session* session) const {
    const absl::StatusOr<std::string> drawn = RandomBytes(sizeof(uint64_t));
    if (!drawn.ok()) return drawn.status();
    uint64_t number = 0;
    std::memcpy(&number, drawn->data(), sizeof(number));
    SessionId id;
    id.set_user(of.id);
    id.set_epoch(of.epoch);
    id.set_number(number >> 1);  // below 2^63, as the store has it
    id.set_expires_s(NowS() + SessionS());
    Open(id, name, session);
    return absl::OkStatus();
  }

  const UserOptions options;
  const Tokens tokens;
  SqlDatabase& db;
  Env& env;
  const UniqueId::Stub unique_id = env.Stub<UniqueId>(options.ids);
  FairSemaphore hashing;
};

}  // namespace

HostedService HostedUser(const std::string& application, Beside<User> beside, const std::string& name,
                         const std::string& ids) {
  auto options = std::make_shared<UserOptions>();
  options->data.application = application;
  options->ids = ids;
  return {
      .name = name,
      .flags =
          [options, name](Flags& flags) {
            AddDataFlags(flags, &options->data);
            flags.Add("--session", &options->session_h, name + ": hours that a token is valid", {1e-3, 8760});
            flags.Add(
                "--hashes", &options->hashes,
                name + ": passwords that are hashed at once; 256 more wait, a third of them of one address",
                {1, 64});
          },
      .make = [options, beside, name](Env& env) -> MadeService {
        auto db = OpenData(env, options->data, name,
                           {"CREATE TABLE users(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,"
                            " hash BLOB NOT NULL) STRICT",
                            "ALTER TABLE users ADD COLUMN closed INTEGER NOT NULL DEFAULT 0",
                            "CREATE INDEX closed_users ON users(id) WHERE closed = 1", kOnceSchema,
                            kEndedSchema, kCodesSchema, kWrongSchema},
                           /*of=*/"user");
        if (!db.ok()) return db.status();
        auto tokens = Tokens::Load(options->data);
        if (!tokens.ok()) return tokens.status();
        auto made = std::make_unique<UserService>(*options, *std::move(tokens), **db, env);
        if (beside) env.AlsoServe(beside(env, *made));
        return made;
      }};
}

}  // namespace curtail::apps
