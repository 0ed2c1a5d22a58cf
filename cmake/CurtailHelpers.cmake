# Helpers so that every target is declared the same way and every source is listed once.

add_library(curtail_options INTERFACE)
target_compile_features(curtail_options INTERFACE cxx_std_20)
if(PROJECT_IS_TOP_LEVEL)
  target_compile_options(curtail_options INTERFACE -Wall -Wextra -Wno-missing-field-initializers)
  if(CURTAIL_WERROR)
    target_compile_options(curtail_options INTERFACE -Werror)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_UNITY_BUILD)
    # Says of a type in a source that it stands in a header, which is so only as a batch includes its sources.
    target_compile_options(curtail_options INTERFACE -Wno-subobject-linkage)
  endif()
  if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
    target_compile_options(curtail_options INTERFACE -Wthread-safety)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # GCC spends a seventh of its time on the collection of garbage. Without it a compilation takes a sixth more memory.
    target_compile_options(curtail_options INTERFACE --param=ggc-min-heapsize=1048576)
  endif()
endif()
if(CMAKE_BUILD_TYPE STREQUAL "Release" AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # Position-independent code may be linked into a shared library, whose functions a program may replace. Ours are not meant to be,
  # so that they may be inlined within their source; and calls of other libraries take no detour.
  target_compile_options(curtail_options INTERFACE -fno-semantic-interposition -fno-plt)
endif()
if(CURTAIL_SANITIZE)
  target_compile_options(curtail_options INTERFACE -fsanitize=${CURTAIL_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(curtail_options INTERFACE -fsanitize=${CURTAIL_SANITIZE})
  if(CURTAIL_SANITIZE MATCHES undefined)
    target_compile_options(curtail_options INTERFACE -fno-sanitize-recover=undefined
      -fsanitize-ignorelist=${PROJECT_SOURCE_DIR}/cmake/undefined_ignore.txt)
  endif()
endif()
if(CURTAIL_BUILD_FUZZERS)
  target_compile_options(curtail_options INTERFACE -fsanitize=fuzzer-no-link)
endif()

# curtail_unoptimised(TARGET): where CURTAIL_UNOPTIMISED is on, TARGET is compiled without optimisation, in two thirds of the time,
# under a sanitizer in one third. For code whose speed matters to no test; the sanitizers find no less in it. A static library
# has the precompiled headers of its flags, optimised or not.
function(curtail_unoptimised target)
  set(kind library)
  if(CURTAIL_UNOPTIMISED)
    target_compile_options(${target} PRIVATE -O0)
    set(kind unoptimised)
  endif()
  get_target_property(type ${target} TYPE)
  get_target_property(linked ${target} LINK_LIBRARIES)
  if(type STREQUAL STATIC_LIBRARY AND linked MATCHES curtail_options)  # others have other flags
    curtail_precompile(${target} ${kind})
  endif()
endfunction()

# curtail_unoptimised_sanitized(TARGET): curtail_unoptimised(TARGET) under a sanitizer only.
function(curtail_unoptimised_sanitized target)
  if(CURTAIL_SANITIZE)
    curtail_unoptimised(${target})
  else()
    curtail_precompile(${target} library)
  endif()
endfunction()

# curtail_uncovered(TARGET): no fuzzer runs its code, so none needs to know what of it ran. The flag of the fuzzers stays: the
# precompiled headers demand that of their users.
function(curtail_uncovered target)
  if(CURTAIL_BUILD_FUZZERS)
    target_compile_options(${target} PRIVATE
      -fno-sanitize-coverage=func,bb,edge,indirect-calls,trace-cmp,inline-8bit-counters,pc-table,stack-depth)
  endif()
endfunction()

# curtail_service_options(TARGET): as the services of applications and what they are made of are compiled.
function(curtail_service_options target)
  curtail_unoptimised(${target})
  curtail_uncovered(${target})
endfunction()

# curtail_test_options(TARGET): as the sources of tests are compiled.
function(curtail_test_options target)
  curtail_unoptimised(${target})
  curtail_uncovered(${target})
endfunction()

# curtail_large_batches(TARGET): batches of a unity build with twice as many sources. For libraries that every build has;
# tests stay with small ones, of which a change builds less.
function(curtail_large_batches target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD_BATCH_SIZE 16)
endfunction()

# mold, where the compiler can call it: it links a program in a tenth of the time.
if(PROJECT_IS_TOP_LEVEL)
  include(CheckLinkerFlag)
  check_linker_flag(CXX -fuse-ld=mold CURTAIL_MOLD)
  if(CURTAIL_MOLD)
    add_link_options(-fuse-ld=mold)
  endif()
endif()

# Builds all that the registered tests run, and nothing else.
add_custom_target(test_programs)

# curtail_library(LAYER SOURCES a.cc ... HEADERS a.h ... PUBLIC dep ... PRIVATE dep ... [COMPUTES] [UNINSTALLED])
# Declares curtail::LAYER, whose headers are found as "curtail/LAYER/x.h" and each compile alone.
#   COMPUTES     its tests compute for long in it: optimised under a sanitizer, too
#   UNINSTALLED  an installation has no use for it
function(curtail_library layer)
  cmake_parse_arguments(ARG "COMPUTES;UNINSTALLED" "" "SOURCES;HEADERS;PUBLIC;PRIVATE" ${ARGN})
  set(target curtail_${layer})
  add_library(${target} STATIC ${ARG_SOURCES})
  add_library(curtail::${layer} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${layer} VERIFY_INTERFACE_HEADER_SETS ON)
  curtail_large_batches(${target})
  target_sources(${target} PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${ARG_HEADERS})
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_link_libraries(${target} PUBLIC ${ARG_PUBLIC} PRIVATE ${ARG_PRIVATE} $<BUILD_INTERFACE:curtail_options>)
  if(CURTAIL_SANITIZE AND CURTAIL_UNOPTIMISED AND NOT ARG_COMPUTES)
    curtail_unoptimised(${target})
  else()
    curtail_precompile(${target} library)
  endif()
  if(NOT ARG_UNINSTALLED)
    install(TARGETS ${target} EXPORT curtail-targets FILE_SET HEADERS)
  endif()
endfunction()

# curtail_executable(NAME SOURCES ... LIBS ...)
function(curtail_executable name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LIBS} curtail_options)
  curtail_service_options(${name})
  if(CURTAIL_UNOPTIMISED)
    set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${name} PRIVATE -fPIC)  # as the libraries, whose precompiled headers it has
    curtail_precompile(${name} unoptimised)
  endif()
endfunction()

# curtail_test(NAME SOURCES ... LIBS ... [SHARDS n] [OPTIMISED] [SINGLE_THREADED]): a GoogleTest program; each
# wait in it is bounded. The presets bound every test, which guards against hangs: a test that judges time does so itself.
#   SHARDS           the program waits more than it computes: n processes run a share of its tests each, as NAME_1 ...
#   OPTIMISED        it computes for long
#   UNSANITIZED      no sanitizer runs it: its code is in another program that they run, or judges time or memory
#   SINGLE_THREADED  its code shares no memory between threads, or only by what other tests share: ThreadSanitizer has nothing
#                    to find there, and leaves it out
function(curtail_test name)
  cmake_parse_arguments(ARG "OPTIMISED;UNSANITIZED;SINGLE_THREADED" "SHARDS" "SOURCES;LIBS" ${ARGN})
  if(NOT CURTAIL_BUILD_TESTS OR (ARG_SINGLE_THREADED AND CURTAIL_SANITIZE MATCHES thread) OR
     (ARG_UNSANITIZED AND CURTAIL_SANITIZE))
    return()
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LIBS} GTest::gtest GTest::gmock GTest::gtest_main curtail_options)
  if(ARG_OPTIMISED)
    curtail_uncovered(${name})
  else()
    curtail_test_options(${name})
    curtail_precompile(${name} test)
  endif()
  if(NOT ARG_SHARDS)
    add_test(NAME ${name} COMMAND ${name})
  else()
    foreach(shard RANGE 1 ${ARG_SHARDS})
      math(EXPR index "${shard} - 1")
      add_test(NAME ${name}_${shard} COMMAND ${name})
      set_tests_properties(${name}_${shard} PROPERTIES ENVIRONMENT
        "GTEST_TOTAL_SHARDS=${ARG_SHARDS};GTEST_SHARD_INDEX=${index}")
    endforeach()
  endif()
  add_dependencies(test_programs ${name})
endfunction()

# curtail_app_test(APP NAME ...): as curtail_test(NAME ...), for a test that starts processes of the application of this folder. It has
# their program and topology as APP_PROGRAM and APP_TOPOLOGY.
function(curtail_app_test app name)
  curtail_test(${name} ${ARGN})
  if(NOT TARGET ${name})
    return()
  endif()
  string(TOUPPER ${app} prefix)
  target_compile_definitions(${name} PRIVATE
    ${prefix}_PROGRAM="$<TARGET_FILE:${app}>" ${prefix}_TOPOLOGY="${CMAKE_CURRENT_SOURCE_DIR}/topology.yaml")
  add_dependencies(${name} ${app})
endfunction()

# curtail_up_tests(APP FORM...): the application of this folder as an operator starts it, and as clients of HTTP use it, in several forms:
# `tests/up_test.py FORM CURTAIL PROGRAM`, which ends with 77 if the machine lacks what the form takes.
function(curtail_up_tests app)
  if(NOT CURTAIL_BUILD_TESTS OR CURTAIL_SANITIZE)  # which see the services in other tests
    return()
  endif()
  find_package(Python3 COMPONENTS Interpreter REQUIRED)
  foreach(form ${ARGN})
    add_test(NAME ${app}_up_${form}
      COMMAND Python3::Interpreter -B ${CMAKE_CURRENT_SOURCE_DIR}/tests/up_test.py ${form} $<TARGET_FILE:curtail_command>
              $<TARGET_FILE:${app}>)
    set_tests_properties(${app}_up_${form} PROPERTIES SKIP_RETURN_CODE 77)
  endforeach()
  add_dependencies(test_programs curtail_command ${app})
endfunction()

# curtail_schema_test(KIND TEST): TEST, a program without shards declared in this folder, leaves documents of KIND, which tests/schema
# checks by their schema.
function(curtail_schema_test kind test)
  if(NOT TARGET ${test})
    return()
  endif()
  find_package(Python3 COMPONENTS Interpreter REQUIRED)
  set(folder ${PROJECT_BINARY_DIR}/tests/schema/${kind})
  file(MAKE_DIRECTORY ${folder})
  set_tests_properties(${test} PROPERTIES
    FIXTURES_SETUP schema_${kind} ENVIRONMENT CURTAIL_SCHEMA_DOCUMENTS=${folder})
  add_test(NAME schema_${kind}
    COMMAND Python3::Interpreter -B ${PROJECT_SOURCE_DIR}/tests/schema/schema_test.py ${kind} ${folder})
  set_tests_properties(schema_${kind} PROPERTIES FIXTURES_REQUIRED schema_${kind})
endfunction()

# curtail_fuzzer(NAME SOURCES ... LIBS ...): a libFuzzer target that every test run drives for a second; with libFuzzer
# where the build has it, otherwise with tests/fuzz_driver.cc. ThreadSanitizer leaves it out: it has one thread, or one more.
function(curtail_fuzzer name)
  if((NOT CURTAIL_BUILD_TESTS AND NOT CURTAIL_BUILD_FUZZERS) OR CURTAIL_SANITIZE MATCHES thread)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LIBS} curtail_options)
  if(CURTAIL_BUILD_FUZZERS)
    target_link_libraries(${name} PRIVATE -fsanitize=fuzzer)
    add_test(NAME ${name} COMMAND ${name} -max_total_time=1 -timeout=10 -rss_limit_mb=4096)
  else()
    target_sources(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests/fuzz_driver.cc)
    target_link_libraries(${name} PRIVATE curtail::base)
    add_test(NAME ${name} COMMAND ${name} 1)
  endif()
  add_dependencies(test_programs ${name})
endfunction()

include(CurtailPrecompile)
include(CurtailApp)
include(CurtailEmbed)
include(CurtailProto)
