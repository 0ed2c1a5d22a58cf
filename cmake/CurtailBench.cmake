# Benchmarks. Where tests are built, `all` leaves them out: the target bench_programs builds every one of them, and the
# tests of their code.
add_custom_target(bench_programs)

# curtail_bench_target(NAME): NAME is built with the benchmarks, without optimisation where CURTAIL_UNOPTIMISED is on: what runs
# there shows that it works.
function(curtail_bench_target name)
  curtail_unoptimised(${name})
  if(CURTAIL_BUILD_TESTS)
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL TRUE)
  endif()
  add_dependencies(bench_programs ${name})
endfunction()

# curtail_bench_grpc(NAME STEM LIB): the library NAME, grpc++'s stubs for STEM.proto of this folder, whose messages LIB has.
# They are in a namespace of their own (peer), as both generators name their classes after the service.
function(curtail_bench_grpc name stem lib)
  set(out ${CMAKE_CURRENT_BINARY_DIR}/gen-grpc)
  add_custom_command(OUTPUT ${out}/${stem}.grpc.pb.cc ${out}/${stem}.grpc.pb.h
    COMMAND ${CMAKE_COMMAND} -E make_directory ${out}
    COMMAND protobuf::protoc --plugin=protoc-gen-grpc=$<TARGET_FILE:gRPC::grpc_cpp_plugin>
            -I ${CMAKE_CURRENT_SOURCE_DIR} --grpc_out=services_namespace=peer:${out}
            ${CMAKE_CURRENT_SOURCE_DIR}/${stem}.proto
    DEPENDS ${stem}.proto VERBATIM)
  add_library(${name} STATIC ${out}/${stem}.grpc.pb.cc ${out}/${stem}.grpc.pb.h)
  target_include_directories(${name} SYSTEM PUBLIC ${out})
  target_link_libraries(${name} PUBLIC ${lib} gRPC::grpc++)
endfunction()

# curtail_bench(NAME SOURCES ... LIBS ...): a benchmark program.
function(curtail_bench name)
  curtail_executable(${name} ${ARGN})
  curtail_bench_target(${name})
endfunction()

# curtail_bench_test(SOURCES ... LIBS ...): adds to the one test program of the benchmarks' code.
function(curtail_bench_test)
  if(NOT CURTAIL_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS" ${ARGN})
  if(NOT TARGET bench_test)
    curtail_test(bench_test SOURCES ${ARG_SOURCES} LIBS ${ARG_LIBS})
    set_tests_properties(bench_test PROPERTIES LABELS bench)
    curtail_bench_target(bench_test)
  else()
    target_sources(bench_test PRIVATE ${ARG_SOURCES})
    target_link_libraries(bench_test PRIVATE ${ARG_LIBS})
  endif()
endfunction()

# curtail_bench_run(NAME [SERIAL] COMMAND program arg ...): a short run of a benchmark, as a test with the
# label `bench`. It shows that the program works; the numbers of so short a run mean nothing.
function(curtail_bench_run name)
  if(NOT CURTAIL_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "SERIAL" "" "COMMAND" ${ARGN})
  add_test(NAME ${name} COMMAND ${ARG_COMMAND})
  set_tests_properties(${name} PROPERTIES LABELS bench)
  if(ARG_SERIAL)
    set_tests_properties(${name} PROPERTIES RUN_SERIAL TRUE)
  endif()
endfunction()
