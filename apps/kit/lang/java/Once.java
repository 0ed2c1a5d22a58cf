// SPDX-License-Identifier: Apache-2.0
package curtail.host;

import com.google.protobuf.Message;
import com.google.protobuf.Parser;
import io.grpc.Metadata;
import io.grpc.Status;
import java.util.List;

/** Writes that happen once for each name of a request, as apps/kit/once.h has it: in the same table, by the same metadata. */
public final class Once {
  private static final long KEPT_S = 24 * 3600;
  private static final int FORGOTTEN_AT_ONCE = 16;

  private record Answer(String content, byte[] reply) {}

  private Once() {}

  /**
   * Runs `work` as a transaction of `store`. A repetition changes nothing, and gets the first answer. ALREADY_EXISTS: the name was
   * given to another content.
   */
  public static <R extends Message> R write(Store store, long caller, Parser<R> parser, Store.Work<R> work) throws Exception {
    String name = metadata("idempotency-key"), content = metadata("idempotency-content");
    if (name == null || name.isEmpty() || content == null) return store.write(work);
    long now = System.currentTimeMillis() / 1000;
    return store.write(session -> {
      List<Answer> known = session.query(row -> new Answer(row.getString(1), row.getBytes(2)),
          "SELECT content, reply FROM requests WHERE caller = ?1 AND name = ?2 AND kept_s > ?3", caller, name, now - KEPT_S);
      if (!known.isEmpty() && !known.get(0).content().equals(content)) {
        throw Status.ALREADY_EXISTS.withDescription("the idempotency key was given to another request of this caller;"
            + " take a new one for each request").asRuntimeException();
      }
      if (!known.isEmpty()) return parser.parseFrom(known.get(0).reply());
      R reply = work.run(session);
      session.execute("INSERT OR REPLACE INTO requests(caller, name, content, reply, done, kept_s)"
          + " VALUES (?1, ?2, ?3, ?4, 1, ?5)", caller, name, content, reply.toByteArray(), now);
      session.execute("DELETE FROM requests WHERE (caller, name) IN"
          + " (SELECT caller, name FROM requests WHERE kept_s <= ?1 ORDER BY kept_s LIMIT ?2)", now - KEPT_S, FORGOTTEN_AT_ONCE);
      return reply;
    });
  }

  private static String metadata(String key) {
    Metadata received = Trace.HEADERS.get();
    return received == null ? null : received.get(Metadata.Key.of(key, Metadata.ASCII_STRING_MARSHALLER));
  }
}
