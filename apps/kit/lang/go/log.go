// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// The severities of a line, as CURTAIL_LOG_LEVEL names them.
const (
	Debug = iota
	Info
	Warning
	Error
)

var (
	severities = []string{"DEBUG", "INFO", "WARNING", "ERROR"}
	logsJSON   = os.Getenv("CURTAIL_LOG_FORMAT") == "json"
	least      = max(Debug, slices.Index(severities, strings.ToUpper(environment("CURTAIL_LOG_LEVEL", "info"))))
)

func environment(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}

// Log writes a line to stderr: the fields of curtail/base/log.h, with the trace of the request of ctx. `fields` are names
// and values in turn.
func (h *Host) Log(ctx context.Context, severity int, message string, fields ...any) {
	if severity < least {
		return
	}
	s, service := spanOf(ctx), environment("CURTAIL_LOG_SERVICE", h.app)
	if !logsJSON {
		if s.trace != "" {
			message += " [" + s.trace[:8] + "]"
		}
		fmt.Fprintf(os.Stderr, "%s: %s\n", service, strings.ReplaceAll(message, "\n", "\\n"))
		return
	}
	machine, _ := os.Hostname()
	all := []any{"time", time.Now().UTC().Format("2006-01-02T15:04:05.000000Z"), "severity", severities[severity],
		"service", service, "instance", environment("CURTAIL_LOG_INSTANCE", machine), "message", message}
	if s.trace != "" {
		all = append(all, "trace_id", s.trace, "span_id", s.id)
	}
	var line bytes.Buffer
	for i, part := range append(all, fields...) {
		text, _ := json.Marshal(part)
		line.WriteByte("{:,:"[min(i, 2+i%2)])
		line.Write(text)
	}
	fmt.Fprintf(os.Stderr, "%s}\n", line.Bytes())
}
