# SPDX-License-Identifier: Apache-2.0
#
# fanout.proto once more, for Cap'n Proto.
@0xa257ebaa776d895c;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("curtail::bench::capnp_peer");

interface Mid {
  query @0 (payload :Data) -> (payload :Data);
}

interface Leaf {
  null @0 (payload :Data) -> (payload :Data);
}
