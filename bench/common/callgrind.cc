// SPDX-License-Identifier: Apache-2.0
#include "bench/common/callgrind.h"

#include <fstream>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "bench/common/find_program.h"

namespace curtail::bench {

absl::StatusOr<Callgrind> Callgrind::Find(std::string folder) {
  if (std::optional<std::string> valgrind = FindProgram("valgrind")) {
    return Callgrind(*std::move(valgrind), std::move(folder));
  }
  return absl::NotFoundError("no valgrind here; install it with apt-get install valgrind");
}

std::string Callgrind::File() const { return absl::StrCat(folder_, "/callgrind-", runs_); }

std::vector<std::string> Callgrind::NextWrapper() {
  ++runs_;
  return {valgrind_, "--tool=callgrind", "--quiet", absl::StrCat("--log-file=", File(), ".log"),
          absl::StrCat("--callgrind-out-file=", File())};
}

absl::StatusOr<double> Callgrind::Total() const {
  std::ifstream in(File());
  for (std::string line; std::getline(in, line);) {
    absl::string_view rest = line;
    double total = 0;
    if ((absl::ConsumePrefix(&rest, "totals: ") || absl::ConsumePrefix(&rest, "summary: ")) &&
        absl::SimpleAtod(rest, &total) && total > 0) {
      return total;
    }
  }
  return absl::UnavailableError("valgrind has written no count");
}

}  // namespace curtail::bench
