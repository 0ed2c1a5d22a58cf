# Gets against a bare memcached.
curtail_bench(router_bench SOURCES router_bench.cc
  LIBS router_services router_workload store_testing bench_common)
curtail_bench_run(router_bench_quick
  COMMAND router_bench --rounds 1 --slice 0.02 --limit 1000 --quiet --json router.json --markdown router.md)
