// SPDX-License-Identifier: Apache-2.0
//
// URL shortener: random codes, so that nobody finds a URL by counting.
#include "apps/kit/data/secrets.h"
#include "apps/social/common/page.h"
#include "apps/social/common/urls.h"
#include "apps/social/data.h"
#include "content.curtail.h"
#include "curtail/rpc/coroutine.h"
#include "curtail/rpc/host.h"

namespace curtail::social {

constexpr size_t kCodeLength = 10;
constexpr int kMostUrls = 64;

struct UrlShortenService final : UrlShorten::CoroutineService {
  explicit UrlShortenService(SqlDatabase& d) : db(d) {}

  Coroutine Create(Context& ctx, const Urls& request, Urls* reply) override {
    if (absl::Status status = apps::CheckCount(request.urls_size(), kMostUrls, "URLs"); !status.ok())
      co_return status;
    if (request.urls().empty()) co_return absl::OkStatus();
    for (const Url& asked : request.urls()) {
      if (absl::Status status = CheckUrl(asked.url()); !status.ok()) co_return status;
      const absl::StatusOr<std::string> code = RandomCode();
      if (!code.ok()) co_return code.status();
      Url* const url = reply->add_urls();
      url->set_code(*code);
      url->set_url(asked.url());
    }
    // Of 62^10 codes none comes twice in practice; if one does, the caller gets ALREADY_EXISTS.
    co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      std::vector<SqlValue> values;
      for (const Url& url : reply->urls()) values.push_back(url.code()), values.push_back(url.url());
      return s.QueryEach("INSERT INTO urls(code, url) VALUES (?1, ?2)", 2, values,
                         [](size_t, const SqlRow&) {});
    });
  }

  Coroutine Expand(Context& ctx, const Code& request, Url* reply) override {
    absl::Status status = co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      return s.Query("SELECT url FROM urls WHERE code = ?1", {request.code()}, [&](const SqlRow& row) {
        reply->set_code(request.code());
        reply->set_url(std::string(row.Text(0)));
      });
    });
    if (status.ok() && reply->code().empty()) status = absl::NotFoundError("there is no such short URL");
    co_return status;
  }

  Coroutine Delete(Context& ctx, const Urls& request, Nothing*) override {
    if (absl::Status status = apps::CheckCount(request.urls_size(), kMostUrls, "URLs"); !status.ok())
      co_return status;
    if (request.urls().empty()) co_return absl::OkStatus();
    co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      std::vector<SqlValue> codes;
      for (const Url& url : request.urls()) codes.push_back(url.code());
      return s.QueryEach("DELETE FROM urls WHERE code = ?1", 1, codes, [](size_t, const SqlRow&) {});
    });
  }

  static absl::StatusOr<std::string> RandomCode() {
    constexpr std::string_view kDigits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    absl::StatusOr<std::string> code = apps::RandomBytes(kCodeLength);
    if (!code.ok()) return code;
    for (char& c : *code) c = kDigits[static_cast<unsigned char>(c) % kDigits.size()];
    return code;
  }

  SqlDatabase& db;
};

HostedService HostedUrlShorten() {
  return apps::HostedWithData<UrlShortenService>(
      kApplication, "url-shorten",
      {"CREATE TABLE urls(code TEXT PRIMARY KEY, url TEXT NOT NULL) STRICT, WITHOUT ROWID"});
}

}  // namespace curtail::social
