package bus

import (
	"context"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/bus"
	"swarmdeck/ui/pane"
)

// Bounds of the tail.
const (
	window = 300 // messages that are held
	rounds = 8   // reads of one refresh, where many messages pass that the pattern doesn't select
)

// tail is the newest messages that a pattern selects, oldest first. Without a
// pattern they are read anew, because what becomes of direct messages changes;
// what has a topic never does, so there only what is new is read.
type tail struct {
	bus      Bus
	pattern  string
	messages []bus.Message
	seq      uint64 // read up to here
	loaded   bool
	behind   bool // there is more to read
	stamp    stamp
	reader   pane.Reader[batch]
	err      error
}

// stamp tells whether anything has become of any message.
type stamp struct {
	tenant string
	bus    bus.Figures
	events uint64
}

// batch is what one read brought.
type batch struct {
	pattern  string
	whole    bool
	messages []bus.Message
	seq      uint64
	behind   bool
}

// bind forgets what was read and follows another pattern.
func (t *tail) bind(pattern string) {
	t.pattern, t.messages, t.seq, t.loaded, t.behind, t.stamp, t.err = pattern, nil, 0, false, false, stamp{}, nil
}

// of names what is read.
func (t *tail) of(env pane.Env) string { return env.Tenant + " " + t.pattern }

// refresh reads when something happened.
func (t *tail) refresh(env pane.Env) tea.Cmd {
	now := stamp{env.Tenant, env.Snap.Bus, env.Snap.AuditSeq}
	if t.loaded && !t.behind && now == t.stamp {
		return nil
	}
	t.stamp = now
	of, tenant, pattern, seq := t.bus, env.Tenant, t.pattern, t.seq
	if pattern == "" || !t.loaded {
		return t.reader.Read(t.of(env), func(ctx context.Context) (batch, error) {
			got, seq, err := of.Recent(ctx, tenant, pattern, window)
			return batch{pattern: pattern, whole: true, messages: got, seq: seq}, err
		})
	}
	return t.reader.Read(t.of(env), func(ctx context.Context) (batch, error) {
		b := batch{pattern: pattern, seq: seq}
		for range rounds {
			got, next, err := of.Since(ctx, tenant, pattern, b.seq, window)
			if err != nil {
				return b, err
			}
			b.messages = append(b.messages, got...)
			if b.behind = next > b.seq; !b.behind {
				break
			}
			b.seq = next
		}
		return b, nil
	})
}

// take stores a reply and reports whether the messages are others now.
func (t *tail) take(env pane.Env, body any) (cmd tea.Cmd, changed bool) {
	a, ok := t.reader.Take(t.of(env), body)
	if !ok {
		return nil, false
	}
	if t.err = a.Err; a.Err == nil {
		if a.Got.whole {
			t.messages = nil
		}
		t.messages = append(t.messages, a.Got.messages...)
		t.messages = t.messages[max(0, len(t.messages)-window):]
		t.seq, t.loaded, t.behind = a.Got.seq, true, a.Got.behind
	}
	if a.Again { // asked for meanwhile: that stamp is of what was not read yet
		t.stamp = stamp{}
	}
	if a.Again || t.behind {
		return t.refresh(env), true
	}
	return nil, true
}
