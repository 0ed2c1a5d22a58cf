// SPDX-License-Identifier: Apache-2.0
#include "bench/peers/stacks/thrift_common.h"

#include <thrift/transport/TBufferTransports.h>

#include "absl/strings/numbers.h"
#include "bench/peers/frame.h"
#include "bench/peers/generator.h"

namespace curtail::bench {

using apache::thrift::protocol::TBinaryProtocol;
using apache::thrift::transport::TFramedTransport;
using apache::thrift::transport::TMemoryBuffer;
using apache::thrift::transport::TTransport;

ThriftClient::ThriftClient(std::shared_ptr<TTransport> socket)
    : stub_(std::make_shared<TBinaryProtocol>(std::make_shared<TFramedTransport>(std::move(socket)))) {}

int ThriftPort(const std::string& address) {
  int port = 0;
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos || !absl::SimpleAtoi(address.substr(colon + 1), &port)) return 0;
  return port;
}

std::string ThriftRequest(size_t payload) {
  const auto body = std::make_shared<TMemoryBuffer>();
  thrift_peer::MidClient client(std::make_shared<TBinaryProtocol>(body));
  ThriftBlob blob;
  blob.__set_payload(std::string(payload, '\0'));
  client.send_Query(blob);
  return MakeFrame(body->getBufferAsString());
}

}  // namespace curtail::bench
