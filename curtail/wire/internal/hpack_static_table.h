// SPDX-License-Identifier: Apache-2.0
//
// hpack_static_table.h - the static table of HPACK, for the two codecs.
#pragma once

#include "curtail/wire/internal/hpack.h"

namespace curtail::wire::internal {

// The first entry has index 1.
inline constexpr uint32_t kStaticEntries = 61;

// RFC 7541 appendix A, with the same classes as FieldOf() finds.
inline constexpr HeaderField kStaticTable[kStaticEntries] = {
    {":authority", "", Field::kAuthority, true},
    {":method", "GET", Field::kMethod, true},
    {":method", "POST", Field::kMethod, true},
    {":path", "/", Field::kPath, true},
    {":path", "/index.html", Field::kPath, true},
    {":scheme", "http", Field::kScheme, true},
    {":scheme", "https", Field::kScheme, true},
    {":status", "200", Field::kStatus, true},
    {":status", "204", Field::kStatus, true},
    {":status", "206", Field::kStatus, true},
    {":status", "304", Field::kStatus, true},
    {":status", "400", Field::kStatus, true},
    {":status", "404", Field::kStatus, true},
    {":status", "500", Field::kStatus, true},
    {"accept-charset", "", Field::kOther, true},
    {"accept-encoding", "gzip, deflate", Field::kOther, true},
    {"accept-language", "", Field::kOther, true},
    {"accept-ranges", "", Field::kOther, true},
    {"accept", "", Field::kOther, true},
    {"access-control-allow-origin", "", Field::kOther, true},
    {"age", "", Field::kOther, true},
    {"allow", "", Field::kOther, true},
    {"authorization", "", Field::kOther, true},
    {"cache-control", "", Field::kOther, true},
    {"content-disposition", "", Field::kOther, true},
    {"content-encoding", "", Field::kOther, true},
    {"content-language", "", Field::kOther, true},
    {"content-length", "", Field::kContentLength, true},
    {"content-location", "", Field::kOther, true},
    {"content-range", "", Field::kOther, true},
    {"content-type", "", Field::kContentType, true},
    {"cookie", "", Field::kOther, true},
    {"date", "", Field::kOther, true},
    {"etag", "", Field::kOther, true},
    {"expect", "", Field::kOther, true},
    {"expires", "", Field::kOther, true},
    {"from", "", Field::kOther, true},
    {"host", "", Field::kReserved, true},
    {"if-match", "", Field::kOther, true},
    {"if-modified-since", "", Field::kOther, true},
    {"if-none-match", "", Field::kOther, true},
    {"if-range", "", Field::kOther, true},
    {"if-unmodified-since", "", Field::kOther, true},
    {"last-modified", "", Field::kOther, true},
    {"link", "", Field::kOther, true},
    {"location", "", Field::kOther, true},
    {"max-forwards", "", Field::kOther, true},
    {"proxy-authenticate", "", Field::kOther, true},
    {"proxy-authorization", "", Field::kOther, true},
    {"range", "", Field::kOther, true},
    {"referer", "", Field::kOther, true},
    {"refresh", "", Field::kOther, true},
    {"retry-after", "", Field::kOther, true},
    {"server", "", Field::kOther, true},
    {"set-cookie", "", Field::kOther, true},
    {"strict-transport-security", "", Field::kOther, true},
    {"transfer-encoding", "", Field::kConnectionSpecific, true},
    {"user-agent", "", Field::kUserAgent, true},
    {"vary", "", Field::kOther, true},
    {"via", "", Field::kOther, true},
    {"www-authenticate", "", Field::kOther, true},
};

}  // namespace curtail::wire::internal
