// SPDX-License-Identifier: Apache-2.0
// What a dashboard that is left open costs its servers: node open_server_test.mjs CURTAIL [SECONDS] [RATE]
//
// Image search under RATE requests a second, 1000 by default, first with nobody looking and then with a reader that asks as the page
// does. CPU time is that of the dashboard's process, curtail up, and of the thread http-admin of each service. Memory is of all; that of the
// services follows the requests that they had at once, which a busy machine makes many, so only that of curtail up has a bound.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const [curtail, seconds = "120", rate = "1000"] = process.argv.slice(2);
const WARM_S = 15, LONGEST_ALONE_S = 120, MAX_CPU = 0.01, MAX_GROWTH = 2 ** 20, TICKS = 100;
const alone_s = Math.min(Number(seconds) / 2, LONGEST_ALONE_S);
const scratch = mkdtempSync(join(tmpdir(), "curtail-web-"));
const env = { ...process.env, XDG_RUNTIME_DIR: scratch, TMPDIR: scratch, NO_COLOR: "1" };
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// User and system time in s.
function cpuOf(stat) {
  const fields = readFileSync(stat, "utf8").replace(/^.*\) /s, "").split(" ");
  return (Number(fields[11]) + Number(fields[12])) / TICKS;
}
const residentOf = (pid) => 1024 * Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))[1]);
const adminThreads = (pid) => readdirSync(`/proc/${pid}/task`).filter((id) => readFileSync(`/proc/${pid}/task/${id}/comm`, "utf8").trim() === "http-admin");

function look(keeper, pids) {
  const threads = pids.flatMap((pid) => adminThreads(pid).map((id) => `/proc/${pid}/task/${id}/stat`));
  return { at: Date.now() / 1000, keeper: cpuOf(`/proc/${keeper}/stat`), admin: threads.reduce((all, stat) => all + cpuOf(stat), 0), resident: [keeper, ...pids].map(residentOf) };
}

// Of a CPU, between two looks.
const share = (before, now, of) => (now[of] - before[of]) / (now.at - before.at);

const up = spawn(curtail, ["up", "hdsearch", "--set", "data=synthetic:N=2000,D=16,seed=1", "--set", "leaf.shards=2", "--trace-to", "memory", "--dashboard"], { env, stdio: ["ignore", "pipe", "inherit"] });
let load;
try {
  const url = await new Promise((resolve, reject) => {
    let text = "";
    up.stdout.on("data", (bytes) => {
      const found = /see: +(http:\S+)/.exec((text += bytes));
      if (found) resolve(found[1]);
    });
    up.once("exit", () => reject(new Error(text)));
  });
  const read = async (path) => {
    const reply = await fetch(url + path);
    assert.equal(reply.status, 200, path);
    return reply.json();
  };
  load = spawn(curtail, ["load", "hdsearch", "--rps", rate, "--duration", `${alone_s + Number(seconds) + 120}s`], { env, stdio: "ignore" });
  const state = () => JSON.parse(readFileSync(join(scratch, "curtail", "hdsearch", "state.json"), "utf8"));
  const keeper = state().pid, pids = state().processes.map((p) => p.pid);
  await pause(WARM_S * 1000);
  const alone = [look(keeper, pids)];
  await pause(1000 * alone_s);
  alone.push(look(keeper, pids));

  const watch = async (turns) => {
    for (let turn = 0; turn < turns; ++turn) {
      const begun = Date.now();
      const document_ = await read("dashboard.json");
      if (turn % 3 === 1) await read("traces");
      if (turn === turns - 1) console.log(`answered ${document_.loads[0]?.ok} of the load run, due ${document_.loads[0]?.due_per_s}/s`);
      await pause(1000 - (Date.now() - begun));
    }
  };
  await watch(WARM_S);
  const watched = [look(keeper, pids)];
  await watch(Number(seconds));
  watched.push(look(keeper, pids));

  const percent = (v) => `${(100 * v).toFixed(2)} %`;
  for (const [name, [before, now]] of [["nobody looks", alone], ["a page is open", watched]]) {
    const growth = now.resident.map((v, i) => (v - before.resident[i]) / 2 ** 20);
    console.log(`${name}: ${(now.at - before.at).toFixed(0)} s, curtail up ${percent(share(before, now, "keeper"))} of a CPU, http-admin threads ${percent(share(before, now, "admin"))}; memory grew by ${growth.map((v) => v.toFixed(2)).join(", ")} MiB`);
  }
  const [before, now] = watched;
  assert.ok(now.resident[0] - before.resident[0] < MAX_GROWTH, "the memory of curtail up is flat");
  assert.ok(share(before, now, "keeper") + share(before, now, "admin") - share(...alone, "keeper") < MAX_CPU, "below 1 % of a CPU");
} finally {
  load?.kill("SIGINT");
  up.removeAllListeners("exit");
  const ended = new Promise((resolve) => up.once("exit", resolve));
  if (up.exitCode === null) up.kill("SIGINT"), await ended;
  rmSync(scratch, { recursive: true, force: true });
}
