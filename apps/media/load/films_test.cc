// SPDX-License-Identifier: Apache-2.0
#include "apps/media/load/films.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <fstream>
#include <set>
#include <utility>

#include "curtail/base/temp_dir_testing.h"

namespace curtail::media {
namespace {

TEST(Films, AreGeneratedWithTitlesThatTheirYearsTellApart) {
  const std::vector<Film> films = GenerateFilms(3, 1000);
  std::set<std::pair<std::string, uint32_t>> titles;
  std::set<std::string> names;
  for (const Film& film : films) {
    titles.emplace(film.title(), film.year());
    names.insert(film.title());
    EXPECT_GT(film.cast_size(), 1);
    EXPECT_GT(film.extract().size(), 300u);
  }
  EXPECT_EQ(titles.size(), 1000u);
  EXPECT_EQ(names.size(), 950u);
  EXPECT_EQ(GenerateFilms(3, 10)[9].SerializeAsString(), films[9].SerializeAsString());
}

TEST(Films, AreReadFromFilesInTheOrderOfTheirNames) {
  const TempDir dir;
  const std::string folder = dir.File("films");
  ASSERT_EQ(mkdir(folder.c_str(), 0700), 0);
  EXPECT_TRUE(absl::IsNotFound(ReadFilms(folder).status()));
  std::ofstream(folder + "/b.json") << R"([{"title": "B", "year": 1901}])";
  std::ofstream(folder + "/a.json") << R"([
    {"title": "A", "year": 1900, "cast": ["X", "Y"], "genres": [], "href": null, "thumbnail_width": 3, "extract": "Plot"}
  ])";
  std::ofstream(folder + "/c.txt") << "nothing";
  const auto films = ReadFilms(folder);
  ASSERT_TRUE(films.ok()) << films.status();
  ASSERT_EQ(films->size(), 2u);
  EXPECT_EQ((*films)[0].title(), "A");
  EXPECT_EQ((*films)[0].cast(1), "Y");
  EXPECT_EQ((*films)[0].extract(), "Plot");
  EXPECT_EQ((*films)[1].year(), 1901u);
  std::ofstream(folder + "/d.json") << R"([{"title": "B"})";
  EXPECT_THAT(ReadFilms(folder).status().message(), testing::HasSubstr("d.json is not an array of films"));
}

}  // namespace
}  // namespace curtail::media
