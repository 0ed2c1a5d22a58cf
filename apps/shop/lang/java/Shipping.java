// SPDX-License-Identifier: Apache-2.0
package curtail.shop;

import curtail.apps.Accounts.Nothing;
import curtail.host.Host;
import curtail.host.Store;
import curtail.shop.Buying.OwnedOrder;
import curtail.shop.Buying.Shipment;
import curtail.shop.Buying.ShipmentOrder;
import curtail.shop.Buying.ShipmentOrders;
import curtail.shop.Buying.ShippingOption;
import curtail.shop.Buying.ShippingOptions;
import curtail.shop.Buying.ShippingQuery;
import io.grpc.Status;
import io.grpc.stub.StreamObserver;
import java.util.List;

/** services/shipping.cc in Java: what it costs to send an order, and the shipments of orders, from the same file. */
final class Shipping extends ShippingGrpc.ShippingImplBase {
  private static final long MOST_GRAMS = 1_000_000;
  private static final long DAY_MS = 86_400_000;

  /** The cents of each started kilogram, and days, at home; abroad they are doubled. */
  private record Kind(String name, long cents, long centsOfKg, int days) {
    ShippingOption option(String country, long grams) {
      int abroad = country.equals("US") ? 1 : 2;
      return ShippingOption.newBuilder().setName(name).setCents(abroad * (cents + centsOfKg * ((grams + 999) / 1000)))
          .setDays(abroad * days).build();
    }
  }

  private static final List<Kind> KINDS = List.of(new Kind("standard", 399, 50, 5), new Kind("express", 1299, 150, 1));

  private final Host host;
  private final Store store;

  Shipping(Host host) throws Exception {
    this.host = host;
    store = new Store(host);
  }

  @Override
  public void options(ShippingQuery request, StreamObserver<ShippingOptions> to) {
    host.answer(to, () -> {
      String country = request.getAddress().getCountry();
      if (!country.matches("[A-Z]{2}"))
        throw Bounds.refuse(Status.INVALID_ARGUMENT, "the address has no country of two capital letters");
      if (Long.compareUnsigned(request.getGrams(), MOST_GRAMS) > 0)
        throw Bounds.refuse(Status.INVALID_ARGUMENT, "nothing above 1,000 kg is sent");
      List<ShippingOption> options = KINDS.stream().map(kind -> kind.option(country, request.getGrams())).toList();
      return ShippingOptions.newBuilder().addAllOptions(options).build();
    });
  }

  @Override
  public void create(ShipmentOrders request, StreamObserver<Nothing> to) {
    host.answer(to, () -> {
      Bounds.checkCount(request.getOrdersCount(), "orders");
      return store.write(session -> {
        for (ShipmentOrder order : request.getOrdersList()) createOne(session, order);
        return Nothing.getDefaultInstance();
      });
    });
  }

  private static void createOne(Store.Session session, ShipmentOrder order) throws Exception {
    Kind kind = KINDS.stream().filter(one -> one.name().equals(order.getOption())).findFirst()
        .orElseThrow(() -> Bounds.refuse(Status.INVALID_ARGUMENT, "there is no such shipping option"));
    long now = System.currentTimeMillis(), days = kind.option(order.getAddress().getCountry(), 0).getDays();
    session.execute("INSERT INTO shipments(order_id, owner, created_ms, due_ms, bytes) VALUES (?1, ?2, ?3, ?4, ?5)"
        + " ON CONFLICT(order_id) DO NOTHING",
        order.getOrder(), order.getOwner(), now, now + days * DAY_MS, order.toByteArray());
  }

  @Override
  public void track(OwnedOrder request, StreamObserver<Shipment> to) {
    host.answer(to, () -> {
      List<Shipment> found = store.read(session -> session.query(
          row -> Shipment.newBuilder().setOrder(request.getOrder())
              .setTracking("CT" + Long.toUnsignedString(request.getOrder())).setCreatedMs(row.getLong(1))
              .setDueMs(row.getLong(2)).setOption(ShipmentOrder.parseFrom(row.getBytes(3)).getOption()).build(),
          "SELECT created_ms, due_ms, bytes FROM shipments WHERE order_id = ?1 AND owner = ?2",
          request.getOrder(), request.getOwner()));
      if (found.isEmpty()) throw Bounds.refuse(Status.NOT_FOUND, "there is no such shipment");
      return found.get(0);
    });
  }
}
