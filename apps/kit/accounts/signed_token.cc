// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/accounts/signed_token.h"

#include "absl/strings/escaping.h"
#include "apps/kit/data/secrets.h"
#include "curtail/base/strings.h"

namespace curtail::apps {
namespace {

std::string InBase64(std::string_view bytes) {
  std::string text;
  absl::WebSafeBase64Escape(std::string(bytes), &text);
  return text;
}

}  // namespace

std::string SignToken(std::string_view secret, std::string_view issuer, uint64_t user, std::string_view id,
                      int64_t now_s, int64_t expires_s) {
  const std::string claims = Join(R"({"iss":")", issuer, R"(","sub":")", user, R"(","jti":")", id,
                                  R"(","iat":)", now_s, R"(,"exp":)", expires_s, "}");
  const std::string text = Join(InBase64(R"({"alg":"HS256","typ":"JWT"})"), ".", InBase64(claims));
  return Join(text, ".", InBase64(Mac(secret, text)));
}

}  // namespace curtail::apps
