package ui

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/core"
	"swarmdeck/ui/command"
	"swarmdeck/ui/keymap"
	"swarmdeck/ui/overlay"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/pane/fleet"
	"swarmdeck/ui/pane/gate"
)

// own are the palette's commands that concern this screen only.
var own = []command.Candidate{
	{Text: "write", Help: "write FILE: what the screen shows, as text"},
	{Text: "record", Help: "record FILE: write this session as a script; record off ends it"},
	{Text: "columns", Help: "columns NAME,STATE,…: what this list shows, in order; without names, its own columns"},
	{Text: "sort", Help: "sort COLUMN or -COLUMN: the order of this list; without one, its own"},
	{Text: "theme", Help: "theme NAME: other colours; auto is light or dark as the terminal is"},
	{Text: "use", Help: "use TENANT: show another tenant"},
	{Text: "messages", Help: "everything the cockpit has said"},
	{Text: "help", Help: "the keys that work here"},
	{Text: "quit", Help: "leave the cockpit"},
	{Text: "open", Help: "open KIND ID: a sheet, such as timeline task:ID, compare A B, lineage NODE or policy ID"},
}

const historyMost = 200

func (m *Model) openPalette(line string) tea.Cmd {
	p := overlay.NewPalette(line, m.history)
	m.over.Push(p, func(a overlay.Action) tea.Cmd {
		switch a.Kind {
		case overlay.Submit:
			return m.typed(a.Text)
		case overlay.Complete:
			return m.complete(a.Text)
		}
		return nil
	})
	return m.complete(line)
}

// fillPalette puts a binding's line into the palette to be completed.
func (m *Model) fillPalette(b *keymap.Binding) tea.Cmd {
	t, err := parseTemplate(b.Line)
	if err != nil {
		return m.say(true, "", err.Error())
	}
	words, err := t.fill(m.selected(), m.tenant, nil)
	if err != nil {
		return m.say(true, "", err.Error())
	}
	return m.openPalette(core.Join(words) + " ")
}

// complete looks up the ways to go on for a line.
func (m *Model) complete(line string) tea.Cmd {
	ctx, tenant, find := m.ctx, m.tenant, m.opt.Complete
	return m.track(func() tea.Msg {
		var all []command.Candidate
		if find != nil {
			all = find(ctx, tenant, line)
		}
		return followUp(func() tea.Cmd { return m.candidates(line, all) })
	})
}

// candidates shows what came back, the screen's own commands among them.
func (m *Model) candidates(line string, all []command.Candidate) tea.Cmd {
	p, ok := m.over.Top().(*overlay.Palette)
	if !ok {
		return nil
	}
	var cands []overlay.Candidate
	head := line[:strings.LastIndexByte(line, ' ')+1] // all but the last word
	for _, c := range all {
		whole := strings.Contains(c.Text, " ") && !strings.HasPrefix(c.Text, "'") // several words, and not quoted
		does := strings.TrimSpace(head + c.Text)
		if whole {
			does = c.Text
		}
		cands = append(cands, overlay.Candidate{Text: c.Text, Line: whole, Help: c.Help, Key: m.keyFor(does)})
	}
	words := strings.Fields(line)
	for _, c := range own {
		begins := head == "" && strings.HasPrefix(c.Text, line)
		if begins || len(words) > 0 && words[0] != c.Text && command.Holds(c.Text+" "+c.Help, words) {
			cands = append(cands, overlay.Candidate{Text: c.Text, Line: !begins, Help: c.Help, Key: m.opt.Keys.KeyFor(m.scopes(), c.Text)})
		}
	}
	if head == "" {
		for _, name := range m.lists {
			known := func(c overlay.Candidate) bool { return c.Text == name }
			if line != "" && strings.HasPrefix(name, line) && !slices.ContainsFunc(cands, known) {
				cands = append(cands, overlay.Candidate{Text: name, Help: "go to this list"})
			}
		}
	}
	cands = append(cands, m.columnsOf(line)...)
	if head == "open " {
		for name, pn := range m.panes {
			if pn.Kind() == pane.Sheet && strings.HasPrefix(name, line[len(head):]) {
				cands = append(cands, overlay.Candidate{Text: name})
			}
		}
	}
	if strings.TrimSpace(line) != "" && !slices.ContainsFunc(cands, func(c overlay.Candidate) bool { return c.Line }) {
		core.Sort(cands, func(a, b overlay.Candidate) int { return strings.Compare(a.Text, b.Text) })
	}
	if a := p.SetCandidates(line, cands); a.Kind == overlay.Complete {
		return m.complete(a.Text)
	}
	return nil
}

// keyFor is the key that does what a line does here, "" for none.
func (d *dialog) keyFor(line string) string {
	if key := d.opt.Keys.KeyFor(d.scopes(), line); key != "" {
		return key
	}
	it := d.selected()
	if line == it.Kind+" pause" || line == it.Kind+" resume" {
		return d.opt.Keys.KeyFor(d.scopes(), "pause")
	}
	return ""
}

// typed runs a line of the palette.
func (m *Model) typed(line string) tea.Cmd {
	if n := len(m.history); n == 0 || m.history[n-1] != line {
		m.history = append(m.history, line)
		if len(m.history) > historyMost {
			m.history = m.history[1:]
		}
	}
	words, err := command.Split(line)
	if err != nil {
		return m.say(true, line, err.Error())
	}
	if len(words) == 0 {
		return nil
	}
	if cmd, ok := m.ownCommand(words); ok {
		return cmd
	}
	if cmd, ok := m.viewCommand(words); ok {
		return cmd
	}
	return m.submit(job{lines: [][]string{words}})
}

// ownCommand runs a command of this screen.
func (m *Model) ownCommand(words []string) (tea.Cmd, bool) {
	arg := ""
	if len(words) == 2 {
		arg = words[1]
	}
	switch {
	case len(words) == 1 && slices.Contains(m.lists, words[0]):
		return m.goTo(words[0]), true
	case len(words) == 1 && (words[0] == "quit" || words[0] == "q"):
		return m.interrupt(), true
	case len(words) == 1 && words[0] == "help":
		return m.openHelp(), true
	case words[0] == "open" && len(words) == 3 || words[0] == "open" && len(words) == 4 && words[1] == "compare":
		return m.openNamed(pane.Item{Kind: words[1], ID: strings.Join(words[2:], " ")}), true
	case words[0] == "agent" && len(words) == 3 && words[1] == "attach":
		return m.openNamed(pane.Item{Kind: fleet.TerminalName, ID: words[2]}), true
	case words[0] == "write" && arg != "":
		return m.write(arg), true
	case words[0] == "record" && arg != "":
		return m.record(arg), true
	case words[0] == "theme" && len(words) == 2 && arg != "list":
		return m.setTheme(arg, false), true
	case words[0] == "use" && arg != "":
		return m.use(arg), true
	}
	return nil, false
}

// openNamed opens what a line names.
func (m *Model) openNamed(it pane.Item) tea.Cmd {
	if m.sheet(it) != nil {
		return m.openItem(it)
	}
	var names []string
	for name, p := range m.panes {
		if p.Kind() == pane.Sheet && name != gate.CardName {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return m.say(true, "", "open: there is no sheet of a "+it.Kind+"; one of approval, "+strings.Join(names, ", "))
}

// openHelp shows the keys of the focused pane, searchable.
func (m *Model) openHelp() tea.Cmd {
	scopes := m.scopes()
	entries := overlay.Entries(m.opt.Keys.Bindings(scopes), m.whyNot)
	for _, c := range own {
		entries = append(entries, overlay.Entry{Section: "palette", Keys: ":" + c.Text, Text: c.Help})
	}
	m.over.Push(&overlay.Help{Title: "help: " + scopes[0], Entries: entries, Notes: []string{
		"filter: word, !not, ~fuzzy, col:value   copying goes by OSC 52 (tmux: set -g set-clipboard on)",
	}}, func(a overlay.Action) tea.Cmd {
		if line, own := strings.CutPrefix(a.Text, ":"); own && line != "" {
			return m.openPalette(line + " ")
		}
		return m.pressed(strings.Fields(a.Text))
	})
	return nil
}

// changes reports whether a binding is there to change something.
func (r *runner) changes(b keymap.Binding) bool {
	if b.Line == "" {
		return b.Guard || b.Action == "pause" || b.Action == "estop" || b.Action == "invoke" || b.Action == "create"
	}
	words, err := command.Split(b.Line)
	return err == nil && r.words.Describe(words).Effect != command.Reads
}

// whyNot says why a binding does nothing now, "" when it works.
func (an *answers) whyNot(b keymap.Binding) string {
	if an.opt.ReadOnly && an.changes(b) {
		return "read-only"
	}
	if b.Guard {
		if ok, why := an.card.Ready(); !ok {
			return why
		}
		if ok, why := an.card.Armed(); !ok && b.Action != "deny" && b.Action != "abort" && b.Action != "defer" {
			return why
		}
	}
	return ""
}
