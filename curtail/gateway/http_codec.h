// SPDX-License-Identifier: Apache-2.0
//
// http_codec.h - the versions of HTTP that the gateway speaks, under its own names.
#pragma once

#include "curtail/wire/http/http_codec.h"

namespace curtail::gateway {

using wire::HttpLimits;
using wire::HttpReply;
using wire::HttpRequest;
using wire::HttpServerCodec;
using wire::MakeAnyHttpCodec;
using wire::MakeHttp1Codec;
using wire::MakeHttp2Codec;

}  // namespace curtail::gateway
