package ui

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/core"
	"swarmdeck/ui/command"
	"swarmdeck/ui/keymap"
	"swarmdeck/ui/overlay"
	"swarmdeck/ui/pane"
)

// runner carries command lines out.
type runner struct {
	*dialog
	busy busy
	undo [][]string // takes back what was done last, nil for nothing
}

// job is one or more command lines that run together.
type job struct {
	lines   [][]string
	targets []pane.Item // what they act on, in the same order; may be empty
	confirm command.Confirm
	effect  command.Effect
	id      uint64 // of all that were sent off
	keys    uint64 // keys pressed when it was sent off
	about   string // what is asked before it runs; "" names the lines or targets
	// refused is told why a single line failed while the operator waited; nil
	// says it in a toast.
	refused func(output) tea.Cmd
	// done is what follows a single change that was made; nil is nothing.
	done func() tea.Cmd
}

// bound runs the line of a binding on the marked things, or on the selected
// one, after asking for what the line does not know.
func (r *runner) bound(b *keymap.Binding) tea.Cmd {
	t, err := parseTemplate(b.Line)
	if err != nil {
		return r.say(true, "", err.Error())
	}
	var items []pane.Item
	switch {
	case len(t.takes()) == 0:
	case b.Bulk:
		items = r.chosen()
	default:
		items = []pane.Item{r.selected()}
	}
	// What the line lacks is said before any question is asked.
	asked := map[string]string{}
	for _, q := range t.questions() {
		asked[q] = ""
	}
	for _, it := range items {
		if _, err := t.fill(it, r.tenant, asked); err != nil {
			return r.say(true, "", err.Error())
		}
	}
	return r.ask(t, t.questions(), map[string]string{}, items, command.Confirm(b.Confirm))
}

// ask puts the questions of a line one after another, then runs it.
func (r *runner) ask(t template, questions []string, answers map[string]string, items []pane.Item, confirm command.Confirm) tea.Cmd {
	if len(questions) > 0 {
		title := questions[0]
		if n := len(items); n > 1 {
			title += fmt.Sprintf(" (%d marked)", n)
		} else if n == 1 && !items[0].Empty() {
			title += " (" + items[0].ID + ")"
		}
		then := func(text string) tea.Cmd {
			answers[questions[0]] = text
			return r.ask(t, questions[1:], answers, items, confirm)
		}
		if strings.HasSuffix(questions[0], longer) {
			return r.compose(strings.Replace(title, longer, "", 1), addressee(items), then)
		}
		return r.prompt(title, then)
	}
	j := job{targets: items, confirm: confirm}
	if len(items) == 0 {
		items = []pane.Item{{}}
	}
	for _, it := range items {
		line, err := t.fill(it, r.tenant, answers)
		if err != nil {
			return r.say(true, "", err.Error())
		}
		j.lines = append(j.lines, line)
	}
	return r.submit(j)
}

// submit runs a job after the confirmation that its command asks for:
// undoable ones need none, costly ones y, irreversible ones and many targets
// the name or the count.
func (r *runner) submit(j job) tea.Cmd {
	info := r.words.Describe(j.lines[0])
	j.effect = info.Effect
	j.confirm = cmp.Or(j.confirm, info.Confirm)
	if info.Effect != command.Reads && r.opt.ReadOnly {
		return r.say(true, core.Join(j.lines[0]), "read-only: "+info.Path+" would change something")
	}
	if info.Path == "estop on" { // stopping is reversible and must be one step
		j.confirm = command.ConfirmNone
	}
	if len(j.lines) > 1 && info.Effect != command.Reads {
		j.confirm = command.ConfirmType
	}
	switch j.confirm {
	case command.ConfirmAsk:
		return r.confirm(r.question(j, info), "", func() tea.Cmd { return r.run(j) })
	case command.ConfirmType:
		want := fmt.Sprint(len(j.lines))
		if len(j.lines) == 1 && j.about == "" {
			want = lastWord(j.lines[0])
		}
		return r.confirm(r.question(j, info), want, func() tea.Cmd { return r.run(j) })
	}
	return r.run(j)
}

// question names what would be done to exactly what.
func (r *runner) question(j job, info command.Info) string {
	if j.about != "" {
		return j.about
	}
	var b strings.Builder
	if len(j.lines) == 1 {
		fmt.Fprintf(&b, "%s\nin tenant %s", core.Join(j.lines[0]), r.tenant)
	} else {
		fmt.Fprintf(&b, "%s for %d in tenant %s:", info.Path, len(j.lines), r.tenant)
		for i, it := range j.targets {
			if i == 8 {
				fmt.Fprintf(&b, "\n… and %d more", len(j.targets)-i)
				break
			}
			b.WriteString("\n" + it.ID)
		}
	}
	if info.Short != "" {
		b.WriteString("\n" + info.Short + ".")
	}
	return b.String()
}

// lastWord is the name that a line acts on: its last word that is no flag.
func lastWord(line []string) string {
	for i := len(line) - 1; i > 0; i-- {
		if !strings.HasPrefix(line[i], "-") {
			return line[i]
		}
	}
	return "yes"
}

// ranMsg is what the commands of a job printed.
type ranMsg struct {
	job  job
	outs []output
}

type output struct {
	out, err string
	code     int
}

// run carries a job out in a Cmd.
func (r *runner) run(j job) tea.Cmd {
	for i := range j.lines {
		if r.words.Describe(j.lines[i]).Confirm == command.ConfirmType && !slices.Contains(j.lines[i], "--yes") {
			j.lines[i] = append(j.lines[i], "--yes")
		}
	}
	r.busy.jobs++
	j.id, j.keys = r.busy.jobs, r.presses
	run := r.runs()
	spin := r.start(j.id, r.words.Describe(j.lines[0]).Path)
	return tea.Batch(spin, r.track(func() tea.Msg {
		outs := core.Map(j.lines, func(line []string) output { return run(asSentence(line, j.effect)) })
		return ranMsg{j, outs}
	}))
}

// runs runs lines in the tenant that is shown now.
func (sh *shared) runs() func(line []string) output {
	ctx, tenant, run := sh.ctx, sh.tenant, sh.opt.Run
	return func(line []string) (o output) {
		o.out, o.err, o.code = run(ctx, tenant, line)
		return o
	}
}

// fetch runs a line that reads, and goes on with what it printed as JSON.
func fetch[T any](d *dialog, line []string, got func(T) tea.Cmd) tea.Cmd {
	run := d.runs()
	return beside(d, func() (v T, err error) {
		o := run(line)
		if err = core.DecodeStored([]byte(o.out), &v); o.code != 0 || err != nil {
			err = errors.New(cmp.Or(reason(o), core.Join(line)+" printed nothing"))
		}
		return v, err
	}, got)
}

// beside does something beside the cockpit and goes on with what it gave, or says why it
// failed.
func beside[T any](d *dialog, do func() (T, error), then func(T) tea.Cmd) tea.Cmd {
	return d.track(func() tea.Msg {
		got, err := do()
		return followUp(func() tea.Cmd {
			if err != nil {
				return d.say(true, "", err.Error())
			}
			return then(got)
		})
	})
}

// reasons are the first of those why lines failed, each once.
func reasons(outs []output) string {
	const most = 3
	var all []string
	for _, o := range outs {
		if o.code == 0 || slices.Contains(all, reason(o)) {
			continue
		}
		if len(all) == most {
			return strings.Join(all, "; ") + "; …"
		}
		all = append(all, reason(o))
	}
	return strings.Join(all, "; ")
}

// ran tells what a job came to. A long output opens as a sheet.
func (r *runner) ran(did ranMsg) tea.Cmd {
	r.dirty = true
	r.busy.under = slices.DeleteFunc(r.busy.under, func(w work) bool { return w.job == did.job.id })
	failed := 0
	for _, o := range did.outs {
		if o.code != 0 {
			failed++
		}
	}
	if p := r.focused(); p != nil && len(did.job.lines) > 1 {
		p.ClearMarks()
	}
	r.mayUndo(&did)
	path := r.words.Describe(did.job.lines[0]).Path
	if len(did.outs) > 1 {
		text := fmt.Sprintf("%s: %d done", path, len(did.outs)-failed)
		if failed > 0 {
			text += fmt.Sprintf(", %d failed: %s", failed, reasons(did.outs))
		}
		return r.say(failed > 0, path, text)
	}
	line, o := core.Join(did.job.lines[0]), did.outs[0]
	gone := r.presses != did.job.keys || r.over.Open() // the operator has gone on
	switch {
	case o.code != 0 && did.job.refused != nil && !gone:
		r.keep(true, line, reason(o))
		return did.job.refused(o)
	case o.code != 0:
		if d, ok := disputed(o); ok && !gone {
			r.keep(true, line, reason(o))
			return r.settle(d)
		}
		return r.say(true, line, reason(o))
	}
	if did.job.effect != command.Reads {
		text, _, _ := strings.Cut(strings.TrimSpace(o.out), "\n")
		said := r.say(false, line, cmp.Or(text, "done: "+path))
		if did.job.done != nil {
			return tea.Batch(said, did.job.done())
		}
		return said
	}
	text := strings.TrimSpace(o.out)
	if text == "" {
		return r.say(false, line, "done: "+path+", nothing to show")
	}
	if !strings.Contains(text, "\n") {
		return r.say(false, line, text)
	}
	r.keep(false, line, text)
	if gone {
		r.toasts.Add(r.now, overlay.Done, path+": its output is among the messages")
		return nil
	}
	return r.openItem(pane.Item{Kind: "message", ID: r.notes.Newest()})
}

// failure is the error that a command told in its last line, after what it noted before; one
// without a message is none.
func (o *output) failure() *core.Error {
	text := strings.TrimSpace(cmp.Or(strings.TrimSpace(o.err), o.out))
	var said struct {
		Error core.Error `json:"error"`
	}
	if core.DecodeStored([]byte(text[strings.LastIndexByte(text, '\n')+1:]), &said) != nil {
		return &core.Error{}
	}
	return &said.Error
}

// reason is why a command failed, in one line where there is one.
func reason(o output) string {
	text := cmp.Or(o.failure().Message, strings.TrimSpace(o.err), strings.TrimSpace(o.out))
	return strings.TrimPrefix(text, "error: ")
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return s
}

// asSentence asks a changing command for a sentence instead of a table, unless the
// operator has asked for a form.
func asSentence(line []string, effect command.Effect) []string {
	if effect == command.Reads {
		return line
	}
	end := slices.Index(line, "--") // what follows belongs to another command
	if end < 0 {
		end = len(line)
	}
	for _, w := range line[:end] {
		if w == "-o" || w == "--output" || strings.HasPrefix(w, "--output=") || strings.HasPrefix(w, "-o") && len(w) > 2 {
			return line
		}
	}
	return slices.Insert(slices.Clone(line), end, "-o", "sentence")
}
