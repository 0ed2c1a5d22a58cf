# Intersections alone. CRoaring is for comparison only.
find_package(benchmark REQUIRED)
curtail_bench(setalgebra_intersect_bench SOURCES index/intersect_bench.cc LIBS setalgebra_core benchmark::benchmark)
find_package(roaring QUIET)
if(roaring_FOUND)
  target_compile_definitions(setalgebra_intersect_bench PRIVATE CURTAIL_HAVE_ROARING)
  target_link_libraries(setalgebra_intersect_bench PRIVATE roaring::roaring)
endif()
