// SPDX-License-Identifier: Apache-2.0
#include "curtail/store/tls.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <new>
#include <system_error>
#include <utility>

#include "curtail/base/strings.h"

namespace curtail {
namespace {

// The oldest error of this thread, and forgets the others.
std::string TakeReason() {
  std::array<char, 256> text{};
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  if (code == 0) return "";
  const char* const reason = ERR_reason_error_string(code);
  if (reason != nullptr) return reason;
  ERR_error_string_n(code, text.data(), text.size());
  return text.data();
}

// A socket that raises no SIGPIPE, as OpenSSL's own may.
struct QuietSocket {
  static int Fd(BIO* bio) { return static_cast<int>(reinterpret_cast<intptr_t>(BIO_get_data(bio))); }
  static int Write(BIO* bio, const char* bytes, int size) {
    BIO_clear_retry_flags(bio);
    const ssize_t sent = send(Fd(bio), bytes, static_cast<size_t>(size), MSG_NOSIGNAL);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_write(bio);
    return static_cast<int>(sent);
  }
  static int Read(BIO* bio, char* to, int room) {
    BIO_clear_retry_flags(bio);
    const ssize_t got = recv(Fd(bio), to, static_cast<size_t>(room), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_read(bio);
    return static_cast<int>(got);
  }
  static long Control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }
  // Made on first use, never freed: connections may live as long as the process.
  static BIO_METHOD* Method() {
    static BIO_METHOD* const method = [] {
      BIO_METHOD* m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "curtail store");
      BIO_meth_set_write(m, &Write);
      BIO_meth_set_read(m, &Read);
      BIO_meth_set_ctrl(m, &Control);
      return m;
    }();
    return method;
  }
};

}  // namespace

absl::StatusOr<std::shared_ptr<const StoreTls>> StoreTls::Load(const std::string& ca_file) {
  ERR_clear_error();
  ssl_ctx_st* const context = SSL_CTX_new(TLS_client_method());
  if (context == nullptr) return absl::ResourceExhaustedError("no memory for TLS");
  std::shared_ptr<const StoreTls> tls(new StoreTls(context, ca_file));
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  const int loaded = ca_file.empty() ? SSL_CTX_set_default_verify_paths(context)
                                     : SSL_CTX_load_verify_locations(context, ca_file.c_str(), nullptr);
  if (loaded == 1) return tls;
  return absl::InvalidArgumentError(Join("the authorities of ", ca_file.empty() ? "this system" : ca_file,
                                         " cannot be used: ", TakeReason(),
                                         "; give a file of certificates in PEM"));
}

StoreTls::~StoreTls() { SSL_CTX_free(context_); }

TlsChannel::TlsChannel(std::shared_ptr<const StoreTls> tls, const std::string& host, int fd)
    : tls_(std::move(tls)), host_(host), ssl_(SSL_new(tls_->context_)) {
  BIO* const bio = ssl_ == nullptr ? nullptr : BIO_new(QuietSocket::Method());
  if (bio == nullptr) throw std::bad_alloc();
  BIO_set_data(bio, reinterpret_cast<void*>(static_cast<intptr_t>(fd)));
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl_, bio, bio);
  SSL_set_connect_state(ssl_);
  X509_VERIFY_PARAM* const checks = SSL_get0_param(ssl_);
  if (X509_VERIFY_PARAM_set1_ip_asc(checks, host.c_str()) == 1) return;
  ERR_clear_error();
  X509_VERIFY_PARAM_set1_host(checks, host.c_str(), host.size());
  SSL_set_tlsext_host_name(ssl_, host.c_str());
}

TlsChannel::~TlsChannel() { SSL_free(ssl_); }

TlsChannel::Step TlsChannel::Note(int result) {
  const int error = errno;
  const int kind = SSL_get_error(ssl_, result);
  if (kind == SSL_ERROR_WANT_READ) return Step::kReads;
  if (kind == SSL_ERROR_WANT_WRITE) return Step::kWrites;
  error_ = kind == SSL_ERROR_SYSCALL ? error : 0;
  reason_ = TakeReason();
  return Step::kEnded;
}

TlsChannel::Step TlsChannel::Handshake() {
  ERR_clear_error();
  errno = 0;
  const int result = SSL_do_handshake(ssl_);
  return result == 1 ? Step::kDone : Note(result);
}

TlsChannel::Step TlsChannel::Write(std::string_view bytes, size_t* moved) {
  ERR_clear_error();
  errno = 0;
  const int result = SSL_write_ex(ssl_, bytes.data(), bytes.size(), moved);
  return result == 1 ? Step::kDone : Note(result);
}

TlsChannel::Step TlsChannel::Read(char* to, size_t room, size_t* moved) {
  ERR_clear_error();
  errno = 0;
  const int result = SSL_read_ex(ssl_, to, room, moved);
  return result == 1 ? Step::kDone : Note(result);
}

absl::Status TlsChannel::Explain(std::string_view peer) const {
  const long verified = SSL_get_verify_result(ssl_);
  if (verified == X509_V_ERR_HOSTNAME_MISMATCH || verified == X509_V_ERR_IP_ADDRESS_MISMATCH) {
    return absl::FailedPreconditionError(
        Join(peer, ": its certificate is not for ", host_, "; call it by a name that the certificate has"));
  }
  if (verified != X509_V_OK) {
    return absl::FailedPreconditionError(
        Join(peer, ": its certificate is not trusted: ", X509_verify_cert_error_string(verified), "; ",
             tls_->ca_file_.empty() ? "name the file of its authority, as rediss://HOST:PORT?ca=FILE"
                                    : Join(tls_->ca_file_, " does not have its authority")));
  }
  if (error_ != 0)
    return absl::UnavailableError(Join(peer, " is gone: ", std::generic_category().message(error_)));
  if (reason_ == "wrong version number" || reason_ == "packet length too long")
    return absl::UnavailableError(Join(peer, " does not speak TLS: write its address as redis://HOST:PORT"));
  return absl::UnavailableError(
      Join(peer, " is gone: ", reason_.empty() ? "it closed the connection" : reason_));
}

}  // namespace curtail
