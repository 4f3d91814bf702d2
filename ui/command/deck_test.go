package command_test

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"swarmdeck/drivers/cad/env"
	"swarmdeck/expect"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/cell/pin"
	"swarmdeck/drivers/dag/formats"
	"swarmdeck/drivers/drivertest"
	"swarmdeck/drivers/exec"
	"swarmdeck/drivers/witness"
	"swarmdeck/engine"
	"swarmdeck/engine/audit"
	"swarmdeck/engine/cluster"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag/control"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/skill"
	"swarmdeck/engine/swarm"
	"swarmdeck/store"
	"swarmdeck/ui/command"
)

// deck is an engine at work on a data file of its own, and an environment to
// run lines in.
type deck struct {
	t    testing.TB
	dir  string
	data string
	eng  *engine.Engine
	env  command.Env

	mu    sync.Mutex
	needs []command.Need // what commands asked Open for
}

// anySkill takes every skill and gives its parameters back; those for ever
// run until they are ended.
type anySkill struct{}

func (anySkill) Check(skill.Spec) error { return nil }

func (anySkill) Start(ctx context.Context, call skill.Call) (swarm.Work, error) {
	return skill.RunFunc(ctx, call, func(ctx context.Context, c skill.Call, hold *skill.Hold) (core.Raw, error) {
		if c.Skill.Name == "for-ever" {
			return nil, hold.Sleep(ctx, time.Hour)
		}
		return c.Params, nil
	}), nil
}

func newDeck(t testing.TB, more ...func(*cell.Supervisor, *engine.Options)) *deck {
	t.Helper()
	dir := t.TempDir()
	d := &deck{t: t, dir: dir, data: filepath.Join(dir, "deck.db")}
	sealer := expect.Of(audit.OpenSealer(d.data + ".key"))(d.t)
	db := expect.Of(store.Open(d.data, store.Options{Seal: sealer.Seal}))(d.t)
	sup := drivertest.Cells(t, cell.Options{Instance: strings.ReplaceAll(filepath.Base(filepath.Dir(dir)), "/", "-") + "-test"})
	pins := expect.Of(pin.New(filepath.Join(dir, "spill", "approved"), filepath.Join(dir, "runs"), nil))(d.t)
	runner := expect.Of(exec.NewRunner(sup, exec.RunnerOptions{Dir: dir, Pins: pins}))(d.t)
	runtime := expect.Of(exec.NewRuntime(sup, exec.RuntimeOptions{Dir: dir}))(d.t)
	opt := engine.Options{
		Store: db, Sealer: sealer, SecretKey: d.data + ".secrets.key", Spill: filepath.Join(dir, "spill"), Contents: pins,
		Runners:  map[string]swarm.Runner{"exec.run": runner},
		Runtimes: map[string]fleet.Runtime{"exec": runtime, "shop": shop{runtime}, "acp": shop{runtime}},

		SkillRunners: map[string]skill.Runner{"builtin": anySkill{}},
		CADPool:      geometry(t, sup), CADParameters: env.NewParameters(), CADDir: filepath.Join(dir, "cad"),
		Formats:   formats.All(sup),
		Sources:   formats.Sources(),
		Witnesses: witness.New(witness.Options{Cells: sup, Dir: dir}),
		Trees:     worktrees(t, sup, dir), KeepText: pins.Keep, Resources: keepers(t, dir), ForkDir: filepath.Join(dir, "forks"), Dir: dir,
		Effects: map[string]control.Kind{"test.make": {Effect: wishes{}}}, Cluster: cluster.New(twoEngines),
	}
	for _, add := range more {
		add(sup, &opt)
	}
	d.eng = expect.Of(engine.Open(context.Background(), opt))(d.t)
	ctx, cancel := context.WithCancel(context.Background())
	done := expect.Later(func() error { return d.eng.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		expect.Is(t, <-done, nil, "engine")
		d.eng.Close()
		db.Close()
	})
	d.env = command.Env{
		Caller: core.Caller{Name: "alice", Kind: core.Operator, Door: core.DoorScript},
		Dir:    dir, Stdin: strings.NewReader(""),
		Getenv: func(name string) string {
			return map[string]string{"HOME": dir, "XDG_CONFIG_HOME": filepath.Join(dir, "config"), "SWARMDECK_DATA": d.data}[name]
		},
		Open: func(_ context.Context, need command.Need) (*engine.Engine, error) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.needs = append(d.needs, need)
			return d.eng, nil
		},
	}
	return d
}

func (d *deck) no(err error) {
	d.t.Helper()
	expect.No(d.t, err)
}

// run carries out one line given as words.
func (d *deck) run(args ...string) (code int, stdout, stderr string) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	return d.runIn(ctx, d.env, args...)
}

func (d *deck) runIn(ctx context.Context, env command.Env, args ...string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	env.Stdout, env.Stderr = &out, &err
	code = command.Run(ctx, &env, args)
	return code, out.String(), err.String()
}

// line runs a line as the palette does, and expects it to succeed.
func (d *deck) line(line string) string {
	d.t.Helper()
	args := expect.Of(command.Split(line))(d.t)
	code, out, stderr := d.run(args...)
	expect.Must(d.t, code == command.ExitOK, "%s: exit %d\n%s%s", line, code, out, stderr)
	return out
}

// object runs a line with -o json and returns the last object it printed.
func (d *deck) object(line string) map[string]any {
	d.t.Helper()
	all := d.objects(line)
	expect.Must(d.t, len(all) != 0, "%s: printed nothing", line)
	return all[len(all)-1]
}

func (d *deck) objects(line string) []map[string]any {
	d.t.Helper()
	return decode(d.t, d.line("-o json "+line))
}

func decode(t testing.TB, out string) []map[string]any {
	t.Helper()
	var all []map[string]any
	for text := range strings.Lines(out) {
		var v map[string]any
		expect.No(t, json.Unmarshal([]byte(text), &v), "not one JSON object per line", text)
		all = append(all, v)
	}
	return all
}

// fails runs a line with -o json, expects an exit code and returns the error.
func (d *deck) fails(code int, line string) (kind, message string, details map[string]any) {
	d.t.Helper()
	args, err := command.Split(line)
	d.no(err)
	got, out, stderr := d.run(append([]string{"-o", "json"}, args...)...)
	expect.Must(d.t, got == code, "%s: exit %d, want %d\n%s%s", line, got, code, out, stderr)
	var v struct {
		Error struct {
			Code, Message string
			Details       map[string]any
		}
	}
	err = json.Unmarshal([]byte(stderr), &v)
	expect.Must(d.t, err == nil && strings.Count(stderr, "\n") == 1, "%s: stderr is no error object: %v\n%s", line, err, stderr)
	return v.Error.Code, v.Error.Message, v.Error.Details
}

// until runs a line until a field of the last object has the value.
func (d *deck) until(line, field, want string) map[string]any {
	d.t.Helper()
	return d.untilIt(line, field+" is "+want, func(last map[string]any) bool { return last[field] == want })
}

// untilIt runs a line until its last object is as wanted.
func (d *deck) untilIt(line, want string, is func(map[string]any) bool) (last map[string]any) {
	d.t.Helper()
	expect.Await(d.t, line+": "+want, func() bool {
		all := d.objects(line)
		if len(all) > 0 {
			last = all[len(all)-1]
		}
		return len(all) > 0 && is(last)
	})
	return last
}

func str(v any) string { s, _ := v.(string); return s }

// shop is a runtime whose server offers projects.
type shop struct{ fleet.Runtime }

func (shop) Configures(fleet.Setting) bool { return true }

func (shop) Catalog(_ context.Context, options core.Raw) ([]fleet.Offer, error) {
	if string(options) != `{"url":"here"}` {
		return nil, core.Invalid("options.url", string(options), "here")
	}
	return []fleet.Offer{{
		Project: fleet.Project{ID: "p-1", Name: "Web", Description: "pages"},
		Roles:   []fleet.Role{{ID: "r-1", Name: "painter"}, {ID: "r-2", Name: "tester"}},
	}}, nil
}
