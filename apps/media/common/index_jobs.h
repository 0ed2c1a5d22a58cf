// SPDX-License-Identifier: Apache-2.0
//
// index_jobs.h - a movie as the index has it.
#pragma once

#include <cstdint>
#include <string>

#include "curtail/base/strings.h"
#include "index.pb.h"

namespace curtail::media {

using Texts = google::protobuf::RepeatedPtrField<std::string>;

inline apps::IndexJob IndexJobOf(uint64_t movie, const std::string& title, uint32_t year, const Texts& genres,
                                 const Texts& cast, const std::string& plot) {
  apps::IndexJob job;
  job.set_id(movie);
  job.set_text(title);
  for (const std::string& name : cast) job.set_text(Join(job.text(), "\n", name));
  job.set_text(Join(job.text(), "\n", plot));
  *job.mutable_tags() = genres;
  job.set_number(year);
  return job;
}

}  // namespace curtail::media
