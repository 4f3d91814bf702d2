package ui

import (
	"fmt"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
)

// recorder writes the session down as a script (`:record FILE`): keys, typed
// and pasted text and sizes, with a wait for quiet wherever the operator
// paused, so that the script runs at any speed.
type recorder struct {
	path    string
	lines   []string
	keys    []string
	typed   strings.Builder
	last    time.Time
	w, h    int
	unsaved bool
	saving  bool
	saved   func(path string, last bool, err error) tea.Cmd // goes on once it was written
}

// pauseGap is how long an operator has to be still for the script to wait.
const pauseGap = 250 * time.Millisecond

func newRecorder(path string, w, h int, now time.Time) *recorder {
	return &recorder{
		path: path, last: now, w: w, h: h, unsaved: true,
		lines: []string{"# recorded session", fmt.Sprintf("cockpit %dx%d", w, h), "await quiet"},
	}
}

// key takes one key press; typing says that it goes into a text field.
func (r *recorder) key(name, text string, typing bool, now time.Time) {
	r.gap(now)
	types := typing && text != "" && utf8.RuneCountInString(text) == 1 && text >= " "
	if types && len(r.keys) > 0 || !types && r.typed.Len() > 0 || len(r.keys) == 10 {
		r.flush()
	}
	if types {
		r.typed.WriteString(text)
	} else {
		r.keys = append(r.keys, name)
	}
}

func (r *recorder) paste(text string, now time.Time) {
	r.gap(now)
	r.add("paste " + scriptQuote(text))
}

// mouse takes a click or a step of the wheel.
func (r *recorder) mouse(msg tea.MouseMsg, now time.Time) {
	word, at := "", msg.Mouse()
	switch msg.(type) {
	case tea.MouseClickMsg:
		word = map[tea.MouseButton]string{tea.MouseLeft: "click", tea.MouseRight: "click right"}[at.Button]
	case tea.MouseWheelMsg:
		word = map[tea.MouseButton]string{tea.MouseWheelUp: "wheel up", tea.MouseWheelDown: "wheel down"}[at.Button]
	}
	if word != "" {
		r.gap(now)
		r.add(fmt.Sprintf("%s %d,%d", word, at.Y+1, at.X+1))
	}
}

func (r *recorder) resize(w, h int, now time.Time) {
	if w == r.w && h == r.h {
		return
	}
	r.w, r.h = w, h
	r.gap(now)
	r.add(fmt.Sprintf("resize %dx%d", w, h))
}

// gap adds a wait when the operator paused since the last thing.
func (r *recorder) gap(now time.Time) {
	if now.Sub(r.last) >= pauseGap && r.lines[len(r.lines)-1] != "await quiet" || len(r.keys) > 0 && now.Sub(r.last) >= pauseGap {
		r.add("await quiet")
	}
	r.last = now
}

func (r *recorder) add(line string) {
	r.flush()
	r.lines = append(r.lines, line)
	r.unsaved = true
}

// flush writes the keys, or the text, of which no line is there yet: there is one of both.
func (r *recorder) flush() {
	line := "type " + scriptQuote(r.typed.String())
	switch {
	case len(r.keys) > 0:
		line = "key"
		for _, k := range r.keys {
			line += " " + scriptQuote(k)
		}
	case r.typed.Len() == 0:
		return
	}
	r.keys = nil
	r.typed.Reset()
	r.lines = append(r.lines, line)
	r.unsaved = true
}

// save writes what there is; last ends the recording.
func (r *recorder) save(last bool) tea.Cmd {
	r.flush()
	if r.saving && !last {
		return nil
	}
	r.saving, r.unsaved = true, false
	path, text := r.path, strings.Join(r.lines, "\n")+"\nawait quiet\n"
	return func() tea.Msg {
		err := os.WriteFile(path, []byte(text), 0o600)
		if err != nil {
			err = fmt.Errorf("write script %s: %w", path, err)
		}
		return followUp(func() tea.Cmd { return r.saved(path, last, err) })
	}
}

// scriptQuote writes a word as scripts read it: in single quotes, a quote
// inside doubled. Line breaks can't stand in a script's word.
func scriptQuote(s string) string {
	s = strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ").Replace(s)
	if s != "" && !strings.ContainsAny(s, " \t'\"#$\\") && !strings.HasPrefix(s, "-") {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", "''") + "'"
}

// record starts or ends writing the session down.
func (m *Model) record(arg string) tea.Cmd {
	if arg == "off" {
		if m.rec == nil {
			return m.say(true, "", "record: nothing is being recorded")
		}
		save := m.rec.save(true)
		m.rec = nil
		return m.track(save)
	}
	if m.rec != nil {
		return m.say(true, "", "record: already writing "+m.rec.path+"; record off ends it")
	}
	if why := m.noFiles(); why != "" {
		return m.say(true, "", why)
	}
	m.rec = newRecorder(m.path(arg), m.w, m.h, m.now)
	m.rec.saved = m.recorded
	return tea.Batch(m.say(false, "", "recording to "+m.rec.path), m.track(m.rec.save(false)))
}

func (m *Model) recorded(path string, last bool, err error) tea.Cmd {
	if m.rec != nil {
		m.rec.saving = false
	}
	switch {
	case err != nil:
		m.rec = nil
		return m.say(true, "", err.Error())
	case last:
		return m.say(false, "", "recorded "+path)
	}
	return nil
}
