-- closed: 1 if the owner was merged into another or deleted. version: ascends with each change.
CREATE TABLE IF NOT EXISTS baskets(owner INTEGER PRIMARY KEY, version INTEGER NOT NULL, closed INTEGER NOT NULL) STRICT;
-- place: ascends in the order in which products were added.
CREATE TABLE IF NOT EXISTS lines(owner INTEGER, product INTEGER, count INTEGER NOT NULL CHECK(count BETWEEN 1 AND 99),
  place INTEGER NOT NULL, PRIMARY KEY(owner, product)) STRICT, WITHOUT ROWID;
-- Orders whose lines were taken out.
CREATE TABLE IF NOT EXISTS taken(order_id INTEGER PRIMARY KEY) STRICT;
-- Guests whose baskets are there, and since when. A basket goes once the session of its guest has ended.
CREATE TABLE IF NOT EXISTS guests(owner INTEGER PRIMARY KEY, since_s INTEGER NOT NULL) STRICT;
CREATE INDEX IF NOT EXISTS guests_since ON guests(since_s);
-- Names of requests, with their answers, for a day.
CREATE TABLE IF NOT EXISTS requests(caller INTEGER, name TEXT, content TEXT NOT NULL, reply BLOB NOT NULL,
  done INTEGER NOT NULL, kept_s INTEGER NOT NULL, PRIMARY KEY(caller, name)) STRICT;
CREATE INDEX IF NOT EXISTS requests_kept ON requests(kept_s);
