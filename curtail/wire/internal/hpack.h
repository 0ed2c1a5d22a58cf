// SPDX-License-Identifier: Apache-2.0
//
// hpack.h - HPACK (RFC 7541), the compression of HTTP/2 header blocks, built for few instructions per field.
//
// The decoder takes anything that the RFC allows and classifies a field once, when it enters the table. The
// encoder is simple on purpose: it fills its table once and never evicts, and it writes literals without
// Huffman coding. Both are thread-compatible: one connection owns one of each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"

namespace curtail::wire::internal {

// The fields that gRPC and HTTP know by name.
enum class Field : uint8_t {
  kOther,  // custom metadata
  kMethod,
  kScheme,
  kPath,
  kAuthority,
  kStatus,
  kContentType,
  kTe,
  kUserAgent,
  kGrpcStatus,
  kGrpcMessage,
  kGrpcTimeout,
  kGrpcEncoding,
  kGrpcDetails,  // grpc-status-details-bin
  kContentLength,
  kReserved,            // IsReservedKey() of wire/metadata.h holds, and nothing else here fits
  kConnectionSpecific,  // malformed in HTTP/2 (RFC 9113 8.2.2)
  kUnknownPseudo,       // starts with ':' and is none of the above
};

Field FieldOf(std::string_view name);

// A decoded field. The views live until the sink returns.
struct HeaderField {
  std::string_view name;
  std::string_view value;
  Field field = Field::kOther;
  // The name is a non-empty token without upper-case letters (one leading ':' is allowed), and the value has
  // no NUL, CR or LF (RFC 9113 8.2.1). Space around the value is let through: a grpc-message may end in it.
  bool valid = false;
  // Half of that, kept with the entries of a table: a long name is looked at once.
  bool valid_name = false;
  // Of an entry of the dynamic table: its number in the order of insertion, from 1 on; 0: it is none. The fields of a
  // decoder that have one number are the same.
  uint64_t number = 0;
};

// RFC 7541: the size of a dynamic table before any SETTINGS, and what each entry costs on top of its bytes.
inline constexpr uint32_t kDefaultTableBytes = 4096;
inline constexpr uint32_t kEntryOverhead = 32;

// An HpackDecoder turns header blocks into fields and keeps the table that the peer's encoder assumes. Its memory
// comes with the first insertion and the first Huffman-coded string; once both have grown to what the peer uses,
// it allocates no more (except for a string whose decoding takes more than 8 KiB: that memory is given back).
class HpackDecoder {
 public:
  using Sink = absl::FunctionRef<void(const HeaderField&)>;

  // `max_table_bytes` is what we announce as SETTINGS_HEADER_TABLE_SIZE. The table starts with the RFC's 4096
  // bytes whatever that is, since the peer may not have seen it yet.
  explicit HpackDecoder(uint32_t max_table_bytes = kDefaultTableBytes);
  HpackDecoder(const HpackDecoder&) = delete;
  HpackDecoder& operator=(const HpackDecoder&) = delete;

  // Decodes one whole header block (HEADERS and its CONTINUATIONs joined) and tells `sink` each field in
  // order. The sink does not call back into the decoder. False: COMPRESSION_ERROR, or a block that copies more than
  // kMaxCopied bytes of names within the table; the decoder is then of no more use.
  [[nodiscard]] bool Decode(std::string_view block, Sink sink);
  // Decodes the rest of a block behind fields that need not be decoded again: see IndexedBytes().
  [[nodiscard]] bool DecodeRest(std::string_view rest, Sink sink);
  // The bytes at the front of a block that refer to entries of the tables, and change nothing. They mean the
  // same fields as long as generation() stays.
  static size_t IndexedBytes(std::string_view block);
  // Rises whenever the table changes: with an insertion, and with an update of its size.
  uint64_t generation() const { return generation_; }

  // For statistics and tests: the number of entries, and their size as RFC 7541 4.1 counts it.
  size_t table_entries() const { return count_; }
  size_t table_bytes() const { return bytes_; }

 private:
  // The unread part of the block.
  struct Reader {
    const uint8_t* next;
    const uint8_t* end;
    static Reader Of(std::string_view block) {
      const auto* const begin = reinterpret_cast<const uint8_t*>(block.data());
      return {begin, begin + block.size()};
    }
    size_t left() const { return static_cast<size_t>(end - next); }
    // An integer whose first byte, already taken, left `prefix` (RFC 7541 5.1). False: truncated or too big.
    bool Integer(uint32_t mask, uint32_t prefix, uint32_t* value);
  };

  // All fields up to the end.
  bool Fields(Reader& in, Sink sink);
  // A literal field, whose first byte left `prefix` of `mask`.
  bool Literal(Reader& in, uint32_t prefix, uint32_t mask, Sink sink);
  bool SizeUpdate(Reader& in);
  // A string literal (RFC 7541 5.2): a raw one stays where it is, others are decoded into `scratch`.
  static bool ReadString(Reader& in, std::string* scratch, std::string_view* text);
  // The entry with an index of the wire, or null.
  const HeaderField* Find(uint32_t index) const;
  // Copies the field into the table. Null: it is larger than the whole table, which is now empty.
  const HeaderField* Insert(const HeaderField& field);
  void EvictTo(size_t bytes);
  // Where the bytes of the next entry go, from arena_next_ on, or null when arena_ has to grow for it.
  char* Place(size_t need);
  // Moves the entries to a larger arena_ that has room for `need` more; returns the old one.
  std::unique_ptr<char[]> GrowArena(size_t need);
  void GrowRing();
  // The entry after which `age` others were inserted.
  HeaderField& Entry(uint32_t age) const { return ring_[(newest_ - age) & (ring_size_ - 1)]; }
  const HeaderField& Oldest() const { return Entry(count_ - 1); }

  // Bytes of names that one block may have copied to new entries: each copy takes three bytes of the block.
  static constexpr size_t kMaxCopied = 64u << 10;
  // The mask of a literal that enters the table.
  static constexpr uint32_t kInsertMask = 0x3f;

  // Immutable after construction.
  const uint32_t max_table_bytes_;

  // The dynamic table: the last count_ elements up to newest_ of a ring whose size is a power of two or 0.
  uint32_t table_limit_ = kDefaultTableBytes;
  uint32_t count_ = 0;
  uint32_t newest_ = 0;
  uint64_t inserted_ = 0;
  uint64_t generation_ = 0;
  size_t bytes_ = 0;
  uint32_t ring_size_ = 0;
  std::unique_ptr<HeaderField[]> ring_;

  // The names and values of the entries in the order of insertion: a ring, each entry in one piece.
  std::unique_ptr<char[]> arena_;
  size_t arena_size_ = 0;
  size_t arena_next_ = 0;

  size_t copied_ = 0;  // of the block that is being read

  // The Huffman-decoded strings of the field that is being read.
  std::string name_scratch_;
  std::string value_scratch_;
};

// An HpackEncoder turns fields into header blocks.
//
// The encoder never evicts: the table fills with what comes first (the fixed fields, the paths) and then stays,
// so the bytes of a repeated field stay the same and callers can keep them:
//
//   uint64_t generation = encoder.generation();   // taken before Encode()
//   encoder.Encode(name, value, indexing, &bytes);
//   ... as long as encoder.generation() == generation, `bytes` may be sent again instead of encoding.
//
// Bytes that insert are thereby never sent twice, because the insertion itself raises the generation.
class HpackEncoder {
 public:
  enum class Indexing : uint8_t {
    kIndex,  // inserts the field into the table if there is room without evicting
    kNone,   // never inserts: for values that differ from call to call
  };

  HpackEncoder();
  ~HpackEncoder();
  HpackEncoder(const HpackEncoder&) = delete;
  HpackEncoder& operator=(const HpackEncoder&) = delete;

  // The peer's SETTINGS_HEADER_TABLE_SIZE, of which at most 4096 bytes are used. A change of what is used
  // empties the table, and the next block starts with size updates.
  void SetPeerTableSize(uint32_t bytes);

  // True if Begin() has anything to say.
  bool pending() const { return pending_; }
  // Starts a block: appends the size updates that are due.
  void Begin(std::string* out);
  // Appends one field. `name` is lower case. If the static or dynamic table holds the pair, its index is
  // written in either mode.
  void Encode(std::string_view name, std::string_view value, Indexing indexing, std::string* out);

  // Rises whenever the encoding of a field that was already encoded may change.
  uint64_t generation() const { return generation_; }

  // For statistics and tests: the number of entries, and their size as RFC 7541 4.1 counts it.
  size_t table_entries() const;
  size_t table_bytes() const { return bytes_; }

 private:
  struct Table;

  // The index of the whole pair, or 0; of an entry with this name, or 0.
  uint32_t FindPair(uint32_t hash, std::string_view name, std::string_view value) const;
  uint32_t FindName(uint32_t hash, std::string_view name) const;
  // False: there is no room.
  bool Insert(std::string_view name, std::string_view value, uint32_t name_hash, uint32_t pair_hash);

  uint32_t table_limit_ = kDefaultTableBytes;
  uint32_t bytes_ = 0;
  bool pending_ = false;
  uint64_t generation_ = 0;
  // Null until the first insertion.
  std::unique_ptr<Table> table_;
};

}  // namespace curtail::wire::internal
