package ui

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"swarmdeck/engine/bus"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/skill"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
	"swarmdeck/ui/overlay"
	"swarmdeck/ui/pane/gate"
)

// hostile is what agents might write to take the screen over.
var hostile = []string{
	"\x1b[2J\x1b[H", "\x1b]52;c;ZXZpbA==\x07", "\x1b]0;title\x07", "\x9b31m", "\u202eevil\u202c", "a\u200bb\u2060c\ufeff", "❤️👨‍👩‍👧‍👦🏳️‍🌈⚠️",
	"漢字漢字漢字", "e\u0301\u0301\u0301\u0301", "\x00\x07\x08\x0d\n\t", "\xff\xfe\xc3\x28", strings.Repeat("wide漢", 50), "y\ry\ry\r", "⟨U+0041⟩", "--yes", "",
}

var fuzzKeys = []string{
	"a", "a", "x", "X", "e", "A", "z", "y", "y", "n", "enter", "enter", "esc", "q", "space", "tab", "shift+tab", "j", "k", "h", "l", "g", "G", "ctrl+d", "ctrl+u",
	"pgdown", "pgup", "1", "2", "3", "3", "4", "5", "6", "7", "8", "8", "9", "9", "T", "i", "i", "E", ":", "/", "?", "p", "c", "r", "d", "D", "s", "w", "t", "u", "Y", "f", "W",
	"*", "M", "[", "]", "-", "m", "T", "ctrl+x", "ctrl+l", "b", "R", "Z", "L", "t", "backspace", "up", "down", "left", "right", "o", "+", "S", "v", "P", "~", "H", "H", "t", "n", "v", "!", "ctrl+c", "0", "0", "b", ".", "O", "ctrl+p", "ctrl+t", "u",
}

// mischief drives a cockpit with random keys, sizes, pastes, times and a world
// that lies, and checks after every step what must always hold.
type mischief struct {
	*rig
	rng   *rand.Rand
	key   string // the last key, "" when something else came last
	armed string // the approval that this key may answer, "" for none
}

func (f *mischief) text() string {
	s := hostile[f.rng.IntN(len(hostile))]
	if f.rng.IntN(40) == 0 {
		s += strings.Repeat("x\u202e", 1<<19)
	}
	return s + fmt.Sprint(f.rng.IntN(100)) + hostile[f.rng.IntN(len(hostile))]
}

func (f *mischief) step() {
	f.key, f.armed = "", ""
	switch f.rng.IntN(20) {
	case 0:
		f.send(tea.WindowSizeMsg{Width: f.rng.IntN(220), Height: f.rng.IntN(60)})
	case 1:
		f.send(tea.WindowSizeMsg{Width: 80 + f.rng.IntN(100), Height: 24 + f.rng.IntN(20)})
	case 2:
		f.send(tea.PasteMsg{Content: f.text() + "aaayyy\r\n"})
	case 3, 4:
		f.change(f.lie)
	case 5:
		f.wait(time.Duration(f.rng.IntN(3000)) * time.Millisecond)
	case 7: // straight for an answer
		for _, k := range []string{"esc", "esc", "esc", "3", "enter"} {
			f.press(k)
		}
		f.wait(time.Duration(f.rng.IntN(2500)) * time.Millisecond)
		f.key = "a"
		f.armed = f.mayAnswer()
		f.press(f.key)
	case 8, 9:
		f.mouse()
	case 6:
		k, _ := Key([]string{"a", "y", "x"}[f.rng.IntN(3)])
		k.IsRepeat = true
		f.send(k)
	default:
		f.wait(time.Duration(f.rng.IntN(1500)) * time.Millisecond)
		f.key = fuzzKeys[f.rng.IntN(len(fuzzKeys))]
		f.armed = f.mayAnswer()
		f.press(f.key)
	}
}

// mouse clicks, drags or scrolls somewhere. A click on a key's word is that key.
func (f *mischief) mouse() {
	f.wait(time.Duration(f.rng.IntN(1500)) * time.Millisecond)
	x, y := f.rng.IntN(f.m.w+2), f.rng.IntN(f.m.h+2)
	if f.rng.IntN(2) == 0 {
		y = f.m.h - 1 // the footer
	}
	button := []tea.MouseButton{tea.MouseLeft, tea.MouseLeft, tea.MouseLeft, tea.MouseRight, tea.MouseMiddle}[f.rng.IntN(5)]
	switch f.rng.IntN(6) {
	case 0:
		f.send(tea.MouseWheelMsg{X: x, Y: y, Button: []tea.MouseButton{tea.MouseWheelUp, tea.MouseWheelDown, tea.MouseWheelLeft}[f.rng.IntN(3)]})
	case 1:
		f.send(tea.MouseMotionMsg{X: x, Y: y, Button: button})
	default:
		if s := f.m.spotAt(x, y); s != nil && !f.m.over.Open() && button == tea.MouseLeft {
			f.key = s.keys[0]
			f.armed = f.mayAnswer()
		}
		f.send(tea.MouseClickMsg{X: x, Y: y, Button: button})
		if f.rng.IntN(3) == 0 {
			f.send(tea.MouseMotionMsg{X: f.rng.IntN(f.m.w + 1), Y: y, Button: button})
		}
		f.send(tea.MouseReleaseMsg{X: x, Y: y, Button: button})
		f.wait(together) // as each press does
	}
}

// mayAnswer is the test's own idea of what the coming key may approve: the
// approval on a settled card for a, the one that a question names for y.
func (f *mischief) mayAnswer() string {
	switch top := f.m.over.Top().(type) {
	case nil:
		if a := f.m.card.Approval(); f.key == "a" && a != nil && f.m.place.visible(gate.CardName) && a.Status == judge.Open {
			return a.ApprovalID
		}
	case *overlay.Confirm:
		if f.key == "y" {
			return strings.Join(top.Lines, " ")
		}
	}
	return ""
}

// lie changes the world in a random way.
func (f *mischief) lie() {
	w, n := f.w, f.rng.IntN(1000)
	switch f.rng.IntN(10) {
	case 8, 9:
		f.talk(n)
	case 0:
		a := approval(n, []judge.Risk{judge.Low, judge.Medium, judge.High, judge.Critical, "odd"}[f.rng.IntN(5)], f.text(), `{"x":`+string(core.MustEncode(strings.ToValidUTF8(f.text(), "?")))+`}`)
		a.Agent.Name, a.Rationale = f.text(), f.text()
		w.approvals = append([]*judge.Approval{a}, w.approvals...)
	case 1:
		if len(w.approvals) > 1 {
			i := f.rng.IntN(len(w.approvals))
			gone := *w.approvals[i]
			gone.Status, gone.AnsweredBy = judge.Voided, f.text()
			w.approvals = append(w.approvals[:i:i], w.approvals[i+1:]...)
			w.answered = append(w.answered, gone)
		}
	case 2:
		w.agents = append(w.agents, &fleet.Agent{Name: f.text(), TenantID: tenant, Status: fleet.AgentStatus(f.text()), Reason: f.text(), Attention: f.text(), LastTask: f.text()})
	case 3:
		w.agents = nil
	case 4:
		w.tasks = append([]task.Task{{TenantID: tenant, TaskID: id("tk", n), Kind: f.text(), Title: f.text(), Status: task.Running, Agent: "", Input: core.Raw(f.text())}}, w.tasks...)
	case 5:
		for _, s := range []string{id("tk", 1), "agent:changes"} {
			w.logs[s] = append(w.logs[s], task.LogLine{Seq: uint64(len(w.logs[s]) + 1), Message: f.text(), Level: f.text(), Source: f.text()})
		}
	case 6:
		w.estop.On, w.estop.Reason, w.estop.By, w.estop.Waiting = !w.estop.On, f.text(), f.text(), []string{f.text()}
	case 7:
		if len(w.approvals) > 0 {
			a := *w.approvals[0]
			a.Digest = fmt.Sprint("d", n)
			w.approvals[0] = &a
		}
	}
}

// talk changes skills, their runs, subagents or messages.
func (f *mischief) talk(n int) {
	w, text := f.w, func() string { return f.text() }
	raw := func() core.Raw {
		if f.rng.IntN(2) == 0 {
			return core.Raw(f.text())
		}
		return core.Raw(`{"x":` + string(core.MustEncode(strings.ToValidUTF8(f.text(), "?"))) + `}`)
	}
	switch f.rng.IntN(5) {
	case 0:
		w.skills = append(w.skills, &skill.Skill{
			TenantID: tenant, Name: text(), Version: text(), Description: text(), Tags: []string{text()}, Effects: []skill.Effect{skill.Effect(text())},
			Dependencies: []string{text(), w.skills[f.rng.IntN(len(w.skills))].Name}, ParametersSchema: raw(), ReturnsSchema: raw(),
			Runner: skill.Spec{Kind: "composite", Steps: []skill.Step{{ID: text(), Skill: "detect", Params: core.Raw(`{}`), Fallback: text()}}},
		})
	case 1:
		w.runs = append([]skill.Execution{{
			TenantID: tenant, ExecutionID: uuid(1000 + n), AgentID: uuid(1), SkillName: "detect", SkillVersion: text(), Step: text(), Status: skill.Status(text()),
			Error: text(), Parameters: raw(), Result: raw(), StartedAt: f.clock.Now(), DurationMS: f.rng.Int64N(1e9),
		}}, w.runs...)
	case 2:
		w.subagents = append([]skill.Subagent{{
			TenantID: tenant, AgentID: uuid(2000 + n), Name: text(), State: skill.States()[f.rng.IntN(5)], Skill: text(), Step: text(), Error: text(), Waiting: text(),
			Results: map[string]core.Raw{text(): raw()}, SkillParams: raw(), Metadata: raw(), CreatedAt: f.clock.Now(), CompletedAt: f.clock.Now(),
		}}, w.subagents...)
	case 3:
		w.messages = append(w.messages, bus.Message{
			TenantID: tenant, MessageID: uuid(3000 + n), Seq: uint64(len(w.messages) + 1), Topic: []string{"", text()}[f.rng.IntN(2)], RecipientID: text(), SenderID: text(),
			MessageType: bus.Type(text()), CorrelationID: []string{"", uuid(301)}[f.rng.IntN(2)],
			Payload: raw(), Timestamp: f.clock.Now(), Fate: bus.Fate{
				Status: bus.Status(text()), Unanswered: f.rng.IntN(2) == 0, Dead: text(), ResentAs: []string{"", uuid(3000)}[f.rng.IntN(2)],
				Deliveries: []bus.Delivered{{RecipientID: text(), Subscription: text(), Status: bus.Status(text()), Reason: text()}},
			},
		})
	case 4:
		w.readers = append(w.readers, bus.SubscriptionInfo{Name: text(), Pattern: text(), By: text(), Lag: f.rng.IntN(1e9), Missed: n})
	}
}

// check is what must hold at every moment.
func (f *mischief) check(steps int) {
	f.t.Helper()
	c := f.m.Frame()
	if c.W() != f.m.w || c.H() != f.m.h {
		f.t.Fatalf("step %d: frame %dx%d on a screen of %dx%d", steps, c.W(), c.H(), f.m.w, f.m.h)
	}
	rows := strings.Split(f.m.View().Content, "\n")
	expect.Must(f.t, len(rows) <= max(f.m.h, 1), "step %d: %d rows on a screen of %d", steps, len(rows), f.m.h)
	for _, row := range rows {
		n := ansi.StringWidth(row)
		expect.Must(f.t, n <= f.m.w, "step %d: a row of %d cells on a screen of %d: %q", steps, n, f.m.w, row)
	}
	for _, row := range c.Plain() {
		for _, r := range row {
			expect.Must(f.t, !unicode.IsControl(r) && !unicode.Is(unicode.Cf, r), "step %d: %U reached the screen: %q", steps, r, row)
		}
	}
	for _, line := range f.ran {
		if !strings.HasPrefix(line, "approval approve ") {
			continue
		}
		want := strings.Fields(line)[2]
		if !strings.Contains(f.armed, want) {
			f.t.Fatalf("step %d: %q ran unasked after key %q (could answer %q)", steps, line, f.key, f.armed)
		}
	}
	f.ran = nil
}

func runMischief(t testing.TB, seed uint64, steps int) {
	f := &mischief{rig: rigOn(t, newModels(), 80, 24, Options{}), rng: rand.New(rand.NewPCG(seed, 1))}
	for i := range steps {
		f.step()
		f.check(i)
	}
}

// FuzzCockpit: no key sequence, resize storm, paste or hostile text makes the
// screen wrong, the program panic, or an approval happen unasked. Runs are
// short, because the fuzzer takes one of more than a second for a hang.
func FuzzCockpit(f *testing.F) {
	for seed := range uint64(4) {
		f.Add(seed, uint8(40))
	}
	f.Fuzz(func(t *testing.T, seed uint64, steps uint8) { runMischief(t, seed, int(steps%50)) })
}

var soak = flag.Duration("soak", 0, "how long TestMischief goes on")

func TestMischief(t *testing.T) {
	end := time.Now().Add(*soak)
	for seed := uint64(0); seed < 4 || time.Now().Before(end); seed++ {
		runMischief(t, 1000+seed, 200)
	}
}
