package command_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"swarmdeck/expect"
	"swarmdeck/ui/command"
)

// holds describes everything in a directory: names, sizes and times.
func holds(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		fmt.Fprintln(&all, path, info.Size(), info.ModTime())
		return err
	})
	expect.No(t, err)
	return all.String()
}

// plausible are lines of a command: its arguments are a new file or the sign of
// stdin, without and with the flags that name files.
func plausible(info command.Info) (lines [][]string) {
	for _, value := range []string{"-", "new.out"} {
		line := strings.Fields(info.Path)
		for _, word := range strings.Fields(info.Use)[1:] {
			switch word = strings.Trim(word, "[]…"); word {
			case "FORMAT":
				line = append(line, "jsonl")
			default:
				line = append(line, value)
			}
		}
		lines = append(lines, line, append(line[:len(line):len(line)], "--out", value))
	}
	return lines
}

// TestAViewerLeavesNothingBehind gives every command as a viewer, from another
// machine and with --read-only here, in an empty directory.
func TestAViewerLeavesNothingBehind(t *testing.T) {
	d := newDeck(t)
	d.line("tenant create t_test")
	for _, remote := range []bool{true, false} {
		env := d.env
		env.Dir, env.Remote, env.Attached, env.ReadOnly, env.Role = t.TempDir(), remote, remote, true, command.Viewer
		env.Caller.Tenant = "t_test"
		if remote {
			env.Caller.Door = "ssh"
		}
		home := t.TempDir()
		env.Getenv = func(name string) string {
			return map[string]string{"HOME": home, "SWARMDECK_DATA": d.data}[name]
		}
		n := 0
		for _, info := range command.Commands() {
			for _, args := range plausible(info) {
				env.Stdin = strings.NewReader("{}")
				before := holds(t, env.Dir) + holds(t, home)
				code, out, errs := d.runIn(t.Context(), env, args...)
				now := holds(t, env.Dir) + holds(t, home)
				expect.Must(t, now == before, "remote %v: %q wrote (exit %d):\n%s%s%s", remote, args, code, out, errs, now)
				n++
			}
		}
		expect.True(t, n >= 500, "only %d lines", n)
	}
}

func TestADashIsNoFile(t *testing.T) {
	d := newDeck(t)
	d.line("tenant create t_test")
	d.no(os.WriteFile(filepath.Join(d.dir, "-"), []byte("a file of that name\n"), 0o600))
	for _, line := range []string{
		"dag export jsonl -", "dag import jsonl -", "skill load -", "skill check -", "store backup -", "dag resource attach ada -",
		"dag resource restore s1 --to -", "cad scenario run x --out -", "up -", "agent create a --dir -",
	} {
		_, message, _ := d.fails(2, line)
		expect.True(t, strings.Contains(message, "- is no file here"), "%s: %s", line, message)
	}
	expect.Has(t, d.line("audit export --out -"), "tenant.created", "to stdout")
}

func TestNoLineNamesTheEnginesOwnFiles(t *testing.T) {
	d := newDeck(t)
	d.line("tenant create t_test")
	d.no(os.Symlink("deck.db.key", filepath.Join(d.dir, "link")))
	d.no(os.Link(d.data+".key", filepath.Join(d.dir, "hard")))
	d.no(os.MkdirAll(d.data+".run/spill", 0o700))
	for _, line := range []string{
		"keys check deck.db.key", "keys check link", "keys check hard", "policy propose link", "dag import jsonl deck.db", "skill load link",
		"skill load deck.db.run/spill", "audit export --out deck.db.secrets.key", "audit export --out deck.db.run/spill/x", "dag export git deck.db.run/trees",
		"bus publish x @link", "dag resource attach ada files:hard", "agent create a --dir deck.db.run/spill",
	} {
		code, message, _ := d.fails(1, line)
		expect.True(t, code == "DENIED" && strings.Contains(message, "one of the engine's own files"), "%s: %s %s", line, code, message)
	}
}

func TestAViewerReadsTheTermsAndChangesNone(t *testing.T) {
	d := newDeck(t)
	d.line("tenant create t_test")
	d.env.Role = command.Viewer
	d.line("policy terms")
	code, message, _ := d.fails(1, "policy terms --jailed on")
	expect.True(t, code == "DENIED" && strings.Contains(message, "needs the rights of approver"), "%s %s", code, message)
	d.env.ReadOnly = true
	_, message, _ = d.fails(1, "session create")
	expect.True(t, strings.Contains(message, "needs the rights of operator, you have those of viewer"), "%v", message)
}

// TestAViewerFollowsFromElsewhere looks on while the engine, which is another's
// process, works.
func TestAViewerFollowsFromElsewhere(t *testing.T) {
	d := newDeck(t)
	d.line("tenant create t_test")
	id := d.object(`task dispatch --kind exec.run --input '{"argv":["true"]}' --wait`)["task_id"].(string)
	d.env.Role, d.env.ReadOnly = command.Viewer, true
	_, message, _ := d.fails(1, "task log "+id+" --follow")
	expect.True(t, strings.Contains(message, "nothing runs with --read-only"), "%v", message)
	d.env.Attached = true
	d.line("task log " + id + " --follow")
	d.line("task wait " + id)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	code, _, errs := d.runIn(ctx, d.env, "bus", "tail", "sys.>", "--follow")
	expect.True(t, code == 130, "exit %d %s", code, errs)
}

func TestAThemeThatIsNotThereIsRefused(t *testing.T) {
	d := newDeck(t)
	code, message, _ := d.fails(2, "tenant list --theme nope")
	expect.True(t, code == "NOT_FOUND" && strings.Contains(message, `theme "nope"`), "%s %s", code, message)
}

func TestEveryCommandDeclaresWhatItMayDo(t *testing.T) {
	for _, info := range command.Commands() {
		confirm := info.Confirm != command.ConfirmNone
		switch info.Effect {
		case command.Reads:
			expect.True(t, !confirm && (info.Role == command.Viewer || info.Role == command.Admin),
				"%s only reads, but asks for role %s, confirmation %s", info.Path, info.Role, info.Confirm)
		case command.Writes, command.Destroys:
			expect.True(t, info.Role != command.Viewer && (info.Effect != command.Destroys || confirm),
				"%s: %s with role %s, confirmation %s", info.Path, info.Effect, info.Role, info.Confirm)
		default:
			t.Errorf("%s declares no effect", info.Path)
		}
	}
}
