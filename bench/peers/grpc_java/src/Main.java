// SPDX-License-Identifier: Apache-2.0
//
// grpc-java: the null fan-out's mid-tier and leaf on Netty, with its native epoll transport. Takes the flags with which
// peers starts every server: --stack NAME --role leaf|mid --leaf ADDRESS...
package curtail.bench;

import curtail.bench.Fanout.Blob;
import io.grpc.CallOptions;
import io.grpc.ManagedChannel;
import io.grpc.MethodDescriptor;
import io.grpc.Server;
import io.grpc.ServerServiceDefinition;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import io.grpc.netty.shaded.io.grpc.netty.NettyServerBuilder;
import io.grpc.netty.shaded.io.netty.channel.epoll.Epoll;
import io.grpc.protobuf.ProtoUtils;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.ServerCalls;
import io.grpc.stub.StreamObserver;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;

final class Main {
  // Written by hand, since the code that grpc-java generates for a method named Null does not compile. The calls
  // are those of generated code.
  static MethodDescriptor<Blob, Blob> unary(String name) {
    return MethodDescriptor.<Blob, Blob>newBuilder()
        .setType(MethodDescriptor.MethodType.UNARY)
        .setFullMethodName(name)
        .setRequestMarshaller(ProtoUtils.marshaller(Blob.getDefaultInstance()))
        .setResponseMarshaller(ProtoUtils.marshaller(Blob.getDefaultInstance()))
        .build();
  }

  static ServerServiceDefinition service(String name, MethodDescriptor<Blob, Blob> method,
      ServerCalls.UnaryMethod<Blob, Blob> handler) {
    return ServerServiceDefinition.builder(name).addMethod(method, ServerCalls.asyncUnaryCall(handler)).build();
  }

  static final MethodDescriptor<Blob, Blob> NULL = unary("curtail.bench.Leaf/Null");
  static final MethodDescriptor<Blob, Blob> QUERY = unary("curtail.bench.Mid/Query");

  static ServerServiceDefinition leafService() {
    return service("curtail.bench.Leaf", NULL, (request, reply) -> {
      reply.onNext(request);
      reply.onCompleted();
    });
  }

  // Starts all calls and returns; the last reply answers the request.
  static ServerServiceDefinition midService(List<InetSocketAddress> leaves) {
    List<ManagedChannel> channels = new ArrayList<>();
    for (InetSocketAddress leaf : leaves) {
      channels.add(NettyChannelBuilder.forAddress(leaf).usePlaintext().directExecutor().build());
    }
    return service("curtail.bench.Mid", QUERY, (request, reply) -> {
      FanOut calls = new FanOut(channels.size(), reply);
      for (ManagedChannel channel : channels) {
        ClientCalls.asyncUnaryCall(channel.newCall(NULL, CallOptions.DEFAULT), request, calls);
      }
    });
  }

  // Receives the replies of all leaf calls of one request. Thread-safe: each channel has its own event loop.
  static final class FanOut implements StreamObserver<Blob> {
    private final StreamObserver<Blob> reply;
    private final AtomicInteger pending;
    private final AtomicBoolean failed = new AtomicBoolean();
    private volatile Blob last;

    FanOut(int calls, StreamObserver<Blob> reply) {
      this.reply = reply;
      pending = new AtomicInteger(calls);
    }

    @Override
    public void onNext(Blob blob) {
      last = blob;
    }

    // A failed call never completes, so a request gets either one reply or one error.
    @Override
    public void onCompleted() {
      if (pending.decrementAndGet() != 0) return;
      reply.onNext(last);
      reply.onCompleted();
    }

    @Override
    public void onError(Throwable error) {
      if (failed.compareAndSet(false, true)) reply.onError(error);
    }
  }

  static ServerServiceDefinition parse(String[] words) {
    String role = "";
    List<InetSocketAddress> leaves = new ArrayList<>();
    for (int i = 0; i < words.length; i += 2) {
      if (i + 1 == words.length) throw new IllegalArgumentException(words[i] + " needs a value");
      String value = words[i + 1];
      switch (words[i]) {
        case "--stack" -> {}  // there is one
        case "--role" -> role = value;
        case "--leaf" -> {
          int colon = value.lastIndexOf(':');
          leaves.add(new InetSocketAddress(value.substring(0, colon), Integer.parseInt(value.substring(colon + 1))));
        }
        default -> throw new IllegalArgumentException("there is no flag " + words[i]);
      }
    }
    if (role.equals("leaf")) return leafService();
    if (role.equals("mid") && !leaves.isEmpty()) return midService(leaves);
    throw new IllegalArgumentException("needs --role leaf, or --role mid and a --leaf ADDRESS for each leaf");
  }

  public static void main(String[] words) {
    try {
      ServerServiceDefinition service = parse(words);
      Epoll.ensureAvailability();  // otherwise Netty falls back to Java's NIO and does not say so
      // No handler blocks, so all of them run on the event loops and no call changes threads.
      Server server = NettyServerBuilder.forAddress(new InetSocketAddress("127.0.0.1", 0))
          .directExecutor().addService(service).build().start();
      System.out.println("127.0.0.1:" + server.getPort());
      server.awaitTermination();
    } catch (Exception | UnsatisfiedLinkError error) {
      System.err.println("grpc-java: " + error.getMessage());
      System.exit(1);
    }
  }
}
