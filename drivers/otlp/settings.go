package otlp

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"swarmdeck/engine/core"
)

// Settings say where spans go, as OpenTelemetry's environment variables do
// (Environment Variable Specification; Protocol Exporter).
type Settings struct {
	URL      string
	Host     string // of the URL, to be shown
	Headers  map[string]string
	Timeout  time.Duration // of one request
	Gzip     bool
	TLS      *tls.Config       // nil is the system's
	Resource map[string]string // attributes of the process
	Delay    time.Duration     // between two looks at what happened
	Batch    int               // spans in one request
	Share    float64           // of the traces, 0-1, by their id
	Content  bool              // also what was said, asked and answered
}

// FromEnvironment reads the settings; nil when no endpoint is set, or when the
// environment says that nothing is to be traced. An error names the variable.
func FromEnvironment(getenv func(string) string) (*Settings, error) {
	env := environment(getenv)
	s := &Settings{Share: 1}
	switch exporter := env.first("OTEL_TRACES_EXPORTER"); {
	case strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true"), exporter == "none":
		return nil, nil
	case exporter != "" && exporter != "otlp":
		return nil, core.Invalid("OTEL_TRACES_EXPORTER", exporter, "otlp or none")
	}
	if s.URL = getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"); s.URL == "" {
		base := getenv("OTEL_EXPORTER_OTLP_ENDPOINT")
		if base == "" {
			return nil, nil
		}
		s.URL = strings.TrimSuffix(base, "/") + "/v1/traces"
	}
	u, err := url.Parse(s.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" { // which may have a secret in it
		return nil, core.Errorf(core.InvalidInput, "OTEL_EXPORTER_OTLP_ENDPOINT: want an http or https URL").With("field", "OTEL_EXPORTER_OTLP_ENDPOINT")
	}
	s.Host = u.Host
	if p := env.otlp("PROTOCOL"); p != "" && p != "http/protobuf" {
		return nil, core.Invalid("OTEL_EXPORTER_OTLP_PROTOCOL", p, "http/protobuf")
	}
	switch c := env.otlp("COMPRESSION"); c {
	case "", "none":
	case "gzip":
		s.Gzip = true
	default:
		return nil, core.Invalid("OTEL_EXPORTER_OTLP_COMPRESSION", c, "gzip or none")
	}
	if s.Headers, err = pairs("OTEL_EXPORTER_OTLP_HEADERS", env.otlp("HEADERS")); err != nil {
		return nil, err
	}
	if s.Resource, err = pairs("OTEL_RESOURCE_ATTRIBUTES", getenv("OTEL_RESOURCE_ATTRIBUTES")); err != nil {
		return nil, err
	}
	if s.Resource == nil {
		s.Resource = map[string]string{}
	}
	if name := getenv("OTEL_SERVICE_NAME"); name != "" {
		s.Resource["service.name"] = name
	}
	if s.Timeout, err = env.millis("OTEL_EXPORTER_OTLP_TIMEOUT", env.otlp("TIMEOUT"), 10_000); err != nil {
		return nil, err
	}
	if s.Delay, err = env.millis("OTEL_BSP_SCHEDULE_DELAY", getenv("OTEL_BSP_SCHEDULE_DELAY"), 5_000); err != nil {
		return nil, err
	}
	if s.Batch, err = number("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", getenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE"), 512, 10_000); err != nil {
		return nil, err
	}
	if err := env.sampler(s); err != nil {
		return nil, err
	}
	if s.Content, err = env.content(); err != nil {
		return nil, err
	}
	return s, env.certificates(s)
}

type environment func(string) string

// otlp is a variable of the exporter; that of traces alone comes first.
func (e environment) otlp(name string) string {
	return e.first("OTEL_EXPORTER_OTLP_TRACES_"+name, "OTEL_EXPORTER_OTLP_"+name)
}

func (e environment) first(names ...string) string {
	for _, name := range names {
		if v := strings.TrimSpace(e(name)); v != "" {
			return v
		}
	}
	return ""
}

func (environment) millis(name, text string, ms int) (time.Duration, error) {
	n, err := number(name, text, ms, 3_600_000)
	return time.Duration(n) * time.Millisecond, err
}

func number(name, text string, otherwise, most int) (int, error) {
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, core.Invalid(name, text, fmt.Sprintf("a number, 1-%d", most))
	}
	return n, nil
}

// content reads whether spans have what was said, as instrumentations of
// generative AI do. They have no other place for it here.
func (e environment) content() (bool, error) {
	const name = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
	switch v := e.first(name); strings.ToLower(v) {
	case "", "false", "no_content", "event_only":
		return false, nil
	case "true", "span_only", "span_and_event":
		return true, nil
	default:
		return false, core.Invalid(name, v, "true, false, SPAN_ONLY, EVENT_ONLY, SPAN_AND_EVENT or NO_CONTENT")
	}
}

// sampler reads how many traces are told. Who starts a trace elsewhere has no
// say: that a traceparent was sampled is not kept.
func (e environment) sampler(s *Settings) error {
	name := strings.TrimPrefix(e.first("OTEL_TRACES_SAMPLER"), "parentbased_")
	switch name {
	case "", "always_on":
	case "always_off":
		s.Share = 0
	case "traceidratio":
		if arg := e.first("OTEL_TRACES_SAMPLER_ARG"); arg != "" {
			share, err := strconv.ParseFloat(arg, 64)
			if err != nil || !(share >= 0 && share <= 1) {
				return core.Invalid("OTEL_TRACES_SAMPLER_ARG", arg, "a number, 0-1")
			}
			s.Share = share
		}
	default:
		return core.Invalid("OTEL_TRACES_SAMPLER", name, "always_on, always_off or traceidratio, each also with parentbased_ before it")
	}
	return nil
}

// certificates reads those of the collector, and the one to show to it.
func (e environment) certificates(s *Settings) error {
	root, cert, key := e.otlp("CERTIFICATE"), e.otlp("CLIENT_CERTIFICATE"), e.otlp("CLIENT_KEY")
	if root == "" && cert == "" && key == "" {
		return nil
	}
	s.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	if root != "" {
		pem, err := os.ReadFile(root)
		if err != nil {
			return fmt.Errorf("OTEL_EXPORTER_OTLP_CERTIFICATE: %w", err)
		}
		s.TLS.RootCAs = x509.NewCertPool()
		if !s.TLS.RootCAs.AppendCertsFromPEM(pem) {
			return core.Invalid("OTEL_EXPORTER_OTLP_CERTIFICATE", root, "a file of certificates in PEM")
		}
	}
	if cert != "" || key != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return fmt.Errorf("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and _CLIENT_KEY: %w", err)
		}
		s.TLS.Certificates = []tls.Certificate{pair}
	}
	return nil
}

// pairs reads "name=value,…" whose values are percent-encoded (W3C Baggage).
// What is wrong in it is not repeated: it may be a secret.
func pairs(variable, text string) (map[string]string, error) {
	if text == "" {
		return nil, nil
	}
	all := map[string]string{}
	for i, pair := range strings.Split(text, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if name = strings.TrimSpace(name); !ok || name == "" || err != nil || strings.ContainsAny(name+value, "\r\n\x00") {
			return nil, core.Invalid(variable, fmt.Sprintf("entry %d", i+1), "name=value with percent-encoded values, comma between them")
		}
		all[name] = value
	}
	return all, nil
}

// told reports whether a trace is one of those that are told: by the last 63
// bits of its id, as OpenTelemetry's TraceIdRatioBased does.
func (s *Settings) told(trace string) bool {
	if s.Share >= 1 {
		return true
	}
	n, err := strconv.ParseUint(trace[max(0, len(trace)-16):], 16, 64)
	return err == nil && float64(n>>1) < s.Share*(1<<63)
}
