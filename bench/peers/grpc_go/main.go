// SPDX-License-Identifier: Apache-2.0
//
// grpc-go: the null fan-out's mid-tier and leaf. Takes the flags with which peers starts every server:
// --stack NAME --role leaf|mid --leaf ADDRESS...
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net"
	"runtime"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"peers-grpc-go/fanout"
)

// As in fanout.proto, but for the limit on messages: 1 MiB of payload and its envelope are well below grpc-go's own.
type leafServer struct {
	fanout.UnimplementedLeafServer
}

func (leafServer) Null(_ context.Context, request *fanout.Blob) (*fanout.Blob, error) {
	return &fanout.Blob{Payload: request.Payload}, nil
}

type midServer struct {
	fanout.UnimplementedMidServer
	leaves []fanout.LeafClient
}

// All calls are begun together: a goroutine each, the last one on the handler's own.
func (s *midServer) Query(ctx context.Context, request *fanout.Blob) (*fanout.Blob, error) {
	replies := make([]*fanout.Blob, len(s.leaves))
	errors := make([]error, len(s.leaves))
	call := func(i int) { replies[i], errors[i] = s.leaves[i].Null(ctx, request) }
	last := len(s.leaves) - 1
	var others sync.WaitGroup
	for i := range last {
		others.Go(func() { call(i) })
	}
	call(last)
	others.Wait()
	for _, err := range errors {
		if err != nil {
			return nil, err
		}
	}
	return replies[0], nil
}

func newMidServer(addresses []string) (*midServer, error) {
	mid := &midServer{}
	for _, address := range addresses {
		connection, err := grpc.NewClient("passthrough:///"+address,
			grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return nil, err
		}
		mid.leaves = append(mid.leaves, fanout.NewLeafClient(connection))
	}
	return mid, nil
}

type addressList []string

func (l *addressList) String() string         { return fmt.Sprint(*l) }
func (l *addressList) Set(value string) error { *l = append(*l, value); return nil }

func main() {
	var leaves addressList
	flag.String("stack", "grpc-go", "there is one")
	role := flag.String("role", "", "leaf or mid")
	flag.Var(&leaves, "leaf", "address of a leaf; once for each")
	flag.Parse()
	if *role != "leaf" && (*role != "mid" || len(leaves) == 0) {
		log.Fatal("grpc-go: needs --role leaf, or --role mid and a --leaf ADDRESS for each leaf")
	}

	// Workers that stay, instead of a new goroutine with a new stack for each request.
	server := grpc.NewServer(grpc.NumStreamWorkers(uint32(runtime.NumCPU())))
	if *role == "leaf" {
		fanout.RegisterLeafServer(server, leafServer{})
	} else {
		mid, err := newMidServer(leaves)
		if err != nil {
			log.Fatalf("grpc-go: %v", err)
		}
		fanout.RegisterMidServer(server, mid)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatalf("grpc-go: %v", err)
	}
	fmt.Println(listener.Addr())
	log.Fatalf("grpc-go: %v", server.Serve(listener))
}
