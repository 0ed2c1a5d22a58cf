// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. New keys matter to new connections only, so it is a new connection that looks at the files: no thread, no
// timer. A certificate and its key are two files, which a look may find half exchanged. Then they do not belong
// together, the old ones stay, and the next change is another reason to read them.
#include "curtail/rpc/transport/tls_keys.h"

#include <utility>

#include "curtail/base/log.h"
#include "curtail/base/strings.h"
#include "curtail/rpc/transport/tls_stream.h"

namespace curtail::internal {

TlsKeys::TlsKeys(std::vector<std::string> files, Nanos interval, Loader load)
    : load_(std::move(load)), watch_(std::move(files), interval) {}

absl::StatusOr<std::unique_ptr<TlsKeys>> TlsKeys::Load(std::vector<std::string> files, Nanos interval,
                                                       Loader load) {
  std::unique_ptr<TlsKeys> keys(new TlsKeys(std::move(files), interval, std::move(load)));
  if (absl::Status loaded = keys->Reload(); !loaded.ok()) return loaded;
  return keys;
}

absl::Status TlsKeys::ReloadLocked() {
  watch_.BeforeReading();
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
  if (!watch_.Changed(Now())) return context_;
  const absl::Status reloaded = ReloadLocked();
  if (reloaded.ok()) {
    Log(Severity::kInfo, Join("TLS: read again: ", watch_.first()), {{"file", watch_.first()}});
  } else {
    Log(Severity::kError, Join("TLS: the keys stay as they were: ", Message(reloaded)),
        {{"file", watch_.first()}});
  }
  return context_;
}

}  // namespace curtail::internal
