// SPDX-License-Identifier: Apache-2.0
#include "curtail/base/internal/flag_error.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace curtail::internal {
namespace {

TEST(PlainFlagError, SaysWhatIsWrongInPlainWords) {
  const std::pair<std::string, std::string> cases[] = {
      {"--threads: Value 0 not in range 1 to 256", "--threads: 0 is not from 1 to 256"},
      {"--threads: Value 0 not in range [1 - 256]", "--threads: 0 is not from 1 to 256"},
      {"N: Value three not in range 1 to 256", "N: three is not a number from 1 to 256"},
      {"--threads: Value 2.5 not in range 1 to 256", "--threads: 2.5 is not a whole number from 1 to 256"},
      {"--threads: Value  not in range 1 to 256", "--threads: \"\" is not a number from 1 to 256"},
      {"--most: Value -4 not in range 1 to 9007199254740992", "--most: -4 is not from 1 to 9007199254740992"},
      {"--slo: Value -1 not in range 0.001000 to 3600000.000000", "--slo: -1 is not from 0.001 to 3600000"},
      {"--rate: Value 0 not in range 0.000000 to 17" + std::string(307, '0') + ".0",
       "--rate: 0 is not above 0"},
      {"Could not convert: --body = 4MB", "--body: 4MB is not a number"},
      {"Could not convert: --body = 1.5", "--body: 1.5 is not a whole number"},
      {"Could not convert: --body = -1", "--body: -1 is below 0"},
      {"Could not convert: --body = 99999999999999999999", "--body: 99999999999999999999 is too large"},
      {"--service: lea not in {leaf,mid-tier}", "--service: unknown value \"lea\"; did you mean \"leaf\"?"},
      {"--to: k8s not in {kubernetes,helm,compose}",
       "--to: unknown value \"k8s\"; write kubernetes, helm or compose"},
      {"--to:  not in {a,b}", "--to: unknown value \"\"; write a or b"},
      {"--rps: At Most 1 required but received 2", "--rps is given twice"},
      {"--rps: At Most 1 required but received 3", "--rps is given 3 times"},
      {"--rps: 1 required FLOAT missing", "--rps needs a number"},
      {"--k: 1 required INT:INT in [1 - 9] missing", "--k needs a number"},
      {"--to: 1 required TEXT missing", "--to needs a value"},
      {"--rps excludes --closed", "--rps and --closed cannot be combined"},
      {"--max-burst requires --max-rate", "--max-burst needs --max-rate"},
      {"--job is required\n", "--job is missing"},
      {"A subcommand is required", "name a command"},
      {"--quiet=yes was given a disallowed flag override", "--quiet=yes takes no value"},
      {"--rps: 5kk is not a number; write 500", "--rps: 5kk is not a number; write 500"},
      {"some other text", "some other text"},
  };
  for (const auto& [text, plain] : cases) EXPECT_EQ(PlainFlagError(text), plain);
}

}  // namespace
}  // namespace curtail::internal
