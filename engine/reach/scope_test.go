package reach_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/engine/reach"
	"swarmdeck/engine/safeopen"
	"swarmdeck/expect"
)

// world is a machine with a home, a data file, trees of two agents and a project.
type world struct {
	t    *testing.T
	root string
	own  *safeopen.Own
}

func newWorld(t *testing.T) *world {
	t.Helper()
	root := expect.Of(filepath.EvalSymlinks(t.TempDir()))(t)
	w := &world{t: t, root: root}
	for _, dir := range []string{
		"home/.ssh", "home/.config/gh", "home/src", "data.db.run/trees/t_acme/ada/sub", "data.db.run/trees/t_acme/bob", "data.db.run/homes/ada", "data.db.run/work/t_acme/x/1",
		"project/sub", "project/.ssh", "given", "elsewhere",
	} {
		expect.No(t, os.MkdirAll(w.at(dir), 0o755))
	}
	for link, to := range map[string]string{
		"data.db.run/trees/t_acme/ada/out": "home/.ssh", "data.db.run/trees/t_acme/ada/up": "home", "data.db.run/trees/t_acme/ada/in": "data.db.run/trees/t_acme/ada/sub",
		"data.db.run/trees/t_acme/ada/gone": "nowhere", "project/out": "elsewhere", "link": "project",
	} {
		expect.No(t, os.Symlink(w.at(to), w.at(link)))
	}
	t.Setenv("HOME", w.at("home"))
	w.own = expect.Of(safeopen.OwnFiles(w.at("data.db")))(t)
	return w
}

func (w *world) at(name string) string { return filepath.Join(w.root, name) }

func TestAScopeGivesItsOwnAndNothingAround(t *testing.T) {
	w := newWorld(t)
	tree := w.at("data.db.run/trees/t_acme/ada")
	agent := reach.Scope{Who: "agent ada", Own: []string{tree}, More: []string{w.at("given"), w.at("home/.config/gh")}, Place: w.at("data.db.run/work/t_acme/x"), Keep: w.own}
	far := reach.Scope{Who: "bob", More: []string{w.at("project"), w.at("home"), "/usr/share"}, Place: w.at("data.db.run/work/t_acme/y"), Keep: w.own}
	for _, c := range []struct {
		who  string
		s    reach.Scope
		path string
		want string // "" is refused
	}{
		{"agent", agent, tree, tree},
		{"agent", agent, "sub", tree + "/sub"},
		{"agent", agent, tree + "/sub/../sub/", tree + "/sub"},
		{"agent", agent, "in", tree + "/sub"},
		{"agent", agent, "not/yet", tree + "/not/yet"},
		{"agent", agent, w.at("given"), w.at("given")},
		{"agent", agent, w.at("data.db.run/work/t_acme/x/1"), w.at("data.db.run/work/t_acme/x/1")},
		{"agent", agent, "out", ""},
		{"agent", agent, "out/id_rsa", ""},
		{"agent", agent, "up", ""},
		{"agent", agent, "up/src", ""},
		{"agent", agent, "gone", ""},
		{"agent", agent, "..", ""},
		{"agent", agent, "../bob", ""},
		{"agent", agent, "a\x00b", ""},
		{"agent", agent, w.at("data.db.run/trees"), ""},
		{"agent", agent, w.at("data.db.run/homes/ada"), ""},
		{"agent", agent, w.at("data.db.run/work/t_acme/x"), ""},
		{"agent", agent, w.at("data.db.run/work/t_acme"), ""},
		{"agent", agent, w.at("home/.ssh"), ""},
		{"agent", agent, w.at("home/.config/gh"), ""}, // a rule gives nothing that is hidden
		{"agent", agent, w.at("home"), ""},
		{"agent", agent, w.root, ""},
		{"agent", agent, "/", ""},
		{"agent", agent, "/etc", ""},
		{"agent", agent, "/proc/self/root" + w.at("home/.ssh"), ""},
		{"far", far, w.at("project"), w.at("project")},
		{"far", far, w.at("project/sub"), w.at("project/sub")},
		{"far", far, w.at("link"), w.at("project")},
		{"far", far, w.at("project/out"), ""},
		{"far", far, w.at("home"), ""},
		{"far", far, w.at("home/src"), w.at("home/src")},
		{"far", far, w.at("home/.ssh"), ""},
		{"far", far, w.at("elsewhere"), ""},
		{"far", far, tree, ""},
		{"far", far, w.at("data.db.run/work/t_acme/x/1"), ""},
		{"far", far, "/usr/share", ""},
		{"nobody", reach.Scope{}, w.at("project"), ""},
		{"nobody", reach.Scope{}, "/", ""},
	} {
		got, err := c.s.Dir("dir", c.path)
		switch {
		case c.want != "" && (err != nil || got != c.want):
			t.Errorf("%s: %s: %q, %v; want %q", c.who, c.path, got, err, c.want)
		case c.want == "" && (!errors.Is(err, core.Kind(core.Denied)) || !strings.Contains(err.Error(), "dir: ")):
			t.Errorf("%s: %s: %q, %v; want a refusal", c.who, c.path, got, err)
		}
	}
}

func TestWorkThatNamesNoDirectoryHasItsOwn(t *testing.T) {
	w := newWorld(t)
	agent := reach.Scope{Own: []string{w.at("project")}, Place: w.at("data.db.run/work/t_acme/x")}
	expect.Is(t, expect.Of(agent.Dir("dir", ""))(t), w.at("project"), "an agent")
	far := reach.Scope{More: []string{w.at("project")}, Place: w.at("data.db.run/work/t_acme/x")}
	one, err := far.Dir("dir", "")
	two, bad := far.Dir("dir", "")
	expect.True(t, err == nil && bad == nil && one != two && filepath.Dir(one) == far.Place, "from afar: %q and %q, %v %v", one, two, err, bad)
	expect.Is(t, expect.Of((reach.Scope{Free: true}).Dir("dir", ""))(t), "", "a person of this machine")
}

func TestCallersHavePlacesApart(t *testing.T) {
	all := map[string]bool{}
	for _, by := range []core.Caller{
		{Tenant: "t_a", Name: "ada", Kind: core.Agent},
		{Tenant: "t_a", Name: "ada", Kind: core.Operator},
		{Tenant: "t_b", Name: "ada", Kind: core.Agent},
		{Tenant: "t_a", Name: "../ada", Kind: core.Agent},
	} {
		at := reach.Apart("/w", by)
		expect.True(t, !all[at] && filepath.Dir(filepath.Dir(at)) == "/w", "%+v: %s", by, at)
		all[at] = true
	}
}

func TestACommandBringsNothingOfOthersIntoItsCell(t *testing.T) {
	w := newWorld(t)
	tree := w.at("data.db.run/trees/t_acme/ada")
	t.Setenv("PATH", "/usr/bin:"+w.at("given"))
	s := reach.Scope{Own: []string{tree}}
	for _, c := range []struct {
		program, path string
		ok            bool
	}{
		{"sh", "", true},
		{"/bin/sh", "", true},
		{"./sub/run", "", true},
		{tree + "/in/run", "", true},
		{w.at("given/tool"), "", true}, // in the engine's own PATH
		{"sh", "/usr/local/bin:bin:" + tree + "/sub:" + w.at("given"), true},
		{w.at("home/src/run"), "", false},
		{"../bob/run", "", false},
		{"./up/src/run", "", false},
		{"out/run", "", false},
		{"/proc/self/root" + w.at("elsewhere/run"), "", false},
		{"sh", w.at("home/src"), false},
		{"sh", "/usr/bin:" + tree + "/up", false},
		{"sh", "/usr/../" + w.at("elsewhere"), false},
		{w.at("data.db"), "", false},
	} {
		err := s.Runs("argv", tree, c.program, c.path)
		expect.True(t, (err == nil) == c.ok, "%s with PATH=%s: %v", c.program, c.path, err)
		expect.No(t, (reach.Scope{Free: true}).Runs("argv", tree, c.program, c.path), "a person of this machine", c.program)
	}
}
