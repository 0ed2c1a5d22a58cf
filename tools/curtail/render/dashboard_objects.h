// SPDX-License-Identifier: Apache-2.0
//
// dashboard_objects.h - the objects of `curtail dashboard` beside the services that it shows. A pure function.
#pragma once

#include "tools/curtail/render/kubernetes.h"

namespace curtail::tool {

// REQUIRES: the plan has a dashboard.
ObjectFile DashboardObjects(const Plan& plan);

}  // namespace curtail::tool
