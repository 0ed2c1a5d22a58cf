// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. Two buffers: `input_buffer` holds bytes of the file, `text` what they decode to. Next() cuts lines
// out of `text` and decodes more when no line end is left in it. One Decoder per compression; a plain file has
// none and is read into `text` at once. After an error every further call gives the same error. Not offered:
// pipes, and going back.
#include "apps/kit/line_reader.h"

#include <bzlib.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace curtail::apps {
namespace {

constexpr size_t kInputBytes = size_t{256} << 10;
constexpr size_t kTextBytes = size_t{1} << 20;

// The outcome of one step of a Decoder.
enum class Step { kMore, kStreamEnd, kCorrupt, kNoMemory };

struct Slice {
  char* data;
  size_t size;
};

// A Decoder takes bytes from the front of `in` and puts text to the front of `out`, shortening both.
class Decoder {
 public:
  virtual ~Decoder() = default;
  virtual Step Decode(Slice* in, Slice* out) = 0;
  // Begins the next stream of the file.
  virtual bool Restart() = 0;
  virtual const char* name() const = 0;
};

class GzipDecoder final : public Decoder {
 public:
  GzipDecoder() { ok_ = inflateInit2(&stream_, MAX_WBITS + 16) == Z_OK; }
  ~GzipDecoder() override { inflateEnd(&stream_); }

  Step Decode(Slice* in, Slice* out) override {
    if (!ok_) return Step::kNoMemory;
    stream_.next_in = reinterpret_cast<Bytef*>(in->data);
    stream_.avail_in = static_cast<uInt>(in->size);
    stream_.next_out = reinterpret_cast<Bytef*>(out->data);
    stream_.avail_out = static_cast<uInt>(out->size);
    const int code = inflate(&stream_, Z_NO_FLUSH);
    *in = {reinterpret_cast<char*>(stream_.next_in), stream_.avail_in};
    *out = {reinterpret_cast<char*>(stream_.next_out), stream_.avail_out};
    if (code == Z_STREAM_END) return Step::kStreamEnd;
    if (code == Z_MEM_ERROR) return Step::kNoMemory;
    return code == Z_OK || code == Z_BUF_ERROR ? Step::kMore : Step::kCorrupt;
  }
  bool Restart() override { return inflateReset(&stream_) == Z_OK; }
  const char* name() const override { return "gzip"; }

 private:
  z_stream stream_ = {};
  bool ok_ = false;
};

class Bzip2Decoder final : public Decoder {
 public:
  Bzip2Decoder() { ok_ = BZ2_bzDecompressInit(&stream_, 0, 0) == BZ_OK; }
  ~Bzip2Decoder() override { BZ2_bzDecompressEnd(&stream_); }

  Step Decode(Slice* in, Slice* out) override {
    if (!ok_) return Step::kNoMemory;
    stream_.next_in = in->data;
    stream_.avail_in = static_cast<unsigned>(in->size);
    stream_.next_out = out->data;
    stream_.avail_out = static_cast<unsigned>(out->size);
    const int code = BZ2_bzDecompress(&stream_);
    *in = {stream_.next_in, stream_.avail_in};
    *out = {stream_.next_out, stream_.avail_out};
    if (code == BZ_STREAM_END) return Step::kStreamEnd;
    if (code == BZ_MEM_ERROR) return Step::kNoMemory;
    return code == BZ_OK ? Step::kMore : Step::kCorrupt;
  }
  bool Restart() override {
    BZ2_bzDecompressEnd(&stream_);
    stream_ = {};
    return ok_ = BZ2_bzDecompressInit(&stream_, 0, 0) == BZ_OK;
  }
  const char* name() const override { return "bzip2"; }

 private:
  bz_stream stream_ = {};
  bool ok_ = false;
};

// Null for a file that is not compressed. "BZh9" may begin a text, so the first block's mark counts, too.
std::unique_ptr<Decoder> DecoderFor(std::string_view head) {
  if (head.starts_with("\x1f\x8b")) return std::make_unique<GzipDecoder>();
  const bool bzip2 = head.size() >= 4 && head.starts_with("BZh") && head[3] >= '1' && head[3] <= '9';
  if (!bzip2) return nullptr;
  const std::string_view mark = head.substr(4, 6);
  constexpr std::string_view kBlock = "\x31\x41\x59\x26\x53\x59", kEmpty = "\x17\x72\x45\x38\x50\x90";
  if (!kBlock.starts_with(mark) && !kEmpty.starts_with(mark)) return nullptr;
  return std::make_unique<Bzip2Decoder>();
}

absl::Status OpenError(const std::string& path, int error) {
  const std::string text = absl::StrCat(path, ": ", std::strerror(error));
  if (error == EACCES || error == EPERM) return absl::PermissionDeniedError(text);
  if (error == ENOENT || error == ENOTDIR) return absl::NotFoundError(text);
  return absl::UnavailableError(text);
}

}  // namespace

struct LineReader::Impl {
  Impl(std::string p, int f, uint64_t s) : path(std::move(p)), fd(f), file_size(s) {}
  ~Impl() { close(fd); }

  absl::Status Begin();
  absl::StatusOr<bool> Next(std::string_view* line);
  // More text behind `end`; sets `done` instead at the end of the file.
  absl::Status Fill();
  absl::Status Decode();
  // Reads from the file to `to`, 0 bytes at its end.
  absl::StatusOr<size_t> Read(char* to, size_t bytes);
  absl::Status Refill();
  // Makes room behind `end`.
  void MakeRoom();
  absl::Status Corrupt(std::string_view what) const;

  // Immutable after construction.
  const std::string path;
  const int fd;
  const uint64_t file_size;

  std::unique_ptr<Decoder> decoder;  // null: plain
  bool between_streams = false;      // the last stream ended, none has begun
  std::vector<char> input_buffer;
  Slice input = {nullptr, 0};  // not decoded yet
  uint64_t read = 0;           // of the file
  std::vector<char> text;
  size_t begin = 0, end = 0;  // what Next() has not given yet, in `text`
  bool done = false;          // nothing comes after `end`
  uint64_t lines = 0;
  absl::Status failed;
};

absl::Status LineReader::Impl::Corrupt(std::string_view what) const {
  return absl::DataLossError(
      absl::StrCat(path, ", offset ", read - input.size, ": ", absl::string_view(what.data(), what.size())));
}

absl::StatusOr<size_t> LineReader::Impl::Read(char* to, size_t bytes) {
  ssize_t got = 0;
  do {
    got = ::read(fd, to, bytes);
  } while (got < 0 && errno == EINTR);
  if (got < 0) {
    return absl::UnavailableError(
        absl::StrCat(path, ", offset ", read, ": cannot read: ", std::strerror(errno)));
  }
  read += static_cast<uint64_t>(got);
  return static_cast<size_t>(got);
}

absl::Status LineReader::Impl::Refill() {
  const absl::StatusOr<size_t> got = Read(input_buffer.data(), input_buffer.size());
  if (!got.ok()) return got.status();
  input = {input_buffer.data(), *got};
  return absl::OkStatus();
}

absl::Status LineReader::Impl::Begin() {
  input_buffer.resize(kInputBytes);
  text.resize(kTextBytes);
  if (absl::Status status = Refill(); !status.ok()) return status;
  decoder = DecoderFor({input.data, input.size});
  if (decoder != nullptr) return absl::OkStatus();
  std::memcpy(text.data(), input.data, input.size);
  end = input.size, input = {nullptr, 0};
  return absl::OkStatus();
}

void LineReader::Impl::MakeRoom() {
  if (begin > 0) {
    std::memmove(text.data(), text.data() + begin, end - begin);
    end -= begin, begin = 0;
  }
  if (end * 2 > text.size()) text.resize(text.size() * 2);
}

absl::Status LineReader::Impl::Fill() {
  MakeRoom();
  if (decoder != nullptr) return Decode();
  const absl::StatusOr<size_t> got = Read(text.data() + end, text.size() - end);
  if (!got.ok()) return got.status();
  end += *got, done = *got == 0;
  return absl::OkStatus();
}

absl::Status LineReader::Impl::Decode() {
  for (;;) {
    if (input.size == 0) {
      if (absl::Status status = Refill(); !status.ok()) return status;
      const bool at_end = input.size == 0;
      if (at_end && !between_streams) {
        return Corrupt(
            absl::StrCat("the ", decoder->name(), " data end early; copy or create the file again"));
      }
      if (at_end) return done = true, absl::OkStatus();
    }
    if (between_streams) {  // zeros there are padding
      while (input.size > 0 && *input.data == 0) ++input.data, --input.size;
      if (input.size == 0) continue;
      if (!decoder->Restart()) return absl::ResourceExhaustedError(absl::StrCat(path, ": no memory"));
      between_streams = false;
    }
    Slice out = {text.data() + end, text.size() - end};
    const Step step = decoder->Decode(&input, &out);
    const size_t more = text.size() - out.size - end;
    end += more;
    if (step == Step::kCorrupt) return Corrupt(absl::StrCat("corrupt ", decoder->name(), " data"));
    if (step == Step::kNoMemory) return absl::ResourceExhaustedError(absl::StrCat(path, ": no memory"));
    between_streams = step == Step::kStreamEnd;
    if (more > 0) return absl::OkStatus();
  }
}

absl::StatusOr<bool> LineReader::Impl::Next(std::string_view* line) {
  size_t searched = 0;  // of what is left, without a line end
  for (;;) {
    const char* const from = text.data() + begin;
    const void* const found = std::memchr(from + searched, '\n', end - begin - searched);
    const size_t left = end - begin;
    size_t size = found == nullptr ? left : static_cast<size_t>(static_cast<const char*>(found) - from);
    const size_t taken = found == nullptr ? left : size + 1;
    if (found != nullptr && size > 0 && from[size - 1] == '\r') --size;
    if (size > kMaxLine + (found == nullptr && !done ? 1 : 0)) {  // a '\r' may be the last byte so far
      return absl::ResourceExhaustedError(absl::StrCat(path, ", line ", lines + 1, ": longer than ",
                                                       kMaxLine >> 20, " MiB; is it a text file?"));
    }
    if (found != nullptr || (done && left > 0)) {
      *line = {from, size};
      begin += taken, ++lines;
      return true;
    }
    if (done) return false;
    searched = left;
    if (absl::Status status = Fill(); !status.ok()) return status;
  }
}

LineReader::LineReader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
LineReader::~LineReader() = default;

absl::StatusOr<std::unique_ptr<LineReader>> LineReader::Open(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return OpenError(path, errno);
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": is not a regular file; name a file of text lines"));
  }
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return OpenError(path, errno);
  posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);  // a hint; nothing depends on it
  auto impl = std::make_unique<Impl>(path, fd, static_cast<uint64_t>(info.st_size));
  if (absl::Status status = impl->Begin(); !status.ok()) return status;
  return std::unique_ptr<LineReader>(new LineReader(std::move(impl)));
}

absl::StatusOr<bool> LineReader::Next(std::string_view* line) {
  if (!impl_->failed.ok()) return impl_->failed;
  absl::StatusOr<bool> next = impl_->Next(line);
  if (!next.ok()) impl_->failed = next.status();
  return next;
}

uint64_t LineReader::line_number() const { return impl_->lines; }
std::string LineReader::Where() const { return absl::StrCat(impl_->path, ", line ", impl_->lines); }
uint64_t LineReader::offset() const { return impl_->read - impl_->input.size; }
uint64_t LineReader::size() const { return impl_->file_size; }

}  // namespace curtail::apps
