# The verdict of model_span_test if a line of curtail/observe/span_ring.h were wrong. All mutants are in one executable,
# which CURTAIL_MODEL_MUTANT turns into one of them.
set(span_ring ${PROJECT_SOURCE_DIR}/curtail/observe/span_ring.h)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${span_ring})
file(READ ${span_ring} mutated_span_ring)
set(span_mutant_number 0)

# span_mutant(NAME SAYS FROM TO): as fence_mutant() in mutants.cmake.
macro(span_mutant name says from to)
  math(EXPR span_mutant_number "${span_mutant_number} + 1")
  set(original "${mutated_span_ring}")
  set(mutant "curtail::model::Mutant(${span_mutant_number})")
  if("${from}" MATCHES "[;}]$")
    string(REPLACE "${from}" "if (${mutant}) { ${to} } else { ${from} }" mutated_span_ring "${original}")
  else()
    string(REPLACE "${from}" "(${mutant} ? (${to}) : (${from}))" mutated_span_ring "${original}")
  endif()
  if("${mutated_span_ring}" STREQUAL "${original}")
    add_test(NAME model_mutant_span_${name} COMMAND ${CMAKE_COMMAND} -E echo "span_ring.h no longer has: ${from}")
  else()
    add_test(NAME model_mutant_span_${name} COMMAND model_span_mutants --gtest_fail_fast)
  endif()
  set_tests_properties(model_mutant_span_${name} PROPERTIES TIMEOUT 60
    ENVIRONMENT CURTAIL_MODEL_MUTANT=${span_mutant_number} PASS_REGULAR_EXPRESSION "failing schedule.*${says}")
endmacro()

# S2. The checker takes any acquire operation for one that a release operation meets, so the looks are what it can judge.
span_mutant(looks_relaxed "out twice|crash" "tail_.load(std::memory_order_acquire)" "tail_.load(std::memory_order_relaxed)")
span_mutant(publishes_before_it_writes "out twice|crash|deadlock" "slots_[tail % kSize].store(item, std::memory_order_relaxed);"
  "tail_.store(tail + 1, std::memory_order_release); slots_[tail % kSize].store(item, std::memory_order_relaxed);")
# S3, S4
span_mutant(frees_before_it_reads "out twice|deadlock" "slots_[head % kSize].load(std::memory_order_relaxed)"
  "(head_.store(head + 1, std::memory_order_release), slots_[head % kSize].load(std::memory_order_relaxed))")
span_mutant(writes_into_a_full_ring "out twice|deadlock|lost" "tail - seen_head_ == kSize" "false")
# S6
span_mutant(says_too_late "deadlock" "tail + 1 - seen_head_ < kSize / 2" "tail + 1 - seen_head_ <= kSize / 2")
span_mutant(says_nothing "deadlock" "tail + 1 - seen_head_ >= kSize / 2" "false")
span_mutant(bell_rings_once "deadlock" "rung_.exchange(false, std::memory_order_acq_rel);" "")
span_mutant(bell_is_mute "deadlock" "!rung_.exchange(true, std::memory_order_acq_rel)" "rung_.exchange(true, std::memory_order_acq_rel)")

set(mutants ${CMAKE_CURRENT_BINARY_DIR}/span_mutants)
file(CONFIGURE OUTPUT ${mutants}/curtail/observe/span_ring.h CONTENT "${mutated_span_ring}" @ONLY)
add_executable(model_span_mutants span_model_test.cc)
target_include_directories(model_span_mutants BEFORE PRIVATE ${mutants})
target_link_libraries(model_span_mutants PRIVATE model_curtail Boost::context GTest::gtest GTest::gtest_main)
target_compile_options(model_span_mutants PRIVATE -O1 -g0 -w)
