// SPDX-License-Identifier: Apache-2.0
//
// What is kept of users: secrets, ids, and the names of those who are gone.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "apps/kit/accounts/gone.h"
#include "apps/kit/accounts/id_source.h"
#include "apps/kit/accounts/one_time_code.h"
#include "apps/kit/accounts/passwords.h"
#include "apps/kit/accounts/signed_token.h"
#include "apps/kit/data/data.h"
#include "apps/kit/data/folder.h"
#include "apps/kit/data/secrets.h"
#include "apps/kit/once.h"
#include "curtail/base/temp_dir_testing.h"
#include "curtail/base/testing.h"
#include "curtail/rpc/jwt.h"

namespace curtail::apps {
namespace {

using testing::ElementsAre;

TEST(Gone, TakesTheNamesOfItsRequestsAlong) {
  const TempDir dir;
  const auto db =
      *OpenData({.folder = dir.File("data"), .no_sync = true}, "test", {kGoneSchema, kOnceSchema});
  std::vector<uint64_t> left;
  const absl::Status status = db->Write(Deadline::In(kMaxTestWait), [&](SqlSession& s) {
    absl::Status each;
    for (const uint64_t caller : {7, 8})
      each.Update(s.Execute("INSERT INTO requests VALUES (?1, 'a name', '', x'00', 1, 0)", {caller}));
    each.Update(NoteGone(s, 7));
    each.Update(s.Query("SELECT caller FROM requests", {},
                        [&](const SqlRow& row) { left.push_back(row.Unsigned(0)); }));
    return each;
  });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_THAT(left, ElementsAre(8u));
}

TEST(Secrets, AllProcessesGetOneSecretThatOthersCannotRead) {
  const TempDir dir;
  const std::string path = dir.File("secret");
  const auto first = SecretOf(path);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->size(), 32u);
  EXPECT_EQ(*SecretOf(path), *first);
  ASSERT_EQ(chmod(path.c_str(), 0644), 0);
  EXPECT_TRUE(absl::IsFailedPrecondition(SecretOf(path).status()));
  EXPECT_FALSE(SecretOf(dir.Write("short", "secret")).ok());
  EXPECT_FALSE(SecretOf(dir.File("no/such/folder")).ok());
}

TEST(Secrets, ATokenNamesItsUserUntilItExpires) {
  const std::string secret(32, 's');
  auto verifier = JwtVerifier::Load({.secret = secret, .issuer = "an issuer", .leeway_s = 0});
  ASSERT_TRUE(verifier.ok()) << verifier.status();
  const std::string token = SignToken(secret, "an issuer", 42, "3.17", 1000, 2000);
  const auto claims = (*verifier)->Verify(token, 1500);
  ASSERT_TRUE(claims.ok()) << claims.status();
  EXPECT_EQ(claims->subject, "42");
  EXPECT_EQ(claims->id, "3.17");
  EXPECT_FALSE((*verifier)->Verify(token, 2001).ok());
  EXPECT_FALSE(
      (*verifier)->Verify(SignToken(std::string(32, 'o'), "an issuer", 42, "3.17", 1000, 2000), 1500).ok());
}

// The vectors of RFC 6238, appendix B, and of RFC 4648, section 10.
TEST(Secrets, CodesAreThoseOfTheStandard) {
  const std::string secret = "12345678901234567890";
  EXPECT_EQ(CodeOf(secret, 59 / kCodeStepS), "287082");
  EXPECT_EQ(CodeOf(secret, 1111111109 / kCodeStepS), "081804");
  EXPECT_EQ(CodeOf(secret, 1111111111 / kCodeStepS), "050471");
  EXPECT_EQ(CodeOf(secret, 1234567890 / kCodeStepS), "005924");
  EXPECT_EQ(CodeOf(secret, 20000000000 / kCodeStepS), "353130");
  EXPECT_EQ(InBase32(""), "");
  EXPECT_EQ(InBase32("f"), "MY");
  EXPECT_EQ(InBase32("foob"), "MZXW6YQ");
  EXPECT_EQ(InBase32("foobar"), "MZXW6YTBOI");
}

TEST(Secrets, OnlyThePasswordFitsItsHash) {
  const auto hash = HashPassword("a password");
  ASSERT_TRUE(hash.ok()) << hash.status();
  EXPECT_NE(*HashPassword("a password"), *hash);  // salted
  EXPECT_TRUE(IsPassword("a password", *hash));
  EXPECT_FALSE(IsPassword("b password", *hash));
  EXPECT_FALSE(IsPassword("a password", ""));
  EXPECT_FALSE(IsPassword("a password", hash->substr(1)));
}

TEST(DataFolder, IsPrivateAndFoundFromTheEnvironment) {
  const TempDir dir;
  ASSERT_EQ(setenv("XDG_STATE_HOME", dir.File("state").c_str(), 1), 0);
  const auto folder = DataFolder("an-app", "auto");
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_EQ(*folder, dir.File("state/curtail/an-app"));
  struct stat info;
  ASSERT_EQ(stat(folder->c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  EXPECT_TRUE(absl::IsFailedPrecondition(DataFolder("an-app", dir.Write("file", "")).status()));
}

TEST(Ids, TellHowLongAgoTheyWereGiven) {
  constexpr std::chrono::hours kDay(24);
  constexpr uint64_t kMs = uint64_t{1} << 22;
  const uint64_t id = 86'400'000 * kMs + 4097;
  EXPECT_EQ(IdBefore(id, std::chrono::milliseconds(0)), id);
  EXPECT_EQ(IdBefore(id, kDay), 4097u);
  EXPECT_EQ(IdBefore(id + kMs, kDay), kMs + 4097);
  EXPECT_EQ(IdBefore(id - kMs, kDay), 0u);
}
}  // namespace
}  // namespace curtail::apps
