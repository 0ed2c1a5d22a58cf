// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/observe/page_reader.h"

#include <gtest/gtest.h>

#include <utility>

#include "curtail/base/testing.h"
#include "curtail/observe/http_admin.h"
#include "curtail/rpc/transport/socket.h"

namespace curtail::tool {
namespace {

using curtail::internal::UniqueFd;
using observe::HttpAdmin;
using observe::HttpAdminReply;

// A listening socket and its address.
std::pair<UniqueFd, std::string> Listener() {
  auto fd = internal::Listen(*Address::Resolve("127.0.0.1:0"));
  EXPECT_TRUE(fd.ok()) << fd.status();
  std::string address = internal::BoundAddress(fd->get());
  return {*std::move(fd), std::move(address)};
}

TEST(PageReader, ASilentServerDelaysNoOther) {
  std::vector<observe::HttpAdminPage> pages;
  pages.push_back({"/long", [](const auto&, const auto&) {
                     return HttpAdminReply(200, "text/plain", std::string(1u << 20, 'x'));
                   }});
  pages.push_back({"/huge", [](const auto&, const auto&) {
                     return HttpAdminReply(200, "text/plain", std::string(5u << 20, 'x'));
                   }});
  auto [served, at] = Listener();
  auto [unserved, silent] = Listener();  // connects, and never answers
  // Another test may take a port that was free a moment ago.
  const std::string closed = "127.0.0.1:1";
  auto http = HttpAdmin::Start(std::move(served), {}, std::move(pages));
  ASSERT_TRUE(http.ok()) << http.status();
  const auto read = ReadPages(
      {{silent, "/"}, {at, "/long"}, {at, "/none"}, {closed, "/"}, {at, "/huge"}, {"nonsense", "/"}},
      Deadline::In(std::chrono::seconds(2)));
  EXPECT_EQ(read[0].status().code(), absl::StatusCode::kDeadlineExceeded);
  ASSERT_TRUE(read[1].ok()) << read[1].status();
  EXPECT_EQ(read[1]->size(), 1u << 20);
  EXPECT_EQ(read[2].status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(read[3].status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(read[4].status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(read[5].status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace curtail::tool
