// SPDX-License-Identifier: Apache-2.0
//
// fanout.proto once more, for Apache Thrift.
namespace cpp curtail.bench.thrift_peer

struct Blob {
  1: binary payload
}

service Mid {
  Blob Query(1: Blob request)
}

service Leaf {
  Blob Null(1: Blob request)
}
