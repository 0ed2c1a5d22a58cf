# The verdict of model_stream_test if a line of a stream were wrong. All mutants of a source are in one object, each
# behind a question at run time, so that one program is compiled and linked for all of them. The rule that a mutant
# breaks is named as in the source.

set(mutant_question [[
#include <cstdlib>
#include <cstring>
static bool IsMutant(const char* name) {
  static const char* const chosen = getenv("CURTAIL_MODEL_MUTANT");
  return chosen != nullptr && strcmp(chosen, name) == 0;
}
]])
set(stream_mutants)
set(mutated_sources)

# stream_mutant(SOURCE NAME SAYS FROM TO): with NAME chosen, TO takes the place of FROM in SOURCE, and a schedule fails
# and prints SAYS. FROM is statements, which end in a semicolon, or an expression; and occurs once.
function(stream_mutant source name says from to)
  set(original ${PROJECT_SOURCE_DIR}/curtail/rpc/stream/${source})
  set(mutated ${CMAKE_CURRENT_BINARY_DIR}/mutated_${source})
  if(NOT source IN_LIST mutated_sources)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${original})
    file(READ ${original} text_of_${source})
    set(text_of_${source} "${mutant_question}${text_of_${source}}")
    list(APPEND mutated_sources ${source})
    set(mutated_sources "${mutated_sources}" PARENT_SCOPE)
  endif()
  string(FIND "${text_of_${source}}" "${from}" first)
  string(FIND "${text_of_${source}}" "${from}" last REVERSE)
  set(test model_mutant_stream_${name})
  if(first EQUAL -1 OR NOT first EQUAL last)
    add_test(NAME ${test} COMMAND ${CMAKE_COMMAND} -E echo "${source} does not have this once: ${from}")
  else()
    if(from MATCHES ";$")
      set(choice "if (IsMutant(\"${name}\")) {\n${to}\n} else {\n${from}\n}")
    else()
      set(choice "(IsMutant(\"${name}\") ? (${to}) : (${from}))")
    endif()
    string(REPLACE "${from}" "${choice}" text_of_${source} "${text_of_${source}}")
    add_test(NAME ${test} COMMAND stream_mutants --gtest_fail_fast)
    set_property(TEST ${test} PROPERTY ENVIRONMENT CURTAIL_MODEL_MUTANT=${name})
  endif()
  set(text_of_${source} "${text_of_${source}}" PARENT_SCOPE)
  set_tests_properties(${test} PROPERTIES TIMEOUT 60 PASS_REGULAR_EXPRESSION "failing schedule.*${says}")
endfunction()

set(pipe stream_pipe.cc)
stream_mutant(${pipe} reader_asks_for_no_credit "deadlock" "resume_ = true;" "")  # P1
stream_mutant(${pipe} credit_is_not_posted "deadlock" "if (Post()) step.owed = kKick;" "")
stream_mutant(${pipe} reader_is_always_credited "credit was" 
  "!held_ && in_.bytes() > kMaxIn" "in_.bytes() > kMaxIn")
stream_mutant(${pipe} room_wakes_no_writer "deadlock" "if (out_.bytes() <= kMaxOut) Wake(writer_);" "")  # P2
stream_mutant(${pipe} a_turn_stays_posted "not released" "if (posted) posted_ = false;" "")  # P3
stream_mutant(${pipe} a_change_is_not_kicked "not released" "if ((step.owed & (kKick | kFull)) != 0) return Kick();"
  "if ((step.owed & (kKick | kFull)) != 0) return;")
stream_mutant(${pipe} a_message_wakes_no_reader "deadlock"
  "in_.Push(std::move(message));" "in_.Push(std::move(message)); return;")  # P4
stream_mutant(${pipe} the_peers_end_wakes_no_reader "deadlock" 
  "peer_ended_ = true;" "peer_ended_ = true; return;")
stream_mutant(${pipe} a_reset_is_no_end "a reset is no end" "CutOff(std::move(status));" "")  # P5
stream_mutant(${pipe} the_end_is_sent_twice "an end was sent twice" "!std::exchange(end_sent_, true)" "true")  # P6
stream_mutant(${pipe} the_end_overtakes_a_message "a message was lost" "out_.empty() && writes_ended_" "writes_ended_")
stream_mutant(${pipe} the_end_of_writes_is_not_posted "not released" "kick = Post();" "")

stream_mutant(${pipe} a_message_is_held_by_none "deadlock" "(first && !Hold(out, now))" "false")  # P7

set(held held_messages.cc)
stream_mutant(${held} held_messages_stay "deadlock" "for (const Entry& entry : due) Send(entry);" "")  # P7

set(end stream_end.cc)
stream_mutant(${end} a_thread_looks_before_it_waits "deadlock" "place.waiter = &waiter;"
  "mu_.Unlock(); mu_.Lock(); place.waiter = &waiter;")  # W1
stream_mutant(${end} a_coroutine_looks_before_it_waits "deadlock" "yields || !TryOrCut(step)"
  "yields || [&] { const bool done = TryOrCut(step); mu_.Unlock(); mu_.Lock(); return !done; }()")
stream_mutant(${end} a_place_is_queued_twice "did not end" "std::exchange(place.queued, true)" "false")  # W2
stream_mutant(${end} a_try_finds_its_place_unqueued "did not end" "TryOrCut(*place.step)"
  "(place.queued = false, TryOrCut(*place.step))")  # W3
stream_mutant(${end} a_place_stays_queued "deadlock" "place.queued = false;" "")
stream_mutant(${end} a_step_stays_in_its_place "did not end" "std::exchange(place.step, nullptr)" "place.step")
stream_mutant(${end} an_await_touches_late "after its end" "place.step = &step;"
  "place.step = &step; mu_.Unlock(); mu_.Lock();")  # W4
stream_mutant(${end} the_timer_wakes_none "deadlock" "if (!until_.Expired()) return std::min(until_, look);"
  "return look;")  # W5
stream_mutant(${end} the_timer_outlives_the_stream "crash|after its end" "if (executor_ == nullptr) return;"
  "if (executor_ != nullptr) std::exchange(executor_, nullptr)->AsyncEnded(); return;")
stream_mutant(${end} the_executor_does_not_wait "did not end" "executor_->AsyncBegun();" "")  # W6
stream_mutant(${end} a_cut_wakes_none "deadlock" "why_ = std::move(why);" "why_ = std::move(why); return;")
stream_mutant(${end} a_step_is_not_settled "not released" "Settle(step);\n  return step.ok;" "return step.ok;")

set(mutated)
foreach(source ${mutated_sources})
  set(path ${CMAKE_CURRENT_BINARY_DIR}/mutated_${source})
  file(CONFIGURE OUTPUT ${path} CONTENT "${text_of_${source}}" @ONLY)
  list(APPEND mutated ${path})
endforeach()
add_executable(stream_mutants ${mutated} $<TARGET_OBJECTS:model_streams>)
set_target_properties(stream_mutants PROPERTIES UNITY_BUILD OFF)
target_link_libraries(stream_mutants PRIVATE model_curtail Boost::context GTest::gtest GTest::gtest_main)
target_compile_definitions(stream_mutants PRIVATE CURTAIL_RECYCLES=0)
target_compile_options(stream_mutants PRIVATE -O1 -g0 -w)
