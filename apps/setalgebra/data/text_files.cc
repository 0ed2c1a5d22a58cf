// SPDX-License-Identifier: Apache-2.0
//
// The readers of documents from files: one a line, WordNet, WikiText and MediaWiki's dumps. All stand on
// LineReader, so all read plain, gzip and bzip2 files, and no line may be longer than LineReader::kMaxLine.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/kit/line_reader.h"
#include "apps/setalgebra/data/data_spec.h"
#include "apps/setalgebra/data/markup.h"
#include "curtail/base/strings.h"

namespace curtail::setalgebra {
namespace {

using apps::LineReader;

// The state that the readers of one file share.
class FileDocuments : public DocumentReader {
 public:
  FileDocuments(std::unique_ptr<LineReader> lines, std::string path)
      : lines_(std::move(lines)), path_(std::move(path)) {}
  uint64_t done() const override { return lines_->offset(); }
  uint64_t total() const override { return lines_->size(); }
  const char* unit() const override { return "bytes"; }

 protected:
  LineReader& lines() { return *lines_; }
  // A status whose message says which file.
  absl::Status InFile(const absl::Status& status) const {
    return absl::Status(status.code(), Join(path_, ", ", Message(status)));
  }
  absl::Status InLine(const absl::Status& status) const {
    return absl::Status(status.code(), Join(lines_->Where(), ": ", Message(status)));
  }

 private:
  const std::unique_ptr<LineReader> lines_;
  const std::string path_;
};

class LineDocuments final : public FileDocuments {
 public:
  using FileDocuments::FileDocuments;
  absl::StatusOr<bool> Next(std::string_view* document) override { return lines().Next(document); }
};

class WikiTextDocuments final : public FileDocuments {
 public:
  using FileDocuments::FileDocuments;
  absl::StatusOr<bool> Next(std::string_view* document) override {
    std::string_view line;
    for (bool ended = false; !ended && !finished_;) {
      const absl::StatusOr<bool> more = lines().Next(&line);
      if (!more.ok()) return more.status();
      if (!*more) {
        finished_ = true;
        if (!splitter_.Finish(&article_)) return false;
      } else if (absl::Status status = splitter_.AddLine(line, &ended, &article_); !status.ok()) {
        return InLine(status);
      }
      if (ended || finished_) return *document = article_, true;
    }
    return false;
  }

 private:
  WikiTextSplitter splitter_;
  std::string article_;
  bool finished_ = false;
};

class WikipediaDocuments final : public FileDocuments {
 public:
  using FileDocuments::FileDocuments;
  absl::StatusOr<bool> Next(std::string_view* document) override {
    while (next_ == pages_.size()) {
      if (finished_) return false;
      pages_.clear(), next_ = 0;
      if (absl::Status status = ReadPiece(); !status.ok()) return status;
    }
    *document = pages_[next_++];
    return true;
  }

 private:
  static constexpr size_t kPiece = 65536;

  // Some lines, and the pages that end in them.
  absl::Status ReadPiece() {
    piece_.clear();
    while (!finished_ && piece_.size() < kPiece) {
      std::string_view line;
      const absl::StatusOr<bool> more = lines().Next(&line);
      if (!more.ok()) return more.status();
      finished_ = !*more;
      if (*more) piece_.append(line).push_back('\n');
    }
    absl::Status status = parser_.Feed(piece_, &pages_);
    if (status.ok() && finished_) status = parser_.Finish(&pages_);
    return status.ok() ? status : InFile(status);
  }

  PageParser parser_;
  std::string piece_;
  std::vector<std::string> pages_;
  size_t next_ = 0;
  bool finished_ = false;
};

// The glosses of the four files of a WordNet database. A line is "OFFSET ... | GLOSS"; lines of the licence,
// at the top, begin with two blanks. See wndb(5WN).
class WordNetDocuments final : public DocumentReader {
 public:
  explicit WordNetDocuments(std::vector<std::unique_ptr<LineReader>> files) : files_(std::move(files)) {}

  absl::StatusOr<bool> Next(std::string_view* document) override {
    std::string_view line;
    while (file_ < files_.size()) {
      const absl::StatusOr<bool> more = files_[file_]->Next(&line);
      if (!more.ok()) return more.status();
      if (!*more) {
        ++file_;
      } else if (!line.starts_with("  ")) {
        const size_t bar = line.find(" | ");
        if (bar != line.npos) return *document = line.substr(bar + 3), true;
        return absl::DataLossError(
            Join(files_[file_]->Where(), ": holds no gloss after ' | '; is it a file of WordNet 3?"));
      }
    }
    return false;
  }
  uint64_t done() const override { return Sum(&LineReader::offset); }
  uint64_t total() const override { return Sum(&LineReader::size); }
  const char* unit() const override { return "bytes"; }

 private:
  uint64_t Sum(uint64_t (LineReader::*part)() const) const {
    uint64_t sum = 0;
    for (const auto& file : files_) sum += ((*file).*part)();
    return sum;
  }

  const std::vector<std::unique_ptr<LineReader>> files_;
  size_t file_ = 0;
};

absl::StatusOr<std::unique_ptr<DocumentReader>> OpenWordNet(const std::string& folder) {
  std::vector<std::unique_ptr<LineReader>> files;
  for (const char* part : {"noun", "verb", "adj", "adv"}) {
    absl::StatusOr<std::unique_ptr<LineReader>> file = LineReader::Open(folder + "/data." + part);
    if (!file.ok()) {
      return absl::Status(file.status().code(),
                          Join(Message(file.status()),
                               "; install the package wordnet-base, or use --data synthetic:... or a file"));
    }
    files.push_back(*std::move(file));
  }
  return std::make_unique<WordNetDocuments>(std::move(files));
}

}  // namespace

absl::StatusOr<std::unique_ptr<DocumentReader>> OpenTextFiles(const DataSpec& spec) {
  if (spec.format == DataSpec::Format::kWordNet) return OpenWordNet(spec.path);
  absl::StatusOr<std::unique_ptr<LineReader>> lines = LineReader::Open(spec.path);
  if (!lines.ok()) return lines.status();
  if (spec.format == DataSpec::Format::kWikiText) {
    return std::make_unique<WikiTextDocuments>(*std::move(lines), spec.path);
  }
  if (spec.format == DataSpec::Format::kWikipedia) {
    return std::make_unique<WikipediaDocuments>(*std::move(lines), spec.path);
  }
  return std::make_unique<LineDocuments>(*std::move(lines), spec.path);
}

}  // namespace curtail::setalgebra
