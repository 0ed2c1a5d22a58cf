// SPDX-License-Identifier: Apache-2.0
//
// How customers find products: tags, words, prices, what others buy; and what they look like.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "apps/kit/data/model_file.h"
#include "apps/kit/taste/taste.h"
#include "apps/shop/common/pictures.h"
#include "apps/shop/common/train.h"
#include "apps/shop/tests/customers_testing.h"
#include "curtail/base/rng.h"

namespace curtail::shop {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;
using Words = std::vector<std::string>;
using Products = std::vector<uint64_t>;

Products IdsIn(const ProductList& list) {
  Products ids;
  for (const Product& one : list.products()) ids.push_back(one.id());
  return ids;
}

class TagsTest : public ServicesTest {
 protected:
  TagsTest() : ServicesTest({"tags"}) {}

  absl::Status Set(uint64_t product, const Words& tags) {
    TagsOfProduct request;
    request.set_product(product);
    request.mutable_tags()->Assign(tags.begin(), tags.end());
    apps::Nothing nothing;
    Context ctx(kMaxTestWait);
    return Stub<Tags>("tags").Set(ctx, request, &nothing);
  }
  Words All() {
    TagList list;
    Context ctx(kMaxTestWait);
    EXPECT_TRUE(Stub<Tags>("tags").All(ctx, {}, &list).ok());
    Words all;
    for (const Tag& tag : list.tags()) all.push_back(Join(tag.name(), " ", tag.products()));
    return all;
  }
};

TEST_F(TagsTest, CountWhatHasThemNow) {
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(Set(1, {"red", "bag", "red"}).ok());
    ASSERT_TRUE(Set(2, {"red"}).ok());
  }
  EXPECT_THAT(All(), ElementsAre("bag 1", "red 2"));
  ASSERT_TRUE(Set(1, {"blue", "bag"}).ok());
  EXPECT_THAT(All(), ElementsAre("bag 1", "blue 1", "red 1"));
  ASSERT_TRUE(Set(2, {}).ok());
  EXPECT_THAT(All(), ElementsAre("bag 1", "blue 1"));
  apps::Ids ids;
  for (const uint64_t id : {2, 1, 3}) ids.add_ids(id);
  TagsOfProducts of;
  Context ctx(kMaxTestWait);
  ASSERT_TRUE(Stub<Tags>("tags").Of(ctx, ids, &of).ok());
  ASSERT_EQ(of.products_size(), 3);
  EXPECT_EQ(of.products(1).product(), 1u);
  EXPECT_THAT(of.products(1).tags(), ElementsAre("bag", "blue"));
  EXPECT_THAT(of.products(0).tags(), IsEmpty());
  EXPECT_THAT(of.products(2).tags(), IsEmpty());
}

TEST_F(TagsTest, RefuseWhatIsNotATag) {
  for (const std::string& wrong :
       {std::string(), std::string("Red"), std::string("a b"), std::string(33, 'a'), std::string("\xc3\xbc")})
    EXPECT_TRUE(absl::IsInvalidArgument(Set(1, {"red", wrong}))) << wrong;
  EXPECT_TRUE(absl::IsInvalidArgument(Set(1, Words(17, "red"))));
  EXPECT_THAT(All(), IsEmpty());
}

class SearchTest : public ServicesTest {
 protected:
  SearchTest() : ServicesTest({"catalogue", "search-index", "search"}) {}

  // Enters a product into the catalogue and the index.
  uint64_t EnterFound(const std::string& name, int64_t cents, const Words& tags) {
    Product product;
    product.set_id(Enter(name, cents, tags)), product.set_name(name), product.set_cents(cents);
    product.mutable_tags()->Assign(tags.begin(), tags.end());
    apps::Nothing nothing;
    Context ctx(kMaxTestWait);
    const absl::Status status = Stub<Search>("search").Enter(ctx, product, &nothing);
    EXPECT_TRUE(status.ok()) << status;
    return product.id();
  }
  absl::Status Query(const ProductSearch& query, ProductList* reply) {
    Context ctx(kMaxTestWait);
    return Stub<Search>("search").Query(ctx, query, reply);
  }
  Products Find(const ProductSearch& query) {
    ProductList found;
    const absl::Status status = Query(query, &found);
    EXPECT_TRUE(status.ok()) << status;
    return IdsIn(found);
  }
  static ProductSearch For(const std::string& text, const std::string& tag = {}, uint64_t least = 0,
                           uint64_t greatest = 0) {
    ProductSearch query;
    query.set_text(text), query.set_tag(tag), query.set_least(least), query.set_greatest(greatest);
    return query;
  }
  void AwaitFound(const ProductSearch& query, size_t count) {
    const Deadline deadline = Deadline::In(kMaxTestWait);
    while (Find(query).size() < count && !deadline.Expired()) BetweenLooks();
  }
};

TEST_F(SearchTest, FindsByWordsTagsAndPrices) {
  const uint64_t red = EnterFound("Red leather bag", 2000, {"bag", "red"}),
                 blue = EnterFound("Blue bag", 3000, {"bag", "blue"}),
                 boot = EnterFound("Red boot", 9000, {"boot", "red"});
  AwaitFound(For("", "", 1), 3);
  EXPECT_THAT(Find(For("BAG")), UnorderedElementsAre(red, blue));
  EXPECT_THAT(Find(For("leather red")), ElementsAre(red));
  EXPECT_THAT(Find(For("red", "boot")), ElementsAre(boot));
  EXPECT_THAT(Find(For("red", "", 2000, 8999)), ElementsAre(red));
  EXPECT_THAT(Find(For("", "", 2001)), ElementsAre(boot, blue)) << "the newest first";
  EXPECT_THAT(Find(For("", "bag")), ElementsAre(blue, red));
  EXPECT_THAT(Find(For("green")), IsEmpty());
  ProductSearch page = For("", "bag");
  page.set_limit(1);
  ProductList first, second;
  ASSERT_TRUE(Query(page, &first).ok());
  page.set_skip(first.next());
  ASSERT_TRUE(Query(page, &second).ok());
  EXPECT_THAT(IdsIn(first), ElementsAre(blue));
  EXPECT_THAT(IdsIn(second), ElementsAre(red));
  EXPECT_TRUE(absl::IsInvalidArgument(Query(For(""), &first)));
  EXPECT_TRUE(absl::IsInvalidArgument(Query(For(std::string(257, 'a')), &first)));
  EXPECT_TRUE(absl::IsInvalidArgument(Query(For("a b c d e f g h i j k l m n o p q"), &first)));
}

TEST_F(SearchTest, FindsWhatWasEnteredWhileTheIndexWasAway) {
  app_->Kill("search-index");
  const uint64_t red = EnterFound("Crimson xylophone", 2000, {"red"});
  app_->Kill("search");
  ASSERT_TRUE(app_->Restart("search-index").ok());
  ASSERT_TRUE(app_->Restart("search").ok());
  ProductList found;
  const Deadline deadline = Deadline::In(kMaxTestWait);
  absl::Status status;
  do {
    status = Query(For("xylophone"), &found);
    EXPECT_TRUE(status.ok() || absl::IsUnavailable(status)) << status;
    BetweenLooks();
  } while (found.products().empty() && !deadline.Expired());
  EXPECT_THAT(IdsIn(found), ElementsAre(red));
  EXPECT_EQ(found.products(0).cents(), 2000);
}

class RecommenderTest : public ServicesTest {
 protected:
  static constexpr uint64_t kProducts = 20;

  RecommenderTest() : ServicesTest({"catalogue", "recommender"}) {
    for (uint64_t i = 0; i < kProducts; ++i) Enter(Join("Product ", i), 1);
  }
  template <class Call>
  absl::StatusOr<Products> Ask(Call call, const Products& products, uint32_t limit) {
    RecommendationQuery query;
    query.mutable_products()->Assign(products.begin(), products.end());
    query.set_limit(limit);
    ProductList list;
    Context ctx(kMaxTestWait);
    absl::Status status = (Stub<Recommender>("recommender").*call)(ctx, query, &list, nullptr);
    if (!status.ok()) return status;
    return IdsIn(list);
  }
};

TEST_F(RecommenderTest, ProductsThatAreBoughtTogetherGoTogether) {
  EXPECT_TRUE(absl::IsFailedPrecondition(Ask(&Recommender::Stub::For, {1}, 3).status()))
      << "nothing was learned";
  // Customers buy products of odd or of even numbers.
  Rng rng(TestSeed());
  std::vector<apps::Liking> bought;
  for (uint64_t customer = 1; customer <= 200; ++customer) {
    for (uint64_t product = 1 + customer % 2; product <= kProducts; product += 2)
      if (rng.Below(2) == 0) bought.push_back({customer, product, 1});
  }
  apps::AddOthers(1, 1, &bought);
  const auto model = apps::TrainTaste(bought, {.regularization = 2});
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_TRUE(apps::WriteMessage(*model, Join(Folder(), "/", kTasteModelFile)).ok());
  for (const auto call : {&Recommender::Stub::For, &Recommender::Stub::Similar}) {
    const auto odd = Ask(call, {1, 3, 999}, 5), even = Ask(call, {2}, 5);
    ASSERT_TRUE(odd.ok() && even.ok()) << odd.status() << even.status();
    ASSERT_EQ(odd->size(), 5u);
    ASSERT_EQ(even->size(), 5u);
    for (const uint64_t product : *odd) EXPECT_TRUE(product % 2 == 1 && product > 3) << product;
    for (const uint64_t product : *even) EXPECT_TRUE(product % 2 == 0 && product > 2) << product;
  }
  EXPECT_EQ(Ask(&Recommender::Stub::For, {}, 4)->size(), 4u) << "what is popular";
  EXPECT_THAT(*Ask(&Recommender::Stub::Similar, {999}, 4), IsEmpty());
  EXPECT_TRUE(absl::IsInvalidArgument(Ask(&Recommender::Stub::For, Products(101, 1), 4).status()));
}

// ----- pictures

// The data of a PNG's chunks of a type, each of which has the right sum.
std::string ChunksOf(std::string_view png, std::string_view type) {
  const auto number = [&](size_t at) {
    uint32_t value = 0;
    for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(png[at + i]);
    return value;
  };
  std::string found;
  for (size_t at = 8; at < png.size();) {
    const uint32_t bytes = number(at);
    const std::string_view body = png.substr(at + 4, 4 + bytes);
    EXPECT_EQ(number(at + 8 + bytes),
              crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size())));
    if (body.substr(0, 4) == type) found += body.substr(4);
    at += 12 + bytes;
  }
  return found;
}

TEST(Pictures, OfClothingArePngs) {
  const auto garments = ReadGarments(kFashionFolder, 50);
  ASSERT_TRUE(garments.ok()) << garments.status();
  ASSERT_EQ(garments->size(), 50u);
  EXPECT_EQ(KindOf((*garments)[0].kind), "boot") << "the first of the set";
  const std::string& pixels = (*garments)[0].pixels;
  const std::string png = PngOf(pixels, kPictureSide);
  EXPECT_EQ(png.substr(0, 8), "\x89PNG\r\n\x1a\n");
  EXPECT_LT(png.size(), kMostPictureBytes);
  EXPECT_EQ(ChunksOf(png, "IHDR"), std::string("\0\0\0\x1c\0\0\0\x1c\x08\0\0\0\0", 13));
  const std::string packed = ChunksOf(png, "IDAT");
  std::string rows((kPictureSide + 1) * kPictureSide, '\0');
  uLongf size = rows.size();
  ASSERT_EQ(uncompress(reinterpret_cast<Bytef*>(rows.data()), &size,
                       reinterpret_cast<const Bytef*>(packed.data()), packed.size()),
            Z_OK);
  ASSERT_EQ(size, rows.size());
  for (uint32_t row = 0; row < kPictureSide; ++row) {
    EXPECT_EQ(rows[row * (kPictureSide + 1)], 0);
    for (uint32_t column = 0; column < kPictureSide; ++column) {
      const auto grey = static_cast<unsigned char>(rows[row * (kPictureSide + 1) + 1 + column]);
      EXPECT_EQ(255 - grey, static_cast<unsigned char>(pixels[row * kPictureSide + column]));
    }
  }
  EXPECT_TRUE(absl::IsNotFound(ReadGarments("/no/such/folder", 1).status()));
}

class MediaTest : public ServicesTest {
 protected:
  MediaTest() : ServicesTest({"media"}) {}
};

TEST_F(MediaTest, GivesThePicturesOfTheFolder) {
  std::filesystem::create_directories(Join(Folder(), "/", kPicturesFolder));
  const std::string png = PngOf(std::string(4, '\x7f'), 2);
  std::ofstream(Join(Folder(), "/", kPicturesFolder, "/7"), std::ios::binary) << png;
  std::ofstream(Join(Folder(), "/", kPicturesFolder, "/8")) << "no picture";
  const auto get = [&](uint32_t picture, google::api::HttpBody* body) {
    PictureQuery query;
    query.set_picture(picture);
    Context ctx(kMaxTestWait);
    return Stub<Pictures>("media").Get(ctx, query, body);
  };
  google::api::HttpBody body;
  ASSERT_TRUE(get(7, &body).ok());
  EXPECT_EQ(body.content_type(), "image/png");
  EXPECT_EQ(body.data(), png);
  EXPECT_TRUE(absl::IsDataLoss(get(8, &body)));
  EXPECT_TRUE(absl::IsNotFound(get(9, &body)));
}

}  // namespace
}  // namespace curtail::shop
