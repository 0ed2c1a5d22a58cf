// SPDX-License-Identifier: Apache-2.0
package curtail.host;

import java.net.InetAddress;
import java.net.UnknownHostException;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/** Lines on stderr, with the fields of curtail/base/log.h and the trace of the request in which they are written. Thread-safe. */
public final class Log {
  public static final int DEBUG = 0, INFO = 1, WARNING = 2, ERROR = 3;
  static final boolean JSON = "json".equals(System.getenv("CURTAIL_LOG_FORMAT"));
  private static final List<String> SEVERITIES = List.of("DEBUG", "INFO", "WARNING", "ERROR");
  private static final DateTimeFormatter TIME =
      DateTimeFormatter.ofPattern("yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'").withZone(ZoneOffset.UTC);

  private final String service, instance;
  private final int least;

  Log(String program) {
    Map<String, String> environment = System.getenv();
    service = environment.getOrDefault("CURTAIL_LOG_SERVICE", program);
    instance = environment.getOrDefault("CURTAIL_LOG_INSTANCE", machine());
    least = SEVERITIES.indexOf(environment.getOrDefault("CURTAIL_LOG_LEVEL", "info").toUpperCase());
  }

  public void write(int severity, String message, Map<String, ?> fields) {
    if (severity < least) return;
    Trace.Span span = Trace.Span.current();
    if (!JSON) {
      String trace = span.trace().isEmpty() ? "" : " [" + span.trace().substring(0, 8) + "]";
      System.err.println(service + ": " + message.replace("\n", "\\n") + trace);
      return;
    }
    Map<String, Object> line = new LinkedHashMap<>();
    line.put("time", TIME.format(Instant.now()));
    line.put("severity", SEVERITIES.get(severity));
    line.put("service", service);
    line.put("instance", instance);
    line.put("message", message);
    if (!span.trace().isEmpty()) {
      line.put("trace_id", span.trace());
      line.put("span_id", span.id());
    }
    line.putAll(fields);
    System.err.println(json(line));
  }

  /** Maps, lists, texts and numbers as JSON. */
  static String json(Object value) {
    if (value instanceof Map<?, ?> map) {
      return map.entrySet().stream().map(entry -> json(entry.getKey()) + ":" + json(entry.getValue()))
          .collect(Collectors.joining(",", "{", "}"));
    }
    if (value instanceof List<?> list) return list.stream().map(Log::json).collect(Collectors.joining(",", "[", "]"));
    if (value instanceof Number) return value.toString();
    StringBuilder text = new StringBuilder("\"");
    for (char c : String.valueOf(value).toCharArray()) {
      if (c == '"' || c == '\\') text.append('\\').append(c);
      else if (c < 0x20 || c >= 0x7f) text.append(String.format("\\u%04x", (int) c));
      else text.append(c);
    }
    return text.append('"').toString();
  }

  private static String machine() {
    try {
      return InetAddress.getLocalHost().getHostName();
    } catch (UnknownHostException nameless) {
      return "localhost";
    }
  }
}
