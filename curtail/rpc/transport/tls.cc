// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/tls.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "curtail/base/log.h"
#include "curtail/base/read_file.h"
#include "curtail/base/strings.h"
#include "curtail/rpc/transport/tls_keys.h"
#include "curtail/rpc/transport/tls_stream.h"

namespace curtail {

using internal::TlsContext;
using internal::TlsKeys;

namespace {

// The ciphers that RFC 9113 (9.2.2) leaves of TLS 1.2; TLS 1.3 has nothing to leave out.
constexpr char kCiphers[] = "ECDHE+AESGCM:ECDHE+CHACHA20";
constexpr long kSessionSeconds = 3600;
constexpr size_t kMaxPem = 1u << 20;

// Why OpenSSL could not use a file.
absl::Status FileError(std::string_view what, const std::string& file) {
  const unsigned long error = ERR_peek_last_error();
  if (std::FILE* opened = std::fopen(file.c_str(), "re")) {
    std::fclose(opened);
  } else {
    return absl::InvalidArgumentError(Join(what, " \"", file, "\": ", std::strerror(errno)));
  }
  const int lib = ERR_GET_LIB(error), code = ERR_GET_REASON(error);
  if (code == ERR_R_PEM_LIB || (lib == ERR_LIB_PEM && code == PEM_R_NO_START_LINE) ||
      (lib == ERR_LIB_X509 && code == X509_R_NO_CERTIFICATE_OR_CRL_FOUND)) {
    const absl::StatusOr<std::string> text = ReadWholeFile(file, kMaxPem);
    if (text.ok() && text->find("ENCRYPTED") != std::string::npos) {
      return absl::InvalidArgumentError(Join(what, " \"", file, "\" is encrypted; remove its password"));
    }
    return absl::InvalidArgumentError(
        Join("\"", file, "\" has no ", what, " in PEM format; is it the file of the ", what, "?"));
  }
  const char* const reason = ERR_reason_error_string(error);
  return absl::InvalidArgumentError(
      Join(what, " \"", file, "\": ", reason != nullptr ? reason : "cannot be used"));
}

// Keys that need a password are not for servers: nobody may be there to type it.
int NoPassword(char*, int, int, void*) { return 0; }

std::unique_ptr<TlsContext> NewContext(const SSL_METHOD* method) {
  ERR_clear_error();
  auto context = std::make_unique<TlsContext>(SSL_CTX_new(method));
  SSL_CTX* const ctx = context->get();
  SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
  SSL_CTX_set_cipher_list(ctx, kCiphers);
  SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  // Sessions are in the clients' tickets, which the keys of this context seal.
  SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_timeout(ctx, kSessionSeconds);
  SSL_CTX_set_num_tickets(ctx, 1);
  SSL_CTX_set_mode(ctx, SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_default_passwd_cb(ctx, &NoPassword);
  return context;
}

absl::Status UseCertificate(SSL_CTX* ctx, const std::string& certificate, const std::string& key) {
  if (SSL_CTX_use_certificate_chain_file(ctx, certificate.c_str()) != 1) {
    return FileError("certificate", certificate);
  }
  if (SSL_CTX_use_PrivateKey_file(ctx, key.c_str(), SSL_FILETYPE_PEM) == 1) return absl::OkStatus();
  const unsigned long error = ERR_peek_last_error();
  if (ERR_GET_LIB(error) == ERR_LIB_X509 && (ERR_GET_REASON(error) == X509_R_KEY_VALUES_MISMATCH ||
                                             ERR_GET_REASON(error) == X509_R_KEY_TYPE_MISMATCH)) {
    return absl::InvalidArgumentError(
        Join("private key \"", key, "\" does not belong to certificate \"", certificate, "\""));
  }
  return FileError("private key", key);
}

absl::Status UseAuthorities(SSL_CTX* ctx, const std::string& file) {
  if (SSL_CTX_load_verify_file(ctx, file.c_str()) == 1) return absl::OkStatus();
  return FileError("certificate authorities", file);
}

// Takes the server's best protocol from what the client offers.
int ChooseProtocol(SSL* ssl, const unsigned char** chosen, unsigned char* size, const unsigned char* offered,
                   unsigned offered_size, void*) {
  const std::string_view ours = internal::TlsStream::Offer(ssl);
  unsigned char* choice = nullptr;
  if (SSL_select_next_proto(&choice, size, reinterpret_cast<const unsigned char*>(ours.data()),
                            static_cast<unsigned>(ours.size()), offered,
                            offered_size) != OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  }
  *chosen = choice;
  return SSL_TLSEXT_ERR_OK;
}

// The client's hello has come: is its server name one of the certificate's?
int CheckServerName(SSL* ssl, int* alert, void*) {
  const char* const name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
  if (name == nullptr || X509_check_host(SSL_get_certificate(ssl), name, 0, 0, nullptr) == 1) {
    return SSL_TLSEXT_ERR_OK;
  }
  *alert = SSL_AD_UNRECOGNIZED_NAME;
  return SSL_TLSEXT_ERR_ALERT_FATAL;
}

absl::StatusOr<std::unique_ptr<TlsContext>> NewClientContext(const TlsOptions& options) {
  std::unique_ptr<TlsContext> context = NewContext(TLS_client_method());
  SSL_CTX* const ctx = context->get();
  if (!options.ca_file.empty()) {
    if (absl::Status used = UseAuthorities(ctx, options.ca_file); !used.ok()) return used;
  } else if (!options.insecure_skip_verify && SSL_CTX_set_default_verify_paths(ctx) != 1) {
    return absl::InvalidArgumentError("cannot read the certificate authorities that the system trusts");
  }
  if (!options.certificate_file.empty()) {
    absl::Status used = UseCertificate(ctx, options.certificate_file, options.key_file);
    if (!used.ok()) return used;
  }
  context->KeepSessions();
  return context;
}

absl::StatusOr<std::unique_ptr<TlsContext>> NewServerContext(const ServerTlsOptions& options) {
  std::unique_ptr<TlsContext> context = NewContext(TLS_server_method());
  SSL_CTX* const ctx = context->get();
  absl::Status used = UseCertificate(ctx, options.certificate_file, options.key_file);
  if (!used.ok()) return used;
  if (const std::string wrong = internal::ValidityError(SSL_CTX_get0_certificate(ctx)); !wrong.empty()) {
    Log(Severity::kWarning, Join("certificate \"", options.certificate_file, "\" ", wrong),
        {{"file", options.certificate_file}});
  }
  if (!options.client_ca_file.empty()) {
    if (absl::Status trusted = UseAuthorities(ctx, options.client_ca_file); !trusted.ok()) return trusted;
    SSL_CTX_set_client_CA_list(ctx, SSL_load_client_CA_file(options.client_ca_file.c_str()));
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  }
  constexpr unsigned char kOurs[] = "curtail";
  SSL_CTX_set_session_id_context(ctx, kOurs, sizeof kOurs - 1);
  SSL_CTX_set_alpn_select_cb(ctx, &ChooseProtocol, nullptr);
  if (options.check_server_name) SSL_CTX_set_tlsext_servername_callback(ctx, &CheckServerName);
  return context;
}

}  // namespace

ClientTls::ClientTls(std::unique_ptr<TlsKeys> keys, const TlsOptions& options)
    : keys_(std::move(keys)), options_(options) {}
ClientTls::~ClientTls() = default;

absl::StatusOr<std::shared_ptr<const ClientTls>> ClientTls::Load(const TlsOptions& options) {
  if (options.certificate_file.empty() != options.key_file.empty()) {
    return absl::InvalidArgumentError("a client certificate and its private key need each other: give both");
  }
  auto keys = TlsKeys::Load({options.ca_file, options.certificate_file, options.key_file},
                            options.reload_interval, [options] { return NewClientContext(options); });
  if (!keys.ok()) return keys.status();
  return std::shared_ptr<const ClientTls>(new ClientTls(*std::move(keys), options));
}

std::shared_ptr<const TlsContext> ClientTls::context() const { return keys_->Current(); }

ServerTls::ServerTls(std::unique_ptr<TlsKeys> keys) : keys_(std::move(keys)) {}
ServerTls::~ServerTls() = default;

absl::StatusOr<std::shared_ptr<const ServerTls>> ServerTls::Load(const ServerTlsOptions& options) {
  if (options.certificate_file.empty() || options.key_file.empty()) {
    return absl::InvalidArgumentError(
        "a TLS server needs a certificate (--tls-cert) and its private key (--tls-key): give both");
  }
  auto keys = TlsKeys::Load({options.certificate_file, options.key_file, options.client_ca_file},
                            options.reload_interval, [options] { return NewServerContext(options); });
  if (!keys.ok()) return keys.status();
  return std::shared_ptr<const ServerTls>(new ServerTls(*std::move(keys)));
}

absl::Status ServerTls::Reload() const { return keys_->Reload(); }
std::shared_ptr<const TlsContext> ServerTls::context() const { return keys_->Current(); }

}  // namespace curtail
