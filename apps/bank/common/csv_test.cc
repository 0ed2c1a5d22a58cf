// SPDX-License-Identifier: Apache-2.0
#include "apps/bank/common/csv.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace curtail::bank {
namespace {

TEST(Csv, QuotesTextsAndRunsNoFormula) {
  EXPECT_EQ(CsvText(""), R"("")");
  EXPECT_EQ(CsvText("rent, \"May\""), R"("rent, ""May""")");
  EXPECT_EQ(CsvText("rent - May 1+1=2 a@b"), R"("rent - May 1+1=2 a@b")");
  for (const char* const sign : {"=", "+", "-", "@", "\xef\xbc\x9d", "\xef\xbc\xa0"}) {
    const std::string formula = std::string(sign) + "HYPERLINK(1)";
    EXPECT_EQ(CsvText(formula), "\"'" + formula + "\"");
    EXPECT_EQ(CsvText("  " + formula), "\"  '" + formula + "\"");
    for (const char* const end : {",", ";", "|", ", "})
      EXPECT_EQ(CsvText("a" + std::string(end) + formula), "\"a" + std::string(end) + "'" + formula + "\"");
    EXPECT_EQ(CsvText("a\"" + formula), "\"a\"\"'" + formula + "\"");
  }
  EXPECT_EQ(CsvText("=-1"), "\"'=-1\"") << "the second sign begins nothing";
}

TEST(Csv, HasTimesInUtcAndAmountsToTheCent) {
  Movement movement;
  movement.set_version(7), movement.set_cents(-5), movement.set_balance_cents(1'234'500);
  movement.set_iban("DE02"), movement.set_text("rent"), movement.set_booked_ms(951'782'400'042);
  std::string lines;
  AppendCsv(movement, &lines);
  EXPECT_EQ(lines, "7,2000-02-29T00:00:00.042Z,-0.05,12345.00,DE02,\"rent\"\r\n");
  movement.set_cents(INT64_MIN), movement.set_booked_ms(0);
  lines.clear();
  AppendCsv(movement, &lines);
  EXPECT_EQ(lines, "7,1970-01-01T00:00:00.000Z,-92233720368547758.08,12345.00,DE02,\"rent\"\r\n");
}

}  // namespace
}  // namespace curtail::bank
