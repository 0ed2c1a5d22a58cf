// SPDX-License-Identifier: Apache-2.0
//
// fence_classes.h - the path classes of a server, and the requests of each.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "curtail/load/message/workload.h"

namespace curtail::admin::v1 {
class GetStatusReply;
}  // namespace curtail::admin::v1

namespace curtail::tool {

// A ChosenRequests sends some requests of another workload, in turn. Immutable.
class ChosenRequests final : public Workload {
 public:
  // REQUIRES: `chosen` has a request.
  ChosenRequests(std::shared_ptr<const Workload> all, std::vector<uint64_t> chosen)
      : all_(std::move(all)), chosen_(std::move(chosen)) {}

  std::string_view method() const override { return MethodOf(0); }
  std::string_view MethodOf(uint64_t index) const override { return all_->MethodOf(At(index)); }
  std::string Request(uint64_t index) const override { return all_->Request(At(index)); }
  uint64_t distinct() const override { return chosen_.size(); }

 private:
  uint64_t At(uint64_t index) const { return chosen_[index % chosen_.size()]; }

  const std::shared_ptr<const Workload> all_;
  const std::vector<uint64_t> chosen_;
};

// Some requests of a workload that are of one method, or of methods of one class.
struct RequestGroup {
  std::string path_class;  // "local", or the services: "a.Users+a.Posts"
  std::vector<std::string> methods;
  std::vector<uint64_t> requests;  // by their indexes in the workload
};

// The requests of each method, in the order in which methods first come; without classes.
std::vector<RequestGroup> GroupByMethod(const Workload& workload);
// The class that a server's fence has for a method now; empty if it tells of none.
std::string ClassOfMethod(const admin::v1::GetStatusReply& status, std::string_view method);
// Joins the groups of methods that are of one class now. Errors: FAILED_PRECONDITION for a server without a fence in a
// dry run, and a class that is not known yet, or that is shared by what does not belong together.
absl::StatusOr<std::vector<RequestGroup>> GroupByClass(const std::vector<RequestGroup>& methods,
                                                       const admin::v1::GetStatusReply& status);
// "a.Posts", "a.Users" of "a.Users+a.Posts".
std::vector<std::string> ServicesOf(std::string_view path_class);

}  // namespace curtail::tool
