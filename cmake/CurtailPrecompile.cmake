# curtail_precompile(TARGET KIND): TARGET's sources begin with headers of others that most sources include, compiled once a KIND of
# flags: a quarter of the time of a batch of a unity build.
#   library      as libraries are compiled, optimised as their build is
#   unoptimised  as curtail_unoptimised() has a library compiled
#   test         as test programs are compiled, with GoogleTest
#
# ccache caches both the headers and their users with CCACHE_SLOPPINESS=pch_defines,time_macros. The check of headers and a build
# without CURTAIL_PRECOMPILE find a source that forgets an include.
option(CURTAIL_PRECOMPILE "Compile the headers of others once" ${PROJECT_IS_TOP_LEVEL})

set(CURTAIL_PRECOMPILED
  <algorithm> <array> <atomic> <chrono> <condition_variable> <deque> <filesystem> <fstream> <functional> <map> <memory> <mutex>
  <optional> <random> <set> <span> <sstream> <string> <string_view> <thread> <unordered_map> <utility> <vector>
  <absl/container/flat_hash_map.h> <absl/status/statusor.h> <absl/strings/str_cat.h> <absl/strings/str_format.h>
  <absl/strings/str_join.h> <absl/strings/str_split.h> <google/protobuf/message.h>)

function(curtail_precompile target kind)
  if(NOT CURTAIL_PRECOMPILE)
    return()
  endif()
  set(holder curtail_precompiled_${kind})
  if(NOT TARGET ${holder})
    set(source ${PROJECT_BINARY_DIR}/${holder}.cc)
    file(CONFIGURE OUTPUT ${source} CONTENT "")
    add_library(${holder} OBJECT ${source})
    target_link_libraries(${holder} PRIVATE
      absl::flat_hash_map absl::statusor absl::str_format absl::strings protobuf::libprotobuf curtail_options)
    set(headers ${CURTAIL_PRECOMPILED})
    if(kind STREQUAL unoptimised)
      target_compile_options(${holder} PRIVATE -O0)
    elseif(kind STREQUAL test)
      list(APPEND headers <gmock/gmock.h> <gtest/gtest.h>)
      target_link_libraries(${holder} PRIVATE GTest::gtest GTest::gmock)
      set_target_properties(${holder} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
      target_compile_options(${holder} PRIVATE -fPIE)
      curtail_test_options(${holder})
    endif()
    target_compile_options(${holder} PRIVATE -pthread)
    if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
      target_compile_options(${holder} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")  # a cache gives the same headers again
    endif()
    target_precompile_headers(${holder} PRIVATE ${headers})
  endif()
  target_compile_options(${target} PRIVATE -pthread)  # as some libraries demand of their users: all sources of a kind have one set of flags
  target_precompile_headers(${target} REUSE_FROM ${holder})
endfunction()
