// SPDX-License-Identifier: Apache-2.0
#include "apps/media/commands/audit.h"

#include <map>
#include <utility>

#include "apps/kit/data/data.h"
#include "apps/kit/data/folder.h"
#include "apps/media/common/rentals.h"
#include "apps/media/common/wallets.h"
#include "apps/media/data.h"
#include "curtail/base/strings.h"

namespace curtail::media {
namespace {

// By the rental and the round: what the rental wants its charge to be, with its cents and its user.
using Charges = std::map<std::pair<uint64_t, uint32_t>, Charge>;

absl::Status ReadRentals(const std::string& folder, Charges* charges) {
  absl::Status wrong;
  absl::Status status = apps::LookAtData(folder, "rent", [&](SqlSession& s) {
    return s.Query(
        "SELECT rents.id, rents.owner, rents.round, rents.state, rents.open, rents.bytes, refunded,"
        " coalesce(refunds.open, 0) FROM rents JOIN rentals ON rentals.id = rents.id"
        " LEFT JOIN refunds ON refunds.id = rents.id",
        {}, [&](const SqlRow& row) {
          KeptRental kept;
          wrong.Update(ReadRental(row.Unsigned(0), row.Text(5), &kept));
          if (row.Integer(4) != 0 || row.Integer(7) != 0)
            wrong.Update(absl::UnavailableError(Join("rental ", row.Unsigned(0), " is still open")));
          const auto round = static_cast<uint32_t>(row.Unsigned(2));
          Charge charge = ChargeOf(row.Unsigned(1), round, kept.shown());
          charge.set_state(row.Integer(3) != Rental::ACTIVE ? Charge::VOIDED
                           : row.Integer(6) != 0            ? Charge::REFUNDED
                                                            : Charge::CAPTURED);
          (*charges)[{row.Unsigned(0), round}] = std::move(charge);
        });
  });
  return status.ok() ? wrong : status;
}

// Each charge is as its rental wants it. One of an earlier round, or of a rental that was refused, has moved no money.
absl::Status CheckCharges(SqlSession& s, Charges* charges) {
  absl::Status wrong;
  absl::Status status =
      s.Query("SELECT rental, round, user, cents, state FROM charges", {}, [&](const SqlRow& row) {
        Charge wanted;
        wanted.set_state(Charge::VOIDED);
        if (auto found = charges->extract({row.Unsigned(0), static_cast<uint32_t>(row.Unsigned(1))}))
          wanted = found.mapped();
        const int64_t kept = row.Integer(4), state = kept == Charge::REFUSED ? int64_t{Charge::VOIDED} : kept;
        const bool paid = wanted.state() != Charge::VOIDED;
        if (state == wanted.state() &&
            (!paid || (row.Unsigned(2) == wanted.user() && row.Integer(3) == wanted.cents())))
          return;
        wrong.Update(
            absl::DataLossError(Join("the charge of rental ", row.Unsigned(0), " has state ", state, " and ",
                                     row.Integer(3), " cents, not ", wanted.ShortDebugString())));
      });
  if (!status.ok() || !wrong.ok()) return status.ok() ? wrong : status;
  for (const auto& [id, charge] : *charges) {
    if (charge.state() != Charge::VOIDED)
      return absl::DataLossError(Join("rental ", id.first, " is active and has no charge"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Audit(const std::string& data) {
  const absl::StatusOr<std::string> folder = apps::DataFolder(kApplication, data);
  if (!folder.ok()) return folder.status();
  Charges charges;
  absl::Status status = ReadRentals(*folder, &charges);
  if (!status.ok()) return status;
  return apps::LookAtData(*folder, "payment-auth", [&](SqlSession& s) {
    absl::Status whole = AuditWallets(s);
    return whole.ok() ? CheckCharges(s, &charges) : whole;
  });
}

}  // namespace curtail::media
