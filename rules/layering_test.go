package rules

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"swarmdeck/expect"
)

// The rules of the house: who may import whom, and what a file may be.
// Imports run one way, main → app → ui → engine → its services → core; drivers
// point at the engine; the store points at nothing of ours.

const module = "swarmdeck"

// engineOrder ranks the services of the engine. One may import those of a
// lower rank, never one of its own or a higher.
var engineOrder = map[string]int{
	"engine/core": 0, "engine/health": 1, "engine/safeopen": 1, "engine/cluster": 1, "engine/place": 1, "engine/audit": 1, "engine/bound": 1, "engine/diff": 1, "engine/guarded": 1, "engine/procfs": 1, "engine/terminal": 2, "engine/document": 1, "engine/cad/mesh": 1, "engine/cad/model": 2, "engine/record": 2, "engine/reach": 2, "engine/loop": 3, "engine/enginetest": 3, "engine/mapping": 3, "engine/secret": 3, "engine/schema": 1, "engine/judge/effect": 1, "engine/judge/edits": 2, "engine/judge/topic": 1, "engine/judge/signature": 1, "engine/judge": 4, "engine/bus": 5, "engine/task": 5, "engine/queue": 5, "engine/estop": 5, "engine/session": 5, "engine/budget": 5, "engine/swarm": 6,
	"engine/skill": 7, "engine/fleet": 7, "engine/tools": 7, "engine/operator": 7, "engine/notice": 7, "engine/witness": 4, "engine/host": 5, "engine/presence": 7, "engine/egress": 7, "engine/files": 5, "engine/tree": 8, "engine/retention": 4, "engine/trend": 4, "engine/dag": 4, "engine/cad": 7, "engine/story": 9, "engine/dag/control": 8, "engine/dag/resource": 9, "engine/face": 10, "engine/view": 10, "engine/trace": 10,
}

// reach lists, for each part of the house, the parts that it may import
// besides itself. A part covers the packages below it.
var reach = map[string][]string{
	"":         {"app"},
	"app":      {"ui", "engine", "drivers", "store"},
	"rules":    {},
	"e2e":      {"app", "engine"},
	"ui":       {"engine", "store", "examples", "themes"},
	"engine":   {"store"},
	"drivers":  {"engine"},
	"store":    {},
	"themes":   {"ui/screen", "ui/term"},
	"examples": {},
	"expect":   {},
}

// confined lists modules that only some parts may import.
var confined = map[string]string{
	"charm.land/":              "ui, themes",
	"github.com/charmbracelet": "ui, drivers/terminal/emulator", // which parses what a terminal is told
	"go.etcd.io/bbolt":         "store",
	"github.com/jackc/":        "store/postgres",
	"github.com/tidwall/btree": "store/postgres",
	"github.com/anishathalye/": "e2e/history",
}

// testSupport are packages that only tests import; their actors are child
// processes of a test and may exit like a program.
var testSupport = []string{"drivers/cad/freecad/freecadtest", "drivers/cell/celltest", "drivers/cell/celltest/init", "drivers/drivertest", "drivers/drivertest/dockertest", "drivers/drivertest/hosttest", "drivers/drivertest/model", "drivers/git/gittest", "e2e/history", "e2e/wrongclock", "engine/enginetest", "expect", "store/storetest", "store/postgres/postgrestest", "ui/screen/screentest"}

// longest is the number of lines a file may have.
const longest = 500

// part is the path of one of our packages below the module, "" for main.
func part(importPath string) (string, bool) {
	if importPath == module {
		return "", true
	}
	return strings.CutPrefix(importPath, module+"/")
}

func within(part, parent string) bool {
	return part == parent || parent != "" && strings.HasPrefix(part, parent+"/")
}

// forbidden says why a package may not import another, "" if it may.
func forbidden(from, imported string) string {
	for prefix, owners := range confined {
		if strings.HasPrefix(imported, prefix) && !slices.ContainsFunc(strings.Split(owners, ", "), func(owner string) bool { return within(from, owner) }) {
			return "only packages under " + owners + " may"
		}
	}
	to, ours := part(imported)
	if !ours {
		return ""
	}
	if slices.Contains(testSupport, to) && !slices.Contains(testSupport, from) {
		return "it is for tests only"
	}
	if to == "expect" {
		return ""
	}
	if from == "engine/core" {
		return "core imports nothing of ours"
	}
	if within(from, "engine") && within(to, "engine") {
		return forbiddenInEngine(from, to)
	}
	if to == "engine" && within(from, "ui/pane") {
		return "panes draw engine/view, and what services say"
	}
	top, _, _ := strings.Cut(from, "/")
	allowed, known := reach[top]
	if !known {
		return "the part " + top + " has no place in the order of this test"
	}
	if top != "" && within(to, top) || slices.ContainsFunc(allowed, func(a string) bool { return within(to, a) }) {
		return ""
	}
	if len(allowed) == 0 {
		return top + " imports nothing of ours"
	}
	return top + " may import only " + strings.Join(allowed, ", ") + " of ours"
}

func forbiddenInEngine(from, to string) string {
	above, known := engineOrder[from]
	switch from {
	case "engine":
		above, known = len(engineOrder), true
	case "engine/op": // what can be done with the engine
		above, known = len(engineOrder)+1, true
	}
	below, also := engineOrder[to]
	switch {
	case to == "engine" && from == "engine/op":
		return ""
	case to == "engine":
		return "services do not import the engine that is made of them"
	case !known:
		return from + " has no place in the order of this test"
	case !also:
		return to + " has no place in the order of this test"
	case below >= above:
		return "the order is core < audit < judge < task < swarm < skill, fleet, dag, cad"
	}
	return ""
}

// pkg is what go list says about a package.
type pkg struct {
	ImportPath, Name, Dir     string
	GoFiles, IgnoredGoFiles   []string
	TestGoFiles, XTestGoFiles []string
}

func packages(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Name,Dir,GoFiles,IgnoredGoFiles,TestGoFiles,XTestGoFiles", "./...")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	expect.No(t, err, "go list")
	var pkgs []pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); {
		var p pkg
		expect.No(t, dec.Decode(&p), "go list")
		pkgs = append(pkgs, p)
	}
	expect.Must(t, len(pkgs) >= 2, "go list found %d packages", len(pkgs))
	return pkgs
}

func TestImportsRunOneWay(t *testing.T) {
	for _, p := range packages(t) {
		from, _ := part(p.ImportPath)
		each(t, p, slices.Concat(p.GoFiles, p.IgnoredGoFiles), parser.ImportsOnly, func(name string, file *ast.File) {
			for _, problem := range importProblems(from, file) {
				t.Errorf("%s %s", name, problem)
			}
		})
	}
}

func importProblems(from string, file *ast.File) (problems []string) {
	for _, spec := range file.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value)
		if why := forbidden(from, imported); why != "" {
			problems = append(problems, fmt.Sprintf("imports %s: %s", imported, why))
		}
	}
	return problems
}

func TestOnlyMainReadsArgumentsAndExits(t *testing.T) {
	for _, p := range packages(t) {
		from, _ := part(p.ImportPath)
		if slices.Contains(testSupport, from) {
			continue
		}
		each(t, p, slices.Concat(p.GoFiles, p.IgnoredGoFiles), parser.SkipObjectResolution, func(name string, file *ast.File) {
			if name == "main.go" {
				return
			}
			for _, use := range processUses(file) {
				t.Errorf("%s uses %s: only main.go may", name, use)
			}
		})
	}
}

// processUses finds os.Args and os.Exit, and what exits behind one's back,
// under whatever name the file imports their packages.
func processUses(file *ast.File) []string {
	return uses(file, "os.Args", "os.Exit", "syscall.Exit", "log.Fatal", "log.Fatalf", "log.Fatalln", "flag.Parse", "flag.CommandLine")
}

// uses finds those of the banned names of packages that a file uses.
func uses(file *ast.File, banned ...string) (all []string) {
	names := map[string]string{}
	for _, spec := range file.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value)
		name := path.Base(imported)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[name] = imported
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if id, ok := sel.X.(*ast.Ident); ok {
				if use := names[id.Name] + "." + sel.Sel.Name; slices.Contains(banned, use) {
					all = append(all, use)
				}
			}
		}
		return true
	})
	return all
}

// launchers are the files that may start processes by themselves: those of cells,
// and those that a person's own terminal needs.
var launchers = []string{
	"drivers/cell/",                   // all that the engine starts
	"ui/door/attach/", "app/login.go", // a person's ssh; what runs on their terminal
}

func TestOnlyCellsStartProcesses(t *testing.T) {
	for _, p := range packages(t) {
		from, _ := part(p.ImportPath)
		if slices.Contains(testSupport, from) {
			continue
		}
		each(t, p, slices.Concat(p.GoFiles, p.IgnoredGoFiles), parser.SkipObjectResolution, func(name string, file *ast.File) {
			if slices.ContainsFunc(launchers, func(l string) bool { return name == l || strings.HasSuffix(l, "/") && strings.HasPrefix(name, l) }) {
				return
			}
			for _, use := range starts(file) {
				t.Errorf("%s uses %s: processes are started by drivers/cell", name, use)
			}
		})
	}
}

// starts finds what starts processes.
func starts(file *ast.File) (all []string) {
	for _, spec := range file.Imports {
		if imported, _ := strconv.Unquote(spec.Path.Value); imported == "os/exec" {
			all = append(all, imported)
		}
	}
	return append(all, uses(file, "os.StartProcess", "syscall.StartProcess", "syscall.ForkExec", "syscall.Exec", "golang.org/x/sys/unix.Exec")...)
}

func TestPackagesAreNamedForWhatTheyAreAndRegisterNothing(t *testing.T) {
	vague := []string{"util", "utils", "common", "misc", "helper", "helpers", "shared", "base"}
	for _, p := range packages(t) {
		if name := strings.TrimSuffix(p.Name, "_test"); slices.Contains(vague, name) || slices.Contains(vague, path.Base(p.ImportPath)) {
			t.Errorf("%s: a package named %s says nothing of what it holds", p.ImportPath, name)
		}
		files := slices.Concat(p.GoFiles, p.IgnoredGoFiles, p.TestGoFiles, p.XTestGoFiles)
		each(t, p, files, parser.SkipObjectResolution, func(name string, file *ast.File) {
			expect.True(t, !hasInit(file), "%s has a func init: wire it where it is used", name)
		})
	}
}

func hasInit(file *ast.File) bool {
	return slices.ContainsFunc(file.Decls, func(d ast.Decl) bool {
		f, ok := d.(*ast.FuncDecl)
		return ok && f.Recv == nil && f.Name.Name == "init"
	})
}

// each parses files of a package and calls visit with each one's path below
// the module.
func each(t *testing.T, p pkg, files []string, mode parser.Mode, visit func(name string, file *ast.File)) {
	t.Helper()
	root := expect.Of(os.Getwd())(t)
	for _, base := range files {
		full := filepath.Join(p.Dir, base)
		file := expect.Of(parser.ParseFile(token.NewFileSet(), full, nil, mode))(t)
		name := expect.Of(filepath.Rel(root, full))(t)
		visit(filepath.ToSlash(name), file)
	}
}

func TestFilesAreShort(t *testing.T) {
	written := []string{".go", ".sh", ".awk", ".txtar", ".md", ".yaml"}
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if base := entry.Name(); base == "testdata" || base == ".git" || base == ".cache" {
				return fs.SkipDir
			}
			return nil
		}
		if !slices.Contains(written, filepath.Ext(name)) {
			return nil
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		lines := bytes.Count(data, []byte("\n"))
		expect.True(t, lines <= longest || generated(data), "%s has %d lines, more than %d", name, lines, longest)
		return nil
	})
	expect.No(t, err)
}

func generated(data []byte) bool {
	return bytes.Contains(data, []byte("\n// Code generated ")) || bytes.HasPrefix(data, []byte("// Code generated "))
}

// A rule that lets everything pass would never be missed, so each is shown
// something it must refuse, and something it must not.
func TestTheRulesOfTheHouseBite(t *testing.T) {
	for _, c := range []struct {
		from, imported string
		allowed        bool
	}{
		{"", "swarmdeck/app", true},
		{"", "swarmdeck/ui", false},
		{"app", "swarmdeck/ui", true},
		{"app", "swarmdeck/drivers/exec", true},
		{"ui", "swarmdeck/app", false},
		{"", "charm.land/bubbletea/v2", false},
		{"ui/pane/card", "charm.land/bubbletea/v2", true},
		{"ui/pane/card", "swarmdeck/engine/view", true},
		{"ui/pane/card", "swarmdeck/engine", false},
		{"ui/pane/card", "github.com/charmbracelet/x/ansi", true},
		{"ui", "swarmdeck/drivers/exec", false},
		{"ui", "go.etcd.io/bbolt", false},
		{"ui", "swarmdeck", false},
		{"uid", "charm.land/bubbletea/v2", false},
		{"uid", "swarmdeck/store", false},
		{"engine", "swarmdeck/engine/fleet", true},
		{"engine", "swarmdeck/ui", false},
		{"engine", "swarmdeck/engine/op", false},
		{"engine/op", "swarmdeck/engine", true},
		{"engine/op", "swarmdeck/engine/fleet", true},
		{"engine/fleet", "swarmdeck/engine/swarm", true},
		{"engine/fleet", "swarmdeck/engine/cad", false},
		{"engine/judge", "swarmdeck/engine/swarm", false},
		{"engine/judge", "swarmdeck/engine", false},
		{"engine/judge", "swarmdeck/store", true},
		{"engine/judge", "charm.land/lipgloss/v2", false},
		{"drivers/terminal/emulator", "github.com/charmbracelet/x/ansi", true},
		{"drivers/terminal", "github.com/charmbracelet/x/ansi", false},
		{"engine/new", "swarmdeck/engine/core", false},
		{"engine/core", "swarmdeck/engine/audit", false},
		{"engine/core", "swarmdeck/store", false},
		{"drivers/exec", "swarmdeck/engine/fleet", true},
		{"drivers/exec", "swarmdeck/drivers/coder", true},
		{"drivers/exec", "swarmdeck/store", false},
		{"drivers/exec", "swarmdeck/ui/term", false},
		{"drivers/exec", "swarmdeck/drivers/drivertest", false},
		{"store", "go.etcd.io/bbolt/errors", true},
		{"store", "swarmdeck/engine/core", false},
		{"store/storetest", "swarmdeck/store", true},
		{"store", "github.com/jackc/pgx/v5", false},
		{"store/postgres", "github.com/jackc/pgx/v5/pgxpool", true},
		{"themes", "swarmdeck/ui/screen", true},
		{"themes", "swarmdeck/ui/grid", false},
		{"examples", "swarmdeck/engine", false},
		{"store", "golang.org/x/sys/unix", true},
	} {
		why := forbidden(c.from, c.imported)
		expect.True(t, (why == "") == c.allowed, "%q imports %q: %q", c.from, c.imported, why)
	}
	bad := `package bad
import ("syscall"; sys "os"; "swarmdeck/ui"; "log"; "os/exec")
func init() { sys.Exit(len(sys.Args)); log.Fatal(syscall.Getpid(), exec.ErrDot); syscall.ForkExec("", nil, nil); sys.StartProcess("", nil, nil) }`
	file := expect.Of(parser.ParseFile(token.NewFileSet(), "bad.go", bad, parser.SkipObjectResolution))(t)
	expect.Same(t, processUses(file), []string{"os.Exit", "os.Args", "log.Fatal"}, "process")
	expect.Same(t, starts(file), []string{"os/exec", "syscall.ForkExec", "os.StartProcess"}, "starts")
	problems := importProblems("engine/core", file)
	expect.True(t, len(problems) == 1 && strings.Contains(problems[0], "swarmdeck/ui"), "imports: %q", problems)
	expect.True(t, hasInit(file), "init was not seen")
}
