package op

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
)

// Picture is a part of the record with the size that it is to be drawn in.
type Picture struct {
	dag.Graph
	W, H int `json:"-"` // cells
}

// Bounds of a picture.
const (
	leastGraphW, leastGraphH = 40, 10
	mostGraphW, mostGraphH   = 400, 400
)

func dagGraph() *Op {
	var p Picture
	q, size := dag.LineageQuery{Depth: 3, Most: 60}, "80x24"
	return change(Op{
		Name: "dag graph", Short: "Draw what led to a node and what came of it", Effect: Reads, Example: "dag graph 3f1c09aa --size 160x40\ndag graph Agent:ada",
		Long: "Draw what led to a node, to its left, and what came of it, to its right, as boxes and lines; of an agent its runs,\n" +
			"forks and subagents too. A node is an event, TYPE:ID, or an id that only one node has. In the cockpit: key v.",
		Params: []*Param{
			flag(&q.Depth, "depth", "at most `N` steps each way, 1-20"),
			flag(&q.Most, "most", "at most `N` nodes each way, 1-500"),
			flag(&size, "size", "size of the picture, `WxH` cells"),
		},
		Check: func(*Call) error {
			w, h, _ := strings.Cut(size, "x")
			var bad error
			if p.W, bad = strconv.Atoi(w); bad == nil {
				p.H, bad = strconv.Atoi(h)
			}
			if bad != nil || p.W < leastGraphW || p.W > mostGraphW || p.H < leastGraphH || p.H > mostGraphH {
				return core.Invalid("size", size, fmt.Sprintf("WxH from %dx%d to %dx%d", leastGraphW, leastGraphH, mostGraphW, mostGraphH))
			}
			return nil
		},
	}, arg("NODE", "record"), func(ctx context.Context, c *Call, name string) (_ Picture, err error) {
		if q.Node, err = c.DAG.FindNode(ctx, c.By.Tenant, name); err == nil {
			p.Graph, err = c.DAG.Around(ctx, c.By.Tenant, q)
		}
		return p, err
	})
}
