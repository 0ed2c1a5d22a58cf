-- bytes: a curtail.shop.ShipmentOrder.
CREATE TABLE IF NOT EXISTS shipments(order_id INTEGER PRIMARY KEY, owner INTEGER NOT NULL, created_ms INTEGER NOT NULL,
  due_ms INTEGER NOT NULL, bytes BLOB NOT NULL) STRICT;
