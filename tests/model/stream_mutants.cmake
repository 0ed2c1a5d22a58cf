# The verdict of model_stream_test if a line of a stream were wrong (mutate.cmake). The rule that a mutant breaks is named as
# in the source.

mutants_of(model_stream_mutants * curtail/rpc/stream/stream_pipe.cc)
mutant(stream_reader_asks_for_no_credit "deadlock" "resume_ = true;" "")  # P1
mutant(stream_credit_is_not_posted "deadlock" "if (Post()) step.owed = kKick;" "")
mutant(stream_reader_is_always_credited "credit was" "!held_ && in_.bytes() > kMaxIn" "in_.bytes() > kMaxIn")
mutant(stream_room_wakes_no_writer "deadlock" "if (out_.bytes() <= kMaxOut) Wake(writer_);" "")  # P2
mutant(stream_a_turn_stays_posted "not released" "if (posted) posted_ = false;" "")  # P3
mutant(stream_a_change_is_not_kicked "not released"
  "if ((step.owed & (kKick | kFull)) != 0) return Kick();" "if ((step.owed & (kKick | kFull)) != 0) return;")
mutant(stream_a_message_wakes_no_reader "deadlock"
  "in_.Push(std::move(message));" "in_.Push(std::move(message)); return;")  # P4
mutant(stream_the_peers_end_wakes_no_reader "deadlock" "peer_ended_ = true;" "peer_ended_ = true; return;")
mutant(stream_a_reset_is_no_end "a reset is no end" "CutOff(std::move(status));" "")  # P5
mutant(stream_the_end_is_sent_twice "an end was sent twice" "!std::exchange(end_sent_, true)" "true")  # P6
mutant(stream_the_end_overtakes_a_message "a message was lost" "out_.empty() && writes_ended_" "writes_ended_")
mutant(stream_the_end_of_writes_is_not_posted "not released" "kick = Post();" "")
mutant(stream_a_message_is_held_by_none "deadlock" "(first && !Hold(out, now))" "false")  # P7

mutants_of(model_stream_mutants * curtail/rpc/stream/held_messages.cc)
mutant(stream_held_messages_stay "deadlock" "for (const Entry& entry : due) Send(entry);" "")  # P7

mutants_of(model_stream_mutants * curtail/rpc/stream/stream_end.cc)
mutant(stream_a_thread_looks_before_it_waits "deadlock"
  "place.waiter = &waiter;" "mu_.Unlock(); mu_.Lock(); place.waiter = &waiter;")  # W1
mutant(stream_a_coroutine_looks_before_it_waits "deadlock"
  "yields || !TryOrCut(step)"
  "yields || [&] { const bool done = TryOrCut(step); mu_.Unlock(); mu_.Lock(); return !done; }()")
mutant(stream_a_place_is_queued_twice "did not end" "std::exchange(place.queued, true)" "false")  # W2
mutant(stream_a_try_finds_its_place_unqueued "did not end"
  "TryOrCut(*place.step)" "(place.queued = false, TryOrCut(*place.step))")  # W3
mutant(stream_a_place_stays_queued "deadlock" "place.queued = false;" "")
mutant(stream_a_step_stays_in_its_place "did not end" "std::exchange(place.step, nullptr)" "place.step")
mutant(stream_an_await_touches_late "after its end"
  "place.step = &step;" "place.step = &step; mu_.Unlock(); mu_.Lock();")  # W4
mutant(stream_the_timer_wakes_none "deadlock"
  "if (!until_.Expired()) return std::min(until_, look);" "return look;")  # W5
mutant(stream_the_timer_outlives_the_stream "crash|after its end"
  "if (executor_ == nullptr) return;"
  "if (executor_ != nullptr) std::exchange(executor_, nullptr)->AsyncEnded(); return;")
mutant(stream_the_executor_does_not_wait "did not end" "executor_->AsyncBegun();" "")  # W6
mutant(stream_a_cut_wakes_none "deadlock" "why_ = std::move(why);" "why_ = std::move(why); return;")
mutant(stream_a_step_is_not_settled "not released" "Settle(step);\n  return step.ok;" "return step.ok;")

mutant_program(model_stream_mutants $<TARGET_OBJECTS:model_streams>)
target_compile_definitions(model_stream_mutants PRIVATE CURTAIL_RECYCLES=0)
