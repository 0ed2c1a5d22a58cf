// SPDX-License-Identifier: Apache-2.0
//
// file:PATH: a file with an address a line, which may change. Whoever writes it puts a whole file in its place (rename).
#include <algorithm>
#include <utility>

#include "curtail/base/mutex.h"
#include "curtail/base/read_file.h"
#include "curtail/base/strings.h"
#include "curtail/rpc/client/resolver/target.h"
#include "curtail/rpc/transport/file_watch.h"

namespace curtail::internal {
namespace {

constexpr Nanos kLookAgain = std::chrono::milliseconds(200);
constexpr size_t kMaxFileBytes = 256 * 1024;

class FileResolver final : public Resolver {
 public:
  explicit FileResolver(std::string path) : path_(std::move(path)), watch_({path_}, Nanos(1)) {}

  absl::StatusOr<std::vector<Address>> Resolve() override {
    MutexLock lock(mu_);
    if (read_.ok() && !watch_.Changed(Now())) return read_;
    watch_.BeforeReading();
    read_ = Read();
    return read_;
  }
  Nanos max_age() const override { return kLookAgain; }

 private:
  absl::StatusOr<std::vector<Address>> Read() const {
    const absl::StatusOr<std::string> text = ReadWholeFile(path_, kMaxFileBytes);
    if (!text.ok()) return text.status();
    std::vector<Address> addresses;
    std::string_view left = *text;
    for (int number = 1; !left.empty(); ++number) {
      const std::string_view line = left.substr(0, left.find('\n'));
      left.remove_prefix(std::min(line.size() + 1, left.size()));
      if (line.empty() || line.starts_with('#')) continue;
      const absl::StatusOr<Address> address =
          Address::NeedsLookup(line) ? absl::InvalidArgumentError("it is a name") : Address::Resolve(line);
      if (!address.ok()) {
        return absl::InvalidArgumentError(
            Join(path_, ":", number, ": \"", line, "\": write HOST:PORT with a numeric host, or unix:PATH"));
      }
      addresses.push_back(*address);
    }
    if (addresses.empty()) return absl::UnavailableError(Join(path_, " names no server"));
    return addresses;
  }

  const std::string path_;

  Mutex mu_;
  FileWatch watch_ CURTAIL_GUARDED_BY(mu_);
  absl::StatusOr<std::vector<Address>> read_ CURTAIL_GUARDED_BY(mu_) = absl::UnavailableError("not read yet");
};

}  // namespace

absl::StatusOr<Target> ParseFile(std::string_view rest) {
  if (rest.starts_with("///")) rest.remove_prefix(2);
  if (rest.empty() || rest.find('\0') != rest.npos) {
    return absl::InvalidArgumentError("target \"file:\" names no file; write file:/run/search.addresses");
  }
  return Target{"localhost", std::make_unique<FileResolver>(std::string(rest))};
}

}  // namespace curtail::internal
