package command_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"swarmdeck/engine/cad"
	"swarmdeck/engine/core"
	"swarmdeck/expect"
	"swarmdeck/ui/command"
)

// models has an agent with a workspace of its own carry operations out, each a
// method and its parameters.
func (d *deck) models(agent string, ops ...string) {
	d.t.Helper()
	ctx, by := context.Background(), d.operator()
	_, err := d.eng.CAD.CreateAgent(ctx, by, cad.CreateAgent{AgentID: agent, RoleName: "maker", WorkspaceID: "ws_" + agent, Workspace: &cad.CreateWorkspace{}})
	d.no(err)
	for _, op := range ops {
		method, params, _ := strings.Cut(op, " ")
		expect.Of(d.eng.CAD.Execute(ctx, by, cad.Operation{AgentID: agent, Method: method, Params: core.Raw(params)}))(d.t)
	}
}

// operator is the environment's caller in its tenant.
func (d *deck) operator() core.Caller {
	d.t.Helper()
	all := expect.Of(d.eng.Swarm.Tenants(context.Background()))(d.t)
	by := d.env.Caller
	by.Tenant = all[0].TenantID
	return by
}

// maker is a role that may do what the tests need.
func (d *deck) maker() {
	d.t.Helper()
	d.line("session list") // makes the tenant
	_, _, err := d.eng.CAD.PutRole(context.Background(), d.operator(), cad.RoleTemplate{
		Name: "maker", Description: "makes solids", ExampleTasks: []string{"a box"}, AllowedOperations: []string{"solid.primitive", "solid.boolean", "solid.transform", "entity.create_point", "entity.update", "workspace.create"},
	})
	d.no(err)
}

const (
	boxOf = `solid.primitive {"primitive_type":"box","width":%d,"depth":%d,"height":%d,"entity_id":"%s"}`
	pinOf = `solid.primitive {"primitive_type":"cylinder","radius":%d,"height":%d,"entity_id":"%s","axis_point":[100,0,0]}`
)

func TestCADViewDrawsWhatIsThere(t *testing.T) {
	d := newDeck(t)
	d.maker()
	d.models("ann", fmt.Sprintf(boxOf, 40, 30, 20, "block"), fmt.Sprintf(pinOf, 5, 50, "pin"))
	d.models("bob")

	out := d.line("cad view ws_ann --size 60x20 --ascii")
	for _, want := range []string{"iso, a cell is ", "A  block  40 x 30 x 20 mm", "24000", "closed and manifold", "B  pin "} {
		expect.Has(t, out, want)
	}
	expect.True(t, !strings.ContainsFunc(out, func(r rune) bool { return r > '~' || r < ' ' && r != '\n' }), "more than ASCII in\n%s", out)
	one := d.object("cad view ws_ann block --view front --size 40x12")
	solids := one["solids"].([]any)
	expect.True(t, len(solids) == 1 && one["view"] == "front" && len(one["picture"].([]any)) == 12 && one["mm_per_cell"].(float64) > 0, "one solid: %v", one)
	s := solids[0].(map[string]any)
	expect.True(t, s["entity_id"] == "block" && s["volume"].(float64) == 24000 && s["mass"].(float64) == 24 && s["valid"] == true, "the solid: %v", s)
	all := d.object("cad view ws_ann --view all")
	expect.True(t, all["view"] == "all" && strings.Contains(fmt.Sprint(all["picture"]), "front"), "four views: %v", all)
	expect.Row(t, d.object("cad view ws_ann --angle 30,20"), "view", "yaw 30 pitch 20")
	expect.Is(t, d.line("cad view ws_bob"), "workspace ws_bob has no solid\n", "an empty workspace")
	env := d.env
	env.Getenv = func(name string) string {
		return map[string]string{"LANG": "C.UTF-8", "TERM": "xterm-256color", "COLORTERM": "truecolor"}[name]
	}
	_, out, _ = d.runIn(context.Background(), env, "cad", "view", "ws_ann")
	expect.True(t, strings.Contains(out, "⣀") && !strings.Contains(out, "\x1b"), "printed to no terminal:\n%q", out)
	_, out, _ = d.runIn(context.Background(), env, "cad", "view", "ws_ann", "--color", "always")
	expect.True(t, strings.Contains(out, "48;2;"), "with colours:\n%q", out)
}

func TestCADViewRefusesWhatItCantDraw(t *testing.T) {
	d := newDeck(t)
	d.maker()
	d.models("ann", `entity.create_point {"x":1,"y":2,"entity_id":"p"}`)
	for line, want := range map[string]string{
		"cad view":                              "WORKSPACE is missing",
		"cad view ws_nobody":                    "ws_nobody",
		"cad view ws_ann nothing":               "nothing",
		"cad view ws_ann p":                     "a solid",
		"cad view ws_ann --angle up":            "degrees",
		"cad view ws_ann --angle 1 --view top":  "use one",
		"cad view ws_ann --size 3x3":            "10x5 to 320x160",
		"cad view ws_ann --size 80":             "10x5 to 320x160",
		"cad view ws_ann --size 99999999999x40": "10x5 to 320x160",
		"cad view ws_ann --density 0":           "above 0",
	} {
		args := expect.Of(command.Split(line))(d.t)
		code, out, stderr := d.run(args...)
		expect.True(t, code != 0 && out == "" && strings.Contains(stderr, want), "%s: exit %d %q %q, want %q", line, code, out, stderr, want)
	}
}

func TestOperatorsChangeWorkspaces(t *testing.T) {
	d := newDeck(t)
	d.maker()
	d.models("ann", fmt.Sprintf(boxOf, 40, 30, 20, "block"), fmt.Sprintf(pinOf, 5, 50, "pin"))
	d.models("bob", fmt.Sprintf(boxOf, 10, 10, 10, "block"))

	got := d.object("cad workspace undo ws_ann")
	expect.True(t, got["seq"] == 4.0 && fmt.Sprint(got["removed"]) == "[pin]", "undo: %v", got)
	got = d.object("cad workspace redo ws_ann")
	expect.True(t, fmt.Sprint(got["entities"]) == "[pin]", "redo: %v", got)
	code, _, stderr := d.run("cad", "workspace", "redo", "ws_ann")
	expect.True(t, code == 1 && strings.Contains(stderr, "redo"), "redo of nothing: exit %d %s", code, stderr)
	merged := d.object("cad workspace merge ws_bob ws_ann")
	expect.Must(t, merged["data"].(map[string]any)["merge_result"] == "has_conflicts", "merge: %v", merged)
	for line, want := range map[string]string{
		"cad workspace resolve ws_ann block":                             "--keep is missing",
		"cad workspace resolve ws_ann block --keep merged":               "--merged",
		"cad workspace resolve ws_ann block --keep source --merged '{}'": "--merged",
		"cad workspace resolve ws_ann pin --keep source":                 "no open conflict",
	} {
		args := expect.Of(command.Split(line))(d.t)
		code, _, stderr := d.run(args...)
		expect.True(t, code != 0 && strings.Contains(stderr, want), "%s: exit %d %q, want %q", line, code, stderr, want)
	}
	d.line("cad workspace resolve ws_ann block --keep source")
	got = d.object("cad view ws_ann block")
	expect.True(t, got["solids"].([]any)[0].(map[string]any)["volume"].(float64) == 1000, "the source's block is not kept: %v", got["solids"])
}

func (w *walk) solids() {
	w.maker()
	w.models("zoe", fmt.Sprintf(boxOf, 40, 30, 20, "block"))
	w.models("yan", fmt.Sprintf(boxOf, 10, 10, 10, "block"))
	w.do("cad view ws_zoe")
	w.text("cad view ws_zoe --ascii", "block", "24000")
	w.do("cad workspace undo ws_zoe")
	w.do("cad workspace redo ws_zoe")
	w.do("cad workspace merge ws_zoe ws_yan")
	w.do("cad workspace resolve ws_yan block --keep target")
}
