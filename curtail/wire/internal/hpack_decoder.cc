// SPDX-License-Identifier: Apache-2.0
//
// DESIGN: the dynamic table is a ring of HeaderFields, ready for the sink, whose views point into a second ring
// of bytes. An indexed field is thus one look-up and one call. The class and validity of a field are found when
// it is read as a literal and stay with its entry.
//
// The byte ring holds each entry in one piece, so an entry that does not fit before the end goes to the start.
// It grows by doubling up to twice the table's limit, and then always has room: let the entries that stay after
// evicting take at most limit - need bytes. If they lie in one piece and less than `need` is left behind them,
// then more than limit is left before them. If they wrap around, the part before the wrap starts at t and ends
// less than limit from the end of the ring, so past limit; what follows the wrap ends at h; and the gap t - h is
// at least need, because all other bytes are entries that stay.

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "curtail/wire/internal/hpack.h"
#include "curtail/wire/internal/hpack_static_table.h"
#include "curtail/wire/internal/huffman.h"
#include "curtail/wire/metadata.h"

namespace curtail::wire::internal {
namespace {

constexpr size_t kFirstArenaBytes = 512;
constexpr uint32_t kFirstEntries = 16;
// Scratch memory beyond this does not outlive its block.
constexpr size_t kKeepScratchBytes = 8192;

Field PseudoFieldOf(std::string_view name) {
  if (name == ":path") return Field::kPath;
  if (name == ":method") return Field::kMethod;
  if (name == ":scheme") return Field::kScheme;
  if (name == ":authority") return Field::kAuthority;
  if (name == ":status") return Field::kStatus;
  return Field::kUnknownPseudo;
}

Field GrpcFieldOf(std::string_view name) {
  if (name == "grpc-status") return Field::kGrpcStatus;
  if (name == "grpc-message") return Field::kGrpcMessage;
  if (name == "grpc-timeout") return Field::kGrpcTimeout;
  if (name == "grpc-encoding") return Field::kGrpcEncoding;
  if (name == "grpc-status-details-bin") return Field::kGrpcDetails;
  return IsReservedKey(name) ? Field::kReserved : Field::kOther;
}

bool IsConnectionSpecific(std::string_view name) {
  return name == "connection" || name == "keep-alive" || name == "proxy-connection" ||
         name == "transfer-encoding" || name == "upgrade";
}

size_t TableBytes(const HeaderField& field) {
  return field.name.size() + field.value.size() + kEntryOverhead;
}

// The size of an entry in the byte ring: one more than its bytes, so that none is empty, and a ring whose next
// byte is also its oldest is full.
size_t ArenaBytes(const HeaderField& field) { return field.name.size() + field.value.size() + 1; }

// The bytes of a token (RFC 9110 5.6.2) other than upper-case letters.
consteval std::array<bool, 256> MakeNameBytes() {
  std::array<bool, 256> allowed{};
  for (unsigned char c : std::string_view("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"))
    allowed[c] = true;
  return allowed;
}

constexpr std::array<bool, 256> kNameBytes = MakeNameBytes();

bool IsValidName(std::string_view name) {
  if (name.starts_with(':')) name.remove_prefix(1);
  for (unsigned char c : name) {
    if (!kNameBytes[c]) return false;
  }
  return !name.empty();
}

bool IsValidBytes(std::string_view value) {
  for (char c : value) {
    if (c == '\0' || c == '\r' || c == '\n') return false;
  }
  return true;
}

// True if one of the eight bytes is below 0x20: the classical trick of subtracting without borrow.
bool HasControlByte(const char* bytes) {
  constexpr uint64_t kOnes = 0x0101010101010101;
  uint64_t word;
  std::memcpy(&word, bytes, sizeof(word));
  return ((word - kOnes * 0x20) & ~word & kOnes * 0x80) != 0;
}

bool IsValidValue(std::string_view value) {
  if (value.size() < 8) return IsValidBytes(value);
  // The last eight bytes overlap the words before them.
  const char* const last = value.data() + value.size() - 8;
  for (const char* at = value.data(); at < last; at += 8) {
    if (HasControlByte(at)) [[unlikely]]
      return IsValidBytes(value);
  }
  return !HasControlByte(last) || IsValidBytes(value);
}

void Trim(std::string* scratch) {
  if (scratch->size() > kKeepScratchBytes) [[unlikely]]
    *scratch = std::string();
}

}  // namespace

Field FieldOf(std::string_view name) {
  if (name.empty()) return Field::kReserved;
  if (name[0] == ':') return PseudoFieldOf(name);
  if (name.starts_with("grpc-")) return GrpcFieldOf(name);
  if (!IsReservedKey(name)) return Field::kOther;
  if (name == "content-type") return Field::kContentType;
  if (name == "te") return Field::kTe;
  if (name == "user-agent") return Field::kUserAgent;
  if (name == "content-length") return Field::kContentLength;
  return IsConnectionSpecific(name) ? Field::kConnectionSpecific : Field::kReserved;
}

bool HpackDecoder::Reader::Integer(uint32_t mask, uint32_t prefix, uint32_t* value) {
  *value = prefix;
  if (prefix != mask) [[likely]]
    return true;
  uint64_t sum = prefix;
  for (int shift = 0; shift < 32 && next != end; shift += 7) {
    const uint8_t byte = *next++;
    sum += static_cast<uint64_t>(byte & 0x7f) << shift;
    if (sum > UINT32_MAX) return false;
    if (byte < 0x80) {
      *value = static_cast<uint32_t>(sum);
      return true;
    }
  }
  return false;
}

HpackDecoder::HpackDecoder(uint32_t max_table_bytes) : max_table_bytes_(max_table_bytes) {}

bool HpackDecoder::Decode(std::string_view block, Sink sink) {
  Reader in = Reader::Of(block);
  // Size updates come before the first field (RFC 7541 4.2).
  while (in.next != in.end && (*in.next & 0xe0) == 0x20) {
    if (!SizeUpdate(in)) return false;
  }
  return Fields(in, sink);
}

bool HpackDecoder::DecodeRest(std::string_view rest, Sink sink) {
  Reader in = Reader::Of(rest);
  return Fields(in, sink);
}

size_t HpackDecoder::IndexedBytes(std::string_view block) {
  Reader in = Reader::Of(block);
  const uint8_t* const begin = in.next;
  size_t bytes = 0;
  while (in.next != in.end && (*in.next & 0x80) != 0) {
    const uint32_t prefix = *in.next++ & 0x7f;
    uint32_t index;
    if (!in.Integer(0x7f, prefix, &index)) break;
    bytes = static_cast<size_t>(in.next - begin);
  }
  return bytes;
}

bool HpackDecoder::Fields(Reader& in, Sink sink) {
  copied_ = 0;
  while (in.next != in.end) {
    const uint32_t byte = *in.next++;
    if ((byte & 0x80) != 0) {
      uint32_t index;
      if (!in.Integer(0x7f, byte & 0x7f, &index)) return false;
      const HeaderField* const field = Find(index);
      if (field == nullptr) return false;
      sink(*field);
    } else if ((byte & 0x40) != 0) {
      if (!Literal(in, byte & kInsertMask, kInsertMask, sink)) return false;
    } else if ((byte & 0x20) != 0 || !Literal(in, byte & 0x0f, 0x0f, sink)) {
      return false;
    }
  }
  Trim(&name_scratch_);
  Trim(&value_scratch_);
  return true;
}

bool HpackDecoder::SizeUpdate(Reader& in) {
  const uint32_t prefix = *in.next++ & 0x1f;
  uint32_t limit;
  if (!in.Integer(0x1f, prefix, &limit) || limit > max_table_bytes_) return false;
  table_limit_ = limit;
  ++generation_;
  EvictTo(limit);
  return true;
}

bool HpackDecoder::Literal(Reader& in, uint32_t prefix, uint32_t mask, Sink sink) {
  uint32_t index;
  if (!in.Integer(mask, prefix, &index)) return false;
  HeaderField field;
  if (index == 0) {
    if (!ReadString(in, &name_scratch_, &field.name)) return false;
    field.field = FieldOf(field.name);
    field.valid_name = IsValidName(field.name);
  } else {
    const HeaderField* const named = Find(index);
    if (named == nullptr) return false;
    field.name = named->name;
    field.field = named->field;
    field.valid_name = named->valid_name;
    if (mask == kInsertMask && (copied_ += field.name.size()) > kMaxCopied) return false;
  }
  if (!ReadString(in, &value_scratch_, &field.value)) return false;
  field.valid = field.valid_name && IsValidValue(field.value);
  const HeaderField* const entry = mask == kInsertMask ? Insert(field) : &field;
  sink(entry != nullptr ? *entry : field);
  return true;
}

bool HpackDecoder::ReadString(Reader& in, std::string* scratch, std::string_view* text) {
  if (in.next == in.end) return false;
  const uint32_t byte = *in.next++;
  uint32_t size;
  if (!in.Integer(0x7f, byte & 0x7f, &size) || size > in.left()) return false;
  *text = std::string_view(reinterpret_cast<const char*>(in.next), size);
  in.next += size;
  if ((byte & 0x80) == 0) return true;
  const size_t bound = HuffmanDecodedBound(size);
  if (scratch->size() < bound) scratch->resize(bound);
  const std::optional<size_t> decoded = HuffmanDecode(*text, scratch->data());
  if (!decoded.has_value()) return false;
  *text = std::string_view(scratch->data(), *decoded);
  return true;
}

const HeaderField* HpackDecoder::Find(uint32_t index) const {
  // Index 0, which stands for nothing, becomes the largest number there is.
  const uint32_t place = index - 1;
  if (place < kStaticEntries) return &kStaticTable[place];
  const uint32_t age = place - kStaticEntries;
  if (age >= count_) return nullptr;
  return &Entry(age);
}

void HpackDecoder::EvictTo(size_t bytes) {
  while (bytes_ > bytes) {
    bytes_ -= TableBytes(Oldest());
    --count_;
  }
}

const HeaderField* HpackDecoder::Insert(const HeaderField& field) {
  const size_t bytes = TableBytes(field);
  ++generation_;
  EvictTo(bytes <= table_limit_ ? table_limit_ - bytes : 0);
  if (bytes > table_limit_) return nullptr;
  const size_t need = ArenaBytes(field);
  char* place = Place(need);
  // The name may be that of an entry, in the buffer that is replaced.
  std::unique_ptr<char[]> replaced;
  if (place == nullptr) {
    replaced = GrowArena(need);
    place = Place(need);
  }
  if (count_ == ring_size_) GrowRing();
  ++newest_;
  HeaderField& entry = Entry(0);
  entry = field;
  entry.number = ++inserted_;
  // Memory of an entry that was just evicted may be both the name's source and its destination.
  std::memmove(place, field.name.data(), field.name.size());
  entry.name = std::string_view(place, field.name.size());
  place += field.name.size();
  if (!field.value.empty()) std::memcpy(place, field.value.data(), field.value.size());
  entry.value = std::string_view(place, field.value.size());
  arena_next_ += need;
  bytes_ += bytes;
  ++count_;
  return &entry;
}

char* HpackDecoder::Place(size_t need) {
  if (count_ == 0) arena_next_ = 0;
  const size_t oldest = count_ == 0 ? arena_size_ : static_cast<size_t>(Oldest().name.data() - arena_.get());
  const bool one_piece = count_ == 0 || oldest < arena_next_;
  const size_t end = one_piece ? arena_size_ : oldest;
  if (end - arena_next_ >= need) return arena_.get() + arena_next_;
  if (!one_piece || oldest < need) return nullptr;
  arena_next_ = 0;
  return arena_.get();
}

std::unique_ptr<char[]> HpackDecoder::GrowArena(size_t need) {
  size_t used = need;
  for (uint32_t age = 0; age < count_; ++age) used += ArenaBytes(Entry(age));
  size_t size = std::max(2 * arena_size_, kFirstArenaBytes);
  while (size < used) size *= 2;
  const size_t most = 2 * size_t{std::max(max_table_bytes_, kDefaultTableBytes)};
  size = std::min(size, most);
  std::unique_ptr<char[]> old = std::make_unique_for_overwrite<char[]>(size);
  old.swap(arena_);
  arena_size_ = size;
  arena_next_ = 0;
  for (uint32_t age = count_; age-- > 0;) {
    HeaderField& entry = Entry(age);
    char* const place = arena_.get() + arena_next_;
    arena_next_ += ArenaBytes(entry);
    std::memcpy(place, entry.name.data(), entry.name.size() + entry.value.size());
    entry.name = std::string_view(place, entry.name.size());
    entry.value = std::string_view(place + entry.name.size(), entry.value.size());
  }
  return old;
}

void HpackDecoder::GrowRing() {
  const uint32_t size = std::max(2 * ring_size_, kFirstEntries);
  auto grown = std::make_unique<HeaderField[]>(size);
  for (uint32_t age = 0; age < count_; ++age) grown[count_ - 1 - age] = Entry(age);
  ring_ = std::move(grown);
  ring_size_ = size;
  newest_ = count_ - 1;
}

}  // namespace curtail::wire::internal
