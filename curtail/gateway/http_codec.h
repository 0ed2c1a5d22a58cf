// SPDX-License-Identifier: Apache-2.0
//
// http_codec.h - the versions of HTTP that the gateway speaks, as state machines.
#pragma once

#include <memory>

#include "curtail/wire/http_codec.h"

namespace curtail::gateway {

using wire::HttpLimits;
using wire::HttpReply;
using wire::HttpRequest;
using wire::HttpServerCodec;
using wire::MakeHttp1Codec;

std::unique_ptr<HttpServerCodec> MakeHttp2Codec(const HttpLimits& limits);

// A codec of the version that the client's first bytes are of.
std::unique_ptr<HttpServerCodec> MakeAnyHttpCodec(const HttpLimits& limits);

}  // namespace curtail::gateway
