package otlp

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"swarmdeck/expect"
)

func sent(t *testing.T, reply http.HandlerFunc) (int64, error) {
	t.Helper()
	server := httptest.NewServer(reply)
	defer server.Close()
	now := time.Unix(1_800_000_000, 0)
	s := newSender(&Settings{URL: server.URL, Timeout: 5 * time.Second, Headers: map[string]string{"k": "v"}}, "1.0", "one")
	return s.send(t.Context(), []*tracepb.Span{
		span("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7", "", "a\xff", now, now.Add(-time.Second), text("x", ""), text("y", "z\xff"), count("n", 0), integer("m", 0)),
	})
}

func TestACollectorReadsWhatIsSent(t *testing.T) {
	var in collector.ExportTraceServiceRequest
	rejected, err := sent(t, func(w http.ResponseWriter, r *http.Request) {
		data, err := io.ReadAll(r.Body)
		expect.True(t, err == nil && proto.Unmarshal(data, &in) == nil && r.Header.Get("K") == "v", "%v %v", r.Header, err)
		reply, err := proto.Marshal(&collector.ExportTraceServiceResponse{PartialSuccess: &collector.ExportTracePartialSuccess{RejectedSpans: 1, ErrorMessage: "no"}})
		expect.Is(t, err, nil)
		_, _ = w.Write(reply)
	})
	expect.True(t, err == nil && rejected == 1, "%d %v", rejected, err)
	got := in.ResourceSpans[0].ScopeSpans[0].Spans[0]
	if got.Name != "a?" || len(got.Attributes) != 2 || got.EndTimeUnixNano != got.StartTimeUnixNano || in.ResourceSpans[0].Resource.Attributes[0].Key != "service.instance.id" {
		t.Errorf("%v", &in)
	}
}

func TestWhatACollectorSaysDecidesWhetherItIsTriedAgain(t *testing.T) {
	for code, again := range map[int]bool{429: true, 502: true, 503: true, 504: true, 400: false, 401: false, 404: false, 500: false, 302: false} {
		_, err := sent(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "7")
			w.Header().Set("Location", "http://elsewhere.invalid")
			w.WriteHeader(code)
		})
		_, isFinal := err.(refused)
		expect.True(t, err != nil && isFinal != again && (!again || wait(err, 0) == 7*time.Second), "%d: %v", code, err)
	}
	s := newSender(&Settings{URL: "http://127.0.0.1:1", Timeout: time.Second}, "", "")
	_, err := s.send(context.Background(), nil)
	expect.True(t, err != nil && wait(err, 3) == 8*time.Second && wait(err, 99) == 30*time.Second, "nobody there: %v", err)
}
