// Package profiler stands in for the one that Coder's server is profiled with.
// What has no body does not link: no client calls it.
package profiler

type (
	Option      struct{}
	ProfileType struct{}
)

var CPUProfile, HeapProfile, GoroutineProfile ProfileType

func Start(...Option) error

func Stop()

func WithProfileTypes(...ProfileType) Option

func WithService(string) Option
