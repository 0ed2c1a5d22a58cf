// SPDX-License-Identifier: Apache-2.0
//
// tls_keys.h - keys and certificates that are read again when their files change.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "curtail/base/clock.h"
#include "curtail/base/mutex.h"
#include "curtail/rpc/transport/file_watch.h"

namespace curtail::internal {

class TlsContext;

// A TlsKeys holds the TlsContext that its files make. Thread-safe; a caller waits while another one reads the files.
class TlsKeys {
 public:
  using Loader = std::function<absl::StatusOr<std::unique_ptr<TlsContext>>()>;

  // Reads the files for the first time. `interval`: from one look at them to the next; zero: only Reload() looks.
  static absl::StatusOr<std::unique_ptr<TlsKeys>> Load(std::vector<std::string> files, Nanos interval,
                                                       Loader load);

  // For the next connection. Looks at the files if the interval has passed, and reads them if one has changed.
  std::shared_ptr<const TlsContext> Current();
  // Reads the files now. Errors: the loader's; the present keys stay.
  absl::Status Reload();

 private:
  TlsKeys(std::vector<std::string> files, Nanos interval, Loader load);
  absl::Status ReloadLocked() CURTAIL_REQUIRES(mu_);

  // Immutable after construction.
  const Loader load_;

  Mutex mu_;
  FileWatch watch_ CURTAIL_GUARDED_BY(mu_);
  std::shared_ptr<const TlsContext> context_ CURTAIL_GUARDED_BY(mu_);
};

}  // namespace curtail::internal
