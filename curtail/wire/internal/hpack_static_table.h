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
    {":authority", "", Field::kAuthority, true, true},
    {":method", "GET", Field::kMethod, true, true},
    {":method", "POST", Field::kMethod, true, true},
    {":path", "/", Field::kPath, true, true},
    {":path", "/index.html", Field::kPath, true, true},
    {":scheme", "http", Field::kScheme, true, true},
    {":scheme", "https", Field::kScheme, true, true},
    {":status", "200", Field::kStatus, true, true},
    {":status", "204", Field::kStatus, true, true},
    {":status", "206", Field::kStatus, true, true},
    {":status", "304", Field::kStatus, true, true},
    {":status", "400", Field::kStatus, true, true},
    {":status", "404", Field::kStatus, true, true},
    {":status", "500", Field::kStatus, true, true},
    {"accept-charset", "", Field::kOther, true, true},
    {"accept-encoding", "gzip, deflate", Field::kOther, true, true},
    {"accept-language", "", Field::kOther, true, true},
    {"accept-ranges", "", Field::kOther, true, true},
    {"accept", "", Field::kOther, true, true},
    {"access-control-allow-origin", "", Field::kOther, true, true},
    {"age", "", Field::kOther, true, true},
    {"allow", "", Field::kOther, true, true},
    {"authorization", "", Field::kOther, true, true},
    {"cache-control", "", Field::kOther, true, true},
    {"content-disposition", "", Field::kOther, true, true},
    {"content-encoding", "", Field::kOther, true, true},
    {"content-language", "", Field::kOther, true, true},
    {"content-length", "", Field::kContentLength, true, true},
    {"content-location", "", Field::kOther, true, true},
    {"content-range", "", Field::kOther, true, true},
    {"content-type", "", Field::kContentType, true, true},
    {"cookie", "", Field::kOther, true, true},
    {"date", "", Field::kOther, true, true},
    {"etag", "", Field::kOther, true, true},
    {"expect", "", Field::kOther, true, true},
    {"expires", "", Field::kOther, true, true},
    {"from", "", Field::kOther, true, true},
    {"host", "", Field::kReserved, true, true},
    {"if-match", "", Field::kOther, true, true},
    {"if-modified-since", "", Field::kOther, true, true},
    {"if-none-match", "", Field::kOther, true, true},
    {"if-range", "", Field::kOther, true, true},
    {"if-unmodified-since", "", Field::kOther, true, true},
    {"last-modified", "", Field::kOther, true, true},
    {"link", "", Field::kOther, true, true},
    {"location", "", Field::kOther, true, true},
    {"max-forwards", "", Field::kOther, true, true},
    {"proxy-authenticate", "", Field::kOther, true, true},
    {"proxy-authorization", "", Field::kOther, true, true},
    {"range", "", Field::kOther, true, true},
    {"referer", "", Field::kOther, true, true},
    {"refresh", "", Field::kOther, true, true},
    {"retry-after", "", Field::kOther, true, true},
    {"server", "", Field::kOther, true, true},
    {"set-cookie", "", Field::kOther, true, true},
    {"strict-transport-security", "", Field::kOther, true, true},
    {"transfer-encoding", "", Field::kConnectionSpecific, true, true},
    {"user-agent", "", Field::kUserAgent, true, true},
    {"vary", "", Field::kOther, true, true},
    {"via", "", Field::kOther, true, true},
    {"www-authenticate", "", Field::kOther, true, true},
};

}  // namespace curtail::wire::internal
