// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/transport/peer_identity.h"

#include <openssl/bio.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string_view>
#include <utility>

namespace curtail::internal {
namespace {

std::string NameText(const X509_NAME* name) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> bio(BIO_new(BIO_s_mem()), &BIO_free);
  X509_NAME_print_ex(bio.get(), name, 0, XN_FLAG_RFC2253);
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return size > 0 ? std::string(data, static_cast<size_t>(size)) : std::string();
}

// Adds a name that is all text. One with a zero byte would read as another name in C.
void AddName(const ASN1_STRING* name, std::vector<std::string>* names) {
  const std::string_view text(reinterpret_cast<const char*>(ASN1_STRING_get0_data(name)),
                              static_cast<size_t>(ASN1_STRING_length(name)));
  for (const char c : text) {
    if (c <= ' ' || c > '~') return;
  }
  if (!text.empty()) names->emplace_back(text);
}

PeerCertificate ParseCertificate(const X509* x509) {
  PeerCertificate parsed;
  parsed.subject = NameText(X509_get_subject_name(x509));
  auto* const names =
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(x509, NID_subject_alt_name, nullptr, nullptr));
  for (int i = 0; i < sk_GENERAL_NAME_num(names); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names, i);
    if (name->type == GEN_DNS) AddName(name->d.dNSName, &parsed.dns_names);
    if (name->type == GEN_URI) AddName(name->d.uniformResourceIdentifier, &parsed.uris);
  }
  GENERAL_NAMES_free(names);
  return parsed;
}

}  // namespace

PeerIdentity::~PeerIdentity() { X509_free(x509_); }

const PeerCertificate& PeerIdentity::certificate() const {
  std::call_once(once_, [this] { parsed_ = ParseCertificate(x509_); });
  return parsed_;
}

}  // namespace curtail::internal
