// SPDX-License-Identifier: Apache-2.0
//
// thrift_common.h - what the two Thrift stacks share: the leaf's handler and connections to leaves. Both speak the
// binary protocol over the framed transport.
#pragma once

#include <thrift/protocol/TBinaryProtocol.h>
#include <thrift/transport/TBufferTransports.h>
#include <thrift/transport/TSocket.h>

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "Leaf.h"
#include "Mid.h"
#include "absl/status/status.h"

namespace curtail::bench {

using ThriftBlob = thrift_peer::Blob;

class ThriftLeafHandler final : public thrift_peer::LeafIf {
 public:
  void Null(ThriftBlob& reply, const ThriftBlob& request) override { reply = request; }
};

// A ThriftClient is one connection to a leaf, over which one call at a time is under way.
class ThriftClient {
 public:
  // `socket` is connected.
  explicit ThriftClient(std::shared_ptr<apache::thrift::transport::TTransport> socket);
  thrift_peer::LeafClient& stub() { return stub_; }

 private:
  thrift_peer::LeafClient stub_;
};

// The port of "127.0.0.1:port".
int ThriftPort(const std::string& address);

}  // namespace curtail::bench
