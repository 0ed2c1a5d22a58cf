// SPDX-License-Identifier: Apache-2.0
#include "apps/setalgebra/index/postings.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "absl/status/status.h"

namespace curtail::setalgebra {
namespace {

static_assert(std::endian::native == std::endian::little, "bitmaps are read 64 bits at a time");

uint32_t UnitsOf(uint32_t documents) { return documents > kMaxArray ? kBitmapUnits : documents; }

// The state of a word in Build().
struct Plan {
  uint32_t units = 0;  // of all chunks
  uint32_t chunks = 0;
  uint32_t here = 0;  // documents of the present chunk
  uint32_t head = 0;  // where the head of the next chunk goes
  uint32_t next = 0;  // where the next number, or the present bitmap, goes
};

// Goes through the documents of all parts, chunk by chunk.
class Walk {
 public:
  explicit Walk(std::span<const ForwardLists> parts) : parts_(parts) {}

  // Calls body(low, word) for the words of the documents of the next chunk; false when there is none. With
  // `again` the same chunk once more.
  template <class Body>
  bool Chunk(bool again, Body body) {
    if (again) part_ = chunk_part_, document_ = chunk_document_;
    chunk_part_ = part_, chunk_document_ = document_;
    uint32_t low = 0;
    for (; part_ < parts_.size(); ++part_, document_ = 0) {
      const ForwardLists& lists = parts_[part_];
      for (; document_ < lists.ends.size(); ++document_, ++low) {
        if (low == kChunkDocuments) return true;
        for (uint32_t i = document_ == 0 ? 0 : lists.ends[document_ - 1]; i < lists.ends[document_]; ++i) {
          body(static_cast<uint16_t>(low), lists.words[i]);
        }
      }
    }
    return low > 0;
  }

 private:
  const std::span<const ForwardLists> parts_;
  size_t part_ = 0, chunk_part_ = 0;
  size_t document_ = 0, chunk_document_ = 0;
};

// Counts the documents of each word in a chunk: plans[w].here, and which words there are.
bool CountChunk(Walk* walk, std::vector<Plan>* plans, std::vector<uint32_t>* touched) {
  touched->clear();
  return walk->Chunk(false, [&](uint16_t, uint32_t word) {
    if ((*plans)[word].here++ == 0) touched->push_back(word);
  });
}

// Sets how many units and chunks each word needs. Returns the number of postings.
uint64_t Measure(std::span<const ForwardLists> parts, std::vector<Plan>* plans) {
  std::vector<uint32_t> touched;
  uint64_t postings = 0;
  for (Walk walk(parts); CountChunk(&walk, plans, &touched);) {
    for (const uint32_t word : touched) {
      Plan& plan = (*plans)[word];
      postings += plan.here;
      plan.units += UnitsOf(plan.here), ++plan.chunks, plan.here = 0;
    }
  }
  return postings;
}

// Puts a document of the present chunk into its word's list.
void Put(uint16_t low, Plan* plan, uint16_t* out) {
  if (plan->here <= kMaxArray) {
    out[plan->next++] = low;
  } else {
    uint16_t& unit = out[plan->next + low / 16];
    unit = static_cast<uint16_t>(unit | 1u << (low % 16));
  }
}

// Writes all chunks and their heads.
void Fill(std::span<const ForwardLists> parts, std::vector<Plan>* plans, uint16_t* out) {
  std::vector<uint32_t> touched;
  uint16_t high = 0;
  for (Walk walk(parts); CountChunk(&walk, plans, &touched); ++high) {
    walk.Chunk(true, [&](uint16_t low, uint32_t word) { Put(low, &(*plans)[word], out); });
    for (const uint32_t word : touched) {
      Plan& plan = (*plans)[word];
      out[plan.head++] = high;
      out[plan.head++] = static_cast<uint16_t>(plan.here - 1);
      if (plan.here > kMaxArray) plan.next += kBitmapUnits;
      plan.here = 0;
    }
  }
}

// The finds of IntersectLists() in one chunk so far, and room for the next step.
struct Scratch {
  static constexpr size_t kUnits = kMaxArray + Kernels::kSlack;
  alignas(64) uint16_t units[2][kUnits];
};

// Those of array `a` that are in the bitmap.
size_t Filter(const uint16_t* a, size_t n, const uint16_t* bitmap, uint16_t* out) {
  size_t found = 0;
  for (size_t i = 0; i < n; ++i) {
    out[found] = a[i];
    found += bitmap[a[i] / 16] >> (a[i] % 16) & 1;
  }
  return found;
}

void AppendArray(const uint16_t* a, size_t n, uint32_t base, std::vector<uint32_t>* documents) {
  const size_t before = documents->size();
  documents->resize(before + n);
  uint32_t* const out = documents->data() + before;
  for (size_t i = 0; i < n; ++i) out[i] = base + a[i];
}

void AppendBitmap(const uint16_t* bitmap, uint32_t base, std::vector<uint32_t>* documents) {
  for (uint32_t unit = 0; unit < kBitmapUnits; unit += 4) {
    uint64_t bits;
    std::memcpy(&bits, bitmap + unit, sizeof bits);
    for (; bits != 0; bits &= bits - 1) {
      documents->push_back(base + unit * 16 + static_cast<uint32_t>(std::countr_zero(bits)));
    }
  }
}

// REQUIRES: all are dense.
void IntersectBitmaps(std::span<const Chunk> chunks, uint32_t base, std::vector<uint32_t>* documents) {
  if (chunks.size() == 1) return AppendBitmap(chunks[0].units, base, documents);
  alignas(64) uint16_t all[kBitmapUnits];
  std::memcpy(all, chunks[0].units, sizeof all);
  for (const Chunk& chunk : chunks.subspan(1)) {
    for (uint32_t i = 0; i < kBitmapUnits; ++i) all[i] &= chunk.units[i];
  }
  AppendBitmap(all, base, documents);
}

// `chunks` are of the same documents.
void IntersectChunks(const Kernels& kernels, std::span<Chunk> chunks, uint32_t base,
                     std::vector<uint32_t>* documents) {
  std::sort(chunks.begin(), chunks.end(), [](const Chunk& a, const Chunk& b) { return a.size < b.size; });
  if (chunks[0].dense()) return IntersectBitmaps(chunks, base, documents);
  Scratch scratch;
  const uint16_t* found = chunks[0].units;
  size_t n = chunks[0].size;
  for (size_t i = 1; i < chunks.size() && n > 0; ++i) {
    uint16_t* const out = scratch.units[i % 2];
    const Chunk& other = chunks[i];
    n = other.dense() ? Filter(found, n, other.units, out)
                      : Intersect(kernels, found, n, other.units, other.size, out);
    found = out;
  }
  AppendArray(found, n, base, documents);
}

}  // namespace

PostingList::PostingList(const uint16_t* begin) : head_(begin + 1), left_(*begin + 1u) {
  units_ = head_ + 2 * size_t{left_};
}

Chunk PostingList::chunk() const { return {units_, head_[1] + 1u, head_[0]}; }

void PostingList::Next() {
  units_ += UnitsOf(head_[1] + 1u);
  head_ += 2;
  --left_;
}

uint64_t PostingList::size() const {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < left_; ++i) sum += head_[2 * i + 1] + uint64_t{1};
  return sum;
}

absl::StatusOr<PostingStore> PostingStore::Build(size_t words, std::span<const ForwardLists> parts) {
  PostingStore store;
  std::vector<Plan> plans(words);
  store.postings_ = Measure(parts, &plans);
  uint64_t units = 0;
  store.begins_.reserve(words);
  for (Plan& plan : plans) {
    store.begins_.push_back(static_cast<uint32_t>(units));
    plan.head = store.begins_.back() + 1;
    plan.next = plan.head + 2 * plan.chunks;
    units += 1 + 2 * uint64_t{plan.chunks} + plan.units;
  }
  if (units > UINT32_MAX) {
    return absl::ResourceExhaustedError("the index of this shard exceeds 8 GiB; use more shards");
  }
  store.units_.resize(units);
  for (size_t word = 0; word < words; ++word) {
    store.units_[store.begins_[word]] = static_cast<uint16_t>(plans[word].chunks - 1);
  }
  Fill(parts, &plans, store.units_.data());
  return store;
}

void IntersectLists(const Kernels& kernels, std::span<PostingList> lists, uint32_t base,
                    std::vector<uint32_t>* documents) {
  std::sort(lists.begin(), lists.end(),
            [](const PostingList& a, const PostingList& b) { return a.size() < b.size(); });
  std::array<Chunk, kMaxTerms> chunks;
  for (PostingList& first = lists[0]; !first.at_end(); first.Next()) {
    chunks[0] = first.chunk();
    const uint16_t high = chunks[0].high;
    size_t have = 1;
    for (; have < lists.size(); ++have) {
      PostingList& list = lists[have];
      while (!list.at_end() && list.chunk().high < high) list.Next();
      if (list.at_end()) return;
      chunks[have] = list.chunk();
      if (chunks[have].high != high) break;
    }
    if (have < lists.size()) continue;
    IntersectChunks(kernels, std::span(chunks).first(have), base + uint32_t{high} * kChunkDocuments,
                    documents);
  }
}

}  // namespace curtail::setalgebra
