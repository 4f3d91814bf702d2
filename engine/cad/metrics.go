package cad

import (
	"cmp"
	"context"
	"encoding/binary"
	"math"
	"slices"
	"strings"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

// Metrics is how an agent does (controller operation get_agent_metrics).
type Metrics struct {
	AgentID        string  `json:"agent_id"`
	Role           string  `json:"role"`
	Status         Status  `json:"status"`
	OperationCount int     `json:"operation_count"`
	SuccessCount   int     `json:"success_count"`
	ErrorCount     int     `json:"error_count"`
	SuccessRate    float64 `json:"success_rate"` // 0-1; 0 before the first operation
	RoleViolations int     `json:"role_violations"`
	CreatedCount   int     `json:"created_count"`
	// RecentErrorRate is over the newest 20 operations, EarlierErrorRate over
	// the 20 before them; Trend is the earlier one less the recent one, so that
	// above 0 is better.
	RecentErrorRate  float64       `json:"recent_error_rate"`
	EarlierErrorRate float64       `json:"earlier_error_rate"`
	Trend            float64       `json:"trend"`
	Learning         Learning      `json:"learning_status"`
	MeanMS           float64       `json:"mean_duration_ms"` // of all operations that were carried out
	P95MS            float64       `json:"p95_duration_ms"`  // of the newest 128 of them
	Operations       []MethodFacts `json:"operations"`       // by method, those done most first
	LastActive       Seconds       `json:"last_active,omitzero"`
}

// MethodFacts is how an agent does with one method.
type MethodFacts struct {
	Method    string  `json:"method"`
	Count     int     `json:"operation_count"`
	Successes int     `json:"success_count"`
	Errors    int     `json:"error_count"`
	MeanMS    float64 `json:"mean_duration_ms"`
	P95MS     float64 `json:"p95_duration_ms"`
}

// Learning says where an agent's errors go.
type Learning string

// The learning statuses. An agent improves or declines when the error rate of
// its newest 20 operations differs from that of the 20 before them by 0.1 or
// more; with fewer than 10 before the newest 20 there is nothing to compare.
const (
	Insufficient Learning = "insufficient_data"
	Improving    Learning = "improving"
	Stable       Learning = "stable"
	Declining    Learning = "declining"
)

// What the figures of an agent hold.
const (
	mostSamples = 128 // newest operations with their durations
	window      = 20  // operations that a rate is taken over
	leastBefore = 10  // operations before the window that it can be compared with
	notable     = 0.1 // of the error rate, from which on it counts
)

// never is the duration of an operation that was not carried out.
const never = -1

type sample struct {
	Method string
	MS     float64 // never for one that was not carried out
	OK     bool
}

// figures are an agent's, as the store keeps them. They are written with each
// operation, so they are small.
type figures struct {
	Methods []methodFigures `json:"methods"` // in the order in which they came; fewer than 128
	Newest  []byte          `json:"newest"`  // samples, the newest last, each sampleSize long
}

type methodFigures struct {
	Name      string  `json:"name"`
	Count     int     `json:"count"`
	Successes int     `json:"successes"`
	Timed     int     `json:"timed"` // that were carried out
	TotalMS   float64 `json:"total_ms"`
}

// A sample is its method's place among Methods, with okBit set for a success,
// and the bits of its duration as a float32.
const (
	sampleSize = 5
	okBit      = 0x80
)

func (c *roster) count(tx *audit.Tx, agent string, s sample) error {
	f, _, err := figuresOf.Get(tx, record.Key(agent))
	if err != nil {
		return err
	}
	f.add(s)
	return figuresOf.Put(tx, record.Key(agent), f)
}

func (f *figures) add(s sample) {
	at := slices.IndexFunc(f.Methods, func(m methodFigures) bool { return m.Name == s.Method })
	if at < 0 {
		at = len(f.Methods)
		f.Methods = append(f.Methods, methodFigures{Name: s.Method})
	}
	m, first := &f.Methods[at], byte(at)
	m.Count++
	if s.OK {
		m.Successes++
		first |= okBit
	}
	if s.MS != never {
		m.Timed++
		m.TotalMS += s.MS
	}
	f.Newest = binary.BigEndian.AppendUint32(append(f.Newest, first), math.Float32bits(float32(s.MS)))
	f.Newest = f.Newest[max(0, len(f.Newest)-mostSamples*sampleSize):]
}

func (f *figures) samples() []sample {
	var all []sample
	for b := f.Newest; len(b) >= sampleSize; b = b[sampleSize:] {
		if at := int(b[0] &^ okBit); at < len(f.Methods) {
			ms := math.Round(float64(math.Float32frombits(binary.BigEndian.Uint32(b[1:])))*1000) / 1000
			all = append(all, sample{f.Methods[at].Name, ms, b[0]&okBit != 0})
		}
	}
	return all
}

// Metrics tells how an agent does (controller operation get_agent_metrics).
func (c *roster) Metrics(ctx context.Context, tenant, id string) (Metrics, error) {
	found, err := c.member(ctx, reader(tenant), id)
	if err != nil {
		return Metrics{}, err
	}
	var f figures
	var a *Agent
	err = c.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		if a, err = c.kinds.agent.Need(tx, id); err != nil {
			return err
		}
		f, _, err = figuresOf.Get(tx, record.Key(id))
		return err
	})
	if err != nil {
		return Metrics{}, audit.Explain("read the figures of agent "+id, err)
	}
	m := f.metrics()
	m.AgentID, m.Role, m.Status = id, a.Role, found.shown().Status
	m.OperationCount, m.SuccessCount, m.ErrorCount = a.OperationCount, a.SuccessCount, a.ErrorCount
	m.RoleViolations, m.CreatedCount, m.LastActive = a.RoleViolations, a.CreatedCount, a.LastActive
	if a.OperationCount > 0 {
		m.SuccessRate = float64(a.SuccessCount) / float64(a.OperationCount)
	}
	return m, nil
}

func (f *figures) metrics() Metrics {
	m := Metrics{Learning: Insufficient, Operations: []MethodFacts{}}
	newest := f.samples()
	cut := max(0, len(newest)-window)
	recent, before := newest[cut:], newest[max(0, cut-window):cut]
	m.RecentErrorRate, m.EarlierErrorRate = errorRate(recent), errorRate(before)
	if len(before) >= leastBefore {
		m.Trend = m.EarlierErrorRate - m.RecentErrorRate
		switch {
		case m.Trend >= notable:
			m.Learning = Improving
		case m.Trend <= -notable:
			m.Learning = Declining
		default:
			m.Learning = Stable
		}
	}
	times := map[string][]float64{}
	var all []float64
	for _, s := range newest {
		if s.MS != never {
			times[s.Method] = append(times[s.Method], s.MS)
			all = append(all, s.MS)
		}
	}
	var timed int
	var total float64
	for _, of := range f.Methods {
		timed, total = timed+of.Timed, total+of.TotalMS
		m.Operations = append(m.Operations, MethodFacts{
			Method: of.Name, Count: of.Count, Successes: of.Successes, Errors: of.Count - of.Successes,
			MeanMS: mean(of.TotalMS, of.Timed), P95MS: percentile95(times[of.Name]),
		})
	}
	core.Sort(m.Operations, func(a, b MethodFacts) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Method, b.Method))
	})
	m.MeanMS, m.P95MS = mean(total, timed), percentile95(all)
	return m
}

func errorRate(list []sample) float64 {
	bad := 0
	for _, s := range list {
		if !s.OK {
			bad++
		}
	}
	return mean(float64(bad), len(list))
}

func mean(total float64, n int) float64 {
	if n == 0 {
		return 0
	}
	return total / float64(n)
}

// percentile95 is the smallest value that at least 95 % do not exceed; 0 for
// none.
func percentile95(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[(len(values)*95+99)/100-1]
}
