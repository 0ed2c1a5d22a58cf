// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"database/sql"
	"errors"
	"regexp"

	"curtail/host"
	appspb "curtail/pb/curtail/apps"
	pb "curtail/pb/curtail/shop"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

const (
	mostTags = 16
	mostPage = 10_000
	// Products that have the ?17 different tags among the first sixteen values; all products, if that is 0.
	tagged = " FROM products WHERE (?17 = 0 OR id IN (SELECT product FROM tagged WHERE tag IN" +
		" (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16) GROUP BY product HAVING count(*) = ?17))"
)

var (
	byOrder = []string{"id", "id DESC", "cents, id", "cents DESC, id DESC"} // by ProductQuery.Order
	tagForm = regexp.MustCompile("^[a-z0-9-]{1,32}$")
)

// catalogue is services/catalogue.cc in Go: names, prices and tags of products, from the same file. It has no memcached.
type catalogue struct {
	pb.UnimplementedCatalogueServer
	store *host.Store
}

func newCatalogue(h *host.Host) error {
	store, err := h.Open()
	if err != nil {
		return err
	}
	pb.RegisterCatalogueServer(h.Server, &catalogue{store: store})
	return nil
}

func invalid(text string) error { return status.Error(codes.InvalidArgument, text) }

func checkTags(tags []string) error {
	seen := map[string]bool{}
	for _, tag := range tags {
		if !tagForm.MatchString(tag) || seen[tag] {
			return invalid("a tag is 1 to 32 of a-z, 0-9 and -, and no two are the same")
		}
		seen[tag] = true
	}
	return checkCount(len(tags), mostTags, "tags")
}

func checkProduct(p *pb.Product) error {
	switch {
	case len(p.Name) < 1 || len(p.Name) > 100:
		return invalid("the name of a product has 1 to 100 bytes")
	case len(p.Description) > 2000:
		return invalid("the description of a product has at most 2,000 bytes")
	case p.Cents < 1 || p.Cents > 100_000_000:
		return invalid("a product costs 1 to 100,000,000 cents")
	case p.Grams > 100_000:
		return invalid("a product weighs at most 100 kg")
	}
	return checkTags(p.Tags)
}

// tagValues are the values of the statement `tagged`, and then `more`.
func tagValues(query *pb.ProductQuery, more ...any) []any {
	values := make([]any, mostTags, mostTags+3)
	for i := range values {
		values[i] = ""
	}
	for i, tag := range query.Tags {
		values[i] = tag
	}
	return append(append(values, len(query.Tags)), more...)
}

func (c *catalogue) List(ctx context.Context, query *pb.ProductQuery) (*pb.ProductList, error) {
	if err := checkTags(query.Tags); err != nil {
		return nil, err
	}
	if query.Page > mostPage {
		return nil, invalid("pages are numbered 0 to 10000")
	}
	if query.Order < 0 || int(query.Order) >= len(byOrder) {
		return nil, invalid("there is no such order")
	}
	limit := int64(min(query.Limit, 100))
	if limit == 0 {
		limit = 20
	}
	reply := &pb.ProductList{}
	return reply, c.store.Read(ctx, func(tx *sql.Tx) error {
		rows, err := tx.Query("SELECT id, bytes"+tagged+" ORDER BY "+byOrder[query.Order]+" LIMIT ?18 OFFSET ?19",
			tagValues(query, limit+1, int64(query.Page)*limit)...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			if int64(len(reply.Products)) == limit {
				reply.Next = (query.Page + 1) % (mostPage + 1) // none behind the last page
			} else if err := readProduct(rows, reply); err != nil {
				return err
			}
		}
		return rows.Err()
	})
}

func readProduct(row interface{ Scan(...any) error }, to *pb.ProductList) error {
	var id int64
	var bytes []byte
	product := &pb.Product{}
	if err := row.Scan(&id, &bytes); err != nil {
		return err
	}
	err := proto.Unmarshal(bytes, product)
	product.Id = uint64(id)
	to.Products = append(to.Products, product)
	return err
}

func (c *catalogue) Count(ctx context.Context, query *pb.ProductQuery) (*pb.ProductCount, error) {
	if err := checkTags(query.Tags); err != nil {
		return nil, err
	}
	reply := &pb.ProductCount{}
	return reply, c.store.Read(ctx, func(tx *sql.Tx) error {
		return tx.QueryRow("SELECT count(*)"+tagged, tagValues(query)...).Scan(&reply.Count)
	})
}

func (c *catalogue) Get(ctx context.Context, request *appspb.Ids) (*pb.ProductList, error) {
	if err := checkCount(len(request.Ids), mostIds, "products"); err != nil {
		return nil, err
	}
	reply := &pb.ProductList{}
	return reply, c.store.Read(ctx, func(tx *sql.Tx) error {
		for _, id := range request.Ids {
			err := readProduct(tx.QueryRow("SELECT id, bytes FROM products WHERE id = ?1", int64(id)), reply)
			if err != nil && !errors.Is(err, sql.ErrNoRows) {
				return err
			}
		}
		return nil
	})
}

func (c *catalogue) Put(ctx context.Context, request *pb.Product) (*pb.Product, error) {
	if err := checkProduct(request); err != nil {
		return nil, err
	}
	reply := &pb.Product{}
	return reply, c.store.Once(ctx, 0, reply, func(tx *sql.Tx) error {
		var last, version, known int64
		err := tx.QueryRow("SELECT (SELECT coalesce(max(id), 0) FROM products), (SELECT coalesce(max(version), 0) FROM products),"+
			" (SELECT count(*) FROM products WHERE id = ?1)", int64(request.Id)).Scan(&last, &version, &known)
		if err == nil && request.Id != 0 && known == 0 {
			err = status.Error(codes.NotFound, "there is no such product")
		}
		if err != nil {
			return err
		}
		proto.Merge(reply, request)
		if request.Id == 0 {
			reply.Id = uint64(last + 1)
		}
		return writeProduct(tx, reply, version+1)
	})
}

func writeProduct(tx *sql.Tx, product *pb.Product, version int64) error {
	kept := proto.Clone(product).(*pb.Product)
	kept.Id = 0
	bytes, err := proto.Marshal(kept)
	if err != nil {
		return err
	}
	id := int64(product.Id)
	if _, err = tx.Exec("INSERT INTO products(id, cents, version, bytes) VALUES (?1, ?2, ?3, ?4)"+
		" ON CONFLICT(id) DO UPDATE SET cents = ?2, version = ?3, bytes = ?4", id, product.Cents, version, bytes); err == nil {
		_, err = tx.Exec("DELETE FROM tagged WHERE product = ?1", id)
	}
	for _, tag := range product.Tags {
		if err == nil {
			_, err = tx.Exec("INSERT INTO tagged(tag, product) VALUES (?1, ?2)", tag, id)
		}
	}
	return err
}
