// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/data/secrets.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "curtail/base/internal/sync_folder.h"
#include "curtail/base/strings.h"

namespace curtail::apps {
namespace {

constexpr size_t kSecretBytes = 32;

absl::StatusOr<std::string> ReadSecret(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return absl::NotFoundError(Join(path, ": ", std::generic_category().message(errno)));
  std::string secret(4096, '\0');
  struct stat file = {};
  const ssize_t got = fstat(fd, &file) == 0 ? read(fd, secret.data(), secret.size()) : -1;
  close(fd);
  if (got < static_cast<ssize_t>(kSecretBytes)) {
    return absl::FailedPreconditionError(
        Join(path, " holds no secret of ", kSecretBytes, " bytes or more; remove it for a new one"));
  }
  // Its group may read it, as a container's does what is mounted for it.
  if ((file.st_mode & 037) != 0) {
    return absl::FailedPreconditionError(Join(path, " can be read by others: chmod 600 ", path));
  }
  secret.resize(static_cast<size_t>(got));
  return secret;
}

}  // namespace

absl::StatusOr<std::string> RandomBytes(size_t count) {
  std::string bytes(count, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(count)) == 1) return bytes;
  return absl::InternalError("no random bytes");
}

absl::StatusOr<std::string> SecretOf(const std::string& path) {
  absl::StatusOr<std::string> known = ReadSecret(path);
  if (!absl::IsNotFound(known.status())) return known;
  const absl::StatusOr<std::string> secret = RandomBytes(kSecretBytes);
  if (!secret.ok()) return secret.status();
  // Written whole under another name, then linked: the first process wins, and the others read its secret.
  const std::string mine = Join(path, ".", getpid());
  const int fd = open(mine.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  const bool written = fd >= 0 &&
                       write(fd, secret->data(), secret->size()) == static_cast<ssize_t>(kSecretBytes) &&
                       fsync(fd) == 0;
  if (fd >= 0) close(fd);
  const bool linked = written && (link(mine.c_str(), path.c_str()) == 0 || errno == EEXIST);
  unlink(mine.c_str());
  if (!linked || !curtail::internal::SyncFolderOf(path))
    return absl::FailedPreconditionError(Join(path, " cannot be written"));
  return ReadSecret(path);
}

std::string Mac(std::string_view secret, std::string_view text) {
  unsigned char mac[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(), mac, &size);
  return {reinterpret_cast<const char*>(mac), size};
}

}  // namespace curtail::apps
