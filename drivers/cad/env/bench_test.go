package env_test

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"swarmdeck/drivers/cad/env"
	"swarmdeck/expect"
)

// tails reports the median and the slowest hundredth of single operations.
func tails(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	b.ReportMetric(ms(took[len(took)/2]), "p50-ms")
	b.ReportMetric(ms(took[len(took)*99/100]), "p99-ms")
}

func BenchmarkOperation(b *testing.B) {
	for _, op := range []struct {
		name, method string
		params       func(i int) string
	}{
		{"point", "entity.create_point", func(i int) string { return fmt.Sprintf(`{"coordinates":[%d,1]}`, i%1000) }},
		{"circle", "entity.create_circle", func(i int) string { return fmt.Sprintf(`{"center":[%d,1],"radius":5}`, i%1000) }},
		{"query", "entity.query", func(int) string { return `{"entity_id":"c"}` }},
		{"box", "solid.primitive", func(i int) string {
			return fmt.Sprintf(`{"primitive_type":"box","width":%d,"depth":1,"height":1}`, i%10000+1)
		}},
		{"extrude", "solid.extrude", func(i int) string { return fmt.Sprintf(`{"entity_ids":["c"],"distance":%d}`, i%10000+1) }},
		{"constraint", "constraint.apply", func(int) string {
			return `{"constraint_type":"radius","entity_ids":["c"],"parameters":{"radius":5},"entity_id":"r"}`
		}},
		{"mass", "measure.mass", func(int) string { return `{"entity_id":"s"}` }},
	} {
		b.Run(op.name, func(b *testing.B) {
			c := start(b)
			c.do("entity.create_circle", `{"entity_id":"c","center":[0,0],"radius":5}`)
			c.do("solid.extrude", `{"entity_ids":["c"],"entity_id":"s","distance":7}`)
			var took []time.Duration
			for i := 0; b.Loop(); i++ {
				begin := time.Now()
				c.do(op.method, op.params(i))
				took = append(took, time.Since(begin))
				if op.name == "constraint" {
					c.do("history.undo", "{}")
				}
			}
			tails(b, took)
		})
	}
}

// housing makes a box with four posts and a rim, drilled, and the lid for it.
func (c *client) housing() {
	c.box("h", [3]float64{}, [3]float64{100, 80, 40})
	c.box("hollow", [3]float64{3, 3, 3}, [3]float64{94, 74, 50})
	c.do("solid.boolean", `{"operation":"subtract","entity_ids":["h","hollow"],"entity_id":"h"}`)
	for i, p := range [][2]int{{8, 8}, {92, 8}, {92, 72}, {8, 72}} {
		c.do("solid.primitive", fmt.Sprintf(`{"entity_id":"p%d","primitive_type":"cylinder","radius":5,"height":37,"axis_point":[%d,%d,3]}`, i, p[0], p[1]))
		c.do("solid.primitive", fmt.Sprintf(`{"entity_id":"d%d","primitive_type":"cylinder","radius":1.6,"height":60,"axis_point":[%d,%d,10]}`, i, p[0], p[1]))
	}
	c.do("solid.boolean", `{"operation":"union","entity_ids":["h","p0","p1","p2","p3"],"entity_id":"h"}`)
	c.box("lid", [3]float64{0, 0, 40}, [3]float64{100, 80, 3})
	c.do("solid.boolean", `{"operation":"subtract","entity_ids":["lid","d0","d1","d2","d3"],"entity_id":"lid","keep_inputs":false}`)
}

func BenchmarkHousingAndLid(b *testing.B) {
	for b.Loop() {
		c := start(b)
		c.housing()
		c.do("file.export", `{"file_path":"all.step"}`)
		b.StopTimer()
		if n := c.do("measure.interference", `{}`)["interference_count"]; n != 0.0 {
			b.Fatal(n)
		}
		b.StartTimer()
	}
}

// BenchmarkMerge brings 100 solids into a workspace of 100. The box of each meets
// those of four others, which are compared.
func BenchmarkMerge(b *testing.B) {
	c := start(b)
	c.do("workspace.create", `{"workspace_name":"w"}`)
	for i := range 100 {
		x, y := float64(i%10)*10, float64(i/10)*10
		c.do("solid.primitive", fmt.Sprintf(`{"primitive_type":"cylinder","radius":3.5,"height":10,"axis_point":[%g,%g,0]}`, x, y))
		c.do("solid.primitive", fmt.Sprintf(`{"workspace_id":"w","primitive_type":"cylinder","radius":3.5,"height":10,"axis_point":[%g,%g,0]}`, x+5, y+5))
	}
	for b.Loop() {
		out := c.do("workspace.merge", `{"source_workspace_id":"w","target_workspace_id":"main"}`)
		if n := len(out["entities_added"].([]any)); n != 100 || out["merge_result"] != "success" {
			b.Fatal(n, out["conflicts"])
		}
		b.StopTimer()
		c.do("history.undo", "{}")
		b.StartTimer()
	}
}

// BenchmarkWorkspace measures what a branch of the housing takes in memory.
func BenchmarkWorkspace(b *testing.B) {
	c := start(b)
	c.housing()
	heap := func() float64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	const n = 50
	for round := 0; b.Loop(); round++ {
		before := heap()
		for i := range n {
			id := fmt.Sprintf("w%d_%d", round, i)
			c.do("workspace.create", fmt.Sprintf(`{"workspace_name":%q}`, id))
			c.do("solid.transform", fmt.Sprintf(`{"workspace_id":%q,"entity_id":"lid","translate":[0,0,%d]}`, id, i+1))
		}
		b.ReportMetric((heap()-before)/n/1e3, "kB/workspace")
	}
}

// BenchmarkDrill drills 180 holes into a plate.
func BenchmarkDrill(b *testing.B) {
	for b.Loop() {
		c := start(b)
		c.box("plate", [3]float64{}, [3]float64{400, 300, 20})
		c.do("solid.primitive", `{"entity_id":"h","primitive_type":"cylinder","radius":5,"height":30,"axis_point":[10,10,-5]}`)
		c.do("solid.pattern", `{"base_entity_id":"h","entity_id":"row","direction":[1,0,0],"spacing":20,"count":18}`)
		c.do("solid.pattern", `{"base_entity_id":"row","entity_id":"grid","direction":[0,1,0],"spacing":25,"count":10}`)
		c.do("solid.boolean", `{"operation":"subtract","entity_ids":["plate","grid"]}`)
	}
}

// BenchmarkTenClients lets ten clients work in workspaces of their own at once.
func BenchmarkTenClients(b *testing.B) {
	dir := b.TempDir()
	e := expect.Of(env.New(b.Context(), env.Options{Open: engine.Open, Dir: dir}))(b)
	b.Cleanup(func() { e.Close() })
	var clients []*client
	for i := range 10 {
		c := connect(b, e, dir)
		c.do("workspace.create", fmt.Sprintf(`{"workspace_name":"w%d"}`, i))
		c.do("workspace.switch", fmt.Sprintf(`{"workspace_id":"w%d"}`, i))
		c.do("entity.create_circle", `{"entity_id":"c","center":[0,0],"radius":5}`)
		clients = append(clients, c)
	}
	var mu sync.Mutex
	var took []time.Duration
	for round := 0; b.Loop(); round++ {
		var all sync.WaitGroup
		for i, c := range clients {
			all.Go(func() {
				for _, op := range [][2]string{
					{"entity.create_point", `{"coordinates":[1,2]}`},
					{"solid.extrude", fmt.Sprintf(`{"entity_ids":["c"],"distance":%d}`, 1+(round*10+i)%10000)},
					{"entity.query", `{"entity_id":"c"}`},
				} {
					begin := time.Now()
					c.do(op[0], op[1])
					mu.Lock()
					took = append(took, time.Since(begin))
					mu.Unlock()
				}
			})
		}
		all.Wait()
	}
	tails(b, took)
}

// BenchmarkSketch draws a staircase and holds it with one constraint after the
// other, of which each is solved together with all before it.
func BenchmarkSketch(b *testing.B) {
	for _, lines := range []int{20, 60, 180} {
		b.Run(fmt.Sprint(lines), func(b *testing.B) {
			applied := 0
			apply := func(c *client, kind, a, with, more string) {
				applied++
				entities := fmt.Sprintf("%q", a)
				if with != "" {
					entities += fmt.Sprintf(",%q", with)
				}
				c.do("constraint.apply", fmt.Sprintf(`{"constraint_type":%q,"entity_ids":[%s]%s}`, kind, entities, more))
			}
			for b.Loop() {
				c := start(b)
				for i := range lines {
					x, y := float64(i/2)*10, float64((i+1)/2)*10
					c.do("entity.create_line", fmt.Sprintf(`{"entity_id":"l%d","start":[%g,%g],"end":[%g,%g]}`,
						i, x+0.3, y-0.2, x+10*float64(i%2)+0.1, y+10*float64(1-i%2)-0.1))
				}
				applied = 0
				apply(c, "fixed", "l0.start", "", "")
				for i := range lines {
					line := fmt.Sprintf("l%d", i)
					if i > 0 {
						apply(c, "coincident", fmt.Sprintf("l%d.end", i-1), line+".start", "")
					}
					apply(c, []string{"vertical", "horizontal"}[i%2], line, "", "")
					apply(c, "distance", line, "", `,"parameters":{"distance":10}`)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N*applied), "ms/constraint")
		})
	}
}
