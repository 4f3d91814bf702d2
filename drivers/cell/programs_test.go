package cell

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"swarmdeck/expect"
)

// tools is a home with programs as uv, pipx and their like install them.
func tools(t *testing.T) (home string, env map[string]string) {
	t.Helper()
	home = t.TempDir()
	t.Setenv("HOME", home)
	for name, text := range map[string]string{
		".local/share/uv/tools/ruff/bin/ruff":      "#!" + home + "/.local/share/uv/tools/ruff/bin/interpreter\ncat $0 >/dev/null && cat " + home + "/.local/share/uv/tools/ruff/lib/data\n",
		".local/share/uv/tools/ruff/lib/data":      "ruff works\n",
		".local/share/uv/python/3/bin/interpreter": "",
		".local/share/other":                       "other\n",
		".ssh/run":                                 "#!/bin/sh\necho the key\n",
		"work/x":                                   "",
	} {
		path := filepath.Join(home, name)
		expect.No(t, os.MkdirAll(filepath.Dir(path), 0o755))
		expect.No(t, os.WriteFile(path, []byte(text), 0o755))
	}
	shell, err := os.ReadFile(resolved("/bin/sh"))
	if err == nil {
		err = os.WriteFile(filepath.Join(home, ".local/share/uv/python/3/bin/interpreter"), shell, 0o755)
	}
	if err == nil {
		err = os.MkdirAll(filepath.Join(home, ".local/bin"), 0o755)
	}
	expect.No(t, err)
	for link, target := range map[string]string{
		".local/bin/ruff": filepath.Join(home, ".local/share/uv/tools/ruff/bin/ruff"),
		".local/share/uv/tools/ruff/bin/interpreter": "../../../python/3/bin/interpreter",
		".local/bin/stolen":                          "../../.ssh/run",
		"work/stolen":                                filepath.Join(home, ".local/share/uv/tools/ruff/bin/ruff"),
		".local/bin/gone":                            "../nowhere",
		".local/bin/round":                           "round",
	} {
		expect.No(t, os.Symlink(target, filepath.Join(home, link)))
	}
	return home, map[string]string{"PATH": filepath.Join(home, ".local/bin") + ":" + defaultPath}
}

func printed(t *testing.T, s *Supervisor, spec Spec) string {
	t.Helper()
	var out bytes.Buffer
	spec.Run = "programs"
	expect.Of(s.Run(t.Context(), spec, nil, &out, &out))(t)
	return strings.TrimSpace(out.String())
}

func TestProgramsThatAreLinksStart(t *testing.T) {
	home, env := tools(t)
	s := newSupervisor(t)
	work := filepath.Join(home, "work")
	for line, want := range map[string]string{
		"ruff": "ruff works",
		"cat " + home + "/.local/share/other 2>/dev/null || echo nothing": "nothing",
		"cat " + home + "/.ssh/run 2>/dev/null || echo nothing":           "nothing",
	} {
		expect.Is(t, printed(t, s, Spec{Argv: []string{"sh", "-c", line}, Dir: work, Env: env}), want, line)
	}
	expect.Is(t, printed(t, s, Spec{Argv: []string{"ruff"}, Dir: work, Env: env}), "ruff works", "as its own program")
}

func TestAPathGivesNothingThatIsHidden(t *testing.T) {
	home, _ := tools(t)
	s := newSupervisor(t)
	work := filepath.Join(home, "work")
	for _, path := range []string{filepath.Join(home, ".ssh"), work, home + "/.ssh/../.ssh"} {
		env := map[string]string{"PATH": path + ":" + defaultPath}
		line := "cat " + home + "/.ssh/run " + home + "/.local/share/uv/tools/ruff/lib/data 2>/dev/null; echo nothing"
		expect.Is(t, printed(t, s, Spec{Argv: []string{"sh", "-c", line}, Dir: work, Env: env}), "nothing", "PATH", path)
	}
}

func TestLinksInAPathAreBounded(t *testing.T) {
	home, env := tools(t)
	s := newSupervisor(t)
	for i := range 3 * maxLed {
		name := strings.Repeat("x", i+1)
		dir := filepath.Join(home, "many", name, "bin")
		expect.No(t, os.MkdirAll(dir, 0o755))
		expect.No(t, os.WriteFile(filepath.Join(dir, name), nil, 0o755))
		expect.No(t, os.Symlink(filepath.Join(dir, name), filepath.Join(home, ".local/bin", name)))
	}
	n := len(s.programs("/usr/bin/true", Spec{Dir: "/usr", Env: env}))
	expect.True(t, n >= maxLed && n <= 4*maxLed, "%d places", n)
}
