// SPDX-License-Identifier: Apache-2.0
//
// tls_stream.h - one end of a TLS connection as a pure state machine: bytes in, bytes out.
//
// Use it between a socket and a wire::Session: feed what was read and take its plain text, give plain text and send
// the output. It does no I/O and never blocks. Each call leaves nothing behind inside: what was fed is used up when
// Read() returns 0. Thread safety: none; one thread at a time owns a TlsStream.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"

struct ssl_ctx_st;
struct ssl_st;
struct x509_st;

namespace curtail::internal {

class TlsSessions;

// A TlsContext owns an SSL_CTX, and of a client the sessions that it may resume. Thread-safe.
class TlsContext {
 public:
  explicit TlsContext(ssl_ctx_st* context);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;
  // Client: sessions are kept for the next connection to the same host. Before the first connection.
  void KeepSessions();
  ssl_ctx_st* get() const { return context_; }

 private:
  friend class TlsStream;
  ssl_ctx_st* const context_;
  // Shared with the streams, which may live longer; null: none are kept.
  std::shared_ptr<TlsSessions> sessions_;
};

// Returns why a certificate is not valid now: "has expired: CN=a was valid until ...; renew it". Empty for a valid one.
std::string ValidityError(const x509_st* certificate);

class TlsStream {
 public:
  static constexpr std::string_view kHttp2 = "h2";
  static constexpr std::string_view kHttp1 = "http/1.1";

  // A client that wants to talk to `host`, a DNS name or an IP address: it asks for it (SNI) and, if `verify`, takes
  // no certificate that is not for it. It offers `protocol` by ALPN: "h2" or "http/1.1", of which a server may take the
  // second without a word. Its first message is output from the start. With `verify`, a stream to an empty host can
  // never stand: status() reports that at once, and the caller must not connect it.
  static std::unique_ptr<TlsStream> Client(const TlsContext& context, const std::string& host, bool verify,
                                           std::string_view protocol = kHttp2);
  // `http1`: a client that does not offer "h2" by ALPN gets HTTP/1.1; else it is turned away.
  static std::unique_ptr<TlsStream> Server(const TlsContext& context, bool http1 = false);
  // Server: the protocols that its client may choose from, the best first, as ALPN writes them.
  static std::string_view Offer(const ssl_st* ssl);
  ~TlsStream();
  TlsStream(const TlsStream&) = delete;
  TlsStream& operator=(const TlsStream&) = delete;

  // Takes bytes from the peer; they stay valid until Read() has returned 0.
  void Feed(std::string_view bytes);
  // Goes on with the handshake, then decrypts into `to`. Returns the bytes written there; 0 when all that was fed is
  // used up, or when the stream has ended: see status().
  size_t Read(char* to, size_t room);
  // Encrypts. Returns how many bytes it took: all; or none before the handshake is over, and while half a message of
  // the peer's TLS is there, which has to be read first.
  size_t Write(std::string_view bytes);
  // Says goodbye (close_notify) if that makes sense.
  void Shutdown();
  // Swaps what has to be sent into `*to`, which is empty.
  void TakeOutput(std::string* to);

  // True if the handshake is over.
  bool standing() const { return standing_; }
  // The protocol of a stream that stands, one of the constants.
  std::string_view protocol() const { return protocol_; }
  // True if the handshake went on with an earlier session.
  bool resumed() const;
  // True if the peer has said goodbye.
  bool ended() const { return ended_; }
  // Client: whether the server has asked for a certificate and there was none.
  bool owes_certificate() const { return owes_certificate_; }
  // A new reference to the peer's certificate, if there is one that was verified.
  x509_st* PeerX509() const;
  // OK; or UNAVAILABLE with the reason, when the peer has said goodbye or the connection cannot go on. Send the
  // output all the same: it may tell the peer.
  const absl::Status& status() const { return status_; }

 private:
  friend struct TlsCallbacks;

  explicit TlsStream(ssl_st* ssl);
  bool Handshake();
  // Takes the protocol that both ends chose. True if there is one.
  bool Agree();
  // The last call has returned `result`, which is not success.
  void Note(int result);
  std::string Explain() const;

  ssl_st* const ssl_;
  std::string_view in_;
  std::string out_;
  bool standing_ = false;
  bool starved_ = false;  // has used up what was fed
  bool ended_ = false;
  bool owes_certificate_ = false;
  bool takes_http1_ = false;            // server
  std::string_view protocol_ = kHttp2;  // one of the constants
  std::string host_;
  std::shared_ptr<TlsSessions> sessions_;
  std::string certificate_error_;  // what is wrong with the peer's certificate
  absl::Status status_;
};

}  // namespace curtail::internal
