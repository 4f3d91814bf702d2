package dag_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/expect"
)

// origins are what a file is derived from.
func (r *rig) origins(path string) (all []string) {
	r.T.Helper()
	line := expect.Of(r.Lineage(r.T.Context(), acme, dag.LineageQuery{Node: dag.NodeRef{Type: dag.TypeResource, ID: dag.FileID(path)}, Depth: 1}))(r.T)
	for _, s := range line.Steps {
		all = append(all, string(s.Node.Type))
	}
	slices.Sort(all)
	return all
}

func TestAFileComesFromTheCallsThatItChangedDuringOrFromTheRun(t *testing.T) {
	r := newRig(t)
	rec := r.record()
	ctx := t.Context()
	r.No(rec.Said(ctx, "main", dag.RoleUser, "Build it"))
	rec.Changed(nil, []dag.File{{Path: "/w/before", SHA256: strings.Repeat("a", 64), Size: 3}}, 0)
	r.No(rec.Call(ctx, "exec", "sh", "c-1", core.Raw(`{}`)))
	r.No(rec.Call(ctx, "exec", "sh", "c-2", core.Raw(`{}`)))
	rec.Changed([]string{"c-1", "c-2"}, []dag.File{{Path: "/w/both"}}, 0)
	r.No(rec.Result(ctx, "c-1", dag.CallOK, nil, nil))
	rec.Changed([]string{"c-1"}, []dag.File{{Path: "/w/late"}}, 0) // found once it had ended
	rec.Changed([]string{"no such call"}, []dag.File{{Path: "/w/lost"}}, 0)
	var many []dag.File
	for i := range 150 {
		many = append(many, dag.File{Path: fmt.Sprint("/w/many/", i)})
	}
	rec.Changed([]string{"c-2"}, many, 7)
	r.No(rec.Result(ctx, "c-2", dag.CallOK, nil, nil))
	r.No(r.finish(rec, true))
	for path, want := range map[string][]string{
		"/w/before": {"Event"}, "/w/both": {"ToolCall", "ToolCall"}, "/w/late": {"ToolCall"}, "/w/lost": {"Event"}, "/w/many/0": {"ToolCall"}, "/w/many/149": {"ToolCall"},
	} {
		expect.Same(t, r.origins(path), want, path, "comes from")
	}
	info := expect.Of(r.Node(ctx, acme, dag.NodeRef{Type: dag.TypeResource, ID: dag.FileID("/w/before")}))(r.T)
	expect.Has(t, string(info.Versions[0].Node.Body.(*dag.Resource).Metadata), strings.Repeat("a", 64))
	page := expect.Of(r.Events(ctx, acme, dag.Query{Run: rec.RunID(), Filter: core.Filter{Match: "and 7 more"}}))(r.T)
	expect.True(t, len(page.Items) == 1, "%d events count what is not named", len(page.Items))
}
