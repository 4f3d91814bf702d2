package mcp

import (
	"context"
	"strings"
	"sync"

	"swarmdeck/engine/core"
	"swarmdeck/engine/task"
)

// Bounds of what a server asks during one call of a tool.
const (
	maxOpenAsks = 4  // that wait, one of them before a person
	maxAsks     = 20 // in all: a person reads each
)

// caller is who a call of a tool is made for, and who is asked what the server wants
// to know for it.
type caller struct {
	task  task.Task
	log   func(level, line string)
	waits func(on bool) // stops what limits the time of the call
	held  func() (held bool, moved <-chan struct{})

	over <-chan struct{} // closed when the call is
	turn chan struct{}   // is had by the question that is before a person

	mu      sync.Mutex
	open    int
	asked   int
	aborted string // why a person ended it
}

// callers are those that one question may be for, in the order of their tasks.
type callers []*caller

// callerKey is the key of a call's caller in its context.
type callerKey struct{}

// underway notes that a call is, until end.
func (l *link) underway(ctx context.Context, of *caller) (_ context.Context, end func()) {
	ctx, over := context.WithCancel(ctx)
	of.over, of.turn = ctx.Done(), make(chan struct{}, 1)
	l.mu.Lock()
	if l.calls == nil {
		l.calls = map[*caller]bool{}
	}
	l.calls[of] = true
	noise := l.noise
	l.noise = ""
	l.mu.Unlock()
	if noise != "" {
		of.log("WARN", noise)
	}
	return context.WithValue(ctx, callerKey{}, of), func() {
		over()
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.calls, of)
	}
}

// whose are the callers that a question may be for: the one whose call it answers, or,
// where the protocol does not say so, all whose calls are under way.
func (l *link) whose(ctx context.Context) callers {
	if of, ok := ctx.Value(callerKey{}).(*caller); ok {
		return callers{of}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make(callers, 0, len(l.calls))
	for of := range l.calls {
		all = append(all, of)
	}
	core.Sort(all, func(a, b *caller) int { return strings.Compare(a.task.TaskID, b.task.TaskID) })
	return all
}

func (all callers) log(level, line string) {
	for _, of := range all {
		of.log(level, line)
	}
}

func (all callers) waits(on bool) {
	for _, of := range all {
		of.waits(on)
	}
}

// over is closed when all calls are, or ctx is done.
func (all callers) over(ctx context.Context) <-chan struct{} {
	if len(all) == 1 {
		return all[0].over
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		for _, of := range all {
			select {
			case <-of.over:
			case <-ctx.Done():
				return
			}
		}
	}()
	return over
}

// take takes the turns of all, in their order, unless the question ends first.
func (all callers) take(ctx context.Context, over <-chan struct{}) bool {
	for i, of := range all {
		select {
		case of.turn <- struct{}{}:
			continue
		case <-over:
		case <-ctx.Done():
		}
		all[:i].give()
		return false
	}
	return true
}

func (all callers) give() {
	for _, of := range all {
		<-of.turn
	}
}

// enter counts a question in, for each call that it may be of.
func (all callers) enter() error {
	for i, of := range all {
		if err := of.enter(); err != nil {
			all[:i].leave()
			return err
		}
	}
	return nil
}

func (of *caller) enter() error {
	of.mu.Lock()
	defer of.mu.Unlock()
	switch {
	case of.open >= maxOpenAsks:
		return core.Errorf(core.InvalidInput, "%d questions of this call wait already", of.open)
	case of.asked >= maxAsks:
		return core.Errorf(core.InvalidInput, "this call has asked %d questions, and no more are put", of.asked)
	}
	of.open++
	of.asked++
	return nil
}

func (all callers) leave() {
	for _, of := range all {
		of.mu.Lock()
		of.open--
		of.mu.Unlock()
	}
}

// abort notes that a person ended the calls, and why.
func (all callers) abort(why string) {
	for _, of := range all {
		of.mu.Lock()
		of.aborted = why
		of.mu.Unlock()
	}
}

func (of *caller) end() string {
	of.mu.Lock()
	defer of.mu.Unlock()
	return of.aborted
}
