// SPDX-License-Identifier: Apache-2.0
package curtail.shop;

import curtail.apps.Accounts.Nothing;
import curtail.apps.Accounts.UserId;
import curtail.host.Host;
import curtail.host.Once;
import curtail.host.Store;
import curtail.shop.Customers.Basket;
import curtail.shop.Customers.BasketChange;
import curtail.shop.Customers.BasketMerge;
import curtail.shop.Customers.Bought;
import curtail.shop.Customers.BoughtLines;
import curtail.shop.Goods.Line;
import io.grpc.Status;
import io.grpc.stub.StreamObserver;

/** services/cart.cc in Java: baskets of customers and guests, from the same file. It has no memcached. */
final class Cart extends CartGrpc.CartImplBase {
  private static final int VERSION = 2;  // of the schema
  private static final long GUEST_BIT = 1L << 62, GUEST_BASKET_S = 25 * 3600, REMOVED_AT_ONCE = 16;

  private final Host host;
  private final Store store;

  /** A change of an owner's basket. */
  private interface Change {
    void run(Store.Session session) throws Exception;
  }

  Cart(Host host) throws Exception {
    this.host = host;
    store = new Store(host, VERSION, "INSERT INTO guests(owner, since_s) SELECT owner, " + nowS()
        + " FROM baskets WHERE owner >= " + GUEST_BIT + " ON CONFLICT(owner) DO NOTHING");
  }

  @Override
  public void get(UserId request, StreamObserver<Basket> to) {
    host.answer(to, () -> store.read(session -> read(session, request.getUser())));
  }

  @Override
  public void add(BasketChange request, StreamObserver<Basket> to) {
    long owner = request.getOwner(), product = request.getLine().getProduct();
    change(to, owner, session -> {
      long had = session.number(0, "SELECT count FROM lines WHERE owner = ?1 AND product = ?2", owner, product);
      long lines = session.number(0, "SELECT count(*) FROM lines WHERE owner = ?1", owner);
      checkLine(product, Integer.toUnsignedLong(request.getLine().getCount()));
      checkLine(product, had + request.getLine().getCount());
      if (had == 0 && lines >= Bounds.MOST_LINES)
        throw Bounds.refuse(Status.RESOURCE_EXHAUSTED, "a basket has at most " + Bounds.MOST_LINES + " products");
      put(session, owner, product, had + request.getLine().getCount());
    });
  }

  @Override
  public void update(BasketChange request, StreamObserver<Basket> to) {
    Line line = request.getLine();
    change(to, request.getOwner(), session -> {
      checkLine(line.getProduct(), Integer.toUnsignedLong(line.getCount()));
      int changed = session.execute("UPDATE lines SET count = ?3 WHERE owner = ?1 AND product = ?2",
          request.getOwner(), line.getProduct(), line.getCount());
      if (changed == 0) throw Bounds.refuse(Status.NOT_FOUND, "the basket lacks this product");
    });
  }

  @Override
  public void remove(BasketChange request, StreamObserver<Basket> to) {
    change(to, request.getOwner(), session ->
        session.execute("DELETE FROM lines WHERE owner = ?1 AND product = ?2", request.getOwner(), request.getLine().getProduct()));
  }

  @Override
  public void clear(UserId request, StreamObserver<Basket> to) {
    change(to, request.getUser(), session -> empty(session, request.getUser()));
  }

  @Override
  public void merge(BasketMerge request, StreamObserver<Basket> to) {
    if (request.getTo() == request.getFrom()) {
      host.answer(to, () -> { throw Bounds.refuse(Status.INVALID_ARGUMENT, "a basket is not merged with itself"); });
      return;
    }
    change(to, request.getTo(), session -> {
      for (Line line : read(session, request.getFrom()).getLinesList()) {
        long had = session.number(0, "SELECT count FROM lines WHERE owner = ?1 AND product = ?2", request.getTo(), line.getProduct());
        put(session, request.getTo(), line.getProduct(), Math.min(had + line.getCount(), Bounds.MOST_OF_PRODUCT));
      }
      if (read(session, request.getTo()).getLinesCount() > Bounds.MOST_LINES)
        throw Bounds.refuse(Status.RESOURCE_EXHAUSTED, "both baskets have more than " + Bounds.MOST_LINES + " products");
      close(session, request.getFrom());
    });
  }

  @Override
  public void take(Bought request, StreamObserver<Nothing> to) {
    host.answer(to, () -> {
      if (request.getOrdersCount() > Bounds.MOST_ORDERS) throw Bounds.refuse(Status.INVALID_ARGUMENT, "there are too many orders");
      return store.write(session -> {
        for (BoughtLines order : request.getOrdersList()) takeOne(session, order);
        return Nothing.getDefaultInstance();
      });
    });
  }

  private static void takeOne(Store.Session session, BoughtLines order) throws Exception {
    if (session.execute("INSERT INTO taken(order_id) VALUES (?1) ON CONFLICT(order_id) DO NOTHING", order.getOrder()) == 0) return;
    for (Line line : order.getLinesList()) {
      Object[] values = {order.getOwner(), line.getProduct(), Integer.toUnsignedLong(line.getCount())};
      if (session.execute("DELETE FROM lines WHERE owner = ?1 AND product = ?2 AND count <= ?3", values) == 0)
        session.execute("UPDATE lines SET count = count - ?3 WHERE owner = ?1 AND product = ?2", values);
    }
    step(session, order.getOwner());
  }

  @Override
  public void forget(UserId request, StreamObserver<Nothing> to) {
    host.answer(to, () -> store.write(session -> {
      close(session, request.getUser());
      session.execute("DELETE FROM requests WHERE caller = ?1", request.getUser());
      return Nothing.getDefaultInstance();
    }));
  }

  // Runs `work` once for each name of a request, and answers with the basket.
  private void change(StreamObserver<Basket> to, long owner, Change work) {
    host.answer(to, () -> Once.write(store, owner, Basket.parser(), session -> {
      if (step(session, owner) == 0)
        throw Bounds.refuse(Status.FAILED_PRECONDITION, "this basket is another's now, or its owner was deleted");
      work.run(session);
      return read(session, owner);
    }));
  }

  // Changes nothing if the basket is closed.
  private static int step(Store.Session session, long owner) throws Exception {
    noteGuest(session, owner);
    return session.execute("INSERT INTO baskets(owner, version, closed) VALUES (?1, 1, 0)"
        + " ON CONFLICT(owner) DO UPDATE SET version = baskets.version + 1 WHERE baskets.closed = 0", owner);
  }

  private static void close(Store.Session session, long owner) throws Exception {
    noteGuest(session, owner);
    session.execute("INSERT INTO baskets(owner, version, closed) VALUES (?1, 1, 1)"
        + " ON CONFLICT(owner) DO UPDATE SET version = baskets.version + 1, closed = 1", owner);
    empty(session, owner);
  }

  // Of an owner who is a new guest. Removes some baskets of guests whose sessions have ended.
  private static void noteGuest(Store.Session session, long owner) throws Exception {
    if ((owner & GUEST_BIT) == 0) return;
    if (session.execute("INSERT INTO guests(owner, since_s) VALUES (?1, ?2) ON CONFLICT(owner) DO NOTHING", owner, nowS()) == 0) return;
    for (long ended : session.query(row -> row.getLong(1), "SELECT owner FROM guests WHERE since_s <= ?1 ORDER BY since_s LIMIT ?2",
        nowS() - GUEST_BASKET_S, REMOVED_AT_ONCE)) {
      for (String table : new String[] {"lines", "baskets", "guests"}) session.execute("DELETE FROM " + table + " WHERE owner = ?1", ended);
    }
  }

  private static long nowS() {
    return System.currentTimeMillis() / 1000;
  }

  private static void empty(Store.Session session, long owner) throws Exception {
    session.execute("DELETE FROM lines WHERE owner = ?1", owner);
  }

  private static void checkLine(long product, long count) {
    if (product == 0 || count < 1 || count > Bounds.MOST_OF_PRODUCT)
      throw Bounds.refuse(Status.INVALID_ARGUMENT, "a basket has 1 to " + Bounds.MOST_OF_PRODUCT + " of a product");
  }

  private static void put(Store.Session session, long owner, long product, long count) throws Exception {
    session.execute("INSERT INTO lines(owner, product, count, place) VALUES (?1, ?2, ?3,"
        + " (SELECT coalesce(max(place), 0) + 1 FROM lines WHERE owner = ?1))"
        + " ON CONFLICT(owner, product) DO UPDATE SET count = ?3", owner, product, count);
  }

  private static Basket read(Store.Session session, long owner) throws Exception {
    return Basket.newBuilder().setVersion(session.number(0, "SELECT version FROM baskets WHERE owner = ?1", owner))
        .addAllLines(session.query(row -> Line.newBuilder().setProduct(row.getLong(1)).setCount(row.getInt(2)).build(),
            "SELECT product, count FROM lines WHERE owner = ?1 ORDER BY place", owner))
        .build();
  }
}
