# The verdict of a model test if a line were wrong. In a program of mutants each wrong line stands beside the right one,
# behind a question at run time, so one program is compiled for all of them. A mutant's test passes when the checker
# finds a schedule that fails. To see that schedule:
#
#   CURTAIL_MODEL_MUTANT=two_leaders build/dev/tests/model/model_mutants --gtest_filter=ExecutorModel.*

# mutants_of(PROGRAM TESTS SOURCE): the mutants that follow are of SOURCE, a path in the project. The TESTS of PROGRAM, a
# GoogleTest filter, find them.
macro(mutants_of program tests source)
  set(mutants_program ${program})
  set(mutants_tests ${tests})
  set(mutants_source ${source})
endmacro()

# mutant(NAME SAYS FROM TO): with NAME chosen, TO takes the place of FROM wherever the source has it. A test must then
# find a schedule that fails, and print SAYS. FROM is an expression, or statements that end in a semicolon.
function(mutant name says from to)
  set(source ${PROJECT_SOURCE_DIR}/${mutants_source})
  set(mutated mutated_for_${mutants_program}_${mutants_source})
  get_property(text GLOBAL PROPERTY ${mutated})
  if(NOT text)
    file(READ ${source} text)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
    set_property(GLOBAL APPEND PROPERTY sources_of_${mutants_program} ${mutants_source})
  endif()
  set(question "curtail::model::Mutant(\"${name}\")")
  if(from MATCHES ";( +//.*)?$")
    string(REPLACE "${from}" "if (${question}) {\n${to}\n} else {\n${from}\n}" edited "${text}")
  else()
    string(REPLACE "${from}" "(${question} ? (${to}) : (${from}))" edited "${text}")
  endif()
  set_property(GLOBAL PROPERTY ${mutated} "${edited}")
  set(test model_mutant_${name})
  if(edited STREQUAL text)
    add_test(NAME ${test} COMMAND ${CMAKE_COMMAND} -E echo "${mutants_source} no longer has: ${from}")
  else()
    add_test(NAME ${test} COMMAND ${mutants_program} --gtest_fail_fast --gtest_filter=${mutants_tests})
  endif()
  set_tests_properties(${test} PROPERTIES
    ENVIRONMENT CURTAIL_MODEL_MUTANT=${name} PASS_REGULAR_EXPRESSION "failing schedule.*${says}")
endfunction()

# mutant_program(PROGRAM SOURCE...): the program of its mutants so far, with SOURCEs that have none.
function(mutant_program program)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/${program}_sources)
  get_property(sources GLOBAL PROPERTY sources_of_${program})
  set(mutated)
  foreach(source ${sources})
    get_property(text GLOBAL PROPERTY mutated_for_${program}_${source})
    file(CONFIGURE OUTPUT ${folder}/${source} CONTENT "${text}" @ONLY)
    if(source MATCHES "\\.cc$")
      list(APPEND mutated ${folder}/${source})
    endif()
  endforeach()
  # The mutated sources come first, so the linker takes nothing of the originals from the library.
  add_executable(${program} ${mutated} ${ARGN})
  target_include_directories(${program} BEFORE PRIVATE ${folder})
  target_link_libraries(${program} PRIVATE model_curtail Boost::context GTest::gtest GTest::gtest_main)
  target_compile_options(${program} PRIVATE -O1 -g0 -w)  # a mutant may leave things unused
endfunction()
