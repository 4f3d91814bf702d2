package cell

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"swarmdeck/engine/core"
	filerules "swarmdeck/engine/files"
	"swarmdeck/expect"
)

// granted is a supervisor with an engine's own files in a directory, whose rules
// are what places holds.
func granted(t *testing.T) (s *Supervisor, dir string, places *filerules.Places) {
	t.Helper()
	dir, places = t.TempDir(), &filerules.Places{}
	for name, text := range map[string]string{
		"data.db": "own", "data.db.run/agents/other/home/x": "own", "work/.env": "env", "work/a": "work",
		"lib/a": "lib", "lib/keys/b": "key", "out/a": "out",
	} {
		path := filepath.Join(dir, name)
		expect.No(t, os.MkdirAll(filepath.Dir(path), 0o755))
		expect.No(t, os.WriteFile(path, []byte(text+"\n"), 0o644))
	}
	expect.No(t, os.Symlink(filepath.Join(dir, "data.db.run/agents"), filepath.Join(dir, "way")))
	expect.No(t, os.Link(filepath.Join(dir, "data.db"), filepath.Join(dir, "twin")))
	s, err := NewSupervisor(Options{
		Instance: "grant", Hide: []string{filepath.Join(dir, "data.db"), filepath.Join(dir, "data.db.*")},
		Files: func(w Whose) (filerules.Places, error) {
			if w.Role != "coder" {
				return filerules.Places{}, nil
			}
			return *places, nil
		},
	})
	expect.No(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s, dir, places
}

// shell runs a line as a run of a role.
func shell(t *testing.T, s *Supervisor, dir, role string, wall Wall, line string) string {
	t.Helper()
	var out bytes.Buffer
	_, err := s.Run(t.Context(), Spec{
		Run: "grant", Whose: Whose{Tenant: "t_acme", Agent: "ada", Role: role}, Argv: []string{"sh", "-c", "cd " + dir + "; " + line}, Dir: filepath.Join(dir, "work"), Wall: wall,
	}, nil, &out, &out)
	expect.No(t, err)
	return strings.Join(strings.Fields(out.String()), " ")
}

func TestRulesGiveARoleItsFiles(t *testing.T) {
	s, dir, places := granted(t)
	at := func(name string) string { return filepath.Join(dir, name) }
	*places = filerules.Places{
		Read: []string{at("lib"), at("gone"), at("out")}, Write: []string{at("out")},
		Hide: []string{at("lib/keys"), at("work/.env")},
	}
	more := filerules.Places{Read: []string{at("lib/keys/b")}, Write: []string{at("lib/keys")}}
	for _, c := range []struct {
		name, role string
		wall       Wall
		line, want string
	}{
		{"others have none of it", "tester", Wall{}, "ls; cat work/.env", "work env"},
		{"a role has it", "coder", Wall{}, "cat lib/a out/a; touch out/b && echo wrote; touch lib/b 2>/dev/null || echo not", "lib out wrote not"},
		{"hidden is hidden", "coder", Wall{}, "ls lib/keys; cat work/.env 2>/dev/null; cat work/a", "work"},
		{"whatever else names it", "coder", Wall{More: more}, "ls lib/keys", ""},
		{"who is no coder names it", "tester", Wall{More: more}, "cat lib/keys/b", "key"},
		{"a reader writes nothing", "coder", Wall{Profile: Reader}, "cat out/a; touch out/c 2>/dev/null && echo wrote; true", "out"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := shell(t, s, dir, c.role, c.wall, c.line+" 2>/dev/null")
			expect.Is(t, got, c.want)
		})
	}
}

func TestNoRuleAndNoOptionGivesTheEnginesOwn(t *testing.T) {
	s, dir, places := granted(t)
	own := []string{"data.db", "data.db.run/agents", "data.db.run/agents/other/home/x", "way/other", "twin"}
	for _, name := range own {
		path := filepath.Join(dir, name)
		*places = filerules.Places{Read: []string{path}, Write: []string{path}}
		expect.Is(t, shell(t, s, dir, "coder", Wall{}, "cat "+name+" "+name+"/home/x "+name+"/other/home/x 2>/dev/null"), "", name, "by a rule")
		for _, more := range []filerules.Places{{Read: []string{path}}, {Write: []string{path}}} {
			expect.Err(t, s.CheckPlaces("options.", more), core.Kind(core.Denied), name, "by an option")
			_, err := s.Start(Spec{Run: "grant", Argv: []string{"true"}, Dir: dir, Wall: Wall{More: more}})
			expect.Err(t, err, core.Kind(core.Denied), name, "at a start")
		}
	}
	*places = filerules.Places{Write: []string{dir}} // what lies around it is given without it
	expect.Is(t, shell(t, s, dir, "coder", Wall{}, "cat data.db data.db.run/agents/other/home/x lib/a 2>/dev/null"), "lib", "around")
}

func TestRulesThatCantBeReadStartNothing(t *testing.T) {
	s, dir, _ := granted(t)
	s.opt.Files = func(Whose) (filerules.Places, error) { return filerules.Places{}, errors.New("no engine") }
	spec := Spec{Run: "grant", Whose: Whose{Tenant: "t_acme"}, Argv: []string{"true"}, Dir: dir}
	expect.Says(t, expect.Fault(s.Start(spec)), "no engine")
}
