// SPDX-License-Identifier: Apache-2.0

// Command shop-go is the services catalogue and payment of the shop.
package main

import (
	"curtail/host"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	mostOrders = 32
	mostIds    = 1000
)

// checkCount is as of apps/kit/page.h.
func checkCount(count, most int, what string) error {
	if count <= most {
		return nil
	}
	return status.Errorf(codes.InvalidArgument, "%d %s; at most %d are taken at once", count, what, most)
}

func main() {
	host.Main("shop", map[string]func(*host.Host) error{"catalogue": newCatalogue, "payment": newPayment})
}
