// Package otlptracegrpc stands in for the one that Coder's server exports its
// traces with. What has no body does not link: no client calls it.
package otlptracegrpc

import (
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"google.golang.org/grpc/credentials"
)

type Option interface{ option() }

func NewClient(...Option) otlptrace.Client

func WithEndpoint(string) Option

func WithHeaders(map[string]string) Option

func WithInsecure() Option

func WithTLSCredentials(credentials.TransportCredentials) Option
