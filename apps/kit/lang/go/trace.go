// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

var traceForm = regexp.MustCompile("^00-([0-9a-f]{32})-([0-9a-f]{16})-0([0-3])$")

// A span is the place of a request in its trace. The zero span is in no trace.
type span struct {
	trace, id, parent string
	chosen            bool
}

type spanKey struct{}

func spanOf(ctx context.Context) span {
	s, _ := ctx.Value(spanKey{}).(span)
	return s
}

// header is the traceparent of a call that the request makes.
func (s span) header() string {
	if s.trace == "" {
		return ""
	}
	return fmt.Sprintf("00-%s-%s-0%d", s.trace, s.id, map[bool]int{true: 1}[s.chosen])
}

// A tracer sends spans to a collector. A nil collector: requests carry their caller's trace on.
type tracer struct {
	url, service string
	share        float64
	spans        chan map[string]any
	done         chan struct{}
}

func newTracer(h *Host) (*tracer, error) {
	t := &tracer{service: h.Service, spans: make(chan map[string]any, 512), done: make(chan struct{})}
	share, err := strconv.ParseFloat(h.Flag("trace-sample", "0.001"), 64)
	url, otlp := strings.CutPrefix(h.Flag("trace-to", ""), "otlp=")
	if err != nil || (url != "" && !otlp) {
		return nil, fmt.Errorf("--trace-to %s --trace-sample: write otlp=http://HOST:PORT, and a share", url)
	}
	t.url, t.share = url, share
	if url != "" && strings.Count(url, "/") == 2 {
		t.url += "/v1/traces"
	}
	go t.send()
	return t, nil
}

func (t *tracer) begin(ctx context.Context) span {
	received := traceForm.FindStringSubmatch(strings.Join(metadata.ValueFromIncomingContext(ctx, "traceparent"), ","))
	if t.url == "" && received != nil {
		return span{trace: received[1], id: received[2], chosen: received[3] == "1" || received[3] == "3"}
	}
	id := fmt.Sprintf("%016x", rand.Uint64()|1)
	if received != nil {
		return span{trace: received[1], id: id, parent: received[2], chosen: received[3] == "1" || received[3] == "3"}
	}
	if t.url == "" || rand.Float64() >= t.share {
		return span{}
	}
	return span{trace: fmt.Sprintf("%016x%016x", rand.Uint64(), rand.Uint64()|1), id: id, chosen: true}
}

// serve runs a request: its span, and INTERNAL for a handler that panics.
func (h *Host) serve(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (reply any, err error) {
	if strings.HasPrefix(info.FullMethod, "/grpc.") {
		return handler(ctx, request)
	}
	s, began := h.tracer.begin(ctx), time.Now()
	ctx = context.WithValue(ctx, spanKey{}, s)
	defer func() {
		if broken := recover(); broken != nil {
			h.Log(ctx, Error, fmt.Sprint(broken), "path", info.FullMethod)
			err = status.Error(codes.Internal, "the handler failed")
		}
		if _, known := status.FromError(err); !known && ctx.Err() == nil {
			h.Log(ctx, Error, err.Error(), "path", info.FullMethod)
			err = status.Error(codes.Internal, "the handler failed")
		}
		if s.chosen && h.tracer.url != "" {
			h.tracer.end(s, info.FullMethod, began, status.Code(err))
		}
	}()
	return handler(ctx, request)
}

func (t *tracer) end(s span, path string, began time.Time, code codes.Code) {
	nanos := func(when time.Time) string { return strconv.FormatInt(when.UnixNano(), 10) }
	one := map[string]any{"traceId": s.trace, "spanId": s.id, "name": path[1:], "kind": 2,
		"startTimeUnixNano": nanos(began), "endTimeUnixNano": nanos(time.Now()),
		"attributes": []any{attribute("rpc.system", "grpc"), map[string]any{
			"key": "rpc.grpc.status_code", "value": map[string]any{"intValue": strconv.Itoa(int(code))}}}}
	if s.parent != "" {
		one["parentSpanId"] = s.parent
	}
	if code != codes.OK {
		one["status"] = map[string]any{"code": 2, "message": code.String()}
	}
	select {
	case t.spans <- one:
	default: // the collector is slow, which costs spans and nothing else
	}
}

func attribute(key, text string) map[string]any {
	return map[string]any{"key": key, "value": map[string]any{"stringValue": text}}
}

func (t *tracer) send() {
	defer close(t.done)
	client := http.Client{Timeout: 5 * time.Second}
	for one := range t.spans {
		batch := []any{one}
		for len(t.spans) > 0 {
			batch = append(batch, <-t.spans)
		}
		resource := map[string]any{"attributes": []any{attribute("service.name", t.service)}}
		scope := map[string]any{"scope": map[string]any{"name": "curtail"}, "spans": batch}
		body, _ := json.Marshal(map[string]any{"resourceSpans": []any{map[string]any{
			"resource": resource, "scopeSpans": []any{scope}}}})
		if answer, err := client.Post(t.url, "application/json", bytes.NewReader(body)); err == nil {
			answer.Body.Close()
		}
	}
}

// close sends what waits. No request is in flight any more.
func (t *tracer) close() {
	close(t.spans)
	select {
	case <-t.done:
	case <-time.After(2 * time.Second):
	}
}
