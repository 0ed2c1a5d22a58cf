// SPDX-License-Identifier: Apache-2.0
package curtail.host;

import io.grpc.BindableService;
import io.grpc.Channel;
import io.grpc.Server;
import io.grpc.ServerInterceptors;
import io.grpc.ServerServiceDefinition;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.netty.shaded.io.grpc.netty.NettyServerBuilder;
import io.grpc.netty.shaded.io.netty.channel.epoll.EpollEventLoopGroup;
import io.grpc.netty.shaded.io.netty.channel.epoll.EpollServerDomainSocketChannel;
import io.grpc.netty.shaded.io.netty.channel.epoll.EpollServerSocketChannel;
import io.grpc.netty.shaded.io.netty.channel.unix.DomainSocketAddress;
import io.grpc.protobuf.services.HealthStatusManager;
import io.grpc.protobuf.services.ProtoReflectionServiceV1;
import io.grpc.stub.StreamObserver;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

/** The main() of a program of services, with the flags of curtail's own host: docs/languages.md. Thread-safe. */
public final class Host {
  public static final int MAX_MESSAGE = 32 << 20;
  private static final int BAD_CONFIG = 104;
  private static final int THREADS = 64;  // handlers block, so no more requests run at once

  /** Makes a service of its surroundings. An exception ends the process with 104 and its message. */
  public interface Maker {
    BindableService make(Host host) throws Exception;
  }

  public final String service;
  final Log log;
  private final String application;
  private final Flags flags;

  private Host(String application, String[] words) {
    this.application = application;
    log = new Log(application);
    flags = new Flags(words);
    service = flag("service", "");
  }

  /** Serves the service of `services` that --service names, until SIGTERM or SIGINT. */
  public static void main(String application, String[] words, Map<String, Maker> services) throws Exception {
    Host host = new Host(application, words);
    try {
      host.serve(services);
    } catch (Exception broken) {
      host.log.write(Log.ERROR, String.valueOf(broken.getMessage()), Map.of());
      System.exit(BAD_CONFIG);
    }
  }

  private void serve(Map<String, Maker> services) throws Exception {
    Maker maker = services.get(service);
    if (maker == null) throw new IllegalArgumentException("--service " + service + ": there are " + services.keySet());
    Trace trace = new Trace(this);
    HealthStatusManager health = new HealthStatusManager();
    ExecutorService handlers = Executors.newFixedThreadPool(THREADS);
    ServerServiceDefinition own = ServerInterceptors.intercept(maker.make(this), trace);
    List<Server> servers = new ArrayList<>();
    for (String address : flags.all("listen", List.of("127.0.0.1:0"))) {
      Server server = builder(address).addService(own).addService(health.getHealthService())
          .addService(ProtoReflectionServiceV1.newInstance())
          .executor(handlers).maxInboundMessageSize(MAX_MESSAGE).build().start();
      servers.add(server);
      String at = address.startsWith("unix:") ? address : text(server.getListenSockets().get(0));
      if (Log.JSON) log.write(Log.INFO, "ready " + at, Map.of("address", at));
      else System.out.println("ready " + at);
    }
    long drainMs = (long) (1000 * Double.parseDouble(flag("drain", "10")));
    Runtime.getRuntime().addShutdownHook(new Thread(() -> drain(servers, health, trace, drainMs)));
    for (Server server : servers) server.awaitTermination();
  }

  private static void drain(List<Server> servers, HealthStatusManager health, Trace trace, long drainMs) {
    health.enterTerminalState();
    for (Server server : servers) server.shutdown();
    try {
      for (Server server : servers) {
        if (!server.awaitTermination(drainMs, TimeUnit.MILLISECONDS)) server.shutdownNow();
      }
      trace.close();
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
    }
    Runtime.getRuntime().halt(0);
  }

  private static NettyServerBuilder builder(String address) throws Exception {
    boolean unix = address.startsWith("unix:");
    SocketAddress at;
    if (unix) {
      Files.deleteIfExists(Path.of(address.substring(5)));
      at = new DomainSocketAddress(address.substring(5));
    } else {
      int colon = address.lastIndexOf(':');
      at = new InetSocketAddress(address.substring(0, colon), Integer.parseInt(address.substring(colon + 1)));
    }
    return NettyServerBuilder.forAddress(at)
        .channelType(unix ? EpollServerDomainSocketChannel.class : EpollServerSocketChannel.class)
        .bossEventLoopGroup(new EpollEventLoopGroup(1)).workerEventLoopGroup(new EpollEventLoopGroup(1));
  }

  private static String text(SocketAddress address) {
    InetSocketAddress at = (InetSocketAddress) address;
    return at.getAddress().getHostAddress() + ":" + at.getPort();
  }

  /** The last value of --name, or `otherwise`. */
  public String flag(String name, String otherwise) {
    return flags.last(name, otherwise);
  }

  /** The addresses that --peer or --store has for a name; none without the flag. */
  public List<String> addresses(String flag, String name) {
    return flags.named(flag, name);
  }

  /** Where a service is, for a generated stub: its instances get calls in turn. */
  public Channel peer(String name) {
    List<String> addresses = addresses("peer", name);
    if (addresses.isEmpty())
      throw new IllegalArgumentException(service + " calls " + name + ": say where it is, --peer " + name
          + "=ADDR,ADDR; in a topology add " + name + " to its calls");
    return new Peer(addresses);
  }

  /** Answers a call with what `work` returns, or the status that it throws; another exception is INTERNAL. */
  public <R> void answer(StreamObserver<R> to, Callable<R> work) {
    try {
      R reply = work.call();
      to.onNext(reply);
      to.onCompleted();
    } catch (StatusRuntimeException refused) {
      to.onError(refused);
    } catch (Exception broken) {
      log.write(Log.ERROR, broken.toString(), Map.of());
      to.onError(Status.INTERNAL.withDescription("the handler failed").asRuntimeException());
    }
  }

  /** The folder of --data, which exists then. */
  public Path dataFolder() throws Exception {
    String state = System.getenv().getOrDefault("XDG_STATE_HOME", System.getenv("HOME") + "/.local/state");
    String given = flag("data", "auto");
    return Files.createDirectories(given.equals("auto") ? Path.of(state, "curtail", application) : Path.of(given));
  }
}
