// Package profiler stands in for the one that Coder's server is profiled with.
// What has no body does not link: no client calls it.
package profiler

type (
	Option      struct{}
	ProfileType int
)

const (
	CPUProfile ProfileType = iota
	HeapProfile
	GoroutineProfile
)

func Start(...Option) error

func Stop()

func WithProfileTypes(...ProfileType) Option

func WithService(string) Option
