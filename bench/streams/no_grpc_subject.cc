// SPDX-License-Identifier: Apache-2.0
#include "bench/streams/subject.h"

namespace curtail::bench {

std::unique_ptr<StreamSubject> MakeGrpcSubject() { return nullptr; }

}  // namespace curtail::bench
