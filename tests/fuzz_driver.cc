// SPDX-License-Identifier: Apache-2.0
//
// fuzz_driver.cc - drives a libFuzzer target without libFuzzer, for builds whose compiler has none.
//
// fuzz_driver [SECONDS [SEED]]: random inputs and mutations of earlier ones, for a second. It knows nothing
// of coverage; what it adds to every test run is that the targets are built, run, and survive some hundred
// thousand inputs. Deep searches are the clang build's (preset fuzz). The seed is printed and can be given.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "curtail/base/clock.h"
#include "curtail/base/rng.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

constexpr size_t kPool = 64;
constexpr size_t kMaxSize = 4096;

std::string RandomBytes(curtail::Rng& rng) {
  std::string bytes(rng.Below(64), '\0');
  for (char& byte : bytes) byte = static_cast<char>(rng.Next());
  return bytes;
}

// One of: fresh bytes, a flipped bit, a cut, a splice of two earlier inputs, an HTTP/2 frame header put in
// somewhere.
std::string NextInput(const std::vector<std::string>& pool, curtail::Rng& rng) {
  std::string input = pool[rng.Below(pool.size())];
  switch (rng.Below(5)) {
    case 0:
      return RandomBytes(rng);
    case 1:
      if (!input.empty()) input[rng.Below(input.size())] ^= static_cast<char>(1u << rng.Below(8));
      break;
    case 2:
      input.resize(rng.Below(input.size() + 1));
      break;
    case 3:
      input += pool[rng.Below(pool.size())];
      break;
    default: {
      std::string header = {0,
                            0,
                            static_cast<char>(rng.Below(32)),
                            static_cast<char>(rng.Below(10)),
                            static_cast<char>(rng.Next()),
                            0,
                            0,
                            0,
                            static_cast<char>(rng.Below(4))};
      input.insert(rng.Below(input.size() + 1), header + RandomBytes(rng));
    }
  }
  if (input.size() > kMaxSize) input.resize(kMaxSize);
  return input;
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::strtod(argv[1], nullptr) : 1;
  const uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10)
                                 : static_cast<uint64_t>(curtail::Now().time_since_epoch().count());
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  std::fflush(stdout);
  curtail::Rng rng(seed);
  std::vector<std::string> pool(kPool);
  const auto end = curtail::Deadline::In(std::chrono::nanoseconds(static_cast<int64_t>(seconds * 1e9)));
  uint64_t runs = 0;
  while (!end.Expired()) {
    std::string input = NextInput(pool, rng);
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
    pool[rng.Below(kPool)] = std::move(input);
    ++runs;
  }
  std::printf("%llu inputs survived\n", static_cast<unsigned long long>(runs));
}
