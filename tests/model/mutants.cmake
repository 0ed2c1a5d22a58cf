# The verdict of the model tests if a line were wrong: each mutant is the real source with one edit, and its
# test passes when the checker finds a schedule that fails. A mutant whose text is no longer in the source fails
# as well: give it the new text.

# model_mutant(NAME SOURCE TESTS SAYS FROM TO): replaces FROM by TO in SOURCE; the TESTS (a GoogleTest filter)
# must then find a schedule that fails and print SAYS.
function(model_mutant name source tests says from to)
  set(original ${PROJECT_SOURCE_DIR}/${source})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${original})
  file(READ ${original} text)
  string(REPLACE "${from}" "${to}" mutated "${text}")
  set(test model_mutant_${name})
  if(mutated STREQUAL text)
    add_test(NAME ${test} COMMAND ${CMAKE_COMMAND} -E echo "${source} no longer has: ${from}")
  else()
    file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${name}.cc CONTENT "${mutated}" @ONLY)
    # The mutant comes first, so the linker takes nothing of the original from the library.
    add_executable(${test} ${CMAKE_CURRENT_BINARY_DIR}/${name}.cc $<TARGET_OBJECTS:model_programs>)
    target_link_libraries(${test} PRIVATE model_curtail Boost::context GTest::gtest GTest::gtest_main)
    target_compile_options(${test} PRIVATE -O1 -g0 -w)  # a mutant may leave things unused
    add_test(NAME ${test} COMMAND ${test} --gtest_fail_fast --gtest_filter=${tests})
  endif()
  set_tests_properties(${test} PROPERTIES TIMEOUT 60 PASS_REGULAR_EXPRESSION "failing schedule.*${says}")
endfunction()

set(parker curtail/exec/parker.cc)
model_mutant(epoch_stands_still ${parker} "ParkerModel.*" "deadlock"
  "(old | (signals & kSignals)) + kEpoch" "(old | (signals & kSignals))")
model_mutant(wakes_for_signals_only ${parker} "ParkerModel.*" "deadlock"
  "if (old & kSleeping)" "if ((old & kSleeping) && signals != 0)")
model_mutant(sleeps_on_any_word ${parker} "ParkerModel.*" "deadlock"
  "if (!word_.compare_exchange_strong(expected, ticket | kSleeping, std::memory_order_acq_rel)) return;"
  "ticket = word_.fetch_or(kSleeping) | kSleeping;")
model_mutant(notify_touches_twice ${parker} "ParkerModel.*" "after its end"
  "return old;" "word_.fetch_or(signals & kSignals); return old;")

set(lane curtail/rpc/client/lane.cc)
model_mutant(no_heir_is_told ${lane} "LaneModel.*" "deadlock" "heir->Notify(Waiter::kPromoted);" "")
model_mutant(heir_told_without_mutex ${lane} "LaneModel.*" "after its end"
  "heir->Notify(Waiter::kPromoted);" "lock.Unlock(); heir->Notify(Waiter::kPromoted);")
model_mutant(leader_is_not_woken ${lane} "LaneModel.*" "deadlock"
  "if (parker_.Notify(signal) & kLeading) poller->Wake();" "parker_.Notify(signal);")
model_mutant(leader_does_not_announce_itself ${lane} "LaneModel.*" "deadlock"
  "waiter.parker_.Set(Waiter::kLeading);" "")
model_mutant(leader_forgets_the_heir ${lane} "LaneModel.*" "two leaders|two threads wait"
  "leader_ = heir;" "leader_ = nullptr;")
model_mutant(leaving_follower_stays_listed ${lane} "LaneModel.*" "deadlock|after its end|crash"
  "(waiter.prev_ ? waiter.prev_->next_ : followers_) = waiter.next_;" "")

set(fiber curtail/exec/fiber.cc)
model_mutant(sleeping_loop_does_not_say_so ${fiber} "FiberModel.*" "deadlock"
  "sleeping_.store(true, std::memory_order_seq_cst);" "")
model_mutant(sleeping_loop_looks_too_early ${fiber} "FiberModel.*" "deadlock"
  "const bool news = seat.Ticket() != ticket || remote_.load(std::memory_order_seq_cst) != nullptr;"
  "const bool news = false;")
model_mutant(ready_is_never_cleared ${fiber} "FiberModel.*" "deadlock"
  "fiber->ready_.exchange(false, std::memory_order_acq_rel);" "")
model_mutant(remote_wake_up_does_not_rouse ${fiber} "FiberModel.*" "deadlock" "loop->Rouse();  // F3" "")

model_mutant(late_grant_is_not_awaited curtail/exec/sync.cc "SyncModel.*" "after its end|crash"
  "notified = true;  // the notification is on its way" "")

set(executor curtail/exec/executor.cc)
set(switch curtail/exec/executor_switch.cc)
model_mutant(two_leaders ${executor} "ExecutorModel.*" "two threads wait" "if (station.leading) return false;" "")
model_mutant(nobody_receives_while_a_task_runs ${executor} "ExecutorModel.*" "deadlock"
  "receives && (!station.leading || more) ?" "receives && more ?")
model_mutant(leader_sleeps_through_a_switch ${switch} "ExecutorModel.*" "deadlock"
  "if (wake_reception) reception_source_->Wake();" "")
model_mutant(leader_sleeps_through_a_task ${executor} "ExecutorModel.*" "deadlock"
  "if (wake_leader) source.Wake();" "")
model_mutant(sleepers_miss_the_switch ${switch} "ExecutorModel.*" "deadlock"
  "config.threads(); ++i) UnparkLast(kSleepers);" "0; ++i) UnparkLast(kSleepers);")
model_mutant(nobody_wakes_a_receiver ${switch} "ExecutorModel.*" "deadlock"
  "if (!reception_.leading && !receives)" "if (false)")
model_mutant(output_is_held_while_leading ${executor} "ExecutorModel.*" "deadlock"
  "if (FlushHeld(self)) return;" "if (self.role != kInline && FlushHeld(self)) return;")
model_mutant(old_network_thread_tells_no_leader ${executor} "ExecutorModel.ASwitch*" "deadlock"
  "WakeRunners(station, source, count, !dispatch())" "WakeRunners(station, source, count, false)")

# Mutants of the fence share one executable, which CURTAIL_MODEL_MUTANT turns into one of them, as each of its edits
# asks: `MUTANT ? TO : FROM`, or `if (MUTANT) TO else FROM` where TO ends like a statement.
set(fence_mutant_number 0)
foreach(name fence.h fenced_order.cc shares.h shares.cc)
  set(original ${PROJECT_SOURCE_DIR}/curtail/fence/${name})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${original})
  file(READ ${original} mutated_${name})
endforeach()

# fence_mutant(NAME SOURCE SAYS FROM TO): as model_mutant(), in SOURCE of curtail/fence.
macro(fence_mutant name source says from to)
  math(EXPR fence_mutant_number "${fence_mutant_number} + 1")
  set(original "${mutated_${source}}")
  set(mutant "curtail::model::Mutant(${fence_mutant_number})")
  if("${from}" MATCHES "[;}]$")
    string(REPLACE "${from}" "if (${mutant}) { ${to} } else { ${from} }" mutated_${source} "${original}")
  else()
    string(REPLACE "${from}" "(${mutant} ? (${to}) : (${from}))" mutated_${source} "${original}")
  endif()
  if("${mutated_${source}}" STREQUAL "${original}")
    add_test(NAME model_mutant_fence_${name} COMMAND ${CMAKE_COMMAND} -E echo "${source} no longer has: ${from}")
  else()
    add_test(NAME model_mutant_fence_${name}
      COMMAND model_fence_mutants --gtest_fail_fast --gtest_filter=*FenceModel*)
  endif()
  set_tests_properties(model_mutant_fence_${name} PROPERTIES TIMEOUT 60
    ENVIRONMENT CURTAIL_MODEL_MUTANT=${fence_mutant_number} PASS_REGULAR_EXPRESSION "failing schedule.*${says}")
endmacro()

# F5: an end and an append see each other.
fence_mutant(looks_before_it_counts fence.h "deadlock" "if (path_class == kLocal) return false;"
  "const bool held = held_.load(); states_[path_class].ended.fetch_add(1); return held;")
fence_mutant(count_is_relaxed fence.h "deadlock" "states_[path_class].ended.fetch_add(1, std::memory_order_seq_cst);"
  "states_[path_class].ended.fetch_add(1, std::memory_order_relaxed);")
fence_mutant(end_looks_relaxed fence.h "deadlock" "held_.load(std::memory_order_seq_cst)"
  "held_.load(std::memory_order_relaxed)")
fence_mutant(order_looks_relaxed fence.h "deadlock" "state.ended.load(std::memory_order_seq_cst)"
  "state.ended.load(std::memory_order_relaxed)")
fence_mutant(announces_relaxed fenced_order.cc "deadlock" "fence_.held_.store(held_, std::memory_order_seq_cst);"
  "fence_.held_.store(held_, std::memory_order_relaxed);")
fence_mutant(announces_after_looking fenced_order.cc "deadlock" "if (!more) return;" "return;")
fence_mutant(end_wakes_no_borrower fence.h "deadlock" "options_.mode == FenceMode::kBorrow" "false")
fence_mutant(append_looks_at_new_ones_only fenced_order.cc "deadlock" "if (held_ != 0) GiveToHeld();" "(void)held_;")
# F3, F4, F8: the bounds.
fence_mutant(permits_are_not_counted fenced_order.cc "more requests than permits" "Fence::Count(state.begun);" "(void)state;")
fence_mutant(one_too_many shares.h "more requests than permits" "in_use < floors_[path_class]" "in_use <= floors_[path_class]")
fence_mutant(all_permits_are_idle shares.h "more requests than permits" "Committed() < permits_" "true")
fence_mutant(limits_hold_for_ever shares.h "a limit does not hold" "version != version_" "false")
fence_mutant(lends_all shares.cc "a lender waits|more requests" "(share + 1) / 2" "0u")
fence_mutant(keeps_nothing shares.cc "a lender waits|more requests" "(present_ & Bit(path_class)) != 0 ? floors_[path_class] : 0" "uint64_t{0}")
# F6, F9: out once.
fence_mutant(loses_a_refused_one fenced_order.cc "deadlock" "refused_.Push(task);" "--ready_;")
fence_mutant(loses_an_abandoned_one fenced_order.cc "deadlock" "refused_.Push(held.TakeOldest());" "held.TakeOldest(), --ready_;")
# F7: turns.
fence_mutant(local_ones_for_ever fenced_order.cc "starves" "local_in_a_row_ < kLocalInARow" "true")
fence_mutant(serves_one_class fenced_order.cc "starves" "NextAfter(granted_, last_served_)" "NextAfter(granted_, 0)")
fence_mutant(lends_to_one_class fenced_order.cc "starves" "NextAfter(held_, last_borrower_)" "NextAfter(held_, 0)")

set(mutants ${CMAKE_CURRENT_BINARY_DIR}/fence_mutants)
foreach(name fence.h fenced_order.cc shares.h shares.cc)
  file(CONFIGURE OUTPUT ${mutants}/curtail/fence/${name} CONTENT "${mutated_${name}}" @ONLY)
endforeach()
# They come first, so the linker takes nothing of the originals from the library.
add_executable(model_fence_mutants fence_end.cc ${mutants}/curtail/fence/fenced_order.cc
  ${mutants}/curtail/fence/shares.cc $<TARGET_OBJECTS:model_programs>)
target_include_directories(model_fence_mutants BEFORE PRIVATE ${mutants})
target_link_libraries(model_fence_mutants PRIVATE model_curtail Boost::context GTest::gtest GTest::gtest_main)
target_compile_options(model_fence_mutants PRIVATE -O1 -g0 -w)
