-- bytes: a curtail.shop.Product without its id. version: ascends with each change of any product.
CREATE TABLE IF NOT EXISTS products(id INTEGER PRIMARY KEY, cents INTEGER NOT NULL, version INTEGER NOT NULL,
  bytes BLOB NOT NULL) STRICT;
CREATE INDEX IF NOT EXISTS products_by_cents ON products(cents, id);
CREATE INDEX IF NOT EXISTS products_by_version ON products(version);
CREATE TABLE IF NOT EXISTS tagged(tag TEXT, product INTEGER, PRIMARY KEY(tag, product)) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS tagged_of ON tagged(product);
-- Names of requests, with their answers, for a day.
CREATE TABLE IF NOT EXISTS requests(caller INTEGER, name TEXT, content TEXT NOT NULL, reply BLOB NOT NULL,
  done INTEGER NOT NULL, kept_s INTEGER NOT NULL, PRIMARY KEY(caller, name)) STRICT;
CREATE INDEX IF NOT EXISTS requests_kept ON requests(kept_s);
