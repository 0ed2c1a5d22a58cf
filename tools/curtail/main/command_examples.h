// SPDX-License-Identifier: Apache-2.0
//
// command_examples.h - what --help of each command says below the flags.
#pragma once

namespace curtail::tool {

inline constexpr char kExamples[] = R"(Examples:
  curtail up hdsearch --detach                                   # image search on this machine; curtail ps, logs, down
  curtail demo                     # under 3 minutes: learns which threading model suits which load, and adapts
  curtail train hdsearch --quick --out profile.json              # which config is best at which load?
  curtail compare hdsearch --profile profile.json --html compare.html
  curtail switch hdsearch SDB1-16                                # at once, while it serves; or its admin address
  curtail status hdsearch/leaf.0                                 # pools, queue, threads
  curtail load hdsearch --rps 500                                # about 12 s; the one that is up
  curtail render hdsearch --to kubernetes | kubectl apply -f -   # the same application on a cluster

Exit codes: 0 ok, 1 failed, 98 a load run is void, 99 a threshold does not hold, 104 bad configuration, 105 interrupted.)";

inline constexpr char kLoadExamples[] =
    R"(Open loop is the default: requests leave on a schedule fixed beforehand, whatever the server does, and
latency counts from the intended send time. --closed N keeps N requests in flight instead: only to find the
peak throughput.

Examples:
  curtail load 127.0.0.1:7000 --rps 500 --method grpc.health.v1.Health/Check
  curtail load api:443 --tls --rps 200 --method shop.Cart/Add --data '{"user": "{{zipf 100000 0.99}}", "n": 1}'
  curtail load api:8080 --rps 200 --method shop.Cart/Add --data @requests.jsonl --proto shop.proto
  curtail load hdsearch 127.0.0.1:7000 --schedule flash-crowd:100..8000 --duration 30s --html run.html
  curtail load api:8080 --schedule trace.csv --rate-scale 0.1 --method shop.Cart/Get
  curtail load api:8080 --rps 1000 --repeat 5 --json run.json --fail-if 'p99<5ms,errors<0.1%' --method ...
  curtail load api:8080 --find-max 'p99<5ms' --rps 100 --duration 5s --method ...
  curtail load http://api:8080/search --rps 500 --data '{"user": {{uniform 1 1000}}}' -H 'x-id: {{uuid}}'
  curtail load api:8080 --rps 50 --journey shop.yaml --fail-if 'p99<200ms,pay.p99<50ms,pay.errors<0.1%'
  curtail load api:8080 --list

Over HTTP an answer with a status of 2xx is ok; others are counted by their status.
Schedules: constant:500, steps:100,500,2000, ramp:100..5000, flash-crowd:100..8000, diurnal:100..2000,
  bursts:200..2000, a CSV file of time_s,rate_per_s, or a shipped shape at its peak rate: large-variation:2000,
  quick-variation:2000, slow-variation:2000, world-cup-98:2000.
JSON fields may be drawn for each request: {{index}}, {{uniform 1 100}}, {{real 0 1}}, {{zipf 1000000 0.99}},
  {{skew 1000 80}}, {{string 16}}, {{bytes 64}}, {{uuid}}, {{pick red green}}.
A journey is a file of steps and ends at the first that fails; docs/load.md describes it. --rps counts journeys.
  steps:
    - {name: login, method: shop.Users/Login, data: '{"user": "user-{{uniform 1 1000}}"}'}
    - name: pay
      method: shop.Cart/Pay
      pause: exponential 2s
      data: '{"cart": "{{reply.login.cart}}"}'
      metadata: {authorization: "Bearer {{reply.login.token}}"}
Durations are written 10s, 1m30s, 500us.  --fail-if: pN, mean, max, errors, rate, good, score, STEP.pN; all must hold.
Exit codes: 0 ok, 1 no server or no disk space, 98 the run is void (the generator was the limit), 99 a --fail-if
condition does not hold, 104 bad flags, 105 interrupted.)";

inline constexpr char kDemoExamples[] =
    R"(Starts HDSearch (4 leaves and a mid-tier) on this machine, measures some configs of the mid-tier at rising loads, and
then serves a flash crowd: under mutune, the policy that goes by these measurements, and under auto, the config with which
servers begin. It serves the same crowd as a service whose libraries block and which therefore cannot use fibers: under
mutune with the synchronous configs alone, and under those of them that are best at the lowest and at the highest load.
It prints the CPU of each in cores, and says with an interval of 95 % whether a win is believed, or which static config
is right. Every process it starts ends with it.

Examples:
  curtail demo                                    # under 3 minutes; writes curtail-demo.html
  curtail demo --quick --json demo.json           # about 30 s
  curtail demo --configs SIP1,SDB1-50 --loads 50,500,2k

Exit codes: 0 ok, 1 a process failed, 104 bad flags, a missing program or data set, 105 interrupted.)";

inline constexpr char kTrainExamples[] =
    R"(Measures p50 and p99 of each config at each load, several times in turns, and writes a profile, by which a server chooses its
config: `hdsearch --policy mutune --profile profile.json`. A config that gives up at a load is spared higher ones. The
application is started and ended by this; a server that runs already is switched through its admin interface, and gets its
config back at the end. Train on the machine that serves: a profile is of one machine.

With --fences it drives each path class alone, finds the fewest requests at once that have the full throughput, and adds them
to the profile as limits: `hdsearch --fence strict --profile profile.json` begins with these. A server that runs already needs
--fence dry-run for this; train it once for each of its methods, with the same --out.

Examples:
  curtail train hdsearch --out profile.json              # about 30 minutes
  curtail train hdsearch --quick --out profile.json      # under 3 minutes
  curtail train hdsearch --dry-run                       # says what it would measure, and how long that takes
  curtail train hdsearch --out profile.json --resume     # goes on after Ctrl-C or a power cut
  curtail train router --fences --out profile.json       # the limits of its path classes, about a minute
  curtail train 127.0.0.1:7000 --admin 127.0.0.1:9090 --method shop.Cart/Add --data @requests.jsonl --out cart.json

Exit codes: 0 ok, 1 a process failed or no disk space, 104 bad flags, a missing program or data set, 105 interrupted.)";

inline constexpr char kVerifyExamples[] =
    R"(Measures the configs that the profile says keep up at loads that it was not trained at, finds the best one, and measures that against the one
that the profile chooses, in turns. The first measurement only finds the best, the second one judges: so luck is not
mistaken for merit.

Examples:
  curtail verify hdsearch profile.json                   # some 15 minutes
  curtail verify hdsearch profile.json --quick
  curtail verify 127.0.0.1:7000 cart.json --admin 127.0.0.1:9090 --method shop.Cart/Add --data @requests.jsonl

Exit codes: 0 ok, 1 a process failed, 99 the chosen config loses more than 10 % (--max-loss) at some load, 104 bad flags
or profile, 105 interrupted.)";

inline constexpr char kCompareAbout[] =
    R"(Serves the same loads under one policy after the other, each in processes started for it, in turns: steady loads up and
down, a flash crowd (a low load, 1 s beyond what the best config for it sustains, the low load again), a ramp, a day.
It adds rounds until the first policy is told from the others: better, worse, or level within 10 %.)";

inline constexpr char kCompareExamples[] =
    R"(A policy for which a profile is optional begins with it when "+profile" follows the name: online+profile.

Examples:
  curtail compare hdsearch --profile profile.json --html compare.html           # an hour or two
  curtail compare hdsearch --profile profile.json --quick                       # a few minutes
  curtail compare hdsearch --profile profile.json --policies mutune,static:SIP1,static:SDB1-50 \
                  --scenarios flash-crowd --flash-crowd 100..3k --max-rounds 8
  curtail compare hdsearch --policies online,static:SIB1 --scenarios steady --loads 100,1k --flash-crowd 100..1k
  curtail compare hdsearch --program ./my_hdsearch --policies mine,static:auto --flash-crowd 100..1k

Exit codes: 0 ok, 1 a process failed or no disk space, 104 bad flags or profile, 105 interrupted.)";

inline constexpr char kProvisionExamples[] =
    R"(Starts the application with equal shares, raises the load until the QoS fails, gives the service that saturates first a step more,
and so on. A step is kept if turns with and without it can be told apart; else it says "cannot tell". It ends when no step helps,
when all services that work saturate at about the same load, or when the CPUs or the time are spent; then it compares the same CPUs in equal
shares.

Levers: cpu, the time that each process may use, by a cgroup, which takes root or a delegated one; threads, the sizes of the
services' pools, FIB1 to FIB2 or SDB1-4 to SDB1-8. Replicas are none: callers take the first instance, or shards.

The overlay is written after every step that is kept, so Ctrl-C leaves what was found until then.

Examples:
  curtail provision social                                   # writes social-provisioned.yaml
  curtail up social --overlay social-provisioned.yaml
  curtail provision social --time 3m --json social.json --html social.html
  curtail provision hdsearch --levers threads --config SDB1-1 --qos 'p99<20ms'
  curtail provision ./shop.yaml --method shop.Front/Read --data '{"user": "ann"}'

Exit codes: 0 ok, 1 a process failed, 98 the load generator was the limit, 99 no load was within the QoS, 104 bad flags or
topology, or a lever that this machine lacks, 105 interrupted.)";

inline constexpr char kUpExamples[] =
    R"(Starts every process of an application in the order in which they need each other, waits until each answers its health
check, and starts again what ends by itself. Ctrl-C, closing the terminal or `curtail down` end all of them; none outlives
this command, however that ends.

Applications: hdsearch (image search), router (key-value store over memcached), setalgebra (document search), recommend
(rating prediction), social (social network), bank (accounts and payments), media (movie reviews); or the path
of a topology file of your own, see docs/topology.md.

Examples:
  curtail up hdsearch                                            # in the foreground; Ctrl-C ends it
  curtail up router --detach --policy online                     # in the background, the mid-tier adapts
  curtail up hdsearch --set data=synthetic:N=200000,D=128 --set leaf.shards=2 --config SDB1-16
  curtail up router --use store=127.0.0.1:11211 --set store.shards=1 --set store.replicas=1 \
                    --set leaf.shards=1 --set leaf.replicas=1    # over a memcached that runs already
  curtail up social --scale 3 --stores postgresql                # three of each service that scales, and a server of SQL
  curtail up social --exec 'user=perf record -o /tmp/user.data'  # one service under a profiler
  curtail up social --group user,unique-id                       # two services in one process
  curtail up ./shop.yaml --variant cart=java                     # another implementation of one service
  curtail up hdsearch --scale --dry-run                          # the paper's size: which commands?

Exit codes: 0 it went down as it was told to (or is up: --detach), 1 a process failed, 104 bad flags or topology, a missing
program, or too little memory, 105 interrupted before it was up.)";

inline constexpr char kRenderExamples[] =
    R"(Writes the topology of an application for machines that a cluster manages: plain manifests, a Helm chart, which is the same
with its values to choose, or a Compose file for one machine. The pods run the programs that `curtail up` starts. `./dev image APP`
builds the image; docs/kubernetes.md leads from there to an application that runs.

Examples:
  curtail render hdsearch --to kubernetes | kubectl apply -f -
  curtail render hdsearch --to helm --output chart --image registry.example/hdsearch:1.0
  curtail render router --to kubernetes --output router --set leaf.shards=2 --set store.shards=2
  curtail render router --to helm --output chart --use store=cache-0:11211,cache-1:11211 --set store.shards=1 --set leaf.shards=1
  curtail render ./shop.yaml --to compose --output shop

Exit codes: 0 ok, 1 the output cannot be written, 104 bad flags or topology.)";

}  // namespace curtail::tool
