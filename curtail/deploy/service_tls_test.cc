// SPDX-License-Identifier: Apache-2.0
#include "curtail/deploy/service_tls.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>

#include "curtail/base/temp_dir_testing.h"
#include "curtail/deploy/topology_testing.h"
#include "curtail/rpc/tls.h"

namespace curtail::deploy {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

// A gateway calls `files`, clients call `front`, and nobody calls `lone`.
constexpr char kShop[] = R"(
application: shop
services:
  stock: {run: shop --service stock}
  files: {run: shop --service files}
  lone: {run: shop --service lone}
  java-cart: {run: 'java -jar cart.jar --listen ${address}', hosted: false}
  front: {run: shop --service front, calls: [stock, files, java-cart], entry: true}
  gate: {run: 'gate ${files.target} ${address}', protocol: http, calls: [files]}
)";

TEST(ServiceTlsTest, ServicesThatCurtailServicesAloneCallSpeakIt) {
  EXPECT_THAT(SecureServices(Parsed(kShop)), ElementsAre(Pair("stock", ElementsAre("stock"))));
}

// A folder of an application that is up.
std::string RunFolder(const TempDir& dir) {
  std::filesystem::create_directory(dir.File("run"));
  return dir.File("run");
}

TEST(ServiceTlsTest, FlagsNameWhatEachSideNeeds) {
  const TempDir dir;
  const std::string run = RunFolder(dir);
  const Topology shop = Parsed(kShop);
  const auto tls = ServiceTls::Make(shop, run);
  ASSERT_TRUE(tls.ok()) << tls.status();
  const std::string folder = run + "/tls/";
  EXPECT_THAT((*tls)->FlagsOf(*shop.Find("stock")),
              ElementsAre("--tls-cert", folder + "stock.pem", "--tls-key", folder + "stock.key",
                          "--tls-client-ca", folder + "ca.pem", "--peer-ca", folder + "ca.pem", "--peer-cert",
                          folder + "stock.pem", "--peer-key", folder + "stock.key"));
  EXPECT_THAT(
      (*tls)->FlagsOf(*shop.Find("front")),
      ElementsAre("--peer-ca", folder + "ca.pem", "--peer-cert", folder + "front.client.pem", "--peer-key",
                  folder + "front.client.key", "--peer-plain", "files", "--peer-plain", "java-cart"));
  EXPECT_THAT((*tls)->FlagsOf(*shop.Find("java-cart")), IsEmpty());
  EXPECT_THAT((*tls)->FlagsOf(*shop.Find("gate")), IsEmpty());
}

TEST(ServiceTlsTest, TheUserAloneReadsTheFilesAndTheyGoWithIt) {
  const TempDir dir;
  const std::string run = RunFolder(dir);
  const Topology shop = Parsed(kShop);
  {
    const auto tls = ServiceTls::Make(shop, run);
    ASSERT_TRUE(tls.ok()) << tls.status();
    struct stat key = {}, folder = {};
    ASSERT_EQ(stat((run + "/tls/stock.key").c_str(), &key), 0);
    ASSERT_EQ(stat((run + "/tls").c_str(), &folder), 0);
    EXPECT_EQ(key.st_mode & 0777, 0600u);
    EXPECT_EQ(folder.st_mode & 0777, 0700u);
    const auto to_stock = TlsToCall(run, "stock"), to_front = TlsToCall(run, "front");
    ASSERT_TRUE(to_stock.ok() && to_front.ok()) << to_stock.status() << to_front.status();
    EXPECT_EQ((*to_stock)->options().server_name, "stock");
    EXPECT_EQ(*to_front, nullptr);
  }
  struct stat gone = {};
  EXPECT_NE(stat((run + "/tls").c_str(), &gone), 0);
}

}  // namespace
}  // namespace curtail::deploy
