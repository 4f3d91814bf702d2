package examples_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"swarmdeck/examples"
	"swarmdeck/expect"
)

func extract(t testing.TB) string {
	t.Helper()
	return expect.Of(examples.Extract("quickstart", t.TempDir()))(t)
}

func TestExtractWritesPrivateFilesAndRunnableScripts(t *testing.T) {
	dir := extract(t)
	scripts := 0
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		want := fs.FileMode(0o600)
		switch {
		case entry.IsDir():
			want = fs.ModeDir | 0o700
		case strings.HasSuffix(path, ".sh"):
			want = 0o700
			scripts++
			out, err := exec.Command("sh", "-n", path).CombinedOutput()
			expect.True(t, err == nil, "%s: %v %s", path, err, out)
		}
		expect.Is(t, info.Mode(), want, path, "is")
		return nil
	})
	expect.True(t, err == nil && scripts == 5, "%d scripts, %v", scripts, err)
	expect.Fails(t, expect.Fault(examples.Extract("nosuch", t.TempDir())), "an example that is not there")
}

// The agents read JSON with awk and write it with sh: what goes through both
// must come out as it was.
func TestScriptsReadAndWriteJSON(t *testing.T) {
	dir := extract(t)
	member := func(doc, path string) (string, error) {
		cmd := exec.Command("sh", "-c", `here=$1; . "$here/lib.sh"; member "$2" "$3"`, "sh", filepath.Join(dir, "agents"), doc, path)
		out, err := cmd.Output()
		return string(out), err
	}
	random := rand.New(rand.NewPCG(1, 2))
	texts := []string{"", "plain", "a\"b\\c/d", "\n\n\t\r\b\f", "é日本😀", "\u2028\u202e\ufeff", "}{][,:\"", "trailing\n\n", strings.Repeat("long ", 5000)}
	for range 20 {
		var b strings.Builder
		for range random.IntN(40) {
			b.WriteRune([]rune(" \"\\\n\t/{}[]:,aé日😀\u0001\u007f")[random.IntN(18)])
		}
		texts = append(texts, b.String())
	}
	for _, text := range texts {
		doc, err := json.Marshal(map[string]any{
			"args": map[string]any{"content": text, "path": "wrong", "list": []any{1, "x", map[string]any{"content": "no"}}}, "content": "no", "n": -1.5e3, "b": true,
		})
		expect.No(t, err)
		got, err := member(string(doc), "args.content")
		expect.True(t, err == nil && got == text, "%.80q came out as %.80q, %v", text, got, err)
	}
	doc := `{"a" : {"b":[ {"c":"deep"} , 2]},"n":-1.5e3,"t":true,"o":{}}`
	for path, want := range map[string]string{"a.b[0].c": "deep", "n": "-1.5e3", "t": "true", "o": "{}", "a.b[1]": "2", "a": `{"b":[ {"c":"deep"} , 2]}`} {
		expect.Is(t, expect.Of(member(doc, path))(t), want, path)
	}
	for _, bad := range []string{``, `{`, `{"a":}`, `{"a":1`, `{"a":1}}`, `"a`, `{a:1}`, strings.Repeat("[", 1000)} {
		got, err := member(bad, "a")
		expect.True(t, err != nil, "%.20s: %q", bad, got)
	}
	quote := exec.Command("sh", "-c", `here=$1; . "$here/lib.sh"; quote`, "sh", filepath.Join(dir, "agents"))
	quote.Stdin = strings.NewReader("one \"two\" \\n\tthree\x1b[31m\x00\xff\nfour")
	out, err := quote.Output()
	var got string
	expect.True(t, err == nil && json.Unmarshal(out, &got) == nil && got == "one \"two\" \\n\tthree[31m\nfour", "quote: %q %q %v", out, got, err)
}

// What the reading agents print must be lines the exec runtime understands,
// in a directory with nothing, in one with awkward names, and in git.
func TestReadersPrintOnlyEvents(t *testing.T) {
	dir := extract(t)
	empty, awkward, git := t.TempDir(), t.TempDir(), t.TempDir()
	for _, name := range []string{"a b.txt", "-rf", "quo\"te", "new\nline", "é.txt"} {
		expect.No(t, os.WriteFile(filepath.Join(awkward, name), []byte("x // TODO: \"one\" \\ two\n"+strings.Repeat("x", 70<<10)), 0o600))
	}
	if _, err := exec.LookPath("git"); err == nil {
		for _, args := range [][]string{{"init", "-q"}, {"-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "first \"one\""}} {
			cmd := exec.Command("git", args...)
			cmd.Dir, cmd.Env = git, append(os.Environ(), "HOME="+git, "GIT_CONFIG_NOSYSTEM=1")
			out, err := cmd.CombinedOutput()
			expect.Must(t, err == nil, "git %v: %v %s", args, err, out)
		}
	}
	for _, agent := range []string{"changed", "todo", "large"} {
		for _, where := range []string{empty, awkward, git} {
			cmd := exec.Command("sh", filepath.Join(dir, "agents", agent+".sh"))
			cmd.Dir = where
			cmd.Stdin = strings.NewReader(`{"type":"task","task_id":"tk_1","message":"look"}` + "\n" + `{"type":"task","task_id":"tk_2","message":"again"}` + "\n")
			var errs bytes.Buffer
			cmd.Stderr = &errs
			out, err := cmd.Output()
			expect.True(t, err == nil && errs.Len() <= 0, "%s: %v %s", agent, err, errs.String())
			results := 0
			for line := range strings.Lines(string(out)) {
				var e struct {
					Type       string
					Status     string
					Output     map[string]any
					Confidence float64
				}
				err := json.Unmarshal([]byte(line), &e)
				expect.True(t, err == nil && e.Type != "", "%s: %q is no event: %v", agent, line, err)
				if e.Type == "result" {
					results++
					expect.True(t, e.Status == "succeeded" && len(e.Output) != 0 && e.Confidence >= 0.9, "%s: %q", agent, line)
				}
			}
			expect.True(t, results == 2, "%s: %d results of two tasks:\n%s", agent, results, out)
		}
	}
}

// Each thing that a night asks for takes a few presses, of keys or of the mouse.
func TestEachTaskOfANightTakesAFewPresses(t *testing.T) {
	for _, name := range []string{"night", "night-by-mouse"} {
		t.Run(name, func(t *testing.T) { fewPresses(t, "scripts/"+name+".txtar") })
	}
}

func fewPresses(t *testing.T, file string) {
	const most = 8
	text := string(expect.Of(os.ReadFile(file))(t))
	script, _, _ := strings.Cut(text, "\n-- ")
	presses, task, tasks := 0, "", 0
	for line := range strings.SplitSeq(script+"\n#", "\n") {
		if strings.HasPrefix(line, "#") || line == "" {
			if task != "" {
				expect.True(t, presses > 0 && presses <= most, "%s: %d presses", task, presses)
				tasks++
			}
			presses, task = 0, ""
			if about, is := strings.CutPrefix(line, "# Task: "); is {
				task = about
			}
			continue
		}
		switch word, rest, _ := strings.Cut(line, " "); word {
		case "click":
			presses++
		case "key":
			presses += len(strings.Fields(rest))
		case "type":
			presses += len(strings.Trim(rest, "'"))
		}
	}
	expect.Is(t, tasks, 12, "tasks of a night")
}
