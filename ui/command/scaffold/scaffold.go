// Package scaffold writes the first swarm file of a project from what is found in
// its directory: what tests it, what prepares it, and which agents are installed.
// Files are read as text alone, within bounds; nothing of the project is run.
package scaffold

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/goccy/go-yaml"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/ui/command/coding"
)

// maxRead bounds what is read of a file, in bytes.
const maxRead = 1 << 20

// Found is what a directory and the machine have.
type Found struct {
	Project   string   `json:"project"`
	Languages []string `json:"languages"`
	Checks    []string `json:"checks"` // shell lines
	Setup     []string `json:"setup"`  // the same, of a new tree
	Egress    []string `json:"egress"` // presets of hosts that its languages need
	Agents    []Agent  `json:"agents"`
}

// Agent is a program that is an agent.
type Agent struct {
	Program string   `json:"program"`
	Runtime string   `json:"runtime"`
	Command []string `json:"command"`
	Options core.Raw `json:"options,omitempty"` // for the runtime
}

// Look finds out about a directory, and which coding agents have a program in the
// directories of a list as PATH is.
func Look(dir, path string, known []coding.Agent) (Found, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return Found{}, err
	}
	root, err := os.OpenRoot(abs)
	if err != nil {
		return Found{}, fmt.Errorf("read the project: %w", err)
	}
	defer root.Close()
	f := Found{Project: cmp.Or(fleet.Label(filepath.Base(abs)), "project"), Languages: []string{}, Checks: []string{}, Setup: []string{}, Egress: []string{}, Agents: []Agent{}}
	d := directory{root}
	for _, find := range []func(*Found){d.golang, d.node, d.rust, d.python, d.makefile, d.env} {
		find(&f)
	}
	for _, a := range known {
		if w, has := a.Way(path); has {
			f.Agents = append(f.Agents, Agent{Program: w.Command[0], Runtime: w.Runtime, Command: w.Command, Options: w.Options})
		}
	}
	slices.SortStableFunc(f.Agents, func(a, b Agent) int { return cmp.Compare(a.Runtime, b.Runtime) }) // those with a protocol first
	return f, nil
}

// directory is a project's.
type directory struct{ *os.Root }

// has reports a regular file.
func (d directory) has(name string) bool {
	info, err := d.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

// read is the beginning of a file; "" where there is none.
func (d directory) read(name string) string {
	if !d.has(name) { // a pipe would wait for ever
		return ""
	}
	file, err := d.Open(name)
	if err != nil {
		return ""
	}
	defer file.Close()
	data, _ := io.ReadAll(io.LimitReader(file, maxRead)) // what was read will do
	return string(data)
}

func (d directory) golang(f *Found) {
	if d.has("go.mod") {
		f.add("Go", "go", "go mod download", "go vet ./...", "go test ./...")
	}
}

func (f *Found) add(language, preset, setup string, checks ...string) {
	f.Egress = append(f.Egress, preset)
	f.Languages = append(f.Languages, language)
	f.Checks = append(f.Checks, checks...)
	if setup != "" {
		f.Setup = append(f.Setup, setup)
	}
}

// none is the test script that npm writes where there are no tests.
const none = "no test specified"

func (d directory) node(f *Found) {
	if !d.has("package.json") {
		return
	}
	var p struct {
		Scripts map[string]string `json:"scripts"`
	}
	_ = json.Unmarshal([]byte(d.read("package.json")), &p) // one that can't be read has no scripts
	manager, setup := "npm", "npm install"
	for _, m := range []struct{ lock, manager, setup string }{
		{"package-lock.json", "npm", "npm ci"},
		{"pnpm-lock.yaml", "pnpm", "pnpm install --frozen-lockfile"},
		{"yarn.lock", "yarn", "yarn install --frozen-lockfile"},
		{"bun.lock", "bun", "bun install --frozen-lockfile"},
		{"bun.lockb", "bun", "bun install --frozen-lockfile"},
	} {
		if d.has(m.lock) {
			manager, setup = m.manager, m.setup
			break
		}
	}
	var checks []string
	for _, script := range []string{"lint", "test"} {
		if line := p.Scripts[script]; line != "" && !strings.Contains(line, none) {
			checks = append(checks, manager+" run "+script)
		}
	}
	language := "JavaScript"
	if d.has("tsconfig.json") {
		language = "TypeScript"
	}
	f.add(language, "npm", setup, checks...)
}

func (d directory) rust(f *Found) {
	if d.has("Cargo.toml") {
		f.add("Rust", "crates", "cargo fetch", "cargo check", "cargo test")
	}
}

func (d directory) python(f *Found) {
	project := d.read("pyproject.toml")
	pytest := strings.Contains(project, "pytest") || d.has("pytest.ini") || d.has("conftest.py") || d.has("tests/conftest.py")
	if project == "" && !pytest && !d.has("setup.py") && !d.has("requirements.txt") {
		return
	}
	run, setup := "python3 -m ", ""
	switch {
	case d.has("uv.lock"):
		run, setup = "uv run ", "uv sync"
	case d.has("poetry.lock"):
		run, setup = "poetry run ", "poetry install"
	case d.has("requirements.txt"):
		run, setup = ".venv/bin/python -m ", "python3 -m venv .venv && .venv/bin/pip install -r requirements.txt"
	}
	var checks []string
	if pytest {
		checks = []string{run + "pytest"}
	}
	f.add("Python", "pypi", setup, checks...)
}

// makefile tests what nothing else does.
func (d directory) makefile(f *Found) {
	text := d.read("Makefile")
	if text == "" || len(f.Checks) > 0 {
		return
	}
	if regexp.MustCompile(`(?m)^test[ \t]*:`).MatchString(text) {
		f.Checks = append(f.Checks, "make test")
	}
}

// copyEnv needs no network.
const copyEnv = "cp .env.example .env"

func (d directory) env(f *Found) {
	if d.has(".env.example") && !d.has(".env") {
		f.Setup = append(f.Setup, copyEnv)
	}
}

// quoted is a text as YAML writes it in one line.
func quoted(text string) string {
	out, err := yaml.MarshalWithOptions(text, yaml.JSON())
	if err != nil {
		return "''"
	}
	return strings.TrimSpace(string(out))
}
