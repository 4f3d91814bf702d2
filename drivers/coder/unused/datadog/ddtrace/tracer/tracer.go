// Package tracer stands in for the one that Coder's server is traced with.
// What has no body does not link: no client calls it.
package tracer

type StartOption struct{}

func WithRuntimeMetrics() StartOption
