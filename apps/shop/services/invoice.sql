-- bytes: a curtail.shop.Quote.
CREATE TABLE IF NOT EXISTS invoices(number INTEGER PRIMARY KEY, order_id INTEGER NOT NULL UNIQUE, owner INTEGER NOT NULL,
  issued_ms INTEGER NOT NULL, bytes BLOB NOT NULL) STRICT;
