package otlp

import (
	"strings"
	"testing"
	"time"

	"swarmdeck/expect"
)

func getenv(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func TestNothingIsTracedUnlessAnEndpointIsNamed(t *testing.T) {
	const endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT"
	for _, env := range [][]string{
		{},
		{endpoint, "http://x", "OTEL_SDK_DISABLED", "TRUE"},
		{endpoint, "http://x", "OTEL_TRACES_EXPORTER", "none"},
		{"OTEL_TRACES_EXPORTER", "otlp"},
		{"OTEL_SERVICE_NAME", "x"},
	} {
		s, err := FromEnvironment(getenv(env...))
		expect.True(t, s == nil && err == nil, "%v: %+v %v", env, s, err)
	}
	s, err := FromEnvironment(getenv(endpoint, "http://collector:4318/"))
	if err != nil || s.URL != "http://collector:4318/v1/traces" || s.Timeout != 10*time.Second || s.Delay != 5*time.Second || s.Batch != 512 || s.Share != 1 || s.Gzip {
		t.Errorf("%+v %v", s, err)
	}
	s, err = FromEnvironment(getenv(
		endpoint, "grpc://unused", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://c.example/in", "OTEL_EXPORTER_OTLP_HEADERS", "api-key=a%20b,x=y",
		"OTEL_EXPORTER_OTLP_COMPRESSION", "gzip", "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "250", "OTEL_SERVICE_NAME", "deck",
		"OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test,service.name=other", "OTEL_TRACES_SAMPLER", "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG", "0.25",
	))
	if err != nil || s.URL != "https://c.example/in" || s.Headers["api-key"] != "a b" || s.Headers["x"] != "y" || !s.Gzip || s.Timeout != 250*time.Millisecond ||
		s.Resource["service.name"] != "deck" || s.Resource["deployment.environment.name"] != "test" || s.Share != 0.25 {
		t.Errorf("%+v %v", s, err)
	}
}

func TestAVariableThatMeansNothingIsNamed(t *testing.T) {
	const secret = "s3cr3t"
	for _, env := range [][]string{
		{"OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT", "ftp://ada:" + secret + "@collector"},
		{"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"},
		{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json"},
		{"OTEL_TRACES_EXPORTER", "zipkin"},
		{"OTEL_EXPORTER_OTLP_COMPRESSION", "zstd"},
		{"OTEL_EXPORTER_OTLP_HEADERS", secret},
		{"OTEL_EXPORTER_OTLP_HEADERS", "key=" + secret + "%zz"},
		{"OTEL_EXPORTER_OTLP_HEADERS", "key=" + secret + "%0d%0aX: y"},
		{"OTEL_EXPORTER_OTLP_TIMEOUT", "soon"},
		{"OTEL_BSP_SCHEDULE_DELAY", "0"},
		{"OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "1000000"},
		{"OTEL_TRACES_SAMPLER", "xray"},
		{"OTEL_EXPORTER_OTLP_CERTIFICATE", "/nonexistent"},
		{"OTEL_EXPORTER_OTLP_CLIENT_KEY", "/nonexistent"},
	} {
		s, err := FromEnvironment(getenv(append(env, "OTEL_EXPORTER_OTLP_ENDPOINT", "http://x")...))
		expect.True(t, err != nil && !strings.Contains(err.Error(), secret) && strings.Contains(err.Error(), "OTEL_"), "%v: %+v %v", env, s, err)
	}
}

func TestAShareOfTheTracesIsToldWhole(t *testing.T) {
	s := &Settings{Share: 0.5}
	for trace, want := range map[string]bool{
		"ffffffffffffffff7ffffffffffff000": true, "0000000000000000ffffffffffffffff": false, "00000000000000010000000000000001": true, "0000000000000000fffffffffffffffe": false,
	} {
		expect.True(t, s.told(trace) == want, "%s: %v", trace, !want)
	}
	s = (&Settings{})
	expect.True(t, !s.told("ffffffffffffffff0000000000000001") || !s.told("4bf92f3577b34da6a3ce929d0e0e4736"), "a share of nothing tells something")
}

func FuzzNotTakenReadsAnything(f *testing.F) {
	f.Add([]byte{10, 2, 8, 3})
	f.Fuzz(func(t *testing.T, reply []byte) {
		n := notTaken(reply)
		expect.True(t, n >= 0, "%v", n)
	})
}

func TestWhatACollectorDidNotTakeIsCounted(t *testing.T) {
	expect.Is(t, notTaken([]byte{10, 9, 18, 4, 'f', 'u', 'l', 'l', 8, 137, 1}), 137)
}
