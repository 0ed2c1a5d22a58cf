// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/jwt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "curtail/rpc/auth/jwt_keys.h"
#include "curtail/rpc/auth/jwt_testing.h"
#include "curtail/rpc/transport/tls_testing.h"

namespace curtail {
namespace {

using testing::HasSubstr;

constexpr int64_t kTokenNow = 1'700'000'000;
const std::string kJwtSecret(32, 's');
constexpr char kHs256[] = R"({"alg":"HS256"})";
constexpr char kRs256[] = R"({"alg":"RS256"})";
constexpr char kEs256[] = R"({"alg":"ES256"})";
constexpr char kGoodClaims[] =
    R"({"sub":"alice","jti":"t1","iss":"id","aud":["shop","bank"],"exp":1700000100,"nbf":1699999900})";

std::unique_ptr<JwtVerifier> MakeVerifier(const JwtOptions& options, std::string_view keys = "") {
  auto verifier = JwtVerifier::Make(options, keys);
  EXPECT_TRUE(verifier.ok()) << verifier.status();
  return *std::move(verifier);
}

// The subject, or why there is none.
std::string Verified(const JwtVerifier& verifier, std::string_view token, int64_t now_s = kTokenNow) {
  const auto claims = verifier.Verify(token, now_s);
  if (claims.ok()) return claims->subject;
  EXPECT_EQ(claims.status().code(), absl::StatusCode::kUnauthenticated);
  return std::string(Message(claims.status()));
}

constexpr char kInvalidToken[] = "the token is not valid";

TEST(Jwt, TokensOfEachAlgorithmAreVerified) {
  const TestKey rsa = TestKey::Rsa(), ec = TestKey::Ec();
  const std::string jwks =
      Join(R"({"keys":[)", rsa.Jwk(R"(,"kid":"r","use":"sig")"), ",", ec.Jwk(R"(,"kid":"e","alg":"ES256")"),
           R"(,{"kty":"oct","k":")", Base64Url(kJwtSecret),
           R"(","kid":"s"},{"kty":"OKP","crv":"Ed25519","x":"a"}]})");
  const std::string pem = rsa.PublicPem() + ec.PublicPem();
  for (const std::string& keys : {jwks, pem}) {
    const auto verifier = MakeVerifier({.secret = kJwtSecret, .issuer = "id", .audience = "shop"}, keys);
    for (int repeat = 0; repeat < 3; ++repeat) {
      EXPECT_EQ(Verified(*verifier, rsa.Sign(kRs256, kGoodClaims)), "alice");
      EXPECT_EQ(Verified(*verifier, ec.Sign(kEs256, kGoodClaims)), "alice");
      EXPECT_EQ(Verified(*verifier, SignedBySecret(kHs256, kGoodClaims, kJwtSecret)), "alice");
    }
    EXPECT_EQ(verifier->Verify(ec.Sign(kEs256, kGoodClaims), kTokenNow)->json, kGoodClaims);
    EXPECT_EQ(verifier->Verify(ec.Sign(kEs256, kGoodClaims), kTokenNow)->id, "t1");
  }
  const auto verifier = MakeVerifier({}, jwks);
  EXPECT_EQ(Verified(*verifier, rsa.Sign(R"({"alg":"RS256","kid":"r"})", kGoodClaims)), "alice");
  EXPECT_EQ(Verified(*verifier, rsa.Sign(R"({"alg":"RS256","kid":"e"})", kGoodClaims)), kInvalidToken);
  EXPECT_EQ(Verified(*verifier, rsa.Sign(R"({"alg":"RS256","kid":"unknown"})", kGoodClaims)), kInvalidToken);
}

TEST(Jwt, TheKeyDecidesOnTheAlgorithm) {
  const TestKey rsa = TestKey::Rsa(), ec = TestKey::Ec(), other = TestKey::Ec();
  const auto verifier = MakeVerifier({}, rsa.PublicPem() + ec.PublicPem());
  // The public key as a secret, which every peer has.
  for (const std::string& secret : {rsa.PublicPem(), ec.PublicPem()}) {
    EXPECT_EQ(Verified(*verifier, SignedBySecret(kHs256, kGoodClaims, secret)), kInvalidToken);
  }
  EXPECT_EQ(Verified(*verifier, rsa.Sign(kEs256, kGoodClaims)), kInvalidToken);
  EXPECT_EQ(Verified(*verifier, ec.Sign(kRs256, kGoodClaims)), kInvalidToken);
  EXPECT_EQ(Verified(*verifier, other.Sign(kEs256, kGoodClaims)), kInvalidToken);
  for (const char* header :
       {R"({"alg":"none"})", R"({"alg":"None"})", R"({"alg":""})", R"({"alg":null})", R"({})", R"([])",
        R"({"alg":"RS512"})", R"({"alg":["RS256"]})", R"({"alg":"RS256","crit":["exp"]})",
        R"({"alg":"RS256","b64":false})", R"({"alg":"none","alg":"RS256"})", R"({"alg":"RS256","kid":1})"}) {
    EXPECT_EQ(Verified(*verifier, rsa.Sign(header, kGoodClaims)), kInvalidToken) << header;
    EXPECT_EQ(Verified(*verifier, Unsigned(header, kGoodClaims) + "."), kInvalidToken) << header;
    EXPECT_EQ(Verified(*verifier, Unsigned(header, kGoodClaims)), kInvalidToken) << header;
  }
}

TEST(Jwt, AChangedTokenIsNotValid) {
  const TestKey ec = TestKey::Ec();
  const auto verifier = MakeVerifier({}, ec.PublicPem());
  const std::string token = ec.Sign(kEs256, kGoodClaims);
  EXPECT_EQ(Verified(*verifier, token), "alice");
  for (size_t i = 0; i < token.size(); ++i) {
    std::string changed = token;
    changed[i] = changed[i] == 'A' ? 'B' : 'A';
    EXPECT_EQ(Verified(*verifier, changed), kInvalidToken) << i;
    changed = token;
    changed.erase(i, 1);
    EXPECT_EQ(Verified(*verifier, changed), kInvalidToken) << i;
  }
  for (const std::string& wrong :
       {token + "A", token + ".", token + "=", " " + token, token + "\n", "." + token, std::string(),
        std::string(".."), std::string(8193, 'A'), std::string(8000, '.')}) {
    EXPECT_EQ(Verified(*verifier, wrong), kInvalidToken) << wrong;
  }
  EXPECT_EQ(Verified(*verifier, token), "alice");
}

TEST(Jwt, ClaimsAreChecked) {
  const auto verifier =
      MakeVerifier({.secret = kJwtSecret, .issuer = "id", .audience = "shop", .leeway_s = 10});
  const auto verified = [&](const char* claims, int64_t now_s = kTokenNow) {
    return Verified(*verifier, SignedBySecret(kHs256, claims, kJwtSecret), now_s);
  };
  EXPECT_EQ(verified(kGoodClaims), "alice");
  for (int repeat = 0; repeat < 2; ++repeat) {  // the second time it is known
    EXPECT_EQ(verified(kGoodClaims, kTokenNow + 109), "alice");
    EXPECT_EQ(verified(kGoodClaims, kTokenNow + 110), "the token has expired");
    EXPECT_EQ(verified(kGoodClaims, kTokenNow - 110), "alice");
    EXPECT_EQ(verified(kGoodClaims, kTokenNow - 111), "the token is not valid yet");
  }
  EXPECT_EQ(verified(R"({"sub":"a","iss":"id","aud":"shop","exp":1700000100.5})"), "a");
  EXPECT_EQ(verified(R"({"sub":"a","iss":"id","aud":"shop"})"),
            "the token never expires, which is not accepted");
  EXPECT_EQ(verified(R"({"iss":"di","aud":"shop","exp":1700000100})"), "the token is of another issuer");
  EXPECT_EQ(verified(R"({"aud":"shop","exp":1700000100})"), "the token is of another issuer");
  for (const char* audience : {R"("bank")", R"(["bank"])", R"([])", R"(7)", R"([["shop"]])", R"("shop2")"}) {
    EXPECT_EQ(verified(Join(R"({"iss":"id","exp":1700000100,"aud":)", audience, "}").c_str()),
              "the token is for another audience");
  }
  for (const char* claims :
       {"", "{", "[]", "7", R"({"exp":"1700000100"})", R"({"exp":1e300})", R"({"exp":-1e300})",
        R"({"exp":true})", R"({"exp":1700000100,"nbf":null})", R"({"exp":1700000100,"iss":["id"]})",
        R"({"exp":1700000100,"sub":7})", R"({"exp":1,"exp":1700000100})"}) {
    EXPECT_EQ(verified(claims), kInvalidToken) << claims;
  }
  const auto lenient = MakeVerifier({.secret = kJwtSecret, .allow_endless = true});
  EXPECT_EQ(Verified(*lenient, SignedBySecret(kHs256, R"({"sub":"a"})", kJwtSecret)), "a");
}

TEST(Jwt, KeysThatCannotBeUsedAreNamed) {
  const auto error = [](const JwtOptions& options, std::string_view keys) {
    const auto verifier = JwtVerifier::Make(options, keys);
    EXPECT_EQ(verifier.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(Message(verifier.status()));
  };
  EXPECT_THAT(error({}, ""), HasSubstr("no key"));
  EXPECT_THAT(error({}, "no keys at all"), HasSubstr("no key"));
  EXPECT_THAT(error({.secret = "short"}, ""), HasSubstr("5 bytes"));
  EXPECT_THAT(error({}, TestKey::Rsa(1024).PublicPem()), HasSubstr("1024 bits"));
  EXPECT_THAT(error({}, TestKey::Ec("P-384").PublicPem()), HasSubstr("P-256"));
  EXPECT_THAT(error({}, TestKey::Ec().PrivatePem()), HasSubstr("PRIVATE KEY"));
  EXPECT_THAT(error({.key_file = "f.json"}, "{"), HasSubstr("\"f.json\" is not JSON"));
  EXPECT_THAT(error({}, R"({"keys":7})"), HasSubstr("no array"));
  EXPECT_THAT(error({}, R"({"keys":[7]})"), HasSubstr("not an object"));
  EXPECT_THAT(error({}, R"({"keys":[{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}]})"),
              HasSubstr("malformed"));
  EXPECT_THAT(error({}, R"({"keys":[{"kty":"RSA","n":"AA","e":"AQAB"}]})"), HasSubstr(""));
  EXPECT_THAT(error({}, R"({"keys":[{"kty":"oct","k":"AAAA"}]})"), HasSubstr("3 bytes"));
  const std::string off_curve = Base64Url(std::string(32, 1));
  EXPECT_THAT(error({}, Join(R"({"keys":[{"kty":"EC","crv":"P-256","x":")", off_curve, R"(","y":")",
                             off_curve, R"("}]})")),
              HasSubstr("malformed"));
  std::string four;
  for (int i = 0; i < 4; ++i) four += TestKey::Ec().PublicPem();
  EXPECT_TRUE(JwtVerifier::Make({}, four + TestKey::Rsa().PublicPem()).ok());
  EXPECT_THAT(error({}, four + TestKey::Ec().PublicPem()), HasSubstr("5 keys of one algorithm"));
  const auto missing = JwtVerifier::Load({.key_file = "/nowhere/keys.json"});
  EXPECT_THAT(std::string(Message(missing.status())), HasSubstr("/nowhere/keys.json"));
}

TEST(Jwt, OneUnusableKeyOfASetIsPassedOver) {
  const std::string secret(32, 's');
  for (const char* bad : {R"({"kty":"EC","crv":"P-256","x":"AA","y":"AA"})", R"({"kty":"oct","k":"AAAA"})",
                          "7", R"({"kty":"RSA"})", R"({"kty":"new","z":1})"}) {
    const std::string good = Join(R"({"kty":"oct","k":")", Base64Url(secret), R"("})");
    for (const std::string& both : {Join(bad, ",", good), Join(good, ",", bad)}) {
      const auto verifier = JwtVerifier::Make({}, Join(R"({"keys":[)", both, "]}"));
      EXPECT_TRUE(verifier.ok()) << both << ": " << verifier.status();
    }
  }
}

TEST(Jwt, KeysOfFilesAndCertificates) {
  const std::string path = TestFile("keys.pem");
  const TestKey rsa = TestKey::Rsa();
  std::ofstream(path) << rsa.PublicPem();
  const auto verifier = JwtVerifier::Load({.key_file = path});
  ASSERT_TRUE(verifier.ok()) << verifier.status();
  EXPECT_EQ(Verified(**verifier, rsa.Sign(kRs256, kGoodClaims)), "alice");
  unlink(path.c_str());
  const TestCertificate certificate({.common_name = "issuer"});
  EXPECT_TRUE(JwtVerifier::Load({.key_file = certificate.file()}).ok());
}

TEST(Jwt, Base64HasOneFormOfEachValue) {
  using internal::DecodeBase64Url;
  EXPECT_EQ(DecodeBase64Url(""), "");
  EXPECT_EQ(DecodeBase64Url("-_8"), "\xfb\xff");
  for (const char* wrong : {"A", "AA==", "AB", "A A", "+/8", "AAAA\n", "AA=A"}) {
    EXPECT_EQ(DecodeBase64Url(wrong), std::nullopt) << wrong;
  }
}

// The keys of a file that is exchanged, as an operator does: another file takes the name at once.
TEST(Jwt, AFileThatChangesIsReadAgain) {
  const TestKey first = TestKey::Ec(), second = TestKey::Ec();
  const std::string path = TestFile("keys.json");
  const auto write = [&](const std::string& text) {
    std::ofstream(path + ".new") << text;
    std::filesystem::rename(path + ".new", path);
  };
  const auto set = [](const std::string& keys) { return Join(R"({"keys":[)", keys, "]}"); };
  const std::string of_first = first.Sign(kEs256, kGoodClaims), of_second = second.Sign(kEs256, kGoodClaims);

  write(set(first.Jwk()));
  const auto verifier = *JwtVerifier::Load({.key_file = path, .reload_interval = Nanos(1)});
  const auto fixed = *JwtVerifier::Load({.key_file = path, .reload_interval = Nanos(0)});
  EXPECT_EQ(Verified(*verifier, of_first), "alice");
  EXPECT_EQ(Verified(*verifier, of_second), kInvalidToken);
  write(set(Join(first.Jwk(), ",", second.Jwk())));
  EXPECT_EQ(Verified(*verifier, of_first), "alice");
  EXPECT_EQ(Verified(*verifier, of_second), "alice");
  write("no keys");
  EXPECT_EQ(Verified(*verifier, of_second), "alice") << "the keys stay as they were";
  unlink(path.c_str());
  EXPECT_EQ(Verified(*verifier, of_second), "alice");
  write(set(second.Jwk()));
  EXPECT_EQ(Verified(*verifier, of_first), kInvalidToken) << "its key is gone";
  EXPECT_EQ(Verified(*verifier, of_second), "alice");
  EXPECT_EQ(Verified(*fixed, of_first), "alice");
  EXPECT_EQ(Verified(*fixed, of_second), kInvalidToken);
  write(set(""));
  EXPECT_EQ(Verified(*verifier, of_second), kInvalidToken) << "every key is gone";
  write("");
  write(set(second.Jwk()));
  EXPECT_EQ(Verified(*verifier, of_second), "alice");
  unlink(path.c_str());
}

}  // namespace
}  // namespace curtail
