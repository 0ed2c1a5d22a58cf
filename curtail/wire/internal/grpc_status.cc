// SPDX-License-Identifier: Apache-2.0

#include "curtail/wire/internal/grpc_status.h"

#include <charconv>
#include <string>

#include "absl/strings/str_cat.h"
#include "curtail/base/strings.h"
#include "curtail/wire/metadata.h"

namespace curtail::wire::internal {
namespace {

// The values of absl::StatusCode are gRPC's.
constexpr int kMaxCode = static_cast<int>(absl::StatusCode::kUnauthenticated);

absl::StatusCode CodeFromHttp(int http_status) {
  switch (http_status) {
    case 400:
      return absl::StatusCode::kInternal;
    case 401:
      return absl::StatusCode::kUnauthenticated;
    case 403:
      return absl::StatusCode::kPermissionDenied;
    case 404:
      return absl::StatusCode::kUnimplemented;
    case 429:
    case 502:
    case 503:
    case 504:
      return absl::StatusCode::kUnavailable;
    default:
      return absl::StatusCode::kUnknown;
  }
}

absl::StatusCode CodeFromReset(ErrorCode error_code) {
  switch (error_code) {
    case ErrorCode::kRefusedStream:
      return absl::StatusCode::kUnavailable;
    case ErrorCode::kCancel:
      return absl::StatusCode::kCancelled;
    case ErrorCode::kEnhanceYourCalm:
      return absl::StatusCode::kResourceExhausted;
    case ErrorCode::kInadequateSecurity:
      return absl::StatusCode::kPermissionDenied;
    default:
      return absl::StatusCode::kInternal;
  }
}

}  // namespace

ErrorCode ResetOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kDeadlineExceeded:  // its client knows the deadline
    case absl::StatusCode::kCancelled:
      return ErrorCode::kCancel;
    case absl::StatusCode::kResourceExhausted:
      return ErrorCode::kEnhanceYourCalm;
    default:
      return ErrorCode::kInternalError;
  }
}

std::string_view StatusCodeText(absl::StatusCode code) {
  static constexpr std::string_view kText[kMaxCode + 1] = {"0", "1",  "2",  "3",  "4",  "5",  "6",  "7", "8",
                                                           "9", "10", "11", "12", "13", "14", "15", "16"};
  const int value = static_cast<int>(code);
  return value >= 0 && value <= kMaxCode ? kText[value] : kText[static_cast<int>(absl::StatusCode::kUnknown)];
}

absl::Status StatusFromFields(std::string_view code, std::string_view encoded_message) {
  if (code == "0") return absl::OkStatus();
  int value = -1;
  const auto [end, error] = std::from_chars(code.data(), code.data() + code.size(), value);
  if (error != std::errc() || end != code.data() + code.size() || value < 0 || value > kMaxCode) {
    return absl::UnknownError("the peer sent an unknown grpc-status: " + std::string(code));
  }
  return absl::Status(static_cast<absl::StatusCode>(value), PercentDecode(encoded_message));
}

absl::Status StatusFromHttp(int http_status) {
  return absl::Status(CodeFromHttp(http_status),
                      absl::StrCat("the reply has HTTP status ", http_status, " and no grpc-status"));
}

absl::Status StatusFromReset(ErrorCode error_code) {
  return absl::Status(CodeFromReset(error_code), Join("the stream was closed with ", ErrorName(error_code)));
}

}  // namespace curtail::wire::internal
