// SPDX-License-Identifier: Apache-2.0
#include "curtail/deploy/service_tls.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace curtail::deploy {
namespace {

constexpr char kTools[] = "curtail";  // the name of the certificate of this user's tools
constexpr long kDays = 10 * 365;      // the files go with the application
constexpr long kClockSkewS = 24 * 3600;

template <auto Free>
struct Deleter {
  template <class T>
  void operator()(T* object) const {
    Free(object);
  }
};
using Key = std::unique_ptr<EVP_PKEY, Deleter<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Deleter<X509_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, Deleter<X509_EXTENSION_free>>;

std::string FolderOf(const std::string& folder) { return absl::StrCat(folder, "/tls"); }
std::string FileOf(const std::string& folder, const std::string& name) {
  return absl::StrCat(folder, "/", name, ".pem");
}
std::string KeyFileOf(const std::string& folder, const std::string& name) {
  return absl::StrCat(folder, "/", name, ".key");
}

bool AddExtension(X509* certificate, int kind, const std::string& value) {
  const Extension extension(X509V3_EXT_conf_nid(nullptr, nullptr, kind, value.c_str()));
  return extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1;
}

bool SetSerial(X509* certificate) {
  uint64_t serial = 0;
  return RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof(serial)) == 1 &&
         ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), serial >> 1) == 1;
}

// A certificate with `key` for the names; an authority's without names. Null: OpenSSL failed.
Certificate MakeCertificate(const std::string& title, const std::vector<std::string>& names, EVP_PKEY* key,
                            X509* issuer, EVP_PKEY* issuer_key) {
  Certificate made(X509_new());
  X509* const x = made.get();
  if (x == nullptr || key == nullptr || X509_set_version(x, 2) != 1 || !SetSerial(x)) return nullptr;
  X509_gmtime_adj(X509_getm_notBefore(x), -kClockSkewS);
  X509_time_adj_ex(X509_getm_notAfter(x), kDays, 0, nullptr);
  X509_NAME* const subject = X509_get_subject_name(x);
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(title.c_str()), -1, -1, 0);
  X509* const vouching = issuer == nullptr ? x : issuer;
  if (X509_set_pubkey(x, key) != 1 || X509_set_issuer_name(x, X509_get_subject_name(vouching)) != 1)
    return nullptr;
  const bool extended = names.empty()
                            ? AddExtension(x, NID_basic_constraints, "critical,CA:TRUE,pathlen:0")
                            : AddExtension(x, NID_subject_alt_name, "DNS:" + absl::StrJoin(names, ",DNS:"));
  if (!extended || X509_sign(x, issuer == nullptr ? key : issuer_key, EVP_sha256()) <= 0) return nullptr;
  return made;
}

// Writes what `write` writes to a new file that its owner alone may read.
template <class Write>
absl::Status WriteFile(const std::string& path, Write write) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR);
  std::FILE* const file = fd < 0 ? nullptr : fdopen(fd, "w");
  if (file == nullptr) {
    const int error = errno;
    if (fd >= 0) close(fd);
    return absl::InternalError(absl::StrCat("cannot write ", path, ": ", std::strerror(error)));
  }
  const bool written = write(file) == 1;
  if (std::fclose(file) == 0 && written) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("cannot write ", path));
}

// An authority for one start.
class Authority {
 public:
  explicit Authority(std::string folder)
      : folder_(std::move(folder)),
        key_(EVP_EC_gen("P-256")),
        own_(MakeCertificate("curtail up", {}, key_.get(), nullptr, nullptr)) {}

  absl::Status Begin() const {
    if (own_ == nullptr) return absl::InternalError("cannot make an authority for TLS");
    return WriteFile(FileOf(folder_, "ca"),
                     [&](std::FILE* file) { return PEM_write_X509(file, own_.get()); });
  }
  absl::Status Issue(const std::string& file_name, const std::vector<std::string>& names) const {
    const Key key(EVP_EC_gen("P-256"));
    const Certificate made = MakeCertificate(file_name, names, key.get(), own_.get(), key_.get());
    if (made == nullptr) return absl::InternalError(absl::StrCat("cannot make a certificate of ", file_name));
    absl::Status status = WriteFile(KeyFileOf(folder_, file_name), [&](std::FILE* file) {
      return PEM_write_PrivateKey(file, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
    });
    status.Update(WriteFile(FileOf(folder_, file_name),
                            [&](std::FILE* file) { return PEM_write_X509(file, made.get()); }));
    return status;
  }

 private:
  const std::string folder_;
  const Key key_;
  const Certificate own_;
};

// True if it is a curtail service that is started.
bool TakesTlsFlags(const ServiceSpec& service) { return service.IsHosted() && service.external.empty(); }

bool IsPeer(const Wiring& call) { return call.flag == "--peer" || call.flag == "--leaf"; }

std::string PeerName(const Wiring& call) { return call.named ? call.name() : "leaf"; }

}  // namespace

std::map<std::string, std::set<std::string>> SecureServices(const Topology& topology) {
  std::map<std::string, std::set<std::string>> names;
  for (const ServiceSpec& caller : topology.services) {
    for (const Wiring& call : caller.calls) names[call.service].insert(PeerName(call));
  }
  std::erase_if(names, [&](const auto& one) {
    const ServiceSpec* const service = topology.Find(one.first);
    return service == nullptr || service->entry || !TakesTlsFlags(*service) ||
           std::ranges::any_of(topology.services, [&](const ServiceSpec& caller) {
             return std::ranges::any_of(caller.calls, [&](const Wiring& call) {
               return call.service == one.first && (!TakesTlsFlags(caller) || !IsPeer(call));
             });
           });
  });
  return names;
}

absl::StatusOr<std::unique_ptr<ServiceTls>> ServiceTls::Make(const Topology& topology,
                                                             const std::string& folder) {
  std::unique_ptr<ServiceTls> tls(new ServiceTls(topology, FolderOf(folder)));
  std::error_code ignored;
  std::filesystem::remove_all(tls->folder_, ignored);  // of a start that was killed
  if (mkdir(tls->folder_.c_str(), S_IRWXU) != 0)
    return absl::InternalError(absl::StrCat("cannot make ", tls->folder_, ": ", std::strerror(errno)));
  const Authority authority(tls->folder_);
  absl::Status status = authority.Begin();
  status.Update(authority.Issue(kTools, {kTools}));
  const auto secure = SecureServices(topology);
  for (const ServiceSpec& service : topology.services) {
    if (!TakesTlsFlags(service)) continue;
    const auto named = secure.find(service.name);
    if (named == secure.end()) {
      status.Update(authority.Issue(service.name + ".client", {service.name}));
      continue;
    }
    tls->secure_.insert(service.name);
    std::set<std::string> names = named->second;
    for (const absl::string_view member : absl::StrSplit(service.name, '+')) names.emplace(member);
    status.Update(authority.Issue(service.name, {names.begin(), names.end()}));
  }
  if (!status.ok()) return status;
  return tls;
}

ServiceTls::~ServiceTls() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::vector<std::string> ServiceTls::FlagsOf(const ServiceSpec& service) const {
  if (!TakesTlsFlags(service)) return {};
  const bool secure = secure_.contains(service.name);
  const std::string own = secure ? service.name : service.name + ".client";
  const std::string ca = FileOf(folder_, "ca");
  const std::string certificate = FileOf(folder_, own), key = KeyFileOf(folder_, own);
  std::vector<std::string> flags;
  if (secure) flags = {"--tls-cert", certificate, "--tls-key", key, "--tls-client-ca", ca};
  flags.insert(flags.end(), {"--peer-ca", ca, "--peer-cert", certificate, "--peer-key", key});
  for (const Wiring& call : service.calls) {
    const ServiceSpec* const callee = topology_.Find(call.service);
    if (IsPeer(call) && !secure_.contains(call.service) && callee != nullptr && callee->instances() > 0)
      flags.insert(flags.end(), {"--peer-plain", PeerName(call)});
  }
  return flags;
}

absl::StatusOr<std::shared_ptr<const ClientTls>> TlsToCall(const std::string& folder,
                                                           const std::string& service) {
  const std::string files = FolderOf(folder);
  if (access(FileOf(files, service).c_str(), R_OK) != 0) return nullptr;
  return ClientTls::Load({.ca_file = FileOf(files, "ca"),
                          .certificate_file = FileOf(files, kTools),
                          .key_file = KeyFileOf(files, kTools),
                          .server_name = service.substr(0, service.find('+'))});
}

}  // namespace curtail::deploy
