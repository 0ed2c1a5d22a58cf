# The verdict of model_test if a line of the threads, fibers or fences were wrong (mutate.cmake).

mutants_of(model_mutants ParkerModel.* curtail/exec/parker.cc)
mutant(epoch_stands_still "deadlock" "(old | (signals & kSignals)) + kEpoch" "(old | (signals & kSignals))")
mutant(wakes_for_signals_only "deadlock" "old & kSleeping" "(old & kSleeping) && signals != 0")
mutant(sleeps_on_any_word "deadlock"
  "if (!word_.compare_exchange_strong(expected, ticket | kSleeping, std::memory_order_acq_rel)) return;"
  "ticket = word_.fetch_or(kSleeping) | kSleeping;")
mutant(notify_touches_twice "after its end" "return old;" "word_.fetch_or(signals & kSignals); return old;")

mutants_of(model_mutants LaneModel.* curtail/rpc/call/lane.cc)
mutant(no_heir_is_told "deadlock" "heir->Notify(Waiter::kPromoted);" "")
mutant(heir_told_without_mutex "after its end"
  "heir->Notify(Waiter::kPromoted);" "lock.Unlock(); heir->Notify(Waiter::kPromoted);")
mutant(leader_is_not_woken "deadlock"
  "if (parker_.Notify(signal) & kLeading) poller->Wake();" "parker_.Notify(signal);")
mutant(leader_does_not_announce_itself "deadlock" "waiter.parker_.Set(Waiter::kLeading);" "")
mutant(leader_forgets_the_heir "two leaders|two threads wait" "leader_ = heir;" "leader_ = nullptr;")
mutant(leaving_follower_stays_listed "deadlock|after its end|crash"
  "(waiter.prev_ ? waiter.prev_->next_ : followers_) = waiter.next_;" "")

mutants_of(model_mutants FiberModel.* curtail/exec/fiber/fiber.cc)
mutant(sleeping_loop_does_not_say_so "deadlock" "sleeping_.store(true, std::memory_order_seq_cst);" "")
mutant(sleeping_loop_looks_too_early "deadlock"
  "seat.Ticket() != ticket || remote_.load(std::memory_order_seq_cst) != nullptr" "false")
mutant(ready_is_never_cleared "deadlock" "fiber->ready_.exchange(false, std::memory_order_acq_rel);" "")
mutant(remote_wake_up_does_not_rouse "deadlock" "loop->Rouse();  // F3" "")

mutants_of(model_mutants SyncModel.* curtail/exec/sync.cc)
mutant(late_grant_is_not_awaited "after its end|crash" "notified = true;  // the notification is on its way" "")

mutants_of(model_mutants ExecutorModel.* curtail/exec/executor/executor.cc)
mutant(two_leaders "two threads wait" "if (station.leading) return false;" "")
mutant(nobody_receives_while_a_task_runs "deadlock" "receives && (!station.leading || more)" "receives && more")
mutant(leader_sleeps_through_a_task "deadlock" "if (wake_leader) source.Wake();" "")
mutant(leader_sleeps_though_tasks_are_left "deadlock" "found < count" "found == 0")
mutant(output_is_held_while_leading "deadlock"
  "if (FlushHeld(self)) return;" "if (self.role != kInline && FlushHeld(self)) return;")

mutant(looker_wakes_no_runner "deadlock" "Rouse(runner);" "")  # R6
mutant(looker_wakes_no_receiver "deadlock" "Rouse(receiver);" "")  # R6

mutants_of(model_mutants TickerModel.* curtail/exec/internal/ticker.cc)
mutant(ticker_sleeps_through_a_wake_up "deadlock"
  "parker_.Ticket() == ticket && !next.Expired()" "(parker_.Wait(parker_.Ticket(), next), false)")

mutants_of(model_mutants StandInsModel.* curtail/exec/executor/stand_ins.cc)
mutant(nobody_stands_in "deadlock" "UnparkLast(kSleepers);" "")  # G2
mutant(hold_is_not_given_back "the stand-in stays"
  "--(self.hold == Hold::kAsleep ? held_asleep_ : held_busy_);" "")  # G3
mutant(guard_does_not_say_that_it_sleeps "deadlock" "guard_sleeps_ = !next;  // G5" "")
mutant(guard_trusts_the_loops_alone "deadlock"
  "std::exchange(runs_seen_, runs) != runs || runs_ > 0" "std::exchange(runs_seen_, runs) != runs")  # G5

mutants_of(model_mutants StandInsModel.* curtail/exec/executor/executor_fiber.cc)
mutant(run_wakes_no_guard "deadlock" "if (wake_guard) WakeGuard();" "")  # G5

mutants_of(model_mutants ExecutorModel.* curtail/exec/executor/executor_switch.cc)
mutant(leader_sleeps_through_a_switch "deadlock" "if (wake_reception) reception_source_->Wake();" "")
mutant(sleepers_miss_the_switch "deadlock" "for (int i = 0; i < config.threads() + beside_; ++i) UnparkLast(kSleepers);" "")
mutant(busy_threads_keep_new_roles "deadlock" "VacateBusy();" "")  # S1
mutant(nobody_wakes_a_receiver "deadlock" "!reception_.leading && !receives" "false")

mutants_of(model_mutants StandInsModel.TheGuardHears* curtail/exec/executor/executor_switch.cc)
mutant(switch_wakes_no_guard "deadlock" "if (wake_guard) WakeGuard();" "")  # G5

mutants_of(model_mutants ExecutorModel.ASwitch* curtail/exec/executor/executor.cc)
mutant(old_network_thread_tells_no_leader "deadlock"
  "WakeRunners(station, source, count, !dispatch())" "WakeRunners(station, source, count, false)")

mutants_of(model_mutants *FenceModel* curtail/fence/fence.h)
mutant(fence_looks_before_it_counts "deadlock"
  "if (path_class == kLocal) return false;"
  "const bool held = held_.load(); states_[path_class].ended.fetch_add(1); return held;")  # F5
mutant(fence_count_is_relaxed "deadlock"
  "state.ended.fetch_add(1, std::memory_order_seq_cst)"
  "state.ended.fetch_add(1, std::memory_order_relaxed)")  # F5
mutant(fence_end_looks_relaxed "deadlock"
  "held_.load(std::memory_order_seq_cst)" "held_.load(std::memory_order_relaxed)")  # F5
mutant(fence_order_looks_relaxed "deadlock"
  "state.ended.load(std::memory_order_seq_cst)" "state.ended.load(std::memory_order_relaxed)")  # F5
mutant(fence_end_wakes_no_borrower "deadlock" "options_.mode == FenceMode::kOn" "false")  # F5

mutants_of(model_mutants *FenceModel* curtail/fence/fenced_order.cc)
mutant(fence_announces_relaxed "deadlock"
  "fence_.held_.store(held_, std::memory_order_seq_cst);" "fence_.held_.store(held_, std::memory_order_relaxed);")  # F5
mutant(fence_announces_after_looking "deadlock" "if (!more) return;" "return;")  # F5
mutant(fence_append_looks_at_new_ones_only "deadlock" "if (held_ != 0) GiveToHeld();" "(void)held_;")  # F5
mutant(fence_permits_are_not_counted "more requests than permits" "Fence::Count(state.begun);" "(void)state;")  # F3, F4, F8
mutant(fence_loses_a_refused_one "deadlock" "refused_.Push(task);" "--ready_;")  # F6, F9
mutant(fence_loses_an_abandoned_one "deadlock" "refused_.Push(held.TakeOldest());" "held.TakeOldest(), --ready_;")  # F6, F9
mutant(fence_local_ones_for_ever "starves" "local_in_a_row_ < kLocalInARow" "true")  # F7
mutant(fence_serves_one_class "starves" "NextAfter(granted_, last_served_)" "NextAfter(granted_, 0)")  # F7
mutant(fence_lends_to_one_class "starves" "NextAfter(left, last_borrower_)" "NextAfter(left, 0)")  # F7

mutants_of(model_mutants *FenceModel* curtail/fence/shares.h)
mutant(fence_one_too_many "more requests than permits"
  "fence_.InUse(path_class) < shares_[path_class]" "fence_.InUse(path_class) <= shares_[path_class]")  # F3, F4, F8
mutant(fence_limits_hold_for_ever "a limit does not hold" "version != version_" "false")  # F3, F4, F8

mutants_of(model_mutants *FenceModel* curtail/fence/lending.h)
mutant(lending_exceeds_reserves "more requests than permits"
  "in_use >= c.reserve" "in_use > c.reserve + 1")  # L3
mutant(lending_trusts_reserves "more requests than permits"
  "overdrawn_ || begun % kEachTurn == 0" "begun % kEachTurn == 0")  # L3
mutant(lending_takes_the_last_thread "more requests than permits"
  "uint64_t{permits_} + beside_ - 1" "uint64_t{permits_} + beside_")  # L4
mutant(lending_has_no_thread_beside "a lender waits" "uint64_t{permits_} + beside_ - 1" "uint64_t{permits_}")  # L4

mutants_of(model_mutants *FenceModel* curtail/fence/lending.cc)
mutant(lending_one_too_many "more requests than permits"
  "return lent < permits_ && kept < Most();" "return lent <= permits_ && kept < Most();")  # L3
mutant(lending_lends_nothing "deadlock|not lent"
  "return lent < permits_ && kept < Most();" "return false;")  # L3
mutant(lending_calls_nothing_back "a lender waits|deadlock" "if (in_use < c.reserve && room) return true;" "")  # L4
mutant(lending_knows_no_limit "more requests than permits" "if (in_use >= c.limit) return false;" "")  # L8

mutant_program(model_mutants fence_end.cc $<TARGET_OBJECTS:model_programs>)

# What replaces an object of the library must find it alone there.
get_property(mutated GLOBAL PROPERTY sources_of_model_mutants)
list(TRANSFORM mutated PREPEND ${PROJECT_SOURCE_DIR}/)
set_source_files_properties(${mutated} fence_end.cc PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
