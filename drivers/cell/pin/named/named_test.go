package named

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"swarmdeck/expect"
)

// tree is a work directory with the given files.
func tree(names ...string) fstest.MapFS {
	m := fstest.MapFS{}
	for _, n := range names {
		m[n] = &fstest.MapFile{Data: []byte("x")}
	}
	return m
}

// found is what Find lists, as "path" of what runs, "~path" of what is worked
// on, and "?word" of what can't be bound.
func found(t fs.FS, line Line) (out []string) {
	for _, n := range Find(t, line) {
		switch {
		case n.Unbound != "":
			out = append(out, "?"+n.Path)
		case n.Runs:
			out = append(out, n.Path)
		default:
			out = append(out, "~"+n.Path)
		}
	}
	slices.Sort(out)
	return out
}

func TestTheFilesOfACommandLineAreFound(t *testing.T) {
	work := tree("job.sh", "lib.sh", "sub/job.sh", "tool.py", "pkg/mod.py", "conf.yaml", "data.csv", "Makefile", "rules.mk", "sub/Makefile",
		"package.json", "main.go", "go.mod", "cmd/x/main.go", "Dockerfile", "infra/a.tf", "bin/run", "a b.sh", "Cargo.toml", "build.rs", "conftest.py")
	work["Makefile"].Data = []byte("include rules.mk\n-include $(X).mk\nall:\n\techo\n")
	for _, c := range []struct{ argv, want string }{
		{"true", ""},
		{"echo hello world", ""},
		{"sh job.sh", "job.sh"},
		{"/bin/bash -eu job.sh data.csv", "job.sh ~data.csv"},
		{"/w/job.sh", "job.sh"},
		{"./job.sh", "job.sh"},
		{"bin/run --config=conf.yaml", "bin/run conf.yaml"},
		{"frob --config conf.yaml data.csv", "conf.yaml ~data.csv"},
		{"frob @data.csv -fconf.yaml", "conf.yaml ~data.csv"},
		{"frob if=data.csv /elsewhere/job.sh ../job.sh", "~data.csv"},
		{"python3.12 tool.py data.csv", "tool.py ~data.csv"},
		{"python -m pkg.mod", "pkg/mod.py"},
		{"python -c print(1) data.csv", "~data.csv"},
		{"perl -pie s/a/b/ data.csv", "~data.csv"},
		{"rm -f job.sh", "~job.sh"},
		{"sed -i s/a/b/ conf.yaml", "~conf.yaml"},
		{"cat data.csv", "~data.csv"},
		{"make all", "?Makefile: include $(X).mk Makefile rules.mk"},
		{"make -C sub", "?Makefile: include $(X).mk Makefile rules.mk sub/Makefile"},
		{"npm test", "package.json"},
		{"npm install", "~package.json"},
		{"go run ./cmd/x", "cmd/x/main.go go.mod main.go"},
		{"go run cmd/x/main.go", "cmd/x/main.go go.mod main.go"},
		{"go fmt ./...", "~go.mod ~main.go"},
		{"docker build .", "Dockerfile"},
		{"terraform -chdir=infra apply", "infra/a.tf"},
		{"cargo build", "Cargo.toml build.rs"},
		{"pytest", "conftest.py"},
		{"env A=1 nice -n 5 sh job.sh", "job.sh"},
		{"timeout 5 ./job.sh data.csv", "job.sh ~data.csv"},
		{"find . -name x -exec sh job.sh ;", "job.sh"},
	} {
		want := strings.Fields(strings.ReplaceAll(c.want, ": include ", ":include"))
		for i := range want {
			want[i] = strings.ReplaceAll(want[i], ":include", ": include ")
		}
		slices.Sort(want)
		expect.Same(t, found(work, Line{Argv: strings.Fields(c.argv), Dir: "/w"}), want, c.argv)
	}
}

func TestTheFilesOfAShellLineAreFound(t *testing.T) {
	work := tree("job.sh", "lib.sh", "sub/job.sh", "data.csv", "a b.sh", "x1.sh", "x2.sh", "tool.py")
	for _, c := range []struct {
		text string
		want []string
	}{
		{"sh job.sh", []string{"job.sh"}},
		{"true && ./job.sh >data.csv", []string{"job.sh"}},
		{". ./lib.sh; echo", []string{"lib.sh"}},
		{"source lib.sh", []string{"lib.sh"}},
		{"sh < job.sh", []string{"job.sh"}},
		{"cat job.sh | sh", []string{"~job.sh"}},
		{"sh 'a b.sh'", []string{"a b.sh"}},
		{`sh a\ b.sh`, []string{"a b.sh"}},
		{`sh "a b.sh"`, []string{"a b.sh"}},
		{"cd sub && sh job.sh", []string{"job.sh", "sub/job.sh"}},
		{"(cd sub; ./job.sh)", []string{"job.sh", "sub/job.sh"}},
		{`sh "$PWD/job.sh"`, []string{`?"$PWD/job.sh"`, "job.sh"}},
		{"f=job.sh; sh $f", []string{"?$f", "job.sh"}},
		{"sh $(echo job.sh)", []string{"?$(echo job.sh)", "~job.sh"}},
		{"$TOOL x", []string{"?$TOOL"}},
		{"echo $HOME", nil},
		{"for f in x*.sh; do sh $f; done", []string{"?$f"}},
		{"sh x?.sh", []string{"x1.sh", "~x2.sh"}},
		{"bash -lc 'python tool.py'", []string{"tool.py"}},
		{"eval 'sh job.sh'", []string{"job.sh"}},
		{"if ./job.sh; then", []string{"?a shell line", "job.sh"}},
		{"xargs sh job.sh <data.csv", []string{"data.csv", "job.sh"}},
		{"watch 'sh job.sh'", []string{"job.sh"}},
		{"echo $(sh lib.sh)", []string{"lib.sh"}},
		{strings.Repeat("x", maxText+1), []string{"?a shell line"}},
	} {
		got := found(work, Line{Argv: []string{"/bin/sh", "-ec", c.text}, Dir: "/w"})
		expect.Same(t, got, c.want, c.text)
	}
}

func TestAnArgumentOfAShellLineRuns(t *testing.T) {
	expect.Same(t, found(tree("job.sh"), Line{Argv: []string{"sh", "-c", `. "$1"`, "_", "job.sh"}, Dir: "/w"}), []string{`?"$1"`, "job.sh"})
}

func TestWhatIsNamedIsBounded(t *testing.T) {
	var names []string
	for i := range 200 {
		names = append(names, "f"+strings.Repeat("x", i))
	}
	got := Find(tree(names...), Line{Argv: append([]string{"frob"}, names...), Dir: "/w"})
	if len(got) != MaxFiles+1 || got[MaxFiles].Unbound == "" {
		t.Errorf("%d files, the last %+v", len(got), got[len(got)-1])
	}
	many := slices.Repeat([]string{"a,b,c,d,e,f,g,h"}, 4096)
	got = Find(tree(), Line{Argv: many, Dir: "/w"})
	expect.True(t, len(got) == 1 && got[0].Unbound != "", "%+v", got)
}

func TestALinkOutOfTheWorkDirectoryIsNotBound(t *testing.T) {
	dir := t.TempDir()
	for name, to := range map[string]string{"out.sh": "/etc/passwd", "gone.sh": "nothing", "in.sh": "real.sh"} {
		expect.No(t, os.Symlink(to, filepath.Join(dir, name)))
	}
	expect.No(t, os.WriteFile(filepath.Join(dir, "real.sh"), nil, 0o600))
	expect.No(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	root := expect.Of(os.OpenRoot(dir))(t)
	defer root.Close()
	for script, want := range map[string][]string{"out.sh": {"?out.sh"}, "gone.sh": nil, "in.sh": {"in.sh"}, "pipe": {"?pipe"}} {
		expect.Same(t, found(root.FS(), Line{Argv: []string{"sh", script}, Dir: dir}), want, script)
	}
}

func TestDeepShellTextIsSurvived(t *testing.T) {
	for _, piece := range []string{"$(", "(", "if ", "\"$(", "{ ", "${a:-", "`", "((", "! ", "while "} {
		Find(tree(), Line{Argv: []string{"sh", "-c", strings.Repeat(piece, maxText/len(piece))}, Dir: "/w"})
	}
}

func FuzzShell(f *testing.F) {
	for _, seed := range []string{
		"sh job.sh", "cd sub; . ./x", "a=b; $a", "for i in *; do sh \"$i\"; done", "$(((", "<<E\nE\n", "${a:-$(x)}", "eval eval eval", "[[ a = b ]]", "x() { x; }; x",
	} {
		f.Add(seed)
	}
	work := tree("job.sh", "sub/job.sh", "x")
	f.Fuzz(func(t *testing.T, text string) {
		for _, n := range Find(work, Line{Argv: []string{"sh", "-c", text}, Dir: "/w"}) {
			expect.Must(t, n.Unbound != "" || work[n.Path] != nil, "%q names %q", text, n.Path)
		}
	})
}
