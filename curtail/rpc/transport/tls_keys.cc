// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. New keys matter to new connections only, so it is a new connection that looks at the files: no thread, no
// timer. A certificate and its key are two files, which a look may find half exchanged. Then they do not belong
// together, the old ones stay, and the next change is another reason to read them.
#include "curtail/rpc/transport/tls_keys.h"

#include <sys/stat.h>

#include <cstdio>
#include <utility>

#include "curtail/base/strings.h"
#include "curtail/rpc/transport/tls_stream.h"

namespace curtail::internal {

TlsKeys::TlsKeys(std::vector<std::string> files, Nanos interval, Loader load)
    : files_(std::move(files)), interval_(interval), load_(std::move(load)) {}

absl::StatusOr<std::unique_ptr<TlsKeys>> TlsKeys::Load(std::vector<std::string> files, Nanos interval,
                                                       Loader load) {
  std::erase(files, "");
  std::unique_ptr<TlsKeys> keys(new TlsKeys(std::move(files), interval, std::move(load)));
  if (absl::Status loaded = keys->Reload(); !loaded.ok()) return loaded;
  return keys;
}

std::vector<TlsKeys::Stamp> TlsKeys::Look() const {
  std::vector<Stamp> stamps;
  for (const std::string& file : files_) {
    struct stat info;
    Stamp& stamp = stamps.emplace_back();
    if (stat(file.c_str(), &info) != 0) continue;
    stamp = {.modified_ns = info.st_mtim.tv_sec * 1'000'000'000 + info.st_mtim.tv_nsec,
             .inode = info.st_ino,
             .size = info.st_size};
  }
  return stamps;
}

absl::Status TlsKeys::ReloadLocked() {
  seen_ = Look();
  next_look_ = Now() + interval_;
  absl::StatusOr<std::unique_ptr<TlsContext>> loaded = load_();
  if (!loaded.ok()) return loaded.status();
  context_ = *std::move(loaded);
  return absl::OkStatus();
}

absl::Status TlsKeys::Reload() {
  MutexLock lock(mu_);
  return ReloadLocked();
}

std::shared_ptr<const TlsContext> TlsKeys::Current() {
  MutexLock lock(mu_);
  if (interval_ == Nanos::zero()) return context_;
  if (const TimePoint now = Now(); now >= next_look_) {
    next_look_ = now + interval_;
    if (Look() != seen_) {
      const absl::Status reloaded = ReloadLocked();
      const std::string line =
          reloaded.ok() ? Join("curtail: TLS: read again: ", files_.front(), "\n")
                        : Join("curtail: TLS: the keys stay as they were: ", Message(reloaded), "\n");
      std::fputs(line.c_str(), stderr);
    }
  }
  return context_;
}

}  // namespace curtail::internal
