package script

import (
	"fmt"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/rogpeppe/go-internal/txtar"

	"swarmdeck/engine/core"
	"swarmdeck/ui/screen"
)

// snap compares the screen with the file want/NAME.screen of the script: the
// text, then a role's letter for each cell. --update writes the file anew.
func (r *run) snap(ts *testscript.TestScript, args []string) {
	if len(args) != 1 || path.Base(args[0]) != args[0] || !snapName().MatchString(args[0]) {
		ts.Fatalf("usage: snap NAME, where NAME is of letters, digits, - and _")
	}
	name := "want/" + args[0] + ".screen"
	got := ""
	if r.remote != nil {
		got = r.remote.picture(r, ts)
	} else {
		got = Picture(r.on(ts).frame())
	}
	if r.start.Update {
		if r.snaps == nil {
			r.snaps = map[string]string{}
		}
		r.snaps[name] = got
		return
	}
	data, err := os.ReadFile(path.Join(r.work, name))
	if err != nil {
		ts.Fatalf("snap %s\nexpected: the script's file %s; --update writes it\nactual: %v", args[0], name, err)
	}
	if want := string(data); want != got {
		ts.Fatalf("snap %s\nexpected and actual differ:\n%s", args[0], diff.Diff(name, data, "screen", []byte(got)))
	}
}

var snapName = core.Pattern(`^[A-Za-z0-9_-]+$`)

// Picture writes a screen as text and roles, without what differs from run to
// run. Each substitution keeps the width:
//
//   - the number of an id stays, the mark of its tenant is xxxxx
//   - trace ids and digests (16 hex digits or more) are all 0
//   - ages and countdowns (9s, 14m, 1h2m) are 0s, times of day 00:00:00
//   - process ids are all 0 and have seven digits, the random part of the
//     script's directory is 00000000
func Picture(c *screen.Canvas) string {
	var b strings.Builder
	for _, row := range c.Plain() {
		b.WriteString(strings.TrimRight(steady(row), " ") + "\n")
	}
	b.WriteString("~ roles\n")
	for _, row := range c.Roles() {
		b.WriteString(row + "\n")
	}
	return b.String()
}

var unsteady = []struct {
	re  func() *regexp.Regexp
	fix func(string) string
}{
	{core.Pattern(`\b(tk|se|gd|ap|ev|ru)_[0-9a-f]{5}_`), func(s string) string { return s[:3] + "xxxxx_" }},
	{core.Pattern(`\b[0-9a-f]{16,}\b`), func(s string) string { return strings.Repeat("0", len(s)) }},
	{core.Pattern(`\b\d{4}-\d\d-\d\d\b`), func(string) string { return "0000-00-00" }},
	{core.Pattern(`\b\d\d:\d\d(:\d\d(\.\d+)?)?\b`), zeros},
	{core.Pattern(`\bswarmdeck-[0-9a-f]{8}\b`), func(string) string { return "swarmdeck-00000000" }},
	{core.Pattern(` *\b(\d+(ms|s|m|h|d|y))+\b`), age},
	{core.Pattern(`\b(pid|process) +\d+\b[^│|]*`), process},
}

// steady replaces what differs from run to run.
func steady(row string) string {
	for _, u := range unsteady {
		row = u.re().ReplaceAllStringFunc(row, u.fix)
	}
	return row
}

func zeros(s string) string {
	return strings.Map(func(ch rune) rune {
		if ch >= '0' && ch <= '9' {
			return '0'
		}
		return ch
	}, s)
}

// age keeps the end of the token where it is: ages are right-aligned.
func age(s string) string { return strings.Repeat(" ", len(s)-len("0s")) + "0s" }

// process gives a process id seven digits and takes what that needs from the
// blanks after it.
func process(s string) string {
	at := strings.IndexAny(s, "0123456789")
	end := at + strings.IndexFunc(s[at:]+" ", func(ch rune) bool { return ch < '0' || ch > '9' })
	rest := strings.TrimRight(s[end:], " ")
	return fmt.Sprintf("%s0000000%s%*s", s[:at], rest, max(0, len(s)-at-7-len(rest)), "")
}

// rewrite puts the screens of --update into the script.
func (r *run) rewrite() error {
	if len(r.snaps) == 0 {
		return nil
	}
	a, err := txtar.ParseFile(r.file)
	if err != nil {
		return fmt.Errorf("update script %s: %w", r.name, err)
	}
	for i := range a.Files {
		if text, ok := r.snaps[a.Files[i].Name]; ok {
			a.Files[i].Data = []byte(text)
			delete(r.snaps, a.Files[i].Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.snaps)) {
		a.Files = append(a.Files, txtar.File{Name: name, Data: []byte(r.snaps[name])})
	}
	if err := os.WriteFile(r.file, txtar.Format(a), 0o666); err != nil {
		return fmt.Errorf("update script %s: %w", r.name, err)
	}
	return nil
}
