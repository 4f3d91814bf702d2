// Package prometheus stands in for the one that Coder's provisioner counts
// its jobs with. What has no body does not link: no client calls it.
package prometheus

type (
	Counter    interface{ Inc() }
	CounterVec struct{}
	Gauge      interface {
		Inc()
		Dec()
	}
	GaugeVec     struct{}
	Observer     interface{ Observe(float64) }
	HistogramVec struct{}
)

func (*CounterVec) WithLabelValues(...string) Counter

func (*GaugeVec) WithLabelValues(...string) Gauge

func (*HistogramVec) WithLabelValues(...string) Observer
