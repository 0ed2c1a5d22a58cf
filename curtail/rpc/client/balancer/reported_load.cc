// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/client/balancer/reported_load.h"

#include <bit>
#include <cmath>

#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/wire_format_lite.h"

namespace curtail::internal {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;
using google::protobuf::io::CodedOutputStream;
using google::protobuf::io::StringOutputStream;

constexpr int kCpu = 1;
constexpr int kQps = 6;
constexpr int kEps = 7;
constexpr int kApplication = 9;

double* FieldOf(ServerLoad* load, int number) {
  switch (number) {
    case kCpu:
      return &load->cpu;
    case kQps:
      return &load->qps;
    case kEps:
      return &load->eps;
    case kApplication:
      return &load->application;
    default:
      return nullptr;
  }
}

bool Plausible(double number) { return std::isfinite(number) && number >= 0; }

}  // namespace

bool ReadLoad(std::string_view bytes, ServerLoad* load) {
  CodedInputStream in(reinterpret_cast<const uint8_t*>(bytes.data()), static_cast<int>(bytes.size()));
  while (const uint32_t tag = in.ReadTag()) {
    double* const field = FieldOf(load, WireFormatLite::GetTagFieldNumber(tag));
    if (field == nullptr || WireFormatLite::GetTagWireType(tag) != WireFormatLite::WIRETYPE_FIXED64) {
      if (!WireFormatLite::SkipField(&in, tag)) return false;
      continue;
    }
    uint64_t bits = 0;
    if (!in.ReadLittleEndian64(&bits)) return false;
    *field = std::bit_cast<double>(bits);
    if (!Plausible(*field)) return false;
  }
  return in.ConsumedEntireMessage();
}

std::string WriteLoad(const ServerLoad& load) {
  std::string bytes;
  StringOutputStream stream(&bytes);
  CodedOutputStream out(&stream);
  const auto write = [&](int number, double value) {
    if (value == 0) return;
    out.WriteTag(WireFormatLite::MakeTag(number, WireFormatLite::WIRETYPE_FIXED64));
    out.WriteLittleEndian64(std::bit_cast<uint64_t>(value));
  };
  write(kCpu, load.cpu);
  write(kQps, load.qps);
  write(kEps, load.eps);
  write(kApplication, load.application);
  out.Trim();
  return bytes;
}

void ReportedLoad::Report(std::string_view bytes, double error_penalty, TimePoint now) {
  ServerLoad load;
  if (!ReadLoad(bytes, &load)) return;
  double utilization = load.application > 0 ? load.application : load.cpu;
  if (!(utilization > 0) || !(load.qps > 0)) return;
  utilization += load.eps / load.qps * error_penalty;
  const double weight = load.qps / utilization;
  if (!std::isfinite(weight) || !(weight > 0)) return;
  weight_.store(weight, std::memory_order_relaxed);
  const int64_t ns = now.time_since_epoch().count();
  last_.store(ns, std::memory_order_relaxed);
  int64_t never = kNever;
  since_.compare_exchange_strong(never, ns, std::memory_order_relaxed);
}

double ReportedLoad::Weight(const WeightOptions& options, TimePoint now) {
  const int64_t ns = now.time_since_epoch().count();
  const int64_t since = since_.load(std::memory_order_relaxed);
  if (since == kNever) return 0;
  if (ns - last_.load(std::memory_order_relaxed) >= options.expiration.count()) {
    Forget();
    return 0;
  }
  if (ns - since < options.blackout.count()) return 0;
  return weight_.load(std::memory_order_relaxed);
}

}  // namespace curtail::internal
