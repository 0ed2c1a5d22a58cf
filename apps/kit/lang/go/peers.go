// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"os"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

const (
	lookAgain    = 200 * time.Millisecond // at a file of addresses
	maxReconnect = time.Second
)

// A peer is where a service is; its instances get calls in turn. Each call has the deadline of the request whose context it
// is given, ends when that is cancelled, and carries its trace.
type peer struct {
	name, file string
	mu         sync.Mutex // guards all below
	looked     time.Time
	addresses  []string
	turn       int
	conns      map[string]*grpc.ClientConn
}

// Peer is the service that --peer names, for a generated client. A program without the flag ends with 104.
func (h *Host) Peer(name string) grpc.ClientConnInterface {
	p := &peer{name: name, conns: map[string]*grpc.ClientConn{}}
	for _, value := range h.flags["peer"] {
		if targets, of := strings.CutPrefix(value, name+"="); of {
			p.addresses = append(p.addresses, strings.Split(targets, ",")...)
		}
	}
	if len(p.addresses) == 0 {
		h.die("%s calls %s: say where it is, --peer %s=ADDR,ADDR; in a topology add %s to its calls",
			h.Service, name, name, name)
	}
	p.file, _ = strings.CutPrefix(p.addresses[0], "file:")
	if p.file == p.addresses[0] {
		p.file = ""
	}
	return p
}

// Store is the addresses of a store, which --store names.
func (h *Host) Store(name string) []string {
	for _, value := range h.flags["store"] {
		if addresses, of := strings.CutPrefix(value, name+"="); of {
			return strings.Split(addresses, ",")
		}
	}
	return nil
}

func (p *peer) pick() (*grpc.ClientConn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.file != "" && time.Since(p.looked) > lookAgain {
		text, err := os.ReadFile(p.file)
		if err != nil {
			return nil, status.Errorf(codes.Unavailable, "%s: %v", p.name, err)
		}
		p.addresses, p.looked = strings.Fields(string(text)), time.Now()
	}
	if len(p.addresses) == 0 {
		return nil, status.Errorf(codes.Unavailable, "%s names no server", p.file)
	}
	p.turn++
	address := p.addresses[p.turn%len(p.addresses)]
	if conn, known := p.conns[address]; known {
		return conn, nil
	}
	wait := backoff.Config{BaseDelay: maxReconnect / 10, Multiplier: 1.6, Jitter: 0.2, MaxDelay: maxReconnect}
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: wait, MinConnectTimeout: 5 * time.Second}))
	if err == nil {
		p.conns[address] = conn
	}
	return conn, err
}

func (p *peer) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	conn, err := p.pick()
	if err != nil {
		return err
	}
	if parent := spanOf(ctx).header(); parent != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "traceparent", parent)
	}
	return conn.Invoke(ctx, method, args, reply, opts...)
}

func (p *peer) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, status.Error(codes.Unimplemented, "services call each other without streams")
}
