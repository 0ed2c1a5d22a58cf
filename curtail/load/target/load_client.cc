// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/target/load_client.h"

#include "curtail/load/target/grpc_client.h"
#include "curtail/load/target/http_client.h"
#include "curtail/load/target/journey_client.h"
#include "curtail/load/target/stream_client.h"

namespace curtail::internal {

std::unique_ptr<LoadClient> MakeLoadClient(const TargetOptions& options, const Journey* journey) {
  if (journey != nullptr) {
    return std::make_unique<JourneyClient>(MakeLoadClient(options), *journey);
  }
  if (options.http) return std::make_unique<HttpClient>(options);
  if (options.stream) return std::make_unique<StreamClient>(options);
  return std::make_unique<GrpcClient>(options);
}

}  // namespace curtail::internal
