# The verdict of model_span_test if a line of a ring of spans were wrong (mutate.cmake).

mutants_of(model_span_mutants * curtail/observe/trace/span_ring.h)
mutant(span_looks_relaxed "out twice|crash"
  "tail_.load(std::memory_order_acquire)" "tail_.load(std::memory_order_relaxed)")  # S2
mutant(span_publishes_before_it_writes "out twice|crash|deadlock"
  "slots_[tail % kSize].store(item, std::memory_order_relaxed);"
  "tail_.store(tail + 1, std::memory_order_release); slots_[tail % kSize].store(item, std::memory_order_relaxed);")  # S2
mutant(span_frees_before_it_reads "out twice|deadlock"
  "slots_[head % kSize].load(std::memory_order_relaxed)"
  "(head_.store(head + 1, std::memory_order_release), slots_[head % kSize].load(std::memory_order_relaxed))")  # S3, S4
mutant(span_writes_into_a_full_ring "out twice|deadlock|lost" "tail - seen_head_ == kSize" "false")  # S3, S4
mutant(span_says_too_late "deadlock" "tail + 1 - seen_head_ < kSize / 2" "tail + 1 - seen_head_ <= kSize / 2")  # S6
mutant(span_says_nothing "deadlock" "tail + 1 - seen_head_ >= kSize / 2" "false")  # S6
mutant(span_bell_rings_once "deadlock" "rung_.exchange(false, std::memory_order_acq_rel);" "")  # S6
mutant(span_bell_is_mute "deadlock"
  "!rung_.exchange(true, std::memory_order_acq_rel)" "rung_.exchange(true, std::memory_order_acq_rel)")  # S6

mutant_program(model_span_mutants span_model_test.cc)
