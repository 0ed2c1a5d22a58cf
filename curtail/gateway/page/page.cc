// SPDX-License-Identifier: Apache-2.0
#include "curtail/gateway/page/page.h"

#include <utility>

#include "curtail/rpc/coroutine.h"
#include "page/page.curtail.h"

namespace curtail::gateway {
namespace {

// A coroutine, as those run under all models.
class PageService final : public Page::CoroutineService {
 public:
  explicit PageService(std::span<const EmbeddedFile> files) : files_(files) {}

  Coroutine Read(Context&, const PageRequest&, PageFiles* reply) override {
    for (const EmbeddedFile& file : files_) {
      PageFile* const copy = reply->add_files();
      copy->set_name(std::string(file.name));
      copy->set_data(std::string(file.bytes));
    }
    co_return absl::OkStatus();
  }
  std::vector<DeclaredPath> Paths() const override { return {{"Read", {}}}; }

 private:
  const std::span<const EmbeddedFile> files_;
};

}  // namespace

std::unique_ptr<Service> MakePage(std::span<const EmbeddedFile> files) {
  return std::make_unique<PageService>(files);
}

absl::StatusOr<std::vector<StaticFile>> ReadPage(const std::string& target, const ChannelOptions& options,
                                                 Nanos timeout) {
  Client client;
  Channel channel(&client, target, options);
  Context ctx(timeout);
  PageFiles page;
  absl::Status read = Page::Stub(&channel).Read(ctx, {}, &page);
  if (!read.ok()) return read;
  std::vector<StaticFile> files;
  for (PageFile& file : *page.mutable_files()) {
    files.push_back({std::move(*file.mutable_name()), std::move(*file.mutable_data())});
  }
  return files;
}

}  // namespace curtail::gateway
