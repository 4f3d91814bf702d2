package skill

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/swarm"
	"swarmdeck/expect"
	"swarmdeck/store"
)

const home = "t_home"

var alice = core.Caller{Tenant: home, Name: "alice", Kind: core.Operator, Door: core.DoorCLI}

// shelf is a registry over a data file, and a directory for skill files.
type shelf struct {
	*registry
	t    testing.TB
	dir  string
	data string
	db   *store.DB

	static []Skill
}

// kindOfTest is a runner that checks a name and runs nothing.
type kindOfTest struct{}

func (kindOfTest) Check(spec Spec) error {
	if spec.Name == "broken" {
		return core.Invalid("runner.name", spec.Name, "echo, sleep")
	}
	return nil
}

func (kindOfTest) Start(context.Context, Call) (swarm.Work, error) { panic("nothing runs here") }

func newShelf(t testing.TB) *shelf {
	s := &shelf{t: t, dir: t.TempDir(), data: filepath.Join(t.TempDir(), "data.db")}
	s.open()
	expect.No(t, s.db.CreateTenant(t.Context(), home))
	t.Cleanup(s.close)
	return s
}

func (s *shelf) open() {
	s.t.Helper()
	s.db = expect.Of(store.Open(s.data, store.Options{}))(s.t)
	tenants := expect.Of(s.db.Tenants(s.t.Context()))(s.t)
	kinds := map[string]Runner{"builtin": kindOfTest{}, "exec": kindOfTest{}, "agent": kindOfTest{}}
	s.registry = expect.Of(newRegistry(s.t.Context(), Options{Ledger: audit.New(s.db, audit.Options{}), Runners: kinds, Static: s.static}, tenants))(s.t)
}

func (s *shelf) close() {
	expect.No(s.t, s.db.Close())
}

// again opens the data file anew.
func (s *shelf) again() {
	s.t.Helper()
	s.close()
	s.open()
}

// file writes a skill file and returns its path.
func (s *shelf) file(name, text string) string {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	expect.No(s.t, os.MkdirAll(filepath.Dir(path), 0o755))
	// By a rename, so that who watches sees the whole text or none.
	fresh := filepath.Join(s.t.TempDir(), "fresh")
	expect.No(s.t, errors.Join(os.WriteFile(fresh, []byte(text), 0o644), os.Rename(fresh, path)))
	return path
}

// skill is the text of a small skill file.
func skillText(name, version string, needs ...string) string {
	return "name: " + name + "\nversion: " + version + "\nparameters_schema: {type: object}\n" +
		"dependencies: [" + strings.Join(needs, ", ") + "]\nrunner: {kind: builtin, name: echo}\n"
}

// load takes paths in; nil is everything of the directory.
func (s *shelf) load(paths ...string) Loaded {
	s.t.Helper()
	if paths == nil {
		paths = []string{s.dir}
	}
	return expect.Of(s.Load(s.t.Context(), alice, Given{Paths: paths}))(s.t)
}

// actions are the changes as "created navigate@1.0.0".
func (l Loaded) actions() []string {
	var all []string
	for _, c := range l.Changes {
		all = append(all, c.Action+" "+c.Name+"@"+c.Version)
	}
	return all
}

// problems are what was refused, as "navigate.yaml:3: timeout: …".
func (s *shelf) problems(l Loaded) []string {
	var all []string
	for _, p := range l.Refused {
		all = append(all, strings.TrimPrefix(p.String(), s.dir+"/"))
	}
	return all
}

// events are the types of the tenant's audit events, the oldest first.
func (s *shelf) events() []string {
	s.t.Helper()
	page := expect.Of(s.ledger.List(s.t.Context(), home, core.Filter{Size: core.MaxPageSize}))(s.t)
	var all []string
	for _, e := range page.Items {
		all = append([]string{e.EventType}, all...)
	}
	return all
}
