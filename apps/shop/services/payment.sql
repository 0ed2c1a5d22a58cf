-- state: a curtail.shop.Charge.State. number: of the transaction, 0 if there is none. why: of a DECLINED charge.
CREATE TABLE IF NOT EXISTS charges(order_id INTEGER PRIMARY KEY, owner INTEGER NOT NULL, cents INTEGER NOT NULL,
  card TEXT NOT NULL, state INTEGER NOT NULL, number INTEGER NOT NULL, why TEXT NOT NULL) STRICT;
