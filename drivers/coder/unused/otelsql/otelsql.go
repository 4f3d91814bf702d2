// Package otelsql stands in for the one that Coder's server traces its database
// with. What has no body does not link: no client calls it.
package otelsql

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

type (
	DriverOption      interface{ option() }
	Option            interface{ DriverOption }
	spanNameFormatter func(ctx context.Context, op string) string
)

func QueryFromContext(context.Context) string
func Register(string, ...DriverOption) (string, error)
func TraceQueryWithoutArgs() DriverOption
func WithDefaultAttributes(...attribute.KeyValue) Option
func WithSpanNameFormatter(spanNameFormatter) DriverOption
func WithSystem(attribute.KeyValue) Option
func WithTracerProvider(trace.TracerProvider) DriverOption
