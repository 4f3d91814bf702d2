package pane

import (
	tea "charm.land/bubbletea/v2"

	"swarmdeck/ui/screen"
)

// LogRecord is a record with a live log below it. Embed it, fill the page,
// bind the log, and pass replies to TakeLog first.
type LogRecord struct {
	Record
	Split
}

// NewLogRecord makes an unbound record with a log for a pane.
func NewLogRecord(name string, logs Logs) LogRecord {
	return LogRecord{Record: NewRecord(name), Split: NewSplit(name, logs)}
}

func (r *LogRecord) Reset() {
	r.Record.Reset()
	r.BindLog("")
}

func (r *LogRecord) Resize(w, h int) { r.ResizeSplit(&r.Page, w, h) }

func (r *LogRecord) Do(env Env, action string) (tea.Cmd, bool) {
	return r.DoSplit(env, &r.Page, action)
}

// Filter searches the record and the log.
func (r *LogRecord) Filter(env Env, find string) (tea.Cmd, error) {
	_, _ = r.Record.Filter(env, find)
	return r.FindSplit(env, find), nil
}

func (r *LogRecord) Draw(c *screen.Canvas, env Env, focused bool) {
	r.DrawSplit(c, env, &r.Page, focused)
}
