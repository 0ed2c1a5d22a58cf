# SPDX-License-Identifier: Apache-2.0
"""The shop's services as processes, each in any of its languages, and calls of any of their methods."""

import os
import subprocess
import sys
import tempfile
import threading

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory

MAX_WAIT_S = 20


class Protos:
    """Methods by their path, from the descriptors that a build of a language has left."""

    def __init__(self, build, language):
        with open(f"{build}/apps/shop-{language}/protos.protoset", "rb") as file:
            files = descriptor_pb2.FileDescriptorSet.FromString(file.read())
        self.pool = descriptor_pool.DescriptorPool()
        for one in files.file:
            self.pool.Add(one)

    def types(self, path):
        """The classes of the request and the reply of "curtail.shop.Cart/Get"."""
        method = self.pool.FindMethodByName(path.replace("/", "."))
        return message_factory.GetMessageClass(method.input_type), message_factory.GetMessageClass(method.output_type)

    def message(self, name):
        """The class of "curtail.shop.Basket"."""
        return message_factory.GetMessageClass(self.pool.FindMessageTypeByName(name))

    def call(self, channel, path, request, metadata=(), timeout=MAX_WAIT_S):
        """The name of the status and, if it is OK, the reply, as a dict. `request` is one, too."""
        into, out_of = self.types(path)
        send = channel.unary_unary("/" + path, into.SerializeToString, out_of.FromString)
        try:
            reply = send(json_format.ParseDict(request, into()), timeout=timeout, metadata=metadata)
            return "OK", json_format.MessageToDict(reply, preserving_proto_field_name=True)
        except grpc.RpcError as error:
            return error.code().name, {}


class Service:
    """A service in a language ("cpp": the C++ one), on the data in a folder."""

    def __init__(self, build, name, language, data, *flags):
        program = f"{build}/apps/shop/shop" if language == "cpp" else f"{build}/apps/shop-{language}/shop-{language}"
        self.log = tempfile.TemporaryFile("w+")
        words = [program, "--service", name, "--listen", "127.0.0.1:0", "--data", data, "--no-sync", *flags]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=self.log, text=True)
        late = threading.Timer(MAX_WAIT_S, self.process.kill)
        late.start()
        line = self.process.stdout.readline()
        late.cancel()
        if not line.startswith("ready "):
            self.log.seek(0)
            sys.exit(f"{os.path.basename(program)} --service {name} does not start: {self.log.read()}")
        self.address = line.split()[1]
        self.channel = grpc.insecure_channel(self.address)

    def end(self):
        self.channel.close()
        self.process.terminate()
        self.process.wait(MAX_WAIT_S)
