// SPDX-License-Identifier: Apache-2.0
package curtail.host;

import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.ClientInterceptor;
import io.grpc.Context;
import io.grpc.Contexts;
import io.grpc.ForwardingClientCall.SimpleForwardingClientCall;
import io.grpc.ForwardingServerCall.SimpleForwardingServerCall;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.ServerCall;
import io.grpc.ServerCallHandler;
import io.grpc.ServerInterceptor;
import io.grpc.Status;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** A span of each request that its caller or chance has chosen, sent to --trace-to, and the trace of child calls. Thread-safe. */
final class Trace implements ServerInterceptor {
  private static final Pattern FORM = Pattern.compile("00-([0-9a-f]{32})-([0-9a-f]{16})-0([0-3])");
  private static final Metadata.Key<String> KEY = Metadata.Key.of("traceparent", Metadata.ASCII_STRING_MARSHALLER);
  private static final Context.Key<Span> SPAN = Context.key("span");
  /** What the caller of a request has sent. */
  static final Context.Key<Metadata> HEADERS = Context.key("headers");

  /** The place of a request in its trace; empty texts: it is in none. */
  record Span(String trace, String id, String parent, boolean chosen) {
    static final Span NONE = new Span("", "", "", false);

    static Span current() {
      Span span = SPAN.get();
      return span == null ? NONE : span;
    }
  }

  /** Gives each call the trace of the request in which it is made. */
  static final ClientInterceptor CARRIER = new ClientInterceptor() {
    @Override
    public <Q, R> ClientCall<Q, R> interceptCall(MethodDescriptor<Q, R> method, CallOptions options, Channel next) {
      Span span = Span.current();
      return new SimpleForwardingClientCall<>(next.newCall(method, options)) {
        @Override
        public void start(Listener<R> listener, Metadata headers) {
          if (!span.trace().isEmpty())
            headers.put(KEY, "00-" + span.trace() + "-" + span.id() + (span.chosen() ? "-01" : "-00"));
          super.start(listener, headers);
        }
      };
    }
  };

  private final ArrayBlockingQueue<Map<String, Object>> spans = new ArrayBlockingQueue<>(512);
  private final HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
  private final Host host;
  private final String url;  // empty: no collector; requests carry their caller's trace on
  private final double share;

  Trace(Host host) {
    this.host = host;
    String to = host.flag("trace-to", "");
    if (!to.isEmpty() && !to.startsWith("otlp="))
      throw new IllegalArgumentException("--trace-to " + to + ": write otlp=http://HOST:PORT");
    String given = to.replaceFirst("^otlp=", "");
    url = !given.isEmpty() && URI.create(given).getPath().isEmpty() ? given + "/v1/traces" : given;
    share = Double.parseDouble(host.flag("trace-sample", "0.001"));
    if (url.isEmpty()) return;
    Thread sender = new Thread(this::sendAll);
    sender.setDaemon(true);
    sender.start();
  }

  private Span begin(String received) {
    Matcher parts = FORM.matcher(received == null ? "" : received);
    ThreadLocalRandom random = ThreadLocalRandom.current();
    String id = String.format("%016x", random.nextLong() | 1);
    if (parts.matches()) {
      boolean chosen = (parts.group(3).charAt(0) & 1) != 0;
      return new Span(parts.group(1), url.isEmpty() ? parts.group(2) : id, parts.group(2), chosen);
    }
    if (url.isEmpty() || random.nextDouble() >= share) return Span.NONE;
    return new Span(String.format("%016x%016x", random.nextLong(), random.nextLong() | 1), id, "", true);
  }

  @Override
  public <Q, R> ServerCall.Listener<Q> interceptCall(ServerCall<Q, R> call, Metadata headers, ServerCallHandler<Q, R> next) {
    Span span = begin(headers.get(KEY));
    Instant began = Instant.now();
    String path = call.getMethodDescriptor().getFullMethodName();
    ServerCall<Q, R> observed = new SimpleForwardingServerCall<>(call) {
      @Override
      public void close(Status status, Metadata trailers) {
        if (span.chosen() && !url.isEmpty()) end(span, path, began, status);
        super.close(status, trailers);
      }
    };
    return Contexts.interceptCall(Context.current().withValues(SPAN, span, HEADERS, headers), observed, headers, next);
  }

  private void end(Span span, String path, Instant began, Status status) {
    Map<String, Object> one = new LinkedHashMap<>(Map.of("traceId", span.trace(), "spanId", span.id(), "name", path,
        "kind", 2, "startTimeUnixNano", nanos(began), "endTimeUnixNano", nanos(Instant.now()), "attributes",
        List.of(attribute("rpc.system", "stringValue", "grpc"),
            attribute("rpc.grpc.status_code", "intValue", String.valueOf(status.getCode().value())))));
    if (!span.parent().isEmpty()) one.put("parentSpanId", span.parent());
    if (!status.isOk()) one.put("status", Map.of("code", 2, "message", status.getCode().name()));
    spans.offer(one);  // a collector that is slow costs spans and nothing else
  }

  private static Map<String, Object> attribute(String key, String type, String value) {
    return Map.of("key", key, "value", Map.of(type, value));
  }

  private static String nanos(Instant when) {
    return String.valueOf(when.getEpochSecond() * 1_000_000_000L + when.getNano());
  }

  private void sendAll() {
    try {
      while (true) {
        List<Map<String, Object>> batch = new ArrayList<>(List.of(spans.take()));
        spans.drainTo(batch);
        send(batch);
      }
    } catch (InterruptedException ended) {
      Thread.currentThread().interrupt();
    }
  }

  private void send(List<Map<String, Object>> batch) throws InterruptedException {
    Object scope = Map.of("scope", Map.of("name", "curtail"), "spans", batch);
    Object resource = Map.of("attributes", List.of(attribute("service.name", "stringValue", host.service)));
    String body = Log.json(Map.of("resourceSpans", List.of(Map.of("resource", resource, "scopeSpans", List.of(scope)))));
    HttpRequest request = HttpRequest.newBuilder(URI.create(url)).timeout(Duration.ofSeconds(5))
        .header("content-type", "application/json").POST(HttpRequest.BodyPublishers.ofString(body)).build();
    for (int tries = 0; tries < 2; ++tries) {  // the collector may have closed the connection of before
      try {
        client.send(request, HttpResponse.BodyHandlers.discarding());
        return;
      } catch (IOException lost) {
        host.log.write(Log.DEBUG, "spans were lost: " + lost, Map.of());
      }
    }
  }

  /** Sends what waits, for 2 s at most. No request is in flight any more. */
  void close() throws InterruptedException {
    for (int i = 0; i < 20 && !spans.isEmpty(); ++i) TimeUnit.MILLISECONDS.sleep(100);
  }
}
