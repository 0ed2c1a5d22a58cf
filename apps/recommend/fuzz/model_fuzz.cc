// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a model file: an error, or a model whose every prediction is within its scale. Checksums
// refuse nearly all, so half of the inputs are edits of a small valid model with the checksums set right
// again: pairs of bytes, where and what.
#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "apps/recommend/model/model.h"
#include "apps/recommend/model/predictor.h"

namespace {

using namespace curtail::recommend;

void Require(bool holds) {
  if (!holds) std::abort();
}

const std::string& Valid() {
  static const std::string bytes = [] {
    TrainOptions train;
    train.rank = 2, train.iterations = 1;
    return SerializeModel(*TrainModel(*DataSpec::Parse("synthetic:users=5,items=4,ratings=10"),
                                      curtail::Shard{}, train, {1, true}));
  }();
  return bytes;
}

void Seal(std::string* bytes, size_t begin, size_t end) {
  const auto sum = static_cast<uint32_t>(
      crc32(0, reinterpret_cast<const Bytef*>(bytes->data() + begin), static_cast<uInt>(end - begin)));
  std::memcpy(bytes->data() + end, &sum, sizeof sum);
}

// Sets the checksums of a model as large as Valid() right.
void SealAll(std::string* bytes) {
  static const Model model = *ParseModel(Valid());
  const size_t users = model.matrix.users.size(), items = model.matrix.items.size();
  const size_t ratings = model.matrix.by_item.value.size();
  Seal(bytes, 0, 104);
  size_t at = kModelHeaderBytes;
  for (const size_t size : {users * 4, items * 4, users * 4, items * 4, users * 8, items * 8, (items + 1) * 8,
                            ratings * 4, ratings * 4}) {
    Seal(bytes, at, at + size);
    at += size + 4;
  }
  Require(at == bytes->size());
}

void Check(std::string_view bytes) {
  absl::StatusOr<Model> model = ParseModel(bytes);
  if (!model.ok()) return Require(!model.status().message().empty());
  const float low = model->matrix.low, high = model->matrix.high;
  const std::vector<uint32_t> users = model->matrix.users, items = model->matrix.items;
  const Predictor predictor(*std::move(model), 2);
  for (const uint32_t user : users) {
    for (const uint32_t item : items) {
      const double rating = predictor.Predict(user, item).rating;
      Require(rating >= low && rating <= high);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 0 && (data[0] & 1) != 0) {
    Check({reinterpret_cast<const char*>(data) + 1, size - 1});
    return 0;
  }
  std::string bytes = Valid();
  for (size_t i = 1; i + 2 < size && i < 60; i += 3) {
    bytes[(data[i] * 256u + data[i + 1]) % bytes.size()] = static_cast<char>(data[i + 2]);
  }
  if (size > 0 && (data[0] & 2) != 0) SealAll(&bytes);
  Check(bytes);
  return 0;
}
