// SPDX-License-Identifier: Apache-2.0
//
// json_journey.h - journeys whose requests are written as JSON, for any unary methods.
//
// json_template.h and metadata_template.h describe templates. In all steps but the first they
// may also use earlier replies:
//
//   {{reply.login.token}}           the field `token` of the reply to the step `login`
//   {{reply.list.accounts[0].id}}   a field of the first message of a list
//
// A field that is absent, or whose value does not fit, fails the step.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "curtail/base/clock.h"
#include "curtail/load/message/catalog.h"
#include "curtail/load/message/journey.h"

namespace curtail {

// A step as it is written.
struct JourneyStep {
  // A text, and its place for errors: "shop.yaml:7".
  struct Text {
    std::string text;
    std::string place;
  };

  Text name;
  Text method;                 // as Catalog::FindMethod() takes it
  Text json = {"{}", ""};      // the template of the request
  std::vector<Text> metadata;  // "KEY: VALUE" each
  // Since the reply before. An exponential pause has this mean, and ends after ten times it.
  Nanos pause{0};
  bool exponential = false;
};

// A journey of `steps`, checked against the methods of `catalog`; `name` is for reports. Its values
// and pauses follow from `seed`.
// Errors: INVALID_ARGUMENT and NOT_FOUND with the place: `shop.yaml:7: data:1:12: field user.age:
// "abc" is not a valid int32`.
[[nodiscard]] absl::StatusOr<std::shared_ptr<const Journey>> MakeJsonJourney(
    std::string name, const Catalog& catalog, const std::vector<JourneyStep>& steps, uint64_t seed);

}  // namespace curtail
