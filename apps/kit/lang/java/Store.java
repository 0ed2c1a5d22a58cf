// SPDX-License-Identifier: Apache-2.0
package curtail.host;

import io.grpc.Context;
import io.grpc.Status;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import org.sqlite.SQLiteConfig;
import org.sqlite.SQLiteErrorCode;
import org.sqlite.SQLiteException;

/**
 * The file of a service, as curtail/store/sql opens it, and its schema the text that C++ has, too: either program may serve
 * from it. Thread-safe.
 */
public final class Store {
  /** A piece of work in a transaction. */
  public interface Work<T> {
    T run(Session session) throws Exception;
  }

  /** What is made of a row. */
  public interface Row<T> {
    T read(ResultSet row) throws Exception;
  }

  /** Statements of one transaction; values are Long, Integer, String or byte[]. */
  public record Session(Connection connection) {
    public int execute(String statement, Object... values) throws SQLException {
      try (PreparedStatement prepared = prepare(statement, values)) {
        return prepared.executeUpdate();
      }
    }

    public <T> List<T> query(Row<T> reader, String statement, Object... values) throws Exception {
      List<T> all = new ArrayList<>();
      try (PreparedStatement prepared = prepare(statement, values); ResultSet rows = prepared.executeQuery()) {
        while (rows.next()) all.add(reader.read(rows));
      }
      return all;
    }

    /** The number of the only row; `otherwise` without one. */
    public long number(long otherwise, String statement, Object... values) throws Exception {
      List<Long> rows = query(row -> row.getLong(1), statement, values);
      return rows.isEmpty() ? otherwise : rows.get(0);
    }

    private PreparedStatement prepare(String statement, Object... values) throws SQLException {
      PreparedStatement prepared = connection.prepareStatement(statement);
      for (int i = 0; i < values.length; ++i) prepared.setObject(i + 1, values[i]);
      return prepared;
    }
  }

  private final String url;
  private final SQLiteConfig config = new SQLiteConfig();
  private final Connection writer;  // guarded by this
  private final ThreadLocal<Connection> readers;

  /** FOLDER/SERVICE.db, with the schema of sql/SERVICE.sql if it is new. */
  public Store(Host host) throws Exception {
    this(host, 1, "");
  }

  /** With this version of the schema: sql/SERVICE.sql, which makes what is not there, and then `upgrade` lead to it. */
  public Store(Host host, int version, String upgrade) throws Exception {
    if (!host.addresses("store", host.service + "-postgresql").isEmpty())
      throw new IllegalArgumentException(host.service + " keeps its data in a file here: leave --stores out");
    url = "jdbc:sqlite:" + host.dataFolder().resolve(host.service + ".db");
    config.setJournalMode(SQLiteConfig.JournalMode.WAL);
    boolean sync = host.flag("no-sync", null) == null;
    config.setSynchronous(sync ? SQLiteConfig.SynchronousMode.FULL : SQLiteConfig.SynchronousMode.NORMAL);
    config.setBusyTimeout(5000);
    config.enforceForeignKeys(true);
    writer = config.createConnection(url);
    String schema = Files.readString(Path.of(System.getenv("CURTAIL_APP_HOME"), "sql", host.service + ".sql"));
    write(session -> {
      long there = session.number(0, "PRAGMA user_version");
      if (there > version)
        throw new IllegalStateException("the data has version " + there + " of its schema, and this program knows " + version);
      if (there < version)
        session.connection().createStatement().executeUpdate(schema + "; " + upgrade + "; PRAGMA user_version = " + version);
      return null;
    });
    readers = ThreadLocal.withInitial(this::reader);
  }

  private Connection reader() {
    try {
      return config.createConnection(url);
    } catch (SQLException broken) {
      throw new IllegalStateException(broken);
    }
  }

  /** Runs `work` on one state of the data. */
  public <T> T read(Work<T> work) throws Exception {
    return within(readers.get(), "BEGIN", work);
  }

  /** Runs `work` as a transaction, which is on disk when this returns. Other writers wait. */
  public synchronized <T> T write(Work<T> work) throws Exception {
    return within(writer, "BEGIN IMMEDIATE", work);
  }

  // The driver's own transactions begin the next one at once, and keep its lock.
  private static <T> T within(Connection connection, String begin, Work<T> work) throws Exception {
    if (Context.current().isCancelled()) {  // what has begun is not left half done
      boolean late = Context.current().getDeadline() != null && Context.current().getDeadline().isExpired();
      throw (late ? Status.DEADLINE_EXCEEDED : Status.CANCELLED).asRuntimeException();
    }
    Session session = new Session(connection);
    boolean done = false;
    session.execute(begin);
    try {
      T result = work.run(session);
      session.execute("COMMIT");
      done = true;
      return result;
    } catch (SQLiteException broken) {
      boolean known = broken.getResultCode() == SQLiteErrorCode.SQLITE_CONSTRAINT_UNIQUE
          || broken.getResultCode() == SQLiteErrorCode.SQLITE_CONSTRAINT_PRIMARYKEY;
      throw known ? Status.ALREADY_EXISTS.withDescription(broken.getMessage()).asRuntimeException() : broken;
    } finally {
      if (!done) session.execute("ROLLBACK");
    }
  }
}
