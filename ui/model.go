package ui

import (
	"context"
	"time"

	"swarmdeck/engine/core"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"

	"swarmdeck/engine/task"
	"swarmdeck/engine/view"
	"swarmdeck/themes"
	"swarmdeck/ui/command"
	"swarmdeck/ui/keymap"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/pane/fleet"
	"swarmdeck/ui/screen"
)

// Model is the cockpit's root model: what comes in, goes to one of its layers, each of
// which knows those below it alone. It implements tea.Model; every method, of a layer
// too, belongs to the goroutine that calls Update.
//
//	answers    how approvals are answered, and what keeps a key from doing it by accident
//	attention  what waits for the operator
//	runner     commands: asked about, run, told of
//	dialog     what stands over the panes, and what is said
//	places     which panes are shown where
//	shared     what all of them read: the snapshot, the time, the size
type Model struct {
	*answers
	*attention

	keys    keymap.Presser
	rec     *recorder
	history []string  // palette lines, oldest first
	quitAt  time.Time // ctrl+c was pressed once at this time

	auto       bool // the theme follows the terminal's ground
	toldGround bool // the terminal tells when its ground changes

	bell      <-chan struct{}
	lastFrame time.Time
	frameDue  bool
	ticking   bool

	content        string
	shown          tea.View // the newest that the terminal was given
	shownW, shownH int      // its size; 0 is none yet
}

// shared is what all layers read.
type shared struct {
	opt    Options
	ctx    context.Context
	tenant string
	snap   *view.Snapshot
	counts headCounts // of it
	now    time.Time
	theme  *screen.Theme
	colors colorprofile.Profile // of the terminal, once it is known
	canvas *screen.Canvas
	w, h   int
	dirty  bool
	guard  guard
	words  command.Lexicon

	presses uint64 // keys so far
	pending int    // Cmds under way that will change the screen

	stay   Stay
	stayIn string // tenant of the stay
	looks  string // approval that others were told is looked at
}

// New makes a cockpit over a world. It reads the first snapshot and starts
// nothing; Init does.
func New(opt Options) *Model {
	opt.fill()
	sh := &shared{
		opt: opt, ctx: opt.Context, tenant: opt.Caller.Tenant, theme: opt.Theme, canvas: screen.New(0, 0), dirty: true, now: opt.Clock.Now(),
	}
	d := &dialog{places: &places{shared: sh}, filters: map[string]string{}}
	m := &Model{
		answers:   &answers{runner: &runner{dialog: d, busy: newBusy(opt.ASCII)}},
		attention: &attention{dialog: d, looked: map[string]bool{}},
		keys:      keymap.Presser{Map: opt.Keys},
		auto:      opt.Theme.Name == themes.Auto,
	}
	if opt.ASCII {
		m.canvas.SetGlyphs(screen.ASCII())
	}
	m.makePanes()
	m.pointer = pointer{off: opt.Remote, widths: map[string]int{}} // a link may be slow
	m.place = placement{base: fleet.Name, lead: fleet.Name, bound: map[string]pane.Item{}}
	if opt.Open.ID != "" {
		m.place.open = []pane.Item{opt.Open}
	}
	// The bell is taken before the snapshot: nothing falls between.
	m.bell = opt.Services.Watch(m.ctx)
	m.look()
	if opt.Warning != "" {
		m.say(true, "", opt.Warning)
	}
	return m
}

// look takes the snapshot of the tenant that is shown.
func (sh *shared) look() {
	sh.snap = sh.opt.Services.Snapshot(sh.tenant)
	if sh.snap == nil {
		sh.snap = &view.Snapshot{Tenant: sh.tenant}
	}
	sh.counts = count(sh.snap)
}

func (m *Model) Init() tea.Cmd {
	cmds := []tea.Cmd{m.listen(), m.tick(), m.askGround(), m.logins()}
	if m.opt.Sync {
		cmds = append(cmds, func() tea.Msg {
			return tea.ModeReportMsg{Mode: ansi.ModeSynchronizedOutput, Value: ansi.ModeReset}
		})
	}
	return tea.Batch(cmds...)
}

// Messages of the model's own.
type (
	bellMsg  struct{} // the engine changed something
	frameMsg struct{} // it is time to look at what
	tickMsg  struct{} // ages and countdowns go on
	settled  struct{} // answers to an approval may count again
	// drainedMsg: a remote terminal has caught up
	drainedMsg struct{}
	tracked    struct{ msg tea.Msg }
	// followUp is what is done next once a Cmd has done its work elsewhere.
	followUp func() tea.Cmd
)

// Update implements tea.Model. It does no I/O and never blocks.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	m.now = m.opt.Clock.Now()
	cmd := m.handle(msg)
	sync := m.sync()
	m.attend()
	return m, tea.Batch(cmd, sync, m.first())
}

// first hands out the first frame.
func (m *Model) first() tea.Cmd {
	show := m.opt.First
	if show == nil || m.w == 0 || m.h == 0 {
		return nil
	}
	m.opt.First = nil
	frame := m.View().Content
	return func() tea.Msg { show(frame); return nil }
}

func (m *Model) handle(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tracked:
		m.pending--
		if batch, ok := msg.msg.(tea.BatchMsg); ok {
			cmds := core.Map(batch, m.track)
			return tea.Batch(cmds...)
		}
		return m.handle(msg.msg)
	case nil:
		return nil
	case bellMsg:
		return m.ring()
	case frameMsg:
		return m.frame()
	case tickMsg:
		m.ticking = false
		return m.beat()
	case spinMsg:
		return m.turn()
	case settled:
		m.dirty = true
		return nil
	case aloneMsg:
		m.dirty = true
		return m.wasAlone(msg)
	case tea.WindowSizeMsg:
		return m.resize(msg.Width, msg.Height)
	case tea.ColorProfileMsg:
		m.colors, m.dirty = msg.Profile, true
		return nil
	case tea.FocusMsg:
		m.blurred = false
		m.heed(m.queue())
		return tea.Batch(m.tick(), m.askGround())
	case tea.BackgroundColorMsg:
		return m.onGround(msg.IsDark())
	case uv.DarkColorSchemeEvent:
		return m.onGround(true)
	case uv.LightColorSchemeEvent:
		return m.onGround(false)
	case tea.BlurMsg:
		m.blurred = true
		m.heed(m.queue()) // what was there could be seen
		return nil
	case tea.KeyPressMsg:
		m.dirty = true
		return m.key(msg)
	case tea.PasteMsg:
		m.dirty = true
		return m.paste(msg.Content)
	case tea.MouseMsg:
		m.dirty = true
		return m.mouse(msg)
	case pane.Reply:
		m.dirty = true
		if p, ok := m.panes[msg.Pane]; ok {
			return m.track(p.Update(m.env(), msg.Body))
		}
		return nil
	case pane.Woke:
		m.dirty = true
		if p, ok := m.panes[msg.Pane].(pane.Follower); ok {
			return m.track(p.Woke(m.env(), msg.Body))
		}
		return nil
	case pane.Fill:
		m.dirty = true
		return m.fill(msg, false)
	case pane.Note:
		return m.say(msg.Bad, "", msg.Text)
	case ranMsg:
		return m.ran(msg)
	case followUp:
		m.dirty = true
		return msg()
	case awayMsg:
		return tea.Exec(msg.absence, msg.then)
	}
	return nil
}

// track counts a Cmd as under way until its message has come back, so that a
// driver knows when the cockpit is quiet.
func (sh *shared) track(cmd tea.Cmd) tea.Cmd {
	if cmd == nil {
		return nil
	}
	sh.pending++
	return func() tea.Msg { return tracked{cmd()} }
}

// env is what panes may know now.
func (ps *places) env() pane.Env {
	by := ps.opt.Caller
	by.Tenant = ps.tenant
	focus := ""
	if p := ps.focused(); p != nil {
		focus = p.Name()
	}
	return pane.Env{
		Snap: ps.snap, Tenant: ps.tenant, Caller: by, Now: ps.now,
		Glyphs: ps.canvas.Glyphs(), ReadOnly: ps.opt.ReadOnly, Focus: focus, Settled: ps.guard.settled(ps.now),
		Visitor: ps.visitor(), Types: !ps.opt.ReadOnly && ps.opt.Role.Includes(command.Operator),
		Colored: ps.theme.Colored(), Links: ps.opt.Links,
		Tints: ps.colors == colorprofile.TrueColor && ps.theme.Colored(),
	}
}

func (m *Model) resize(w, h int) tea.Cmd {
	w, h = min(max(w, 0), 4096), min(max(h, 0), 4096)
	if w == m.w && h == m.h {
		return nil
	}
	m.w, m.h, m.dirty = w, h, true
	if m.rec != nil {
		m.rec.resize(w, h, m.now)
	}
	return nil
}

// Quiet reports whether nothing is under way that would change the screen or
// hold a key back: no read or command is out, the newest snapshot is shown,
// and answers to an approval count. A headless driver waits for it.
func (m *Model) Quiet() bool {
	if m.pending > 0 || m.frameDue || !m.guard.quiet(m.opt.Clock.Now()) {
		return false
	}
	snap := m.opt.Services.Snapshot(m.tenant)
	return snap == nil || snap.Revision == m.snap.Revision && snap.LogRev == m.snap.LogRev
}

// working says how much would be interrupted by closing the engine.
func (sh *shared) working() int {
	return max(sh.counts.Waiting+sh.counts.Working, int(sh.snap.Counts.ByStatus[task.Running]))
}
