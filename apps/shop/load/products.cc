// SPDX-License-Identifier: Apache-2.0
#include "apps/shop/load/products.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <numbers>
#include <utility>

#include "curtail/base/rng.h"
#include "curtail/base/strings.h"

namespace curtail::shop {
namespace {

constexpr std::string_view kColours[] = {"black", "white", "red",   "green",  "blue",
                                         "grey",  "brown", "beige", "yellow", "navy"};

// The words of an index of WordNet; without it, these.
std::vector<std::string> ReadWords(const char* path, std::vector<std::string> otherwise) {
  constexpr size_t kShortest = 4, kLongest = 9, kMost = 20'000;
  std::ifstream file(path);
  std::vector<std::string> words;
  for (std::string line; words.size() < kMost && std::getline(file, line);) {
    line.resize(std::min(line.size(), line.find(' ')));
    const bool plain = std::ranges::all_of(line, [](char c) { return c >= 'a' && c <= 'z'; });
    if (plain && line.size() >= kShortest && line.size() <= kLongest) words.push_back(std::move(line));
  }
  return words.empty() ? std::move(otherwise) : words;
}

const std::string& Draw(Rng& rng, const std::vector<std::string>& words) {
  return words[rng.Below(words.size())];
}

// About 35.00, two thirds of them between 19 and 64; ends with 99.
int64_t DrawCents(Rng& rng) {
  constexpr double kMedian = 3500, kSigma = 0.6;
  const double angle = 2 * std::numbers::pi * rng.Uniform01();
  const double normal = std::sqrt(-2 * std::log(1 - rng.Uniform01())) * std::cos(angle);
  const auto cents = static_cast<int64_t>(kMedian * std::exp(kSigma * normal));
  return std::clamp<int64_t>(cents / 100 * 100 + 99, 199, 99'999);
}

}  // namespace

Product GenerateProduct(uint64_t seed, uint64_t number, std::string_view kind) {
  static const std::vector<std::string> adjectives = ReadWords(
      "/usr/share/wordnet/index.adj", {"plain", "warm", "light", "soft", "wide", "slim", "long", "classic"});
  static const std::vector<std::string> nouns = ReadWords(
      "/usr/share/wordnet/index.noun", {"cotton", "wool", "linen", "silk", "denim", "leather", "canvas"});
  Rng rng(seed * 0x9E3779B97F4A7C15u + number);
  const std::string colour(kColours[rng.Below(std::size(kColours))]);
  Product product;
  product.set_name(Join(Draw(rng, adjectives), " ", colour, " ", kind));
  product.set_description(Join("A ", Draw(rng, adjectives), ", ", Draw(rng, adjectives), " ", kind, " of ",
                               Draw(rng, nouns), " and ", Draw(rng, nouns), ", for ", Draw(rng, nouns), "."));
  product.set_cents(DrawCents(rng));
  product.set_grams(static_cast<uint32_t>(100 + rng.Below(1400)));
  product.add_tags(std::string(kind));
  product.add_tags(colour);
  return product;
}

absl::Status WriteKnownProducts(const std::string& folder, const std::vector<KnownProduct>& products) {
  const std::string path = folder + "/load-products";
  std::ofstream file(path);
  for (const KnownProduct& product : products)
    file << product.id << ' ' << product.cents << ' ' << product.tag << '\n';
  return file.flush() ? absl::OkStatus() : absl::InternalError(Join(path, " cannot be written"));
}

absl::StatusOr<std::vector<KnownProduct>> ReadKnownProducts(const std::string& folder) {
  const std::string path = folder + "/load-products";
  std::ifstream file(path);
  std::vector<KnownProduct> products;
  for (KnownProduct product; file >> product.id >> product.cents >> product.tag;) products.push_back(product);
  if (!products.empty()) return products;
  return absl::NotFoundError(Join(path, " names no products: run shop fill, as curtail up shop does"));
}

}  // namespace curtail::shop
