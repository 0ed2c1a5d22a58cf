// SPDX-License-Identifier: Apache-2.0

// Command probe-go is the service of probe.proto.
package main

import (
	"context"
	"time"

	"curtail/host"
	pb "curtail/pb/curtail/probe"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/anypb"
)

type probe struct {
	pb.UnimplementedProbeServer
	leaf pb.ProbeClient
}

func (p *probe) Echo(ctx context.Context, request *pb.Payload) (*pb.Payload, error) {
	if request.Compress {
		if err := grpc.SetSendCompressor(ctx, "gzip"); err != nil {
			return nil, err
		}
	}
	return request, nil
}

func (p *probe) Fail(ctx context.Context, request *pb.Failure) (*pb.Payload, error) {
	if request.Code == 0 {
		panic(request.Message)
	}
	if request.Trailer != "" {
		grpc.SetTrailer(ctx, metadata.Pairs("probe-trailer", request.Trailer))
	}
	failure := &spb.Status{Code: request.Code, Message: request.Message}
	if request.Detail != nil {
		failure.Details = []*anypb.Any{request.Detail}
	}
	return nil, status.ErrorProto(failure)
}

func (p *probe) Relay(ctx context.Context, request *pb.Patience) (*pb.Payload, error) {
	return p.leaf.Wait(ctx, request)
}

func (p *probe) Wait(ctx context.Context, request *pb.Patience) (*pb.Payload, error) {
	select {
	case <-time.After(time.Duration(request.Ms) * time.Millisecond):
		return &pb.Payload{}, nil
	case <-ctx.Done():
		return nil, status.FromContextError(ctx.Err()).Err()
	}
}

func main() {
	host.Main("probe", map[string]func(*host.Host) error{"probe": func(h *host.Host) error {
		pb.RegisterProbeServer(h.Server, &probe{leaf: pb.NewProbeClient(h.Peer("leaf"))})
		return nil
	}})
}
