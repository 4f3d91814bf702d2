package cad

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"swarmdeck/drivers/cad/embedded"
	"swarmdeck/drivers/cad/env"
	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

// made is a solid as the embedded kernel measures it.
type made struct {
	size   [3]float64 // of its bounding box
	volume float64    // mm³
}

// chordOff is how far facets may be off the true curves, in mm.
const chordOff = 1e-3

// kernelOf is an embedded kernel that plans are carried out on.
func kernelOf(t testing.TB) *embedded.Engine {
	t.Helper()
	e := embedded.New(embedded.Options{CacheDir: embedded.CodeCache()})
	t.Cleanup(func() { expect.Is(t, e.Close(), nil) })
	return e
}

// carryOut has the kernel make what a plan says, and returns the solids by name.
func carryOut(t testing.TB, kernel *embedded.Engine, s Scenario) map[string]made {
	t.Helper()
	var asked bytes.Buffer
	id := 0
	for _, task := range s.Tasks {
		if task.TaskID == "merge" {
			continue
		}
		for _, op := range task.Operations {
			if op.Method == "file.export" {
				continue
			}
			id++
			fmt.Fprintf(&asked, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", id, op.Method, op.Params)
		}
	}
	fmt.Fprintln(&asked, `{"jsonrpc":"2.0","id":0,"method":"entity.list","params":{"filter_type":"solid"}}`)
	e := expect.Of(env.New(t.Context(), env.Options{Open: kernel.Open, Tolerance: chordOff}))(t)
	defer func() {
		expect.Is(t, e.Close(), nil)
	}()
	var answers bytes.Buffer
	expect.No(t, e.Serve(t.Context(), &asked, &answers))
	var last struct {
		Result struct {
			Data struct {
				Entities []struct {
					ID         string `json:"entity_id"`
					Properties struct {
						Volume  float64 `json:"volume"`
						Surface float64 `json:"surface_area"`
						Box     struct {
							Min [3]float64 `json:"min"`
							Max [3]float64 `json:"max"`
						} `json:"bounding_box"`
					} `json:"properties"`
				} `json:"entities"`
			} `json:"data"`
		} `json:"result"`
	}
	for line := range strings.Lines(answers.String()) {
		expect.Must(t, !strings.Contains(line, `"error"`), "%s: %s", s.Description, line)
		if strings.Contains(line, `"id":0`) {
			expect.No(t, core.DecodeStored(core.Raw(line), &last))
		}
	}
	all := map[string]made{}
	for _, e := range last.Result.Data.Entities {
		m := made{volume: e.Properties.Volume}
		for i := range 3 {
			m.size[i] = e.Properties.Box.Max[i] - e.Properties.Box.Min[i]
		}
		all[e.ID] = m
	}
	return all
}

// near reports whether a solid is another, but for its facets. A hole that is
// missing takes more than these do.
func (m made) near(want made) bool {
	for i := range 3 {
		if math.Abs(m.size[i]-want.size[i]) > 2*chordOff {
			return false
		}
	}
	surface := 2 * (want.size[0]*want.size[1] + want.size[1]*want.size[2] + want.size[0]*want.size[2])
	return math.Abs(m.volume-want.volume) < 2*chordOff*surface+1e-3
}
