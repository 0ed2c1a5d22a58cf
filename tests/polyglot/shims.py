#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the host of each language does with calls: deadlines, cancellation, sizes, errors, traces, logs, drain.

Usage: shims.py BUILD_FOLDER [LANGUAGE...]

Runs by the Python that probe-python was built with: BUILD_FOLDER/apps/probe-python/venv/bin/python.
"""

import concurrent.futures
import contextlib
import json
import os
import queue
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

BUILD = os.path.abspath(sys.argv[1])
sys.path.insert(0, f"{BUILD}/apps/probe-python/work")

import grpc  # noqa: E402: of the environment above
import probe_pb2 as pb  # noqa: E402
import probe_pb2_grpc  # noqa: E402
from google.protobuf import any_pb2  # noqa: E402
from collector import Collector  # noqa: E402
from grpc_health.v1 import health_pb2, health_pb2_grpc  # noqa: E402

MAX_WAIT_S = 20
BIG = 4 << 20
DEADLINE_S = 3
LANGUAGES = ("go", "java", "node", "python")
OPTIONS = [("grpc.max_receive_message_length", 32 << 20), ("grpc.max_send_message_length", 32 << 20)]


class Leaf(probe_pb2_grpc.ProbeServicer):
    """What probes call. Each call of Wait() is put into `calls`: its metadata, the time it has left, and an event of its end."""

    def __init__(self):
        self.calls = queue.Queue()
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(8))
        probe_pb2_grpc.add_ProbeServicer_to_server(self, self.server)
        self.address = f"127.0.0.1:{self.server.add_insecure_port('127.0.0.1:0')}"
        self.server.start()

    def Wait(self, request, context):
        ended = threading.Event()
        if not context.add_callback(ended.set):
            ended.set()
        self.calls.put((dict(context.invocation_metadata()), context.time_remaining(), ended))
        ended.wait(min(request.ms / 1000, MAX_WAIT_S))
        return pb.Payload(data=b"leaf")


class Relay:
    """A port that hands bytes on to another and counts them."""

    def __init__(self, to):
        self.to, self.bytes = to, [0, 0]
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        with contextlib.suppress(OSError):
            while True:
                client = self.listener.accept()[0]
                host, port = self.to.rsplit(":", 1)
                server = socket.create_connection((host, int(port)))
                for way, (source, sink) in enumerate(((client, server), (server, client))):
                    threading.Thread(target=self.pump, args=(way, source, sink), daemon=True).start()

    def pump(self, way, source, sink):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                self.bytes[way] += len(data)
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)


class Probe:
    """A process, and its stub."""

    def __init__(self, language, *flags, environment=None):
        program = f"{BUILD}/apps/probe-{language}/probe-{language}"
        self.process = subprocess.Popen([program, "--service", "probe", *flags], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        env={**os.environ, **(environment or {})})
        self.language = language
        self.addresses, self.log, self.logged = [], [], threading.Condition()
        self.reader = threading.Thread(target=self.follow, daemon=True)
        self.reader.start()

    def follow(self):
        for line in self.process.stderr:
            with self.logged:
                self.log.append(line)
                self.logged.notify_all()

    def line(self, number):
        """Line `number` of its log, once there is one."""
        with self.logged:
            assert self.logged.wait_for(lambda: len(self.log) > number, MAX_WAIT_S), self.log
            return self.log[number]

    def ready(self, count=1):
        while len(self.addresses) < count:
            line = self.process.stdout.readline()
            assert line.startswith("ready "), (line, self.log)
            self.addresses.append(line.split()[1])
        self.channel = grpc.insecure_channel(self.addresses[0], OPTIONS)
        self.stub = probe_pb2_grpc.ProbeStub(self.channel)
        return self

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(MAX_WAIT_S)


def error_of(call):
    try:
        call()
    except grpc.RpcError as error:
        return error
    raise AssertionError("the call has not failed")


def expect_late(probe, late):
    # grpc-go resets the stream of a call whose deadline has passed. A client whose own clock is a moment behind takes that for CANCELLED.
    known = (grpc.StatusCode.DEADLINE_EXCEEDED,) + ((grpc.StatusCode.CANCELLED,) if probe.language == "go" else ())
    assert late.code() in known, late


def check_health(probe, leaf, collector):
    stub = health_pb2_grpc.HealthStub(probe.channel)
    assert stub.Check(health_pb2.HealthCheckRequest(), timeout=MAX_WAIT_S).status == health_pb2.HealthCheckResponse.SERVING
    unknown = error_of(lambda: stub.Check(health_pb2.HealthCheckRequest(service="nobody"), timeout=MAX_WAIT_S))
    assert unknown.code() == grpc.StatusCode.NOT_FOUND, unknown


def check_deadline(probe, leaf, collector):
    for call in (probe.stub.Wait, probe.stub.Relay):
        for _ in range(20):
            expect_late(probe, error_of(lambda call=call: call(pb.Patience(ms=60_000), timeout=0.001)))
    while not leaf.calls.empty():
        leaf.calls.get()
    expect_late(probe, error_of(lambda: probe.stub.Relay(pb.Patience(ms=60_000), timeout=DEADLINE_S)))
    while True:  # calls of before may have been on their way
        _, left, ended = leaf.calls.get(timeout=MAX_WAIT_S)
        assert left is not None and left <= DEADLINE_S + 0.1 and ended.wait(MAX_WAIT_S), left
        if left > 0.1:
            return


def check_deadline_of_curtail(probe, leaf, collector):
    """The same for curtail's own client."""
    with tempfile.TemporaryDirectory() as folder:
        words = [f"{BUILD}/tools/curtail/curtail", "load", probe.addresses[0], "--proto", f"{BUILD}/apps/probe-python/protos.protoset",
                 "--method", "curtail.probe.Probe/Relay", "--data", '{"ms": 60000}', "--timeout", "1ms", "--rps", "200", "-n", "100",
                 "--json", f"{folder}/load.json", "--quiet"]
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=MAX_WAIT_S)
        with open(f"{folder}/load.json", encoding="utf-8") as file:
            codes = json.load(file)["runs"][0]["codes"]
    assert codes == {"DEADLINE_EXCEEDED": 100}, (codes, done.stderr)


def check_cancel(probe, leaf, collector):
    call = probe.stub.Relay.future(pb.Patience(ms=60_000), timeout=MAX_WAIT_S)
    _, left, ended = leaf.calls.get(timeout=MAX_WAIT_S)
    assert left > 1 and not ended.is_set(), left
    call.cancel()
    assert ended.wait(MAX_WAIT_S), "the child call goes on"
    # Without a deadline, too.
    call = probe.stub.Relay.future(pb.Patience(ms=60_000))
    _, _, ended = leaf.calls.get(timeout=MAX_WAIT_S)
    call.cancel()
    assert ended.wait(MAX_WAIT_S), "the child call goes on"


def check_big(probe, leaf, collector):
    data = random.Random(1).randbytes(BIG)
    assert probe.stub.Echo(pb.Payload(data=data), timeout=MAX_WAIT_S).data == data


def check_gzip(probe, leaf, collector):
    relay = Relay(probe.addresses[0])
    stub = probe_pb2_grpc.ProbeStub(grpc.insecure_channel(relay.address, OPTIONS))
    data = bytes(BIG)
    assert stub.Echo(pb.Payload(data=data, compress=True), timeout=MAX_WAIT_S, compression=grpc.Compression.Gzip).data == data
    small = relay.bytes[:1] if probe.language == "node" else relay.bytes  # whose library compresses no replies
    assert max(small) < BIG / 16, f"{relay.bytes} bytes to it and back"
    assert stub.Echo(pb.Payload(data=data), timeout=MAX_WAIT_S).data == data
    assert min(relay.bytes) > BIG, f"{relay.bytes} bytes to it and back"


def check_errors(probe, leaf, collector):
    for code in [code for code in grpc.StatusCode if code != grpc.StatusCode.OK]:
        text = f"größer als 100 %, {code.name}\n"
        detail = any_pb2.Any(type_url="type.example/Any", value=code.name.encode())
        failed = error_of(lambda: probe.stub.Fail(pb.Failure(code=code.value[0], message=text, detail=detail, trailer="yes"),
                                                  timeout=MAX_WAIT_S))
        trailers = dict(failed.trailing_metadata())
        assert failed.code() == code and failed.details() == text, failed
        assert trailers["probe-trailer"] == "yes", trailers
        assert pb.RpcStatus.FromString(trailers["grpc-status-details-bin"]).details == [detail], trailers
    plain = error_of(lambda: probe.stub.Fail(pb.Failure(code=5), timeout=MAX_WAIT_S))
    assert plain.code() == grpc.StatusCode.NOT_FOUND and "probe-trailer" not in dict(plain.trailing_metadata()), plain
    broken = error_of(lambda: probe.stub.Fail(pb.Failure(message="a secret of the handler"), timeout=MAX_WAIT_S))
    assert broken.code() == grpc.StatusCode.INTERNAL and "secret" not in broken.details(), broken
    assert "a secret of the handler" in probe.line(0), probe.log


def check_traces(probe, leaf, collector):
    trace, parent = f"{random.getrandbits(128) | 1:032x}", f"{random.getrandbits(64) | 1:016x}"
    chosen = [("traceparent", f"00-{trace}-{parent}-01")]
    assert probe.stub.Relay(pb.Patience(ms=0), timeout=MAX_WAIT_S, metadata=chosen).data == b"leaf"
    received = leaf.calls.get(timeout=MAX_WAIT_S)[0]["traceparent"].split("-")
    span, = collector.wait(trace)
    assert span["parentSpanId"] == parent and received == ["00", trace, span["spanId"], "01"], (span, received)
    assert span["name"] == "curtail.probe.Probe/Relay" and span["kind"] == 2 and span["service"] == "probe", span
    assert 0 <= int(span["endTimeUnixNano"]) - int(span["startTimeUnixNano"]) < MAX_WAIT_S * 1e9, span
    error_of(lambda: probe.stub.Fail(pb.Failure(code=9), timeout=MAX_WAIT_S, metadata=[("traceparent", f"00-{trace[::-1]}-{parent}-01")]))
    span, = collector.wait(trace[::-1])
    assert span["status"]["code"] == 2 and {"key": "rpc.grpc.status_code", "value": {"intValue": "9"}} in span["attributes"], span
    # A caller that has not chosen its trace: no span, but the trace goes on.
    unchosen = f"{random.getrandbits(128) | 1:032x}"
    probe.stub.Relay(pb.Patience(ms=0), timeout=MAX_WAIT_S, metadata=[("traceparent", f"00-{unchosen}-{parent}-00")])
    received = leaf.calls.get(timeout=MAX_WAIT_S)[0]["traceparent"].split("-")
    assert received[1] == unchosen and received[3] == "00", received
    # --trace-sample 1: each request, and no other, has a span.
    before = len([span for span in collector.spans if span["name"].endswith("/Echo")])
    for _ in range(100):
        probe.stub.Echo(pb.Payload(), timeout=MAX_WAIT_S)
    def echoes():
        return len([span for span in collector.spans if span["name"].endswith("/Echo")]) - before
    with collector.came:
        assert collector.came.wait_for(lambda: echoes() >= 100, MAX_WAIT_S), echoes()
    assert echoes() == 100 and unchosen not in [span["traceId"] for span in collector.spans], echoes()


def check_other_process(language, leaf):
    """Sockets, files of addresses, the log as JSON, the drain."""
    other = Leaf()
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/leaf.addresses", "w", encoding="utf-8") as file:
            file.write(f"{leaf.address}\n{other.address}\n")
        probe = Probe(language, "--listen", f"unix:{folder}/probe.sock", "--listen=127.0.0.1:0", "--config", "auto", "--quiet",
                      "--peer", f"leaf=file:{folder}/leaf.addresses").ready(2)
        assert probe.addresses[0] == f"unix:{folder}/probe.sock", probe.addresses
        for _ in range(10):
            probe.stub.Relay(pb.Patience(ms=0), timeout=MAX_WAIT_S)
        assert leaf.calls.qsize() == 5 and other.calls.qsize() == 5, (leaf.calls.qsize(), other.calls.qsize())
        # A trace goes on without a collector.
        trace = f"00-{random.getrandbits(128) | 1:032x}-{random.getrandbits(64) | 1:016x}-01"
        probe.stub.Relay(pb.Patience(ms=0), timeout=MAX_WAIT_S, metadata=[("traceparent", trace)])
        received = [one.calls.get(timeout=MAX_WAIT_S)[0].get("traceparent") for one in (leaf, other) for _ in range(one.calls.qsize())]
        assert trace in received, received
        calls = [probe.stub.Relay.future(pb.Patience(ms=1000), timeout=MAX_WAIT_S) for _ in range(2)]
        leaf.calls.get(timeout=MAX_WAIT_S)  # both are in progress
        other.calls.get(timeout=MAX_WAIT_S)
        probe.process.send_signal(signal.SIGTERM)
        assert all(call.result(MAX_WAIT_S).data == b"leaf" for call in calls)
        assert probe.process.wait(MAX_WAIT_S) == 0, probe.log
    probe = Probe(language, "--listen", "127.0.0.1:0", "--peer", f"leaf={leaf.address}",
                  environment={"CURTAIL_LOG_FORMAT": "json", "CURTAIL_LOG_SERVICE": "cart", "CURTAIL_LOG_INSTANCE": "cart-7"})
    ready = json.loads(probe.line(0))
    assert list(ready) == ["time", "severity", "service", "instance", "message", "address"], ready
    assert ready["severity"] == "INFO" and ready["service"] == "cart" and ready["instance"] == "cart-7", ready
    assert ready["message"] == f"ready {ready['address']}" and len(ready["time"]) == 27, ready
    trace = f"{random.getrandbits(128) | 1:032x}"
    stub = probe_pb2_grpc.ProbeStub(grpc.insecure_channel(ready["address"]))
    error_of(lambda: stub.Fail(pb.Failure(message="it broke"), timeout=MAX_WAIT_S, metadata=[("traceparent", f"00-{trace}-{trace[:15]}1-01")]))
    line = json.loads(probe.line(1))
    assert line["severity"] == "ERROR" and line["trace_id"] == trace and "it broke" in line["message"], line
    assert probe.end() == 0 and probe.process.stdout.read() == "", "a log of JSON has no other text beside it"
    for flags, text in ((("--service", "nobody"), "--service nobody"), ((), "--peer leaf=ADDR,ADDR; in a topology add leaf to its calls")):
        probe = Probe(language, *flags)
        assert text in probe.line(0) and probe.process.wait(MAX_WAIT_S) == 104, probe.log


CHECKS = (check_health, check_deadline, check_deadline_of_curtail, check_cancel, check_big, check_gzip, check_errors, check_traces)


def main():
    failed = []
    for language in sys.argv[2:] or LANGUAGES:
        leaf, collector, from_s = Leaf(), Collector(), time.monotonic()
        probe = Probe(language, "--listen", "127.0.0.1:0", "--peer", f"leaf={leaf.address}", "--trace-to", collector.target, "--trace-sample", "1").ready()
        for check in CHECKS:
            try:
                check(probe, leaf, collector)
            except Exception as error:  # noqa: BLE001: the other checks go on
                failed.append(f"{language} {check.__name__}: {type(error).__name__}: {error}")
            while not leaf.calls.empty():
                leaf.calls.get()
        if probe.end() != 0:
            failed.append(f"{language}: it ended with {probe.process.returncode}: {probe.log}")
        try:
            check_other_process(language, leaf)
        except Exception as error:  # noqa: BLE001
            failed.append(f"{language} check_other_process: {type(error).__name__}: {error}")
        print(f"{language}: {len(CHECKS) + 1} checks, {time.monotonic() - from_s:.1f} s", flush=True)
    print("\n".join(failed))
    sys.exit(1 if failed else 0)


main()
