// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. OpenSSL reads and writes through a BIO of ours that has no socket below: it reads what was fed and appends
// to a string. So the connection above reads and writes its socket in the same large pieces, with or without TLS, and
// none of OpenSSL's "wants to read in order to write" reaches it, except that Write() may take nothing for now.
//
// Renegotiation is off, and the key updates of TLS 1.3 are answered by OpenSSL within Read().
#include "curtail/rpc/transport/tls_stream.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <utility>

#include "absl/strings/strip.h"
#include "curtail/base/mutex.h"
#include "curtail/base/strings.h"

namespace curtail::internal {
namespace {

// A server's words to a peer that does not speak TLS: a fatal alert, "unexpected message". Plain text clients can
// tell by it that they should. OpenSSL itself would just fall silent.
constexpr std::string_view kAlert("\x15\x03\x01\x00\x02\x02\x0a", 7);
constexpr size_t kKeptOutput = 16u << 10;
// A peer that has us answer (key updates) without taking the answers is cut off at this many bytes. More than any
// handshake has.
constexpr size_t kMostAnswers = 256u << 10;
constexpr int kMostNames = 4;

// "HTTP/2 (ALPN "h2")"
std::string ProtocolName(std::string_view protocol) {
  return Join(protocol == TlsStream::kHttp2 ? "HTTP/2" : "HTTP/1.1", " (ALPN \"", protocol, "\")");
}

using BioPtr = std::unique_ptr<BIO, decltype(&BIO_free)>;

// The text printed into a memory BIO.
std::string Text(const BioPtr& bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return size > 0 ? std::string(data, static_cast<size_t>(size)) : std::string();
}

std::string SubjectOf(const X509* certificate) {
  const BioPtr bio(BIO_new(BIO_s_mem()), &BIO_free);
  X509_NAME_print_ex(bio.get(), X509_get_subject_name(certificate), 0, XN_FLAG_RFC2253);
  std::string subject = Text(bio);
  return subject.empty() ? "nobody" : subject;
}

std::string TimeText(const ASN1_TIME* time) {
  const BioPtr bio(BIO_new(BIO_s_mem()), &BIO_free);
  ASN1_TIME_print(bio.get(), time);
  return Text(bio);
}

// The names that a certificate is for: "a.example, 10.0.0.1".
std::string NamesOf(const X509* certificate) {
  auto* const names =
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  if (names == nullptr) return SubjectOf(certificate);
  const BioPtr bio(BIO_new(BIO_s_mem()), &BIO_free);
  const int count = sk_GENERAL_NAME_num(names);
  for (int i = 0; i < std::min(count, kMostNames); ++i) {
    if (i > 0) BIO_puts(bio.get(), ", ");
    GENERAL_NAME_print(bio.get(), sk_GENERAL_NAME_value(names, i));
  }
  if (count > kMostNames) BIO_puts(bio.get(), ", ...");
  GENERAL_NAMES_free(names);
  return Text(bio);
}

// "has expired: CN=a was valid until Nov 20 06:17:17 2026 GMT; renew ", before what to renew.
std::string Expired(const X509* certificate) {
  return Join("has expired: ", SubjectOf(certificate), " was valid until ",
              TimeText(X509_get0_notAfter(certificate)), "; renew ");
}

std::string NotYetValid(const X509* certificate) {
  return Join("is not yet valid: ", SubjectOf(certificate), " is valid from ",
              TimeText(X509_get0_notBefore(certificate)));
}

std::string DescribeCertificateError(int error, const X509* certificate, bool client,
                                     const std::string& host) {
  const std::string whose = client ? "the server's certificate" : "the client's certificate";
  if (certificate == nullptr) return Join(whose, ": ", X509_verify_cert_error_string(error));
  const std::string subject = SubjectOf(certificate);
  switch (error) {
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return Join(whose, " is for ", NamesOf(certificate), ", not for ", host);
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return Join(whose, " ", Expired(certificate), whose);
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return Join(whose, " ", NotYetValid(certificate));
    default:
      return Join(whose, " is not trusted: ", X509_verify_cert_error_string(error), " (subject ", subject,
                  ")");
  }
}

}  // namespace

std::string ValidityError(const X509* certificate) {
  if (certificate == nullptr) return "";
  if (X509_cmp_current_time(X509_get0_notAfter(certificate)) < 0) return Expired(certificate) + "it";
  return X509_cmp_current_time(X509_get0_notBefore(certificate)) > 0 ? NotYetValid(certificate) : "";
}

// The sessions of a client, the last one for each host that it has verified. Thread-safe.
class TlsSessions {
 public:
  ~TlsSessions() { Clear(); }

  // Takes the reference.
  void Put(const std::string& host, SSL_SESSION* session) {
    MutexLock lock(mu_);
    SSL_SESSION*& place = sessions_[host];
    if (place == nullptr && sessions_.size() > kMost) {
      ClearLocked();
      sessions_[host] = session;
      return;
    }
    SSL_SESSION_free(std::exchange(place, session));
  }
  // A copy, as connections change theirs; null when there is none.
  SSL_SESSION* Get(const std::string& host) {
    MutexLock lock(mu_);
    const auto found = sessions_.find(host);
    return found == sessions_.end() ? nullptr : SSL_SESSION_dup(found->second);
  }

 private:
  static constexpr size_t kMost = 256;

  void Clear() {
    MutexLock lock(mu_);
    ClearLocked();
  }
  void ClearLocked() CURTAIL_REQUIRES(mu_) {
    for (auto& [host, session] : sessions_) SSL_SESSION_free(session);
    sessions_.clear();
  }

  Mutex mu_;
  std::unordered_map<std::string, SSL_SESSION*> sessions_ CURTAIL_GUARDED_BY(mu_);
};

// The functions that OpenSSL calls.
struct TlsCallbacks {
  static TlsStream& Stream(BIO* bio) { return *static_cast<TlsStream*>(BIO_get_data(bio)); }
  static int Read(BIO* bio, char* to, int room) {
    std::string_view& in = Stream(bio).in_;
    BIO_clear_retry_flags(bio);
    if (in.empty()) {
      BIO_set_retry_read(bio);
      return -1;
    }
    const size_t n = std::min(in.size(), static_cast<size_t>(room));
    std::memcpy(to, in.data(), n);
    in.remove_prefix(n);
    return static_cast<int>(n);
  }
  static int Write(BIO* bio, const char* bytes, int size) {
    Stream(bio).out_.append(bytes, static_cast<size_t>(size));
    return size;
  }
  static long Control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

  // Made on first use, never freed: connections may live as long as the process.
  static BIO_METHOD* Method() {
    static BIO_METHOD* const method = [] {
      BIO_METHOD* m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "curtail");
      BIO_meth_set_read(m, &Read);
      BIO_meth_set_write(m, &Write);
      BIO_meth_set_ctrl(m, &Control);
      return m;
    }();
    return method;
  }

  // The server asks for a certificate.
  static int Certificate(SSL* ssl, void* stream) {
    static_cast<TlsStream*>(stream)->owes_certificate_ = SSL_get_certificate(ssl) == nullptr;
    return 1;
  }
  // Client: the server has sent a ticket.
  static int NewSession(SSL* ssl, SSL_SESSION* session) {
    TlsStream& stream = *static_cast<TlsStream*>(SSL_get_app_data(ssl));
    // A copy: OpenSSL spoils the session of a connection that ends without a goodbye.
    if (stream.sessions_ != nullptr) stream.sessions_->Put(stream.host_, SSL_SESSION_dup(session));
    return 0;
  }
  static int Verify(int ok, X509_STORE_CTX* store) {
    if (ok) return ok;
    auto* const ssl =
        static_cast<SSL*>(X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()));
    TlsStream& stream = *static_cast<TlsStream*>(SSL_get_app_data(ssl));
    stream.certificate_error_ =
        DescribeCertificateError(X509_STORE_CTX_get_error(store), X509_STORE_CTX_get_current_cert(store),
                                 SSL_is_server(ssl) == 0, stream.host_);
    return 0;
  }
};

TlsContext::TlsContext(ssl_ctx_st* context) : context_(context) {}

TlsContext::~TlsContext() { SSL_CTX_free(context_); }

void TlsContext::KeepSessions() {
  sessions_ = std::make_shared<TlsSessions>();
  SSL_CTX_set_session_cache_mode(context_, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
  SSL_CTX_sess_set_new_cb(context_, &TlsCallbacks::NewSession);
}

TlsStream::TlsStream(ssl_st* ssl) : ssl_(ssl) {
  BIO* const bio = BIO_new(TlsCallbacks::Method());
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl_, bio, bio);  // owns it
  SSL_set_app_data(ssl_, this);
}

TlsStream::~TlsStream() { SSL_free(ssl_); }

std::string_view TlsStream::Offer(const ssl_st* ssl) {
  constexpr std::string_view kBoth = "\x02h2\x08http/1.1";
  constexpr size_t kFirst = 3;
  return static_cast<const TlsStream*>(SSL_get_app_data(ssl))->takes_http1_ ? kBoth : kBoth.substr(0, kFirst);
}

std::unique_ptr<TlsStream> TlsStream::Server(const TlsContext& context, bool http1) {
  std::unique_ptr<TlsStream> stream(new TlsStream(SSL_new(context.get())));
  stream->takes_http1_ = http1;
  SSL* const ssl = stream->ssl_;
  SSL_set_verify(ssl, SSL_get_verify_mode(ssl), &TlsCallbacks::Verify);
  SSL_set_accept_state(ssl);
  return stream;
}

std::unique_ptr<TlsStream> TlsStream::Client(const TlsContext& context, const std::string& host, bool verify,
                                             std::string_view protocol) {
  std::unique_ptr<TlsStream> stream(new TlsStream(SSL_new(context.get())));
  SSL* const ssl = stream->ssl_;
  stream->host_ = host;
  // Neither the zone of an IPv6 address nor the dot of a whole name is in a certificate or in SNI (RFC 6066, 3).
  const std::string name(absl::StripSuffix(host.substr(0, host.find('%')), "."));
  stream->protocol_ = protocol == kHttp1 ? kHttp1 : kHttp2;
  const bool is_address = X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name.c_str()) == 1;
  if (!is_address) {
    SSL_set_tlsext_host_name(ssl, name.c_str());
    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    // OpenSSL takes an empty name, and then any certificate of an authority.
    if (verify && (name.empty() || SSL_set1_host(ssl, name.c_str()) != 1)) {
      stream->status_ = absl::UnavailableError(Join(
          "TLS: \"", host, "\" is not a name that a certificate can be for: set server_name of TlsOptions"));
      return stream;
    }
  }
  SSL_set_verify(ssl, verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, verify ? &TlsCallbacks::Verify : nullptr);
  SSL_set_cert_cb(ssl, &TlsCallbacks::Certificate, stream.get());
  const std::string offer =
      Join(std::string(1, static_cast<char>(stream->protocol_.size())), stream->protocol_);
  SSL_set_alpn_protos(ssl, reinterpret_cast<const unsigned char*>(offer.data()),
                      static_cast<unsigned>(offer.size()));
  SSL_set_connect_state(ssl);
  // One of an unverified connection would spare a later one the check.
  if (verify && protocol == kHttp2 && context.sessions_ != nullptr) {
    stream->sessions_ = context.sessions_;
    if (SSL_SESSION* const session = context.sessions_->Get(host)) {
      SSL_set_session(ssl, session);
      SSL_SESSION_free(session);
    }
  }
  ERR_clear_error();
  stream->Handshake();
  return stream;
}

bool TlsStream::resumed() const { return SSL_session_reused(ssl_) == 1; }

x509_st* TlsStream::PeerX509() const {
  const bool verified =
      SSL_get_verify_mode(ssl_) != SSL_VERIFY_NONE && SSL_get_verify_result(ssl_) == X509_V_OK;
  return verified ? SSL_get1_peer_certificate(ssl_) : nullptr;
}

void TlsStream::Feed(std::string_view bytes) {
  in_ = bytes;
  starved_ = false;
}

bool TlsStream::Handshake() {
  const int result = SSL_do_handshake(ssl_);
  if (result != 1) {
    Note(result);
    return false;
  }
  standing_ = Agree();
  if (!standing_) {
    status_ =
        absl::UnavailableError(Join("the peer speaks TLS, but has not agreed to ", ProtocolName(protocol_)));
  }
  return standing_;
}

bool TlsStream::Agree() {
  const unsigned char* chosen = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(ssl_, &chosen, &size);
  const std::string_view name(reinterpret_cast<const char*>(chosen), size);
  if (takes_http1_ && name != kHttp2) protocol_ = kHttp1;
  return name == protocol_ || (name.empty() && protocol_ == kHttp1);
}

size_t TlsStream::Read(char* to, size_t room) {
  if (starved_ || !status_.ok()) return 0;
  ERR_clear_error();
  if (!standing_ && !Handshake()) return 0;
  size_t total = 0;
  while (total < room) {
    size_t n = 0;
    if (const int result = SSL_read_ex(ssl_, to + total, room - total, &n); result != 1) {
      Note(result);
      break;
    }
    total += n;
  }
  if (out_.size() > kMostAnswers)
    status_ = absl::UnavailableError("TLS: the peer asks for more than it takes");
  return total;
}

size_t TlsStream::Write(std::string_view bytes) {
  if (!standing_ || !status_.ok() || bytes.empty()) return 0;
  ERR_clear_error();
  size_t taken = 0;
  const int result = SSL_write_ex(ssl_, bytes.data(), bytes.size(), &taken);
  if (result == 1) return taken;
  Note(result);
  return 0;
}

void TlsStream::Shutdown() {
  if (!standing_ || (SSL_get_shutdown(ssl_) & SSL_SENT_SHUTDOWN)) return;
  ERR_clear_error();
  SSL_shutdown(ssl_);
}

void TlsStream::TakeOutput(std::string* to) {
  to->swap(out_);
  if (out_.capacity() > kKeptOutput) std::string().swap(out_);
}

void TlsStream::Note(int result) {
  switch (SSL_get_error(ssl_, result)) {
    case SSL_ERROR_WANT_READ:
      starved_ = true;
      return;
    case SSL_ERROR_ZERO_RETURN:
      ended_ = true;
      status_ = absl::UnavailableError("connection closed by the peer");
      return;
    default:
      status_ = absl::UnavailableError(Explain());
      if (SSL_is_server(ssl_) && !standing_) {
        const int reason = ERR_GET_REASON(ERR_peek_error());
        if (reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_HTTP_REQUEST) out_ += kAlert;
      }
      // OpenSSL takes nothing more after a fatal error, a goodbye neither.
      SSL_set_shutdown(ssl_, SSL_SENT_SHUTDOWN);
  }
}

std::string TlsStream::Explain() const {
  if (!certificate_error_.empty()) return Join("TLS: ", certificate_error_);
  const unsigned long error = ERR_peek_error();
  switch (ERR_GET_LIB(error) == ERR_LIB_SSL ? ERR_GET_REASON(error) : 0) {
    case SSL_AD_REASON_OFFSET + SSL_AD_NO_APPLICATION_PROTOCOL:
    case SSL_R_NO_APPLICATION_PROTOCOL:
      return Join("the peer speaks TLS, but refuses ", ProtocolName(protocol_));
    case SSL_AD_REASON_OFFSET + SSL_AD_CERTIFICATE_REQUIRED:
    case SSL_AD_REASON_OFFSET + SSL_AD_UNKNOWN_CA:
    case SSL_AD_REASON_OFFSET + SSL_AD_BAD_CERTIFICATE:
    case SSL_AD_REASON_OFFSET + SSL_AD_CERTIFICATE_EXPIRED:
    case SSL_AD_REASON_OFFSET + SSL_AD_HANDSHAKE_FAILURE:
      if (owes_certificate_) return "TLS: the server wants a client certificate";
      if (ERR_GET_REASON(error) == SSL_AD_REASON_OFFSET + SSL_AD_HANDSHAKE_FAILURE) break;
      return Join("TLS: the ", SSL_is_server(ssl_) ? "client" : "server",
                  " does not trust this certificate (", ERR_reason_error_string(error),
                  "); use one that its authorities issued");
    default:
      break;
  }
  const char* const reason = ERR_reason_error_string(error);
  return Join(standing_ ? "TLS: " : "TLS handshake failed: ", reason != nullptr ? reason : "no reason given");
}

}  // namespace curtail::internal
