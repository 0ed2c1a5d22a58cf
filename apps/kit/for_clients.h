// SPDX-License-Identifier: Apache-2.0
//
// for_clients.h - what clients read of a failure that is not theirs.
//
// The words of such an error name files, addresses and statements: they are for operators. ForClients() stands before a
// service that clients call:
//
//   return apps::ForClients(std::make_unique<FrontEndService>(...));  // HostedService::make
//
// UNKNOWN, INTERNAL, DATA_LOSS, UNAVAILABLE and DEADLINE_EXCEEDED keep their code and get general words. The process
// logs the original words with the method, one failure a second, and counts the failures that it leaves out.
// Errors with other codes are meant for clients and stay as they are. Errors that the service marks stay, too:
//
//   return apps::ForClients(absl::UnavailableError("the account is closed; call again to delete the rest"));
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "curtail/rpc/service.h"

namespace curtail::apps {

std::unique_ptr<Service> ForClients(std::unique_ptr<Service> service);

// The error with a mark, which a service behind the other ForClients() takes away. Calls do not carry it.
absl::Status ForClients(absl::Status error);

}  // namespace curtail::apps
