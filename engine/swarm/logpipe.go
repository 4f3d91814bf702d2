package swarm

import (
	"context"
	"errors"
	"sync"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/loop"
	"swarmdeck/engine/task"
	"swarmdeck/store"
)

// logPipe gathers a running task's lines and writes them in batches, so that
// a chatty process costs a few commits a second. A full pipe blocks add: the
// process is slowed, memory stays bounded, nothing is lost.
type logPipe struct {
	s      *Swarm
	by     core.Caller
	stream string

	mu     sync.Mutex
	room   *sync.Cond
	lines  []task.LogLine
	bytes  int
	closed bool
	timer  *time.Timer
	ready  chan struct{} // one slot
}

const (
	pipeLines = 2048
	pipeBytes = 1 << 20
	pipeDelay = 100 * time.Millisecond
	// A commit of lines stays within the room that a store looks for before it says
	// that the disk is no longer full. One that does not would be refused for ever by
	// a store that has room again each time it looks.
	pipeCommit = 256 << 10
	lineWeight = 256 // about what a line weighs beside its text
)

func newLogPipe(s *Swarm, by core.Caller, task string) *logPipe {
	p := &logPipe{s: s, by: by, stream: task, ready: make(chan struct{}, 1)}
	p.room = sync.NewCond(&p.mu)
	return p
}

func (p *logPipe) add(level, text string) {
	text = core.Cut(text, task.MaxLine+1)
	p.mu.Lock()
	defer p.mu.Unlock()
	for (len(p.lines) >= pipeLines || p.bytes >= pipeBytes) && !p.closed {
		loop.Ring(p.ready)
		p.room.Wait()
	}
	if p.closed {
		return
	}
	if len(p.lines) == 0 {
		p.timer = time.AfterFunc(pipeDelay, func() { loop.Ring(p.ready) })
	}
	p.lines = append(p.lines, task.LogLine{Timestamp: p.s.ledger.Clock().Now(), Level: level, Message: text, TaskID: p.stream})
	p.bytes += len(text)
}

// later tries again to write what waits, when the disk was full.
func (p *logPipe) later() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil && !p.closed && len(p.lines) > 0 {
		p.timer.Reset(fullTick)
	}
}

// due is ready when a batch wants writing.
func (p *logPipe) due() <-chan struct{} { return p.ready }

// flush writes what waits. With store.Refuse in ctx it writes one commit of it, and
// leaves it where it is while the disk is full: the process is slowed.
func (p *logPipe) flush(ctx context.Context) {
	how, said := store.IfFullOf(ctx)
	prompt := said && how == store.Refuse
	if prompt && p.s.full() {
		p.later()
		return
	}
	for lines := p.take(); len(lines) > 0; lines = p.take() {
		// A store that refuses log lines refuses the task's result too; that is
		// where it is reported.
		err := p.s.tasks.AppendLog(ctx, p.by, p.stream, lines)
		switch {
		case !prompt:
			continue
		case errors.Is(err, store.ErrFull):
			p.putBack(lines)
			p.later()
		default:
			p.signalRest()
		}
		return
	}
}

// take takes the lines of a commit out.
func (p *logPipe) take() []task.LogLine {
	p.mu.Lock()
	defer p.mu.Unlock()
	n, weight := 0, 0
	for ; n < len(p.lines) && (n == 0 || weight < pipeCommit); n++ {
		weight += len(p.lines[n].Message) + lineWeight
		p.bytes -= len(p.lines[n].Message)
	}
	lines := p.lines[:n:n]
	if p.lines = p.lines[n:]; len(p.lines) == 0 {
		p.lines = nil
		if p.timer != nil {
			p.timer.Stop()
		}
	}
	p.room.Broadcast()
	return lines
}

// putBack has lines that could not be written wait again, before all others.
func (p *logPipe) putBack(lines []task.LogLine) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lines = append(lines, p.lines...)
	for _, line := range lines {
		p.bytes += len(line.Message)
	}
}

// signalRest has what take left be written next.
func (p *logPipe) signalRest() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.lines) > 0 {
		loop.Ring(p.ready)
	}
}

func (p *logPipe) close() {
	p.mu.Lock()
	p.closed = true
	if p.timer != nil {
		p.timer.Stop()
	}
	p.room.Broadcast()
	p.mu.Unlock()
}
