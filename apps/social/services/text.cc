// SPDX-License-Identifier: Apache-2.0
//
// Text: shortens the URLs of a text and finds whom it mentions, both at once.
#include "apps/social/common/page.h"
#include "apps/social/common/urls.h"
#include "apps/social/data.h"
#include "content.curtail.h"
#include "curtail/rpc/host.h"
#include "curtail/rpc/when_all.h"
#include "users.curtail.h"

namespace curtail::social {

constexpr size_t kMostTextBytes = 4096;
constexpr int kMostInText = 32;

bool IsNameChar(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; }

// The names behind an '@' in `text`, which has no URLs; not within a word, such as an address.
void AddMentions(std::string_view text, Names* mentions) {
  const auto end_of = [&](size_t from, auto goes_on) {
    while (from < text.size() && goes_on(text[from])) ++from;
    return from;
  };
  for (size_t at = 0; at < text.size();) {
    size_t end = at + 1;
    if (text[at] == '@') {
      end = end_of(at + 1, IsNameChar);
      if (end > at + 1) mentions->add_names(std::string(text.substr(at + 1, end - at - 1)));
    } else if (IsNameChar(text[at])) {
      end = end_of(at, [](char c) { return IsNameChar(c) || c == '@'; });
    }
    at = end;
  }
}

// The parts of a text that mean more than themselves.
struct TextParts {
  std::vector<TextSpan> urls;
  Names mentions;
};

TextParts PartsOf(std::string_view text) {
  TextParts parts{.urls = FindUrls(text), .mentions = {}};
  size_t from = 0;
  for (const TextSpan& url : parts.urls) {
    AddMentions(text.substr(from, url.begin - from), &parts.mentions);
    from = url.begin + url.size;
  }
  AddMentions(text.substr(from), &parts.mentions);
  // One that is short already stays as it is.
  std::erase_if(parts.urls, [&](const TextSpan& url) {
    return text.substr(url.begin, url.size).starts_with(kShortPrefix);
  });
  return parts;
}

struct TextService final : Text::CoroutineService {
  explicit TextService(Env& e) : env(e) {}

  Coroutine Process(Context& ctx, const PlainText& request, ProcessedText* reply) override {
    const std::string& text = request.text();
    if (text.size() > kMostTextBytes) co_return absl::InvalidArgumentError("a text over 4096 bytes");
    const TextParts parts = PartsOf(text);
    absl::Status few = apps::CheckCount(static_cast<int>(parts.urls.size()), kMostInText, "URLs");
    few.Update(apps::CheckCount(parts.mentions.names_size(), kMostInText, "mentions"));
    if (!few.ok()) co_return few;
    Urls urls;
    for (const auto& span : parts.urls) urls.add_urls()->set_url(text.substr(span.begin, span.size));
    auto both = co_await WhenAllOk(ctx, Ask(url_shorten, UrlShorten::kCreate, urls),
                                   Ask(user_mention, UserMention::kResolve, parts.mentions));
    if (!both.ok()) co_return both.status();
    auto& [shortened, mentioned] = *both;
    if (shortened.urls_size() != urls.urls_size()) co_return absl::InternalError("URLs were lost");
    size_t from = 0;
    for (int i = 0; i < shortened.urls_size(); ++i) {
      const auto& span = parts.urls[static_cast<size_t>(i)];
      reply->mutable_text()->append(text, from, span.begin - from);
      reply->mutable_text()->append(kShortPrefix + shortened.urls(i).code());
      from = span.begin + span.size;
    }
    reply->mutable_text()->append(text, from);
    reply->mutable_urls()->Swap(shortened.mutable_urls());
    reply->mutable_mentions()->Swap(mentioned.mutable_people());
    co_return absl::OkStatus();
  }

  std::vector<DeclaredPath> Paths() const override { return {{"Process", {url_shorten, user_mention}}}; }

  Env& env;
  const UrlShorten::Stub url_shorten = env.Stub<UrlShorten>("url-shorten");
  const UserMention::Stub user_mention = env.Stub<UserMention>("user-mention");
};

HostedService HostedText() {
  return {.name = "text", .make = [](Env& env) { return std::make_unique<TextService>(env); }};
}

}  // namespace curtail::social
