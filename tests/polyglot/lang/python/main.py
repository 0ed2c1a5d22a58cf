# SPDX-License-Identifier: Apache-2.0
"""The service of probe.proto."""

import threading

import grpc
import host
import probe_pb2
import probe_pb2_grpc


class Probe(probe_pb2_grpc.ProbeServicer):
    def __init__(self, surroundings):
        self.leaf = surroundings.peer("leaf", probe_pb2_grpc.ProbeStub)

    def Echo(self, request, context):
        if request.compress:
            context.set_compression(grpc.Compression.Gzip)
        return request

    def Fail(self, request, context):
        if request.code == 0:
            raise ValueError(request.message)
        trailers = [("probe-trailer", request.trailer)] if request.trailer else []
        if request.HasField("detail"):
            details = probe_pb2.RpcStatus(code=request.code, message=request.message, details=[request.detail])
            trailers.append(("grpc-status-details-bin", details.SerializeToString()))
        context.set_trailing_metadata(trailers)
        raise host.Refused(host.code_of(request.code), request.message)

    def Relay(self, request, context):
        return self.leaf.Wait(request)

    def Wait(self, request, context):
        gone = threading.Event()
        if context.add_callback(gone.set):
            gone.wait(request.ms / 1000)
        return probe_pb2.Payload()


host.main("probe", {"probe": lambda surroundings: probe_pb2_grpc.add_ProbeServicer_to_server(Probe(surroundings), surroundings.server)})
