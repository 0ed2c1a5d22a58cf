# SPDX-License-Identifier: Apache-2.0
"""The main() of a program of services, with the flags of curtail's own host: docs/languages.md."""

import concurrent.futures
import os
import signal
import sys
import threading
import time

import grpc
from grpc_health.v1 import health, health_pb2_grpc
from observe import LOGS_JSON, Tracer, current, log

MAX_MESSAGE = 32 << 20
BAD_CONFIG = 104
THREADS = 16
LONGEST_S = 365 * 86400
LOOK_AGAIN_S = 0.2  # at a file of addresses
SWITCHES = ("quiet", "any-machine", "fence-learn", "health-checks", "no-sync")
OPTIONS = [("grpc.max_receive_message_length", MAX_MESSAGE), ("grpc.max_send_message_length", MAX_MESSAGE),
           ("grpc.so_reuseport", 0), ("grpc.initial_reconnect_backoff_ms", 100),
           ("grpc.min_reconnect_backoff_ms", 100), ("grpc.max_reconnect_backoff_ms", 1000)]


class Refused(Exception):
    """What a handler raises to end its call with a status."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


class Peer:
    """The instances of a service, which get calls in turn. A call has the deadline of the request in which it is made, ends when
    that is cancelled, and carries its trace. Any thread."""

    def __init__(self, targets, stub):
        self.targets, self.stub, self.stubs, self.turn, self.looked = targets, stub, {}, 0, 0
        self.file = targets[0][5:] if targets[0].startswith("file:") else None
        self.lock = threading.Lock()

    def pick(self):
        with self.lock:
            if self.file and time.monotonic() - self.looked > LOOK_AGAIN_S:
                with open(self.file, encoding="utf-8") as lines:
                    self.targets, self.looked = lines.read().split(), time.monotonic()
            self.turn += 1
            target = self.targets[self.turn % len(self.targets)]
            if target not in self.stubs:
                self.stubs[target] = self.stub(grpc.insecure_channel(target, OPTIONS))
            return self.stubs[target]

    def __getattr__(self, method):
        def call(request):
            context, span = current.context, current.span
            metadata = [("traceparent", f"00-{span['trace']}-{span['id']}-0{int(span['chosen'])}")] if span else []
            left = context.time_remaining()  # years, without a deadline
            timeout = left if left is not None and left < LONGEST_S else None
            answer = getattr(self.pick(), method).future(request, timeout=timeout, metadata=metadata)
            if not context.add_callback(answer.cancel):
                answer.cancel()
            return answer.result()
        return call


class Host(grpc.ServerInterceptor):
    """One process: its flags, its server and the services that it calls."""

    def __init__(self, application, words):
        self.application, self.flags = application, parse(words)
        self.service = self.flag("service", "")
        self.tracer = Tracer(self.service, self.flag("trace-to", ""), float(self.flag("trace-sample", "0.001")))
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(THREADS), interceptors=[self], options=OPTIONS)

    def flag(self, name, otherwise):
        return self.flags.get(name, [otherwise])[-1]

    def addresses(self, flag, name):
        """What --peer or --store has for a name."""
        given = [value.partition("=")[2] for value in self.flags.get(flag, []) if value.startswith(name + "=")]
        return [address for value in given for address in value.split(",")]

    def peer(self, name, stub):
        targets = self.addresses("peer", name)
        if not targets:
            raise ValueError(f"{self.service} calls {name}: say where it is, --peer {name}=ADDR,ADDR; "
                             f"in a topology add {name} to its calls")
        return Peer(targets, stub)

    def data_folder(self):
        state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
        given = self.flag("data", "auto")
        return os.path.join(state, "curtail", self.application) if given == "auto" else given

    def intercept_service(self, continuation, details):
        handler = continuation(details)
        if handler is None or handler.unary_unary is None or details.method.startswith("/grpc.health."):
            return handler
        received = dict(details.invocation_metadata).get("traceparent", "")
        return grpc.unary_unary_rpc_method_handler(
            lambda request, context: self.serve(handler.unary_unary, request, context, details.method, received),
            handler.request_deserializer, handler.response_serializer)

    def serve(self, handler, request, context, path, received):
        current.context, current.span, began, code = context, self.tracer.begin(received), time.time_ns(), grpc.StatusCode.OK
        try:
            return handler(request, context)
        except Refused as refused:
            code, text = refused.code, str(refused)
        except grpc.RpcError as failed:
            code, text = failed.code(), failed.details()
        except grpc.FutureCancelledError:
            code, text = grpc.StatusCode.CANCELLED, "the caller has gone"
        except Exception as broken:  # noqa: BLE001: whatever a handler raises
            code, text = grpc.StatusCode.INTERNAL, "the handler failed"
            log(self.application, "ERROR", repr(broken), path=path)
        finally:
            self.tracer.end(current.span, path, began, code)
            current.span = None
        context.abort(code, text)


def code_of(number):
    """The code of gRPC that has a number."""
    return next(code for code in grpc.StatusCode if code.value[0] == number)


def parse(words):
    """"--name value" and "--name=value". Flags of the C++ host that mean nothing here are kept and not read."""
    flags, left = {}, list(words)
    while left:
        name, equals, value = left.pop(0).removeprefix("--").partition("=")
        flags.setdefault(name, []).append(value if equals or name in SWITCHES or not left else left.pop(0))
    return flags


def main(application, services):
    """Serves the service of `services`, NAME: make(host), that --service names, until SIGTERM or SIGINT."""
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM, signal.SIGINT))  # for sigwait(), in each thread
    try:
        host = Host(application, sys.argv[1:])
        if host.service not in services:
            raise ValueError(f"--service {host.service}: there are {', '.join(services)}")
        services[host.service](host)
        alive = health.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(alive, host.server)
        addresses = [(address, host.server.add_insecure_port(address)) for address in host.flags.get("listen", ["127.0.0.1:0"])]
    except (ValueError, OSError, RuntimeError) as broken:
        log(application, "ERROR", str(broken))
        sys.exit(BAD_CONFIG)
    host.server.start()
    for address, port in addresses:
        at = address if address.startswith("unix:") else f"{address.rpartition(':')[0]}:{port}"
        if LOGS_JSON:
            log(application, "INFO", f"ready {at}", address=at)
        else:
            print(f"ready {at}", flush=True)
    signal.sigwait((signal.SIGTERM, signal.SIGINT))
    alive.enter_graceful_shutdown()
    host.server.stop(float(host.flag("drain", "10"))).wait()
    host.tracer.close()
