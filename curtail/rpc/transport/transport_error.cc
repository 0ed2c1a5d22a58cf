// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/transport/transport_error.h"

#include "absl/strings/escaping.h"
#include "curtail/base/strings.h"

namespace curtail::internal {
namespace {

constexpr std::string_view kHttp1 = "HTTP/";
constexpr unsigned char kFirstRecordType = 0x14;  // change cipher spec
constexpr unsigned char kAlertRecord = 0x15;
constexpr unsigned char kLastRecordType = 0x17;  // application data
constexpr unsigned char kTlsMajor = 3;
constexpr unsigned char kLastFrameType = 9;  // CONTINUATION

unsigned char Byte(std::string_view bytes, size_t i) { return static_cast<unsigned char>(bytes[i]); }

bool IsTls(std::string_view first) {
  return Byte(first, 0) >= kFirstRecordType && Byte(first, 0) <= kLastRecordType &&
         (first.size() < 2 || Byte(first, 1) == kTlsMajor);
}

// A server begins with SETTINGS. Of the frame's header these bytes tell most: a length below 64 KiB, and the type.
bool IsHttp2(std::string_view first) {
  return Byte(first, 0) == 0 && (first.size() < 4 || Byte(first, 3) <= kLastFrameType);
}

}  // namespace

std::string ExplainOpening(std::string_view first, bool tls) {
  if (first.empty()) return "";
  if (kHttp1.substr(0, first.size()) == first.substr(0, kHttp1.size())) {
    if (first.size() < kOpeningBytes - 1) return "";  // the version is still to come
    return Join("the server answers in HTTP/", first.substr(kHttp1.size(), 3),
                tls ? ": it does not speak TLS; the call was TLS" : "; gRPC needs HTTP/2");
  }
  if (tls) return IsTls(first) ? "" : "the server does not speak TLS; the call was TLS";
  if (IsHttp2(first)) return "";
  if (Byte(first, 0) == kAlertRecord && (first.size() < 2 || Byte(first, 1) == kTlsMajor)) {
    return first.size() < 2 ? "" : "the server speaks TLS; the call was plain text";
  }
  if (first.size() < 4) return "";
  return Join("the server does not speak HTTP/2: it begins with \"",
              absl::CHexEscape(absl::string_view(first.data(), first.size())), "\"");
}

std::string_view ExplainEnd(const Progress& progress) {
  if (progress.first.empty()) {
    if (progress.known) return " before it said anything";
    return progress.tls ? " when it was offered TLS: it probably does not speak TLS"
                        : " before it said anything: does it expect TLS?";
  }
  if (!progress.tls || progress.spoke) return "";
  if (!progress.standing) return " during the TLS handshake";
  return progress.owes_certificate ? " after the TLS handshake: the server wants a client certificate"
                                   : " right after the TLS handshake";
}

}  // namespace curtail::internal
