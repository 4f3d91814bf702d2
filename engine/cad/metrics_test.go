package cad_test

import (
	"context"
	"math"
	"testing"
	"time"

	"swarmdeck/engine/cad"
	"swarmdeck/expect"
)

func TestMetricsTellHowAnAgentDoes(t *testing.T) {
	w := newWorld(t)
	w.agent("ann", "designer")
	read := func() cad.Metrics {
		t.Helper()
		return expect.Of(w.cad.Metrics(t.Context(), home, "ann"))(t)
	}
	if m := read(); m.SuccessRate != 0 || m.Learning != cad.Insufficient || len(m.Operations) != 0 {
		t.Errorf("at first %+v", m)
	}
	good := func(n int) {
		for range n {
			w.do("ann", "entity.create_point", `{}`)
		}
	}
	bad := func(n int) {
		for range n {
			_, err := w.try("ann", "entity.create_line", `{"width":-1}`)
			expect.Must(t, err != nil, "no error")
		}
	}
	bad(5)
	good(15)
	if m := read(); m.SuccessRate != 0.75 || m.RecentErrorRate != 0.25 || m.Learning != cad.Insufficient {
		t.Errorf("%+v", m)
	}
	good(20)
	if m := read(); m.Trend != 0.25 || m.Learning != cad.Improving || m.EarlierErrorRate != 0.25 || m.RecentErrorRate != 0 {
		t.Errorf("%+v", m)
	}
	good(20)
	if m := read(); m.Trend != 0 || m.Learning != cad.Stable {
		t.Errorf("%+v", m)
	}
	bad(4)
	_, err := w.try("ann", "solid.extrude", `{}`)
	expect.Must(t, err != nil, "no error")
	m := read()
	expect.True(t, math.Abs(m.Trend+0.25) <= 1e-9 && m.Learning == cad.Declining && m.RoleViolations == 1 && m.OperationCount == 65 && m.CreatedCount == 55,
		"%+v", m)
	if len(m.Operations) != 3 || m.Operations[0].Method != "entity.create_point" || m.Operations[0].Count != 55 || m.Operations[1].Errors != 9 || m.Operations[2].MeanMS != 0 {
		t.Errorf("%+v", m.Operations)
	}
	expect.True(t, m.Operations[0].MeanMS == 1 && m.Operations[0].P95MS == 1 && m.P95MS >= 1, "%+v", m)
	w.again()
	again := read()
	expect.True(t, again.OperationCount == m.OperationCount && again.Trend == m.Trend, "after a restart %+v", again)
}

func BenchmarkOperation(b *testing.B) {
	for name, agents := range map[string]int{"one agent": 1, "ten agents": 10} {
		b.Run(name, func(b *testing.B) {
			w := newWorld(b)
			w.pool.most = agents
			ids := make(chan string, agents)
			for i := range agents {
				id := string('a' + rune(i))
				w.agent(id, "designer")
				ids <- id
			}
			b.SetParallelism(agents)
			b.ResetTimer()
			began := time.Now()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					id := <-ids
					_, err := w.cad.Execute(context.Background(), alice, cad.Operation{AgentID: id, Method: "entity.create_point"})
					ids <- id
					if err != nil {
						b.Error(err)
						return
					}
				}
			})
			b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "op/s")
		})
	}
}
