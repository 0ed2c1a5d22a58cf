// SPDX-License-Identifier: Apache-2.0
package curtail.shop;

import curtail.apps.Accounts.Nothing;
import curtail.host.Host;
import curtail.host.Store;
import curtail.shop.Buying.Invoice;
import curtail.shop.Buying.InvoiceOrder;
import curtail.shop.Buying.InvoiceOrders;
import curtail.shop.Buying.OwnedOrder;
import curtail.shop.Buying.Quote;
import io.grpc.Status;
import io.grpc.stub.StreamObserver;
import java.util.List;

/** services/invoice.cc in Java: the invoices of orders, from the same file. */
final class Invoices extends InvoicesGrpc.InvoicesImplBase {
  private final Host host;
  private final Store store;

  Invoices(Host host) throws Exception {
    this.host = host;
    store = new Store(host);
  }

  @Override
  public void issue(InvoiceOrders request, StreamObserver<Nothing> to) {
    host.answer(to, () -> {
      Bounds.checkCount(request.getOrdersCount(), "orders");
      return store.write(session -> {
        for (InvoiceOrder order : request.getOrdersList()) issueOne(session, order);
        return Nothing.getDefaultInstance();
      });
    });
  }

  private static void issueOne(Store.Session session, InvoiceOrder order) throws Exception {
    if (order.getNumber() == 0) throw Bounds.refuse(Status.INVALID_ARGUMENT, "an invoice has a number");
    // ALREADY_EXISTS: the order has another number.
    int issued = session.execute("INSERT INTO invoices(number, order_id, owner, issued_ms, bytes) VALUES (?1, ?2, ?3, ?4, ?5)"
        + " ON CONFLICT(number) DO NOTHING",
        order.getNumber(), order.getOrder(), order.getOwner(), System.currentTimeMillis(), order.getQuote().toByteArray());
    if (issued == 1) return;
    long kept = session.number(0, "SELECT order_id FROM invoices WHERE number = ?1", order.getNumber());
    if (kept == order.getOrder()) return;
    throw Bounds.refuse(Status.ALREADY_EXISTS,
        "invoice " + Long.toUnsignedString(order.getNumber()) + " is of order " + Long.toUnsignedString(kept));
  }

  @Override
  public void get(OwnedOrder request, StreamObserver<Invoice> to) {
    host.answer(to, () -> {
      List<Invoice> found = store.read(session -> session.query(
          row -> Invoice.newBuilder().setNumber(row.getLong(1)).setOrder(request.getOrder()).setIssuedMs(row.getLong(2))
              .setQuote(Quote.parseFrom(row.getBytes(3))).build(),
          "SELECT number, issued_ms, bytes FROM invoices WHERE order_id = ?1 AND owner = ?2", request.getOrder(), request.getOwner()));
      if (found.isEmpty()) throw Bounds.refuse(Status.NOT_FOUND, "there is no such invoice");
      return found.get(0);
    });
  }
}
