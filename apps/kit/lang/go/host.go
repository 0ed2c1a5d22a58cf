// SPDX-License-Identifier: Apache-2.0

// Package host is the main() of a program of services, with the flags of curtail's own host: docs/languages.md.
package host

import (
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"
	_ "google.golang.org/grpc/encoding/gzip" // requests may be compressed
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"
)

const (
	maxMessage = 32 << 20
	badConfig  = 104
)

// Host is one process: its flags, its server and the services that it calls. Safe for all goroutines.
type Host struct {
	Server  *grpc.Server
	Service string
	app     string
	flags   map[string][]string
	tracer  *tracer
}

// Main serves the service of `services` that --service names, until SIGTERM or SIGINT, and exits with 0. Flags or data that
// cannot be used end the process with 104. make registers the service with h.Server.
func Main(app string, services map[string]func(h *Host) error) {
	h := &Host{app: app, flags: parse(os.Args[1:])}
	h.Service = h.Flag("service", "")
	build, known := services[h.Service]
	if !known {
		h.die("--service %s: this program is %s", h.Service, strings.Join(slices.Sorted(maps.Keys(services)), ", "))
	}
	drain, err := time.ParseDuration(h.Flag("drain", "10") + "s")
	if err != nil {
		h.die("--drain: %v", err)
	}
	if h.tracer, err = newTracer(h); err != nil {
		h.die("%v", err)
	}
	h.Server = grpc.NewServer(grpc.MaxRecvMsgSize(maxMessage), grpc.UnaryInterceptor(h.serve))
	alive := health.NewServer()
	healthpb.RegisterHealthServer(h.Server, alive)
	if err := build(h); err != nil {
		h.die("%v", err)
	}
	reflection.Register(h.Server)
	h.listen()
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	<-stop
	alive.Shutdown()
	late := time.AfterFunc(drain, h.Server.Stop)
	h.Server.GracefulStop()
	late.Stop()
	h.tracer.close()
}

func (h *Host) listen() {
	addresses := h.flags["listen"]
	if len(addresses) == 0 {
		addresses = []string{"127.0.0.1:0"}
	}
	for _, address := range addresses {
		network := "tcp"
		path, unix := strings.CutPrefix(address, "unix:")
		if unix {
			network = "unix"
			os.Remove(path)
		}
		listener, err := net.Listen(network, path)
		if err != nil {
			h.die("--listen %s: %v", address, err)
		}
		if !unix {
			address = listener.Addr().String()
		}
		go h.Server.Serve(listener)
		if logsJSON {
			h.Log(context.Background(), Info, "ready "+address, "address", address)
		} else {
			fmt.Println("ready " + address)
		}
	}
}

// parse takes "--name value" and "--name=value". Flags of the C++ host that mean nothing here are kept and not read.
func parse(words []string) map[string][]string {
	switches := []string{"quiet", "any-machine", "fence-learn", "health-checks", "no-sync"}
	flags := map[string][]string{}
	for i := 0; i < len(words); i++ {
		name, value, has := strings.Cut(strings.TrimPrefix(words[i], "--"), "=")
		if !has && !slices.Contains(switches, name) && i+1 < len(words) {
			i++
			value = words[i]
		}
		flags[name] = append(flags[name], value)
	}
	return flags
}

// Flag is the last value of --name, or otherwise.
func (h *Host) Flag(name, otherwise string) string {
	if values := h.flags[name]; len(values) > 0 {
		return values[len(values)-1]
	}
	return otherwise
}

func (h *Host) die(format string, values ...any) {
	h.Log(context.Background(), Error, fmt.Sprintf(format, values...))
	os.Exit(badConfig)
}

// DataFolder is the folder of --data, which exists then.
func (h *Host) DataFolder() (string, error) {
	folder := h.Flag("data", "auto")
	if folder == "auto" {
		state := os.Getenv("XDG_STATE_HOME")
		if state == "" {
			state = filepath.Join(os.Getenv("HOME"), ".local/state")
		}
		folder = filepath.Join(state, "curtail", h.app)
	}
	return folder, os.MkdirAll(folder, 0o700)
}
