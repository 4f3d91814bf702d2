package tree

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/desk"
	"swarmdeck/drivers/git"
	"swarmdeck/drivers/git/lfs"
	"swarmdeck/drivers/keeper"
	"swarmdeck/drivers/pipe"
	"swarmdeck/drivers/resource/files"
	"swarmdeck/engine/core"
	"swarmdeck/engine/egress"
	"swarmdeck/engine/tree"
)

// Bounds of a command that checks a state.
const (
	maxCheck   = time.Hour
	maxTail    = 4 << 10 // bytes of what it printed last
	maxLogLine = 4 << 10
)

// Run implements tree.Driver. What the command leaves behind goes with it.
func (d *Driver) Run(ctx context.Context, t tree.Tree, state string, c tree.Command) (ran tree.Ran, err error) {
	if state == "" {
		return d.run(ctx, t, t.Host, t.Dir(), c)
	}
	r, err := d.repo(ctx, t)
	if err != nil {
		return ran, err
	}
	dir := filepath.Join(d.opt.Dir, t.TenantID, ".checks", strings.ToLower(rand.Text()[:10]), filepath.Base(t.Path))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return ran, err
	}
	defer files.RemoveTree(filepath.Dir(dir)) //nolint:errcheck // swept with the next
	if err := lay(ctx, r, state, dir, filepath.Join(r.Dir, "index-check-"+filepath.Base(filepath.Dir(dir)))); err != nil {
		return ran, fmt.Errorf("lay out %s: %w", hex12(state), err)
	}
	defer os.Remove(filepath.Join(r.Dir, "index-check-"+filepath.Base(filepath.Dir(dir))))
	if err := d.modules(ctx, r, t, state, dir); err != nil {
		return ran, err
	}
	return d.run(ctx, t, "", filepath.Join(dir, t.Sub), c)
}

// run runs a command in a directory of a host, in a cell of the tree's agent.
func (d *Driver) run(ctx context.Context, t tree.Tree, host, dir string, c tree.Command) (ran tree.Ran, err error) {
	ctx, stop := context.WithTimeoutCause(ctx, maxCheck+time.Minute, core.Errorf(core.Unavailable, "it took longer than %s", maxCheck)) // hosts know no deadlines
	defer stop()
	ran.Command = c.Argv
	var mu sync.Mutex // the two streams are read side by side
	var tail tailing
	emit := func(line []byte, _ int) {
		mu.Lock()
		defer mu.Unlock()
		text := pipe.Text(line)
		tail.add(text)
		c.Log(text)
	}
	out, errs := pipe.Splitter{Max: maxLogLine, Emit: emit}, pipe.Splitter{Max: maxLogLine, Emit: emit}
	began := time.Now()
	p, err := keeper.Begin(d.opt.Cells, d.opt.Hosts, host, cell.Spec{
		Run: egress.Checking + t.TenantID + ":" + t.Agent, Whose: cell.Whose{Tenant: t.TenantID, Agent: t.Agent}, Argv: c.Argv, Dir: dir, Deadline: maxCheck, Env: c.Env,
		Limits: cell.DefaultLimits(), Wall: cell.Wall{Profile: cell.Worker},
	}, keeper.Hosted{Whole: true})
	var exit cell.Exit
	if err == nil {
		over := c.Runs(p)
		exit, err = cell.Attend(ctx, p, nil, &out, &errs)
		over()
	}
	if err != nil {
		return ran, fmt.Errorf("run %s: %w", c.Argv[0], err)
	}
	ran.Code, ran.TookMS, ran.Tail = exit.Code, time.Since(began).Milliseconds(), tail.String()
	return ran, nil
}

// tailing keeps the last lines.
type tailing struct {
	lines []string
	size  int
}

func (t *tailing) add(line string) {
	t.lines, t.size = append(t.lines, line), t.size+len(line)+1
	for t.size > maxTail && len(t.lines) > 1 {
		t.size -= len(t.lines[0]) + 1
		t.lines = t.lines[1:]
	}
}

func (t *tailing) String() string { return strings.Join(t.lines, "\n") }

// Push implements tree.Driver: by the user's own git, with its keys and helpers, from
// the engine's repository. A repository of this machine may be written by agents: it needs
// no keys, and its side runs in a cell that reaches nothing else.
func (d *Driver) Push(ctx context.Context, t tree.Tree, p tree.Push) error {
	r, err := d.repo(ctx, t)
	if err != nil {
		return err
	}
	to, err := tree.ReadRemote(p.URL)
	if err != nil {
		return err
	}
	if to.Here() && !git.Inside("/", filepath.Join(to.Path, "objects")) {
		return core.Errorf(core.Conflict, "remote: %s is no bare repository, or a link leads to it, which is not followed", to.Path).With("field", "remote").With("value", to.Path)
	}
	if err := d.lfsPush(ctx, r, t, p, to); err != nil {
		return err
	}
	call := git.Call{Own: true}
	args := []string{"push", "--quiet", "--no-verify", "--no-recurse-submodules"}
	if p.Was != "" {
		args = append(args, "--force-with-lease=refs/heads/"+p.Branch+":"+p.Was)
	}
	if to.Here() {
		call = git.Call{Write: []string{to.Path}, Env: []string{"GIT_ALLOW_PROTOCOL=file"}}
		args = append(args, "--receive-pack="+git.Muted("receive-pack"))
	}
	call.Args = append(args, "--", p.URL, p.Commit+":refs/heads/"+p.Branch)
	_, err = r.Call(ctx, call)
	return wrap(err, "push %s to %s", p.Branch, p.URL)
}

// forges are the programs that open a request, and how they are asked.
func forges(q tree.Request) [][]string {
	subject, body, _ := strings.Cut(strings.TrimSpace(q.Message), "\n")
	body = strings.TrimSpace(body)
	return [][]string{
		{"gh", "pr", "create", "--repo", q.To.Web(), "--head", q.Branch, "--base", q.Base, "--title", subject, "--body", body},
		{"glab", "mr", "create", "--repo", q.To.Web(), "--yes", "--source-branch", q.Branch, "--target-branch", q.Base, "--title", subject, "--description", body},
	}
}

// Request implements tree.Driver. The program runs as the user's own, with the
// credentials that it keeps, in the engine's repository: it asks git about the one that
// it is in.
func (d *Driver) Request(ctx context.Context, t tree.Tree, q tree.Request) (string, error) {
	r, err := d.repo(ctx, t)
	if err != nil {
		return "", err
	}
	for _, argv := range forges(q) {
		said := pipe.Kept{Most: maxTail}
		exit, err := d.opt.Cells.Run(ctx, cell.Spec{Run: argv[0], Argv: argv, Dir: r.Dir, Deadline: patience, Wall: cell.Wall{Profile: cell.Open}}, nil, &said, &said)
		switch {
		case cell.NotFound(err, argv[0]):
			continue
		case err != nil:
			return "", fmt.Errorf("ask %s for a request: %w", argv[0], err)
		case exit.Code != 0:
			return "", core.Errorf(core.Unavailable, "%s %s: %s", argv[0], exit.Describe(), core.ClipTo(pipe.Text(said.Bytes()), 500))
		}
		return pipe.Text(said.Bytes()), nil
	}
	return "", core.Errorf(core.Unavailable, "no program opens a request here: install gh or glab")
}

// request is what an engine asks about a tree whose files are on another machine. What
// its objects need that are not there follows as a pack.
type request struct {
	Op   string    `json:"op"` // one of the below
	Tree tree.Tree `json:"tree"`
	// Have are commits that the engine has, of a base those that the pack is for; From and
	// To are commits, and Key is that of landing them. Modules says that a place or a base
	// is one of submodules, Large are objects of git LFS that are looked for in a place.
	Have  []string      `json:"have,omitempty"`
	Large []lfs.Pointer `json:"large,omitempty"`
	From  string        `json:"from,omitempty"`
	To    string        `json:"to,omitempty"`
	Key   string        `json:"key,omitempty"`

	Modules bool `json:"modules,omitzero"`
	// Converts is how the files of a tree that is made are converted.
	Converts conversion `json:"converts,omitzero"`
	// Ends are the commits at which a source's history ends (shallow, gitformat-shallow(5)).
	Ends string `json:"ends,omitempty"`
	OID  string `json:"oid,omitempty"` // of an object of git LFS
	Size int64  `json:"size,omitzero"`
}

// What can be asked for.
const (
	opPlace   = "place"   // where the tree would be, and what is there that need not be sent
	opBase    = "base"    // take commits of the source or of its submodules, in the pack
	opFill    = "fill"    // take an object of git LFS, which follows
	opMake    = "make"    // lay the tree out; what it holds of no source is in the pack
	opState   = "state"   // take its state, which follows as a pack
	opCommits = "commits" // the agent's commits From one To another, which follow as a pack
	opLarge   = "large"   // an object of git LFS, which follows
	opLand    = "land"    // bring its files From a state To another one, which is in the pack
)

// answer is what came of it.
type answer struct {
	Path   string   `json:"path,omitempty"`
	Have   []string `json:"have,omitempty"` // commits of the source or of its submodules, or the names of objects
	Commit string   `json:"commit,omitempty"`
	Head   string   `json:"head,omitempty"`
	Pack   bool     `json:"pack,omitzero"` // one follows
	desk.Failure
}

// maxHave bounds how many commits or objects are named that need not be sent.
const maxHave = 200
