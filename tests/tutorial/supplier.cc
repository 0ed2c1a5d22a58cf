// SPDX-License-Identifier: Apache-2.0
//
// supplier.cc - the leaf of docs/tutorial.md: what one supplier asks for an item.
// [supplier]
#include <functional>
#include <thread>

#include "curtail/rpc/server_main.h"
#include "market.curtail.h"

class SupplierService final : public market::Supplier::Service {
 public:
  explicit SupplierService(std::string name) : name_(std::move(name)) {}

  absl::Status Quote(curtail::Context&, const market::Item& item, market::Offer* offer) override {
    if (item.name().empty()) return absl::InvalidArgumentError("name is empty: write what to price");
    std::this_thread::sleep_for(std::chrono::microseconds(200));  // stands for its database
    offer->set_supplier(name_);
    offer->set_cents(100 + std::hash<std::string>()(name_ + item.name()) % 900);
    return absl::OkStatus();
  }

 private:
  const std::string name_;
};

int main(int argc, char** argv) {
  return curtail::ServerMain(argc, argv, [](curtail::Env& env) {
    return std::make_unique<SupplierService>(env.words().empty() ? "anonymous" : env.words()[0]);
  });
}
// [/supplier]
