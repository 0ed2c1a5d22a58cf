// SPDX-License-Identifier: Apache-2.0
package curtail.host;

import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.ClientInterceptors;
import io.grpc.ManagedChannel;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import io.grpc.netty.shaded.io.netty.channel.epoll.EpollDomainSocketChannel;
import io.grpc.netty.shaded.io.netty.channel.epoll.EpollEventLoopGroup;
import io.grpc.netty.shaded.io.netty.channel.unix.DomainSocketAddress;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * The instances of a service, which get calls in turn. A call has the deadline of the request in which it is made, ends when that
 * is cancelled (io.grpc.Context does both), and carries its trace. Thread-safe.
 */
final class Peer extends Channel {
  private static final long LOOK_AGAIN_NS = 200_000_000;  // at a file of addresses
  private static final EpollEventLoopGroup LOOP = new EpollEventLoopGroup(1);

  private final String file;  // null: the addresses stay
  // Guarded by this.
  private final Map<String, Channel> channels = new HashMap<>();
  private List<String> addresses;
  private long looked;
  private int turn;

  Peer(List<String> addresses) {
    this.addresses = addresses;
    file = addresses.get(0).startsWith("file:") ? addresses.get(0).substring(5) : null;
    looked = System.nanoTime() - LOOK_AGAIN_NS;
  }

  @Override
  public String authority() {
    return "localhost";
  }

  @Override
  public <Q, R> ClientCall<Q, R> newCall(MethodDescriptor<Q, R> method, CallOptions options) {
    return pick().newCall(method, options);
  }

  private synchronized Channel pick() {
    if (file != null && System.nanoTime() - looked >= LOOK_AGAIN_NS) {
      try {
        addresses = Files.readAllLines(Path.of(file)).stream().filter(line -> !line.isBlank()).toList();
      } catch (IOException gone) {
        throw new StatusRuntimeException(Status.UNAVAILABLE.withDescription(String.valueOf(gone)));
      }
      looked = System.nanoTime();
    }
    if (addresses.isEmpty()) throw new StatusRuntimeException(Status.UNAVAILABLE.withDescription(file + " names no server"));
    turn = (turn + 1) % addresses.size();
    return channels.computeIfAbsent(addresses.get(turn), Peer::open);
  }

  private static Channel open(String address) {
    NettyChannelBuilder builder = NettyChannelBuilder.forTarget(address);
    if (address.startsWith("unix:")) {
      builder = NettyChannelBuilder.forAddress(new DomainSocketAddress(address.substring(5)))
          .overrideAuthority("localhost").channelType(EpollDomainSocketChannel.class).eventLoopGroup(LOOP);
    }
    ManagedChannel channel = builder.usePlaintext().maxInboundMessageSize(Host.MAX_MESSAGE).build();
    return ClientInterceptors.intercept(channel, Trace.CARRIER);
  }
}
