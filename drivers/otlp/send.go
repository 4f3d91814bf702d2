package otlp

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"swarmdeck/engine/core"
)

// maxReply bounds what is read of a collector's answer.
const maxReply = 64 << 10

// refused is a batch that the collector will not take, however often.
type refused struct{ error }

// later is a batch that the collector wants again after a time.
type later struct {
	error
	after time.Duration
}

func (l later) Unwrap() error { return l.error }

// sender carries batches to a collector (OTLP 1.7, OTLP/HTTP).
type sender struct {
	to       *Settings
	client   *http.Client
	resource *resourcepb.Resource
	scope    *commonpb.InstrumentationScope
}

func newSender(to *Settings, version, instance string) *sender {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig, transport.MaxIdleConns = to.TLS, 1
	about := map[string]string{"service.name": "swarmdeck", "service.version": version, "service.instance.id": instance}
	maps.Copy(about, to.Resource)
	r := &resourcepb.Resource{}
	for _, name := range slices.Sorted(maps.Keys(about)) {
		if a := text(core.Cut(name, maxText), about[name]); a != nil {
			r.Attributes = append(r.Attributes, a)
		}
	}
	return &sender{
		to: to, resource: r, scope: &commonpb.InstrumentationScope{Name: "swarmdeck", Version: core.Cut(version, maxText)},
		client: &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse // the headers may be secrets of this host alone
		}},
	}
}

// send carries one batch and says how many of its spans were not taken.
func (s *sender) send(ctx context.Context, spans []*tracepb.Span) (rejected int64, err error) {
	// The request has the same shape as TracesData; its own type would bring
	// gRPC along.
	body, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: []*tracepb.ResourceSpans{{
		Resource: s.resource, ScopeSpans: []*tracepb.ScopeSpans{{Scope: s.scope, Spans: spans}},
	}}})
	if err != nil {
		return 0, refused{fmt.Errorf("encode spans: %w", err)}
	}
	if s.to.Gzip {
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		_, _ = w.Write(body) // a buffer takes it
		if err := w.Close(); err != nil {
			return 0, refused{fmt.Errorf("compress spans: %w", err)}
		}
		body = packed.Bytes()
	}
	ctx, cancel := context.WithTimeout(ctx, s.to.Timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.to.URL, bytes.NewReader(body))
	if err != nil {
		return 0, refused{fmt.Errorf("send spans: %w", err)}
	}
	for name, value := range s.to.Headers {
		r.Header.Set(name, value)
	}
	r.Header.Set("Content-Type", "application/x-protobuf")
	if s.to.Gzip {
		r.Header.Set("Content-Encoding", "gzip")
	}
	reply, err := s.client.Do(r)
	if err != nil {
		return 0, fmt.Errorf("send spans: %w", err)
	}
	defer reply.Body.Close()
	said, err := io.ReadAll(io.LimitReader(reply.Body, maxReply))
	switch code := reply.StatusCode; {
	case code/100 == 2 && err != nil:
		return 0, nil // taken; what else it said was lost
	case code/100 == 2:
		return notTaken(said), nil
	case code == http.StatusTooManyRequests || code == http.StatusBadGateway || code == http.StatusServiceUnavailable || code == http.StatusGatewayTimeout:
		after, _ := strconv.Atoi(reply.Header.Get("Retry-After"))
		return 0, later{fmt.Errorf("send spans: the collector says %s", reply.Status), time.Duration(max(0, after)) * time.Second}
	default:
		return 0, refused{fmt.Errorf("send spans: the collector says %s", reply.Status)}
	}
}

// notTaken reads partial_success.rejected_spans of a reply; 0 for anything
// that is no such reply.
func notTaken(reply []byte) int64 {
	part, ok := member(reply, 1)
	if !ok {
		return 0
	}
	for len(part) > 0 {
		num, kind, n := protowire.ConsumeTag(part)
		if n < 0 {
			return 0
		}
		if part = part[n:]; num == 1 && kind == protowire.VarintType {
			v, n := protowire.ConsumeVarint(part)
			if n < 0 {
				return 0
			}
			return max(0, int64(v)) //nolint:gosec // the protocol's int64
		}
		if n = protowire.ConsumeFieldValue(num, kind, part); n < 0 {
			return 0
		}
		part = part[n:]
	}
	return 0
}

// member finds a message's first bytes field of a number.
func member(b []byte, want protowire.Number) ([]byte, bool) {
	for len(b) > 0 {
		num, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return nil, false
		}
		if b = b[n:]; num == want && kind == protowire.BytesType {
			v, n := protowire.ConsumeBytes(b)
			return v, n >= 0
		}
		if n = protowire.ConsumeFieldValue(num, kind, b); n < 0 {
			return nil, false
		}
		b = b[n:]
	}
	return nil, false
}

// wait is how long to wait before the next try: what the collector wants, or
// twice as long each time.
func wait(err error, tries int) time.Duration {
	d := min(time.Second<<min(tries, 6), 30*time.Second)
	if l, ok := errors.AsType[later](err); ok && l.after > 0 {
		d = min(l.after, 5*time.Minute)
	}
	return d
}
