// SPDX-License-Identifier: Apache-2.0
//
// Cart: baskets of customers and guests. A basket has a version, which ascends with each change. The memcached has baskets by owner and
// version. So an entry never changes, and a reader who knows the newest version of an owner finds no old basket.
//
// A guest's basket goes an hour after the guest's session has ended, so that guests do not fill the disk. Each new guest removes
// up to 16 such baskets, so the tables hold the guests of about a day. Until then a basket that was moved takes no more. Nobody
// can ask for a basket that has gone: the hour is for clocks that differ.
#include <algorithm>
#include <unordered_map>

#include "apps/kit/data/cache.h"
#include "apps/kit/wall_clock.h"
#include "apps/shop/data.h"
#include "curtail/base/mutex.h"
#include "customers.curtail.h"

namespace curtail::shop {

constexpr int64_t kGuestBasketS = kGuestS + 3600;
constexpr int kRemovedAtOnce = 16;

// The newest versions of baskets, as far as this process has heard of them. Thread-safe.
class BasketVersions {
 public:
  // 0: it has not.
  uint64_t Of(uint64_t owner) const {
    const MutexLock lock(mu_);
    const auto found = versions_.find(owner);
    return found == versions_.end() ? 0 : found->second;
  }
  void Hear(uint64_t owner, uint64_t version) {
    const MutexLock lock(mu_);
    if (versions_.size() >= kMostOwners) versions_.clear();
    uint64_t& known = versions_[owner];
    known = std::max(known, version);
  }

 private:
  static constexpr size_t kMostOwners = 1'000'000;

  mutable Mutex mu_;
  std::unordered_map<uint64_t, uint64_t> versions_ CURTAIL_GUARDED_BY(mu_);
};

struct CartService final : Cart::CoroutineService {
  CartService(SqlDatabase& d, std::unique_ptr<apps::Cache> c) : db(d), cache(std::move(c)) {}

  Coroutine Get(Context& ctx, const apps::UserId& request, Basket* reply) override {
    const uint64_t owner = request.user();
    const uint64_t known = cache == nullptr ? 0 : versions.Of(owner);
    std::vector<std::optional<std::string>> cached;
    const std::vector<std::string> keys = {Join(owner, ".", known)};
    if (known != 0) (co_await cache->Get(ctx, keys, &cached)).IgnoreError();
    if (!cached.empty() && cached[0] && reply->ParseFromString(*cached[0])) co_return absl::OkStatus();
    reply->Clear();
    absl::Status status =
        co_await db.Reading(ctx.deadline(), [&](SqlSession& s) { return Read(s, owner, reply); });
    if (status.ok()) (co_await Told(ctx, owner, *reply)).IgnoreError();
    co_return status;
  }

  // Keeps a basket for readers, once its write is on disk. Has no errors.
  Coroutine Told(Context& ctx, uint64_t owner, const Basket& basket) {
    if (cache == nullptr || basket.version() == 0) co_return absl::OkStatus();
    versions.Hear(owner, basket.version());
    const std::vector<std::string> keys = {Join(owner, ".", basket.version())};
    const std::vector<std::string> values = {basket.SerializeAsString()};
    co_return co_await cache->Add(ctx, keys, values);
  }

  Coroutine Add(Context& ctx, const BasketChange& request, Basket* reply) override {
    return Change(ctx, request.owner(), reply, [&](SqlSession& s) {
      uint64_t count = request.line().count(), lines = 0;
      absl::Status status = s.Query(
          "SELECT (SELECT count(*) FROM lines WHERE owner = ?1),"
          " (SELECT count FROM lines WHERE owner = ?1 AND product = ?2)",
          {request.owner(), request.line().product()}, [&](const SqlRow& row) {
            lines = row.Unsigned(1) == 0 ? row.Unsigned(0) + 1 : 0;
            count += row.Unsigned(1);
          });
      if (status.ok()) status = CheckLine(request.line().product(), request.line().count());
      if (status.ok()) status = CheckLine(request.line().product(), count);
      if (status.ok() && lines > kMostLines)
        status = absl::ResourceExhaustedError(Join("a basket has at most ", kMostLines, " products"));
      return status.ok() ? Put(s, request.owner(), request.line().product(), count) : status;
    });
  }

  Coroutine Update(Context& ctx, const BasketChange& request, Basket* reply) override {
    return Change(ctx, request.owner(), reply, [&](SqlSession& s) {
      absl::Status status = CheckLine(request.line().product(), request.line().count());
      if (!status.ok()) return status;
      status = s.Execute("UPDATE lines SET count = ?3 WHERE owner = ?1 AND product = ?2",
                         {request.owner(), request.line().product(), uint64_t{request.line().count()}});
      if (status.ok() && s.changes() == 0) status = absl::NotFoundError("the basket lacks this product");
      return status;
    });
  }

  Coroutine Remove(Context& ctx, const BasketChange& request, Basket* reply) override {
    return Change(ctx, request.owner(), reply, [&](SqlSession& s) {
      return s.Execute("DELETE FROM lines WHERE owner = ?1 AND product = ?2",
                       {request.owner(), request.line().product()});
    });
  }

  Coroutine Clear(Context& ctx, const apps::UserId& request, Basket* reply) override {
    return Change(ctx, request.user(), reply, [&](SqlSession& s) { return Empty(s, request.user()); });
  }

  Coroutine Merge(Context& ctx, const BasketMerge& request, Basket* reply) override {
    if (request.to() == request.from())
      co_return absl::InvalidArgumentError("a basket is not merged with itself");
    Basket guests;
    absl::Status status = co_await Change(ctx, request.to(), reply, [&](SqlSession& s) {
      absl::Status moved = Read(s, request.from(), &guests);
      for (const Line& line : guests.lines()) {
        uint64_t count = line.count();
        if (moved.ok())
          moved =
              s.Query("SELECT count FROM lines WHERE owner = ?1 AND product = ?2",
                      {request.to(), line.product()}, [&](const SqlRow& row) { count += row.Unsigned(0); });
        if (moved.ok())
          moved = Put(s, request.to(), line.product(), std::min<uint64_t>(count, kMostOfProduct));
      }
      Basket merged;
      if (moved.ok()) moved = Read(s, request.to(), &merged);
      if (moved.ok() && merged.lines_size() > kMostLines)
        moved = absl::ResourceExhaustedError(Join("both baskets have more than ", kMostLines, " products"));
      return moved.ok() ? Close(s, request.from()) : moved;
    });
    if (status.ok()) versions.Hear(request.from(), guests.version() + 1);
    co_return status;
  }

  Coroutine Take(Context& ctx, const Bought& request, apps::Nothing*) override {
    if (request.orders_size() > kMostOrders)
      co_return absl::InvalidArgumentError("there are too many orders");
    std::vector<std::pair<uint64_t, uint64_t>> changed;  // owners with their versions
    absl::Status status = co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      changed.clear();
      for (const BoughtLines& order : request.orders()) {
        if (absl::Status taken = TakeOne(s, order, &changed); !taken.ok()) return taken;
      }
      return absl::OkStatus();
    });
    if (!status.ok()) co_return status;
    for (const auto& [owner, version] : changed) versions.Hear(owner, version);
    co_return status;
  }

  static absl::Status TakeOne(SqlSession& s, const BoughtLines& order,
                              std::vector<std::pair<uint64_t, uint64_t>>* changed) {
    absl::Status status = s.Execute(
        "INSERT INTO taken(order_id) VALUES (?1) ON CONFLICT(order_id) DO NOTHING", {order.order()});
    const bool repeated = status.ok() && s.changes() == 0;
    for (int i = 0; !repeated && status.ok() && i < order.lines_size(); ++i) {
      const Line& line = order.lines(i);
      const uint64_t count = line.count();
      status = s.Execute("DELETE FROM lines WHERE owner = ?1 AND product = ?2 AND count <= ?3",
                         {order.owner(), line.product(), count});
      if (status.ok() && s.changes() == 0)
        status = s.Execute("UPDATE lines SET count = count - ?3 WHERE owner = ?1 AND product = ?2",
                           {order.owner(), line.product(), count});
    }
    if (status.ok() && !repeated) status = Step(s, order.owner());
    Basket basket;  // also of a repetition, as the first answer may have been lost
    if (status.ok()) status = Read(s, order.owner(), &basket);
    changed->emplace_back(order.owner(), basket.version());
    return status;
  }

  Coroutine Forget(Context& ctx, const apps::UserId& request, apps::Nothing*) override {
    const uint64_t owner = request.user();
    Basket before;
    absl::Status status = co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      absl::Status gone = Read(s, owner, &before);
      if (gone.ok()) gone = Close(s, owner);
      return gone.ok() ? apps::ForgetRequests(s, owner) : gone;
    });
    if (status.ok()) versions.Hear(owner, before.version() + 1);
    co_return status;
  }

  // Runs `work` once for each name of a request, and returns the basket of the owner with it.
  template <class Work>
  Coroutine Change(Context& ctx, uint64_t owner, Basket* reply, Work work) {
    absl::Status status = co_await apps::WriteOnce(db, ctx, owner, reply, [&](SqlSession& s) {
      absl::Status changed = Step(s, owner);
      if (changed.ok() && s.changes() == 0)
        changed = absl::FailedPreconditionError("this basket is another's now, or its owner was deleted");
      if (changed.ok()) changed = work(s);
      reply->Clear();
      return changed.ok() ? Read(s, owner, reply) : changed;
    });
    if (!status.ok()) co_return status;
    co_return co_await Told(ctx, owner, *reply);
  }

  // Changes nothing if the basket is closed.
  static absl::Status Step(SqlSession& s, uint64_t owner) {
    if (absl::Status noted = NoteGuest(s, owner); !noted.ok()) return noted;
    return s.Execute(
        "INSERT INTO baskets(owner, version, closed) VALUES (?1, 1, 0)"
        " ON CONFLICT(owner) DO UPDATE SET version = baskets.version + 1 WHERE baskets.closed = 0",
        {owner});
  }
  static absl::Status Close(SqlSession& s, uint64_t owner) {
    absl::Status status = NoteGuest(s, owner);
    if (!status.ok()) return status;
    status = s.Execute(
        "INSERT INTO baskets(owner, version, closed) VALUES (?1, 1, 1)"
        " ON CONFLICT(owner) DO UPDATE SET version = baskets.version + 1, closed = 1",
        {owner});
    return status.ok() ? Empty(s, owner) : status;
  }
  // Of an owner who is a new guest. Removes some baskets of guests whose sessions have ended.
  static absl::Status NoteGuest(SqlSession& s, uint64_t owner) {
    if (!IsGuest(owner)) return absl::OkStatus();
    const int64_t now_s = apps::NowMs() / 1000;
    absl::Status status = s.Execute(
        "INSERT INTO guests(owner, since_s) VALUES (?1, ?2) ON CONFLICT(owner) DO NOTHING", {owner, now_s});
    if (!status.ok() || s.changes() == 0) return status;
    std::vector<SqlValue> ended;
    status = s.Query("SELECT owner FROM guests WHERE since_s <= ?1 ORDER BY since_s LIMIT ?2",
                     {now_s - kGuestBasketS, kRemovedAtOnce},
                     [&](const SqlRow& row) { ended.emplace_back(row.Unsigned(0)); });
    for (const char* const sql :
         {"DELETE FROM lines WHERE owner = ?1", "DELETE FROM baskets WHERE owner = ?1",
          "DELETE FROM guests WHERE owner = ?1"}) {
      if (status.ok() && !ended.empty()) status = s.QueryEach(sql, 1, ended, [](size_t, const SqlRow&) {});
    }
    return status;
  }
  static absl::Status Empty(SqlSession& s, uint64_t owner) {
    return s.Execute("DELETE FROM lines WHERE owner = ?1", {owner});
  }
  static absl::Status CheckLine(uint64_t product, uint64_t count) {
    if (product != 0 && count >= 1 && count <= kMostOfProduct) return absl::OkStatus();
    return absl::InvalidArgumentError(Join("a basket has 1 to ", kMostOfProduct, " of a product"));
  }
  static absl::Status Put(SqlSession& s, uint64_t owner, uint64_t product, uint64_t count) {
    return s.Execute(
        "INSERT INTO lines(owner, product, count, place) VALUES (?1, ?2, ?3,"
        " (SELECT coalesce(max(place), 0) + 1 FROM lines WHERE owner = ?1))"
        " ON CONFLICT(owner, product) DO UPDATE SET count = ?3",
        {owner, product, count});
  }
  static absl::Status Read(SqlSession& s, uint64_t owner, Basket* basket) {
    absl::Status status = s.Query("SELECT version FROM baskets WHERE owner = ?1", {owner},
                                  [&](const SqlRow& row) { basket->set_version(row.Unsigned(0)); });
    if (!status.ok()) return status;
    return s.Query("SELECT product, count FROM lines WHERE owner = ?1 ORDER BY place", {owner},
                   [&](const SqlRow& row) {
                     Line& line = *basket->add_lines();
                     line.set_product(row.Unsigned(0));
                     line.set_count(static_cast<uint32_t>(row.Unsigned(1)));
                   });
  }

  std::vector<DeclaredPath> Paths() const override {
    return {{"Get", {}},   {"Add", {}},   {"Update", {}}, {"Remove", {}},
            {"Clear", {}}, {"Merge", {}}, {"Take", {}},   {"Forget", {}}};
  }

  SqlDatabase& db;
  const std::unique_ptr<apps::Cache> cache;  // may be null
  BasketVersions versions;
};

// The step to the second version of the schema. Guests who are there already count from now on.
std::string NoteAllGuests() {
  return Join(SchemaOf("cart"), "INSERT INTO guests(owner, since_s) SELECT owner, ", apps::NowMs() / 1000,
              " FROM baskets WHERE owner >= ", kGuestBit, " ON CONFLICT(owner) DO NOTHING");
}

HostedService HostedCart() {
  return apps::HostedOnData(kApplication, "cart", [](Env& env, const apps::DataOptions& data) -> MadeService {
    const auto db = apps::OpenData(env, data, "cart", {SchemaOf("cart"), NoteAllGuests()});
    if (!db.ok()) return db.status();
    auto cache = apps::Cache::Of(env, "cart-cache");
    if (!cache.ok()) return cache.status();
    return std::make_unique<CartService>(**db, *std::move(cache));
  });
}

}  // namespace curtail::shop
