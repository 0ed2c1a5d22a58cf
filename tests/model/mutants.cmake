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
