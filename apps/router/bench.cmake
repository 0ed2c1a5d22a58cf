# Gets against a bare memcached.
find_package(CLI11 REQUIRED)
find_package(nlohmann_json 3.10 REQUIRED)
curtail_bench(router_bench SOURCES router_bench.cc ${memcached_testing}
  LIBS router_services router_workload bench_common nlohmann_json::nlohmann_json CLI11::CLI11)
curtail_bench_run(router_bench_quick TIMEOUT 60 COMMAND router_bench --rounds 1 --slice 0.02 --limit 1000)
