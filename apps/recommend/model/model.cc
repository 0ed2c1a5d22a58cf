// SPDX-License-Identifier: Apache-2.0
//
// Reading trusts nothing: sizes are compared with the bytes there are before memory is taken for them, and
// what checksums let pass must still be what a model is.
#include "apps/recommend/model/model.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "apps/kit/output_file.h"
#include "curtail/base/strings.h"

namespace curtail::recommend {
namespace {

static_assert(std::endian::native == std::endian::little, "model files are written as this machine has them");

constexpr char kMagic[8] = {'C', 'U', 'R', 'T', 'R', 'E', 'C', '\n'};
constexpr uint32_t kByteOrder = 0x01020304, kOtherByteOrder = 0x04030201;

struct Header {
  char magic[8];
  uint32_t version, byte_order;
  uint32_t shard_index, shard_count;
  uint64_t users, items, ratings;
  uint32_t rank, iterations;
  double regularization, bias_damping;
  uint64_t seed;
  double mean;
  float low, high;
  uint64_t data;
  uint32_t checksum, zero;  // of all before
};
static_assert(sizeof(Header) == kModelHeaderBytes && std::is_trivially_copyable_v<Header>);

uint32_t Checksum(const void* data, size_t bytes) {
  uLong sum = crc32_z(0, nullptr, 0);
  return static_cast<uint32_t>(crc32_z(sum, static_cast<const Bytef*>(data), bytes));
}

absl::Status Corrupt(size_t offset, std::string_view why) {
  return absl::DataLossError(Join("corrupt at byte ", offset, ": ", why));
}

Header HeaderOf(const Model& model) {
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.version = kModelVersion, header.byte_order = kByteOrder;
  header.shard_index = model.shard.index, header.shard_count = model.shard.count;
  header.users = model.matrix.users.size(), header.items = model.matrix.items.size();
  header.ratings = model.matrix.by_item.value.size();
  header.rank = model.train.rank, header.iterations = model.train.iterations;
  header.regularization = model.train.regularization, header.bias_damping = model.train.bias_damping;
  header.seed = model.train.seed;
  header.mean = model.factors.mean;
  header.low = model.matrix.low, header.high = model.matrix.high;
  header.data = model.data;
  header.checksum = Checksum(&header, offsetof(Header, checksum));
  return header;
}

// All arrays, in the file's order, with how long they are: fn(name, array, entries).
template <class AnyModel, class Fn>
absl::Status ForEachArray(AnyModel& model, const Header& h, Fn fn) {
  absl::Status status = fn("users", model.matrix.users, h.users);
  if (status.ok()) status = fn("items", model.matrix.items, h.items);
  if (status.ok()) status = fn("user biases", model.factors.user_bias, h.users);
  if (status.ok()) status = fn("item biases", model.factors.item_bias, h.items);
  if (status.ok()) status = fn("user factors", model.factors.user_factors, h.users * h.rank);
  if (status.ok()) status = fn("item factors", model.factors.item_factors, h.items * h.rank);
  if (status.ok()) status = fn("item offsets", model.matrix.by_item.begin, h.items + 1);
  if (status.ok()) status = fn("raters", model.matrix.by_item.index, h.ratings);
  if (status.ok()) status = fn("ratings", model.matrix.by_item.value, h.ratings);
  return status;
}

absl::Status CheckHeader(std::string_view bytes, const Header& h) {
  if (h.byte_order == kOtherByteOrder) {
    return absl::InvalidArgumentError(
        "at byte 12: written on a machine with the other byte order; train it here");
  }
  if (h.version != kModelVersion) {
    return absl::InvalidArgumentError(
        Join("at byte 8: version ", h.version, " of the format; this program reads version ", kModelVersion));
  }
  if (h.checksum != Checksum(&h, offsetof(Header, checksum))) {
    return Corrupt(offsetof(Header, checksum), "the header's checksum does not match");
  }
  const TrainOptions train{h.rank, h.iterations, h.regularization, h.bias_damping, h.seed};
  if (absl::Status status = Check(train); !status.ok())
    return Corrupt(offsetof(Header, rank), Message(status));
  if (h.shard_count == 0 || h.shard_count > kMaxShards || h.shard_index >= h.shard_count) {
    return Corrupt(offsetof(Header, shard_index), "there is no such shard");
  }
  if (h.ratings == 0 || h.ratings > kMaxRatings || h.users == 0 || h.users > h.ratings || h.items == 0 ||
      h.items > h.ratings) {
    return Corrupt(offsetof(Header, users), "impossible numbers of users, items and ratings");
  }
  // Also means that neither is NaN.
  if (!(-kMaxRating <= h.low && h.low <= h.mean && h.mean <= h.high && h.high <= kMaxRating)) {
    return Corrupt(offsetof(Header, mean), "the mean and the scale of ratings contradict each other");
  }
  // With the limits above this cannot overflow.
  const uint64_t want = sizeof(Header) + (h.users + h.items) * (8 + 4 * uint64_t{h.rank}) +
                        (h.items + 1) * 8 + h.ratings * 8 + 9 * sizeof(uint32_t);
  if (bytes.size() != want) {
    return absl::DataLossError(Join(bytes.size() < want ? "truncated" : "too long", ": ends at byte ",
                                    bytes.size(), ", its header means ", want));
  }
  return absl::OkStatus();
}

bool Rises(std::span<const uint32_t> values) {
  return std::adjacent_find(values.begin(), values.end(), std::greater_equal<>()) == values.end();
}

// True if the arrays make a model; `name` says which.
absl::Status CheckArray(std::string_view name, size_t offset, const Model& model, const Header& h) {
  const Matrix& m = model.matrix;
  if ((name == "users" && !Rises(m.users)) || (name == "items" && !Rises(m.items))) {
    return Corrupt(offset, Join("the ids of ", name, " do not rise"));
  }
  if (name == "item offsets") {
    const auto& begin = m.by_item.begin;
    const bool rise = std::adjacent_find(begin.begin(), begin.end(), std::greater_equal<>()) == begin.end();
    if (begin.front() != 0 || begin.back() != h.ratings || !rise)
      return Corrupt(offset, "item offsets do not rise");
  }
  if (name == "raters") {
    for (size_t item = 0; item < h.items; ++item) {
      const auto raters = m.by_item.Indices(item);
      if (!Rises(raters) || raters.back() >= h.users) return Corrupt(offset, "raters are not users in order");
    }
  }
  if (name == "ratings") {
    const bool fit = std::all_of(m.by_item.value.begin(), m.by_item.value.end(),
                                 [&](float r) { return r >= h.low && r <= h.high; });
    if (!fit) return Corrupt(offset, "ratings are outside their scale");
  }
  return absl::OkStatus();
}

bool AllSane(std::span<const float> values) {
  return std::all_of(values.begin(), values.end(), [](float v) { return std::fabs(v) <= kMaxLearned; });
}

struct Descriptor {
  explicit Descriptor(int fd) : fd(fd) {}
  ~Descriptor() {
    if (fd >= 0) close(fd);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  const int fd;
};

absl::Status FileError(const std::string& path, std::string_view what) {
  const int error = errno;
  return absl::Status(absl::ErrnoToStatusCode(error), Join(path, ": ", what, ": ", std::strerror(error)));
}

}  // namespace

Model TrainModel(const Ratings& ratings, Shard shard, const TrainOptions& options, int threads, bool quiet) {
  Model model{shard, options, ratings.fingerprint, MakeMatrix(ratings), {}};
  // The mean over N shards brings back nothing of what shrinking took away, but evens out noise N-fold: the
  // options are for a model of all ratings, and a shard is shrunk less. `recommend evaluate` finds this best
  // for both.
  TrainOptions part = options;
  part.bias_damping /= shard.count;
  part.regularization /= std::sqrt(shard.count);
  model.factors = Factorize(model.matrix, part, threads, quiet);
  return model;
}

absl::StatusOr<Model> TrainModel(const DataSpec& spec, Shard shard, const TrainOptions& train,
                                 const ReadOptions& options) {
  if (absl::Status status = Check(train); !status.ok()) return status;
  const absl::StatusOr<Ratings> ratings = ReadRatings(spec, shard, options);
  if (!ratings.ok()) return ratings.status();
  return TrainModel(*ratings, shard, train, options.threads, options.quiet);
}

std::string SerializeModel(const Model& model) {
  const Header header = HeaderOf(model);
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
  ForEachArray(model, header, [&](std::string_view, const auto& array, uint64_t) {
    const size_t size = array.size() * sizeof array[0];
    const uint32_t checksum = Checksum(array.data(), size);
    bytes.append(reinterpret_cast<const char*>(array.data()), size);
    bytes.append(reinterpret_cast<const char*>(&checksum), sizeof checksum);
    return absl::OkStatus();
  }).IgnoreError();
  return bytes;
}

absl::StatusOr<Model> ParseModel(std::string_view bytes) {
  if (bytes.size() < sizeof(Header) || std::memcmp(bytes.data(), kMagic, sizeof kMagic) != 0) {
    const bool ours =
        !bytes.empty() && std::string_view(kMagic, sizeof kMagic).starts_with(bytes.substr(0, 8));
    if (ours)
      return absl::DataLossError(Join("truncated: ends at byte ", bytes.size(), ", within the header"));
    return absl::InvalidArgumentError("at byte 0: not a model; `recommend train` writes them");
  }
  Header header;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (absl::Status status = CheckHeader(bytes, header); !status.ok()) return status;
  Model model;
  model.shard = {header.shard_index, header.shard_count};
  model.train = {header.rank, header.iterations, header.regularization, header.bias_damping, header.seed};
  model.matrix.low = header.low, model.matrix.high = header.high;
  model.data = header.data;
  model.factors.mean = header.mean, model.factors.rank = header.rank;
  size_t offset = sizeof header;
  absl::Status status =
      ForEachArray(model, header, [&](std::string_view name, auto& array, uint64_t entries) {
        const size_t size = entries * sizeof array[0];
        array.resize(entries);
        std::memcpy(array.data(), bytes.data() + offset, size);
        uint32_t checksum;
        std::memcpy(&checksum, bytes.data() + offset + size, sizeof checksum);
        if (checksum != Checksum(array.data(), size)) {
          return Corrupt(
              offset, Join("the checksum of the ", name, " up to byte ", offset + size, " does not match"));
        }
        if constexpr (std::is_same_v<std::remove_reference_t<decltype(array)>, std::vector<float>>) {
          if (!AllSane(array)) return Corrupt(offset, Join("the ", name, " hold no sensible numbers"));
        }
        absl::Status fine = CheckArray(name, offset, model, header);
        offset += size + sizeof checksum;
        return fine;
      });
  if (!status.ok()) return status;
  return model;
}

absl::Status WriteModel(const Model& model, const std::string& path) {
  apps::OutputFile file(path);
  if (absl::Status status = file.Write(SerializeModel(model)); !status.ok()) return status;
  return file.Commit();
}

absl::StatusOr<Model> ReadModel(const std::string& path) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info;
  if (file.fd < 0 || fstat(file.fd, &info) != 0) return FileError(path, "cannot be opened");
  if (!S_ISREG(info.st_mode)) return absl::InvalidArgumentError(Join(path, ": not a file"));
  std::string bytes(static_cast<size_t>(info.st_size), '\0');
  for (size_t got = 0; got < bytes.size();) {
    const ssize_t n = read(file.fd, bytes.data() + got, bytes.size() - got);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return FileError(path, "cannot be read");
    if (n == 0) bytes.resize(got);
    got += static_cast<size_t>(n);
  }
  absl::StatusOr<Model> model = ParseModel(bytes);
  if (model.ok()) return model;
  return absl::Status(model.status().code(), Join(path, ": ", Message(model.status())));
}

}  // namespace curtail::recommend
