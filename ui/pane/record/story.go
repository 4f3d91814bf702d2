package record

import (
	"context"
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/face"
	"swarmdeck/engine/story"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
)

const storyName = "story"

// Storyteller tells what happened since a time; *engine.Engine does.
type Storyteller interface {
	Story(ctx context.Context, tenant string, q story.Query) (lines []story.Line, more bool, err error)
}

// Story shows what happened since a time, to the agent that its item names or to all.
type Story struct {
	*pane.Table[story.Line]
	of     Storyteller
	it     pane.Item
	since  int                  // of sinces
	looked map[string]time.Time // when each was told last
	last   time.Time            // when this one had been, before it was opened; zero for never
	reader pane.Reader[told]
	told   told
	read   time.Time // when it was told last
}

// told is a story as it was read.
type told struct {
	lines []story.Line
	more  bool
}

// again is how often a story is told anew while things happen.
const again = 3 * time.Second

// sinces are how long ago a story may begin; 0 is when it was looked at last.
func sinces() []time.Duration {
	return []time.Duration{time.Hour, 0, 8 * time.Hour, 24 * time.Hour, 10 * time.Minute}
}

// away is how long a story was not looked at for its next sight to be another look.
const away = time.Minute

// NewStory makes the sheet.
func NewStory(of Storyteller) *Story {
	p := &Story{of: of, reader: pane.NewReader[told](storyName), looked: map[string]time.Time{}}
	p.Table = pane.NewTable(pane.Spec[story.Line]{
		Name: storyName, Title: storyName, Empty: "nothing happened", Face: face.For[story.Line](),
		Cells: map[string]pane.Cell[story.Line]{"TEXT": storyText},
		ID:    func(l *story.Line) string { return fmt.Sprint(l.At.UnixNano(), l.What, l.ID) },
		Item: func(l *story.Line) pane.Item {
			it := pane.Item{Kind: l.Noun, ID: l.ID, Task: l.TaskID, Agent: l.Agent}
			switch l.Noun {
			case "event":
				it.Kind = sheetName
			case "audit":
				it.Kind = "event"
			case "approval":
				it.Approval = l.ID
			}
			return it
		},
	})
	return p
}

func storyText(_ *pane.Env, l *story.Line) (string, screen.Role) {
	switch text := l.String(); {
	case l.Begins() && !l.Bad:
		return text, screen.Title
	case l.Begins():
		return text, screen.Bad
	case l.What == "asked": // a question is no failure
		return "  " + text, screen.Warn
	case l.Bad:
		return "  " + text, screen.Bad
	default:
		return "  " + text, screen.Text
	}
}

// Kind implements pane.Pane.
func (p *Story) Kind() pane.Kind { return pane.Sheet }

// Broad implements pane.Broad: a line is a sentence.
func (p *Story) Broad() {}

func (p *Story) Show(env pane.Env, it pane.Item) tea.Cmd {
	if at := p.looked[it.ID]; it.ID != p.it.ID || env.Now.Sub(at) >= away {
		p.last = at
		p.begin(it)
		if sinces()[p.since] == 0 && at.IsZero() {
			p.since = 0
		}
	}
	return nil
}

func (p *Story) Reset() {
	clear(p.looked)
	p.begin(pane.Item{})
}

// begin forgets what was told.
func (p *Story) begin(it pane.Item) {
	p.Table.Reset()
	p.it, p.told, p.read = it, told{}, time.Time{}
}

// from is when the story begins.
func (p *Story) from(now time.Time) time.Time {
	if ago := sinces()[p.since]; ago > 0 {
		return now.Add(-ago)
	}
	return p.last
}

func (p *Story) Refresh(env pane.Env) tea.Cmd {
	if p.it.ID == "" || env.Now.Sub(p.read) < again {
		return nil
	}
	tenant, of, q := env.Tenant, p.of, story.Query{Agent: p.it.Agent, Since: p.from(env.Now)}
	return p.reader.Read(p.key(), func(ctx context.Context) (t told, err error) {
		t.lines, t.more, err = of.Story(ctx, tenant, q)
		return t, err
	})
}

func (p *Story) key() string { return fmt.Sprint(p.it.ID, p.since) }

func (p *Story) Update(env pane.Env, body any) tea.Cmd {
	a, ok := p.reader.Take(p.key(), body)
	if !ok {
		return nil
	}
	if p.told = a.Got; a.Err != nil {
		p.told.lines = []story.Line{{At: env.Now, What: "failed", Text: a.Err.Error(), Bad: true}}
	}
	end := p.read.IsZero() || p.Position() == p.Len()-1
	p.read, p.looked[p.it.ID] = env.Now, env.Now
	if p.SetRows(env, p.told.lines); end {
		p.Table.Do(env, "bottom")
	}
	return nil
}

func (p *Story) Do(env pane.Env, action string) (tea.Cmd, bool) {
	if action != "since" {
		return p.Table.Do(env, action)
	}
	if p.since = (p.since + 1) % len(sinces()); sinces()[p.since] == 0 && p.last.IsZero() {
		p.since++
	}
	p.read = time.Time{}
	return p.Refresh(env), true
}

// Open implements pane.Opener.
func (p *Story) Open(env pane.Env) pane.Item { return p.Selected(env) }

// Title implements pane.Pane.
func (p *Story) Title(env pane.Env) string {
	text := "story of " + p.it.ID + "  since "
	if sinces()[p.since] == 0 {
		text += "you looked, "
	}
	text += pane.Age(env.Now, p.from(env.Now)) + " ago"
	if p.told.more {
		text += ", older things left out"
	}
	return text
}

// Copy implements pane.Copier: the story as text.
func (p *Story) Copy() string {
	var b strings.Builder
	for i := range p.told.lines {
		l := &p.told.lines[i]
		text, _ := storyText(nil, l)
		fmt.Fprintf(&b, "%s %s %s%s\n", l.At.UTC().Format(time.RFC3339), l.Agent, l.What, "  "+text)
	}
	return b.String()
}
