// SPDX-License-Identifier: Apache-2.0
#include "apps/shop/load/fill.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>
#include <vector>

#include "apps/kit/data/folder.h"
#include "apps/kit/wall_clock.h"
#include "apps/shop/common/clerk.h"
#include "apps/shop/common/pictures.h"
#include "apps/shop/data.h"
#include "apps/shop/load/products.h"
#include "curtail/base/rng.h"
#include "curtail/base/strings.h"
#include "shop.curtail.h"

namespace curtail::shop {
namespace {

constexpr int kKinds = 10;
constexpr int64_t kClerkHours = 24;  // of its token, as many products take long
constexpr uint32_t kPage = 100;

class ShopFiller {
 public:
  ShopFiller(const FillOptions& options, std::string folder, std::vector<Garment> garments)
      : options_(options),
        folder_(std::move(folder)),
        garments_(std::move(garments)),
        users_(options.users) {}

  // Enters the code, and learns how many products there are.
  absl::Status Begin(uint64_t, const Shop::Stub& stub) {
    const apps::DataOptions data = {
        .application = kApplication, .folder = options_.data, .secret = options_.secret};
    const absl::StatusOr<std::string> token = ClerkToken(data, kClerkHours);
    if (!token.ok()) return token.status();
    token_ = *token;
    ProductCount count;
    Context counting(Time()), putting(Time());
    absl::Status status = stub.CountProducts(counting, {}, &count);
    known_ = std::min(count.count(), options_.products);
    PutDiscountRequest discount;
    discount.set_token(token_);
    discount.mutable_discount()->set_code(kLoadCode);
    discount.mutable_discount()->set_percent(10);
    discount.mutable_discount()->set_ends_ms(apps::NowMs() + kCodeMs);
    apps::Changed ignored;
    if (status.ok()) status = stub.PutDiscount(putting, discount, &ignored);
    if (!absl::IsUnauthenticated(status)) return status;
    return absl::FailedPreconditionError(
        "the front end has another secret than the clerk's token: give --data its folder, or --secret its "
        "file");
  }
  // The products that are not there.
  uint64_t missing() const { return options_.products - known_; }

  absl::Status AddProduct(uint64_t i, const Shop::Stub& stub) const {
    const uint64_t number = known_ + i;
    const Garment* const garment = garments_.empty() ? nullptr : &garments_[number % garments_.size()];
    const auto kind = static_cast<uint8_t>(garment == nullptr ? number % kKinds : garment->kind);
    PutProductRequest request;
    request.set_token(token_);
    *request.mutable_product() = GenerateProduct(options_.seed, number, KindOf(kind));
    if (garment != nullptr)
      request.mutable_product()->set_picture(static_cast<uint32_t>(number % garments_.size()) + 1);
    Product product;
    Context putting(Time()), delivering(Time());
    putting.AddMetadata("idempotency-key", Join("product ", number));
    absl::Status status = stub.PutProduct(putting, request, &product);
    if (!status.ok() || options_.stock == 0) return status;
    DeliverRequest delivery;
    delivery.set_token(token_);
    delivery.mutable_delivery()->set_name(Join("opening ", product.id()));
    delivery.mutable_delivery()->set_product(product.id());
    delivery.mutable_delivery()->set_count(static_cast<uint32_t>(options_.stock));
    apps::Changed ignored;
    return stub.DeliverStock(delivering, delivery, &ignored);
  }

  absl::Status WritePictures() const {
    const std::string folder = Join(folder_, "/", kPicturesFolder);
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    for (size_t i = 0; i < garments_.size(); ++i) {
      const std::string path = Join(folder, "/", i + 1);
      if (std::filesystem::exists(path, error)) continue;
      std::ofstream file(path, std::ios::binary);
      file << PngOf(garments_[i].pixels, kPictureSide);
      if (!file.flush()) return absl::FailedPreconditionError(Join(path, " cannot be written"));
    }
    return absl::OkStatus();
  }

  absl::Status ListProducts(uint64_t, const Shop::Stub& stub) {
    ProductQuery query;
    query.set_limit(kPage);
    ProductList page;
    do {
      query.set_page(page.next());
      page.Clear();
      Context ctx(Time());
      if (absl::Status status = stub.ListProducts(ctx, query, &page); !status.ok()) return status;
      for (const Product& one : page.products())
        products_.push_back({one.id(), one.cents(), one.tags().empty() ? "none" : one.tags(0)});
    } while (page.next() != 0);
    return absl::OkStatus();
  }

  absl::Status EnterUser(uint64_t number, const Shop::Stub& stub) {
    apps::Session session;
    apps::Credentials credentials;
    credentials.set_name(Join("user_", number));
    credentials.set_password(apps::PasswordOf(options_.seed, number));
    bool ignored = false;
    absl::Status status = apps::Enter(options_, stub, credentials, &session, &ignored);
    uint64_t address = 0, card = 0;
    if (status.ok()) status = FindAddress(session.token(), stub, number, &address);
    if (status.ok()) status = FindCard(session.token(), stub, &card);
    users_[number] = {.id = session.user(),
                      .name = session.name(),
                      .token = session.token(),
                      .more = {Join(address), Join(card), apps::PasswordOf(options_.seed, number)}};
    return status;
  }

  // The user's first address, which it adds if it has none.
  absl::Status FindAddress(const std::string& token, const Shop::Stub& stub, uint64_t number,
                           uint64_t* id) const {
    apps::TokenRequest mine;
    mine.set_token(token);
    AddressList list;
    Context listing(Time()), adding(Time());
    absl::Status status = stub.ListAddresses(listing, mine, &list);
    if (status.ok() && list.addresses().empty()) {
      AddressRequest request;
      request.set_token(token);
      Address& address = *request.mutable_address();
      address.set_name(Join("User ", number));
      address.set_street(Join(1 + number % 999, " Main Street"));
      address.set_city("Springfield");
      address.set_postcode(Join(10'000 + number % 89'999));
      address.set_country(number % 5 == 0 ? "CA" : "US");
      status = stub.AddAddress(adding, request, list.add_addresses());
    }
    if (status.ok()) *id = list.addresses(0).id();
    return status;
  }

  absl::Status FindCard(const std::string& token, const Shop::Stub& stub, uint64_t* id) const {
    apps::TokenRequest mine;
    mine.set_token(token);
    CardList list;
    Context listing(Time()), adding(Time());
    absl::Status status = stub.ListCards(listing, mine, &list);
    if (status.ok() && list.cards().empty()) {
      CardRequest request;
      request.set_token(token);
      request.set_number(kLoadCard);
      request.set_expires("2099-12");
      status = stub.AddCard(adding, request, list.add_cards());
    }
    if (status.ok()) *id = list.cards(0).id();
    return status;
  }

  // Users like one kind of clothing more than others.
  absl::Status PlaceOrder(uint64_t number, const Shop::Stub& stub) const {
    constexpr int kTries = 8;
    const uint64_t user = number % users_.size();
    Rng rng(options_.seed + number);
    BuyRequest request;
    request.set_token(users_[user].token);
    request.set_address(std::stoull(users_[user].more[0]));
    request.set_card(std::stoull(users_[user].more[1]));
    size_t drawn = rng.Below(products_.size());
    for (int i = 0; i < kTries && products_[drawn].tag != KindOf(static_cast<uint8_t>(user % kKinds)); ++i)
      drawn = rng.Below(products_.size());
    Line& line = *request.add_lines();
    line.set_product(products_[drawn].id);
    line.set_count(1 + static_cast<uint32_t>(rng.Below(2)));
    Order order;
    Context ctx(Time());
    ctx.AddMetadata("idempotency-key", Join("order ", number));
    return stub.Buy(ctx, request, &order);
  }

  const std::vector<apps::LoadUser>& users() const { return users_; }
  const std::vector<KnownProduct>& products() const { return products_; }

 private:
  static constexpr int64_t kCodeMs = 365 * int64_t{86'400'000};

  Nanos Time() const { return FromSeconds(options_.timeout_s); }

  const FillOptions& options_;
  const std::string folder_;
  const std::vector<Garment> garments_;
  std::string token_;                   // the clerk's
  uint64_t known_ = 0;                  // products that were there
  std::vector<apps::LoadUser> users_;   // by number; each written by one thread
  std::vector<KnownProduct> products_;  // in the catalogue already
};

absl::StatusOr<std::vector<Garment>> GarmentsFor(const FillOptions& options) {
  if (options.pictures == "none") return std::vector<Garment>();
  return ReadGarments(options.pictures == "fashion-mnist" ? kFashionFolder : options.pictures,
                      options.products);
}

}  // namespace

absl::Status Fill(const FillOptions& options) {
  const absl::StatusOr<std::string> folder = apps::DataFolder(kApplication, options.data);
  if (!folder.ok()) return folder.status();
  auto garments = GarmentsFor(options);
  if (!garments.ok()) return garments.status();
  ShopFiller filler(options, *folder, *std::move(garments));
  const auto all = [&](const char* what, uint64_t count, auto step) {
    return apps::ForAll(options, what, count, [&](uint64_t i, Channel& channel) {
      return (filler.*step)(i, Shop::Stub(&channel));
    });
  };
  absl::Status status = all("code", 1, &ShopFiller::Begin);
  if (status.ok()) status = filler.WritePictures();
  if (status.ok()) status = all("products", filler.missing(), &ShopFiller::AddProduct);
  if (status.ok()) status = all("catalogue", 1, &ShopFiller::ListProducts);
  if (status.ok()) status = all("users", options.users, &ShopFiller::EnterUser);
  if (status.ok()) status = apps::WriteLoadUsers(*folder, filler.users());
  if (status.ok()) status = WriteKnownProducts(*folder, filler.products());
  return status.ok() ? all("orders", options.products == 0 ? 0 : options.orders, &ShopFiller::PlaceOrder)
                     : status;
}

}  // namespace curtail::shop
