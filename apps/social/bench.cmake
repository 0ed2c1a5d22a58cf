# Reads of a user who has written very much.
curtail_bench(social_large_bench SOURCES large_bench.cc LIBS apps_kit social_proto curtail::process bench_common)
add_dependencies(social_large_bench social)
curtail_bench_run(social_large_quick
  COMMAND social_large_bench --program $<TARGET_FILE:social> --small 20 --large 60 --rounds 1 --calls 5
  --limit 1000 --quiet --json social_large.json)
