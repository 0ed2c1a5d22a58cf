// SPDX-License-Identifier: Apache-2.0
//
// tls_testing.h - certificates for tests, made on the spot: authorities, and what they vouch for.
#pragma once

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <memory>
#include <string>

namespace curtail {

// A file of this process; named so that a test's files do not meet those of another.
inline std::string TestFile(const std::string& name) {
  static std::atomic<int> count{0};
  return testing::TempDir() + "curtail_tls." + std::to_string(getpid()) + "." + std::to_string(++count) +
         "." + name;
}

// The content of a certificate.
struct CertificateText {
  std::string common_name = "curtail test";
  std::string names = "DNS:localhost,IP:127.0.0.1";  // empty: an authority
  int valid_from_s = -3600;                          // relative to now
  int valid_until_s = 3600;
};

// A TestCertificate is a certificate with its key, in two PEM files that go when it goes.
class TestCertificate {
 public:
  // Vouched for by `issuer`, or by itself.
  explicit TestCertificate(const CertificateText& text, const TestCertificate* issuer = nullptr)
      : key_(EVP_EC_gen("P-256")), certificate_(X509_new()) {
    static std::atomic<long> serial{1};
    X509* const x = certificate_;
    X509_set_version(x, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(x), ++serial);
    X509_gmtime_adj(X509_getm_notBefore(x), text.valid_from_s);
    X509_gmtime_adj(X509_getm_notAfter(x), text.valid_until_s);
    X509_set_pubkey(x, key_);
    X509_NAME* const name = X509_get_subject_name(x);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8,
                               reinterpret_cast<const unsigned char*>(text.common_name.c_str()), -1, -1, 0);
    const X509* const vouching = issuer != nullptr ? issuer->certificate_ : x;
    X509_set_issuer_name(x, X509_get_subject_name(vouching));
    if (text.names.empty()) {
      AddExtension(NID_basic_constraints, "critical,CA:TRUE");
    } else {
      AddExtension(NID_subject_alt_name, text.names);
    }
    EXPECT_GT(X509_sign(x, issuer != nullptr ? issuer->key_ : key_, EVP_sha256()), 0);
    std::FILE* file = std::fopen(key_file_.c_str(), "we");
    EXPECT_EQ(PEM_write_PrivateKey(file, key_, nullptr, nullptr, 0, nullptr, nullptr), 1);
    std::fclose(file);
    file = std::fopen(file_.c_str(), "we");
    EXPECT_EQ(PEM_write_X509(file, x), 1);
    std::fclose(file);
  }
  ~TestCertificate() {
    unlink(file_.c_str());
    unlink(key_file_.c_str());
    X509_free(certificate_);
    EVP_PKEY_free(key_);
  }
  TestCertificate(const TestCertificate&) = delete;
  TestCertificate& operator=(const TestCertificate&) = delete;

  const std::string& file() const { return file_; }
  const std::string& key_file() const { return key_file_; }

 private:
  void AddExtension(int kind, const std::string& value) {
    X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, nullptr, kind, value.c_str());
    EXPECT_EQ(X509_add_ext(certificate_, extension, -1), 1) << value;
    X509_EXTENSION_free(extension);
  }

  EVP_PKEY* const key_;
  X509* const certificate_;
  const std::string file_ = TestFile("crt");
  const std::string key_file_ = TestFile("key");
};

}  // namespace curtail
