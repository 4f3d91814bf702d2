// Package sse reads streams of server-sent events (WHATWG HTML, 9.2).
package sse

import (
	"bytes"
	"fmt"
	"io"
)

// Events finds the events in the stream that is written to it. Comments, ids and
// unknown fields are skipped. Most must be given.
type Events struct {
	// Most is how many bytes of data an event has at most, and of a line. A longer
	// one is missed, and the stream goes on after it.
	Most int
	// Event is told each event that has a name or data; the data is valid until it
	// returns.
	Event func(name string, data []byte)
	// Missed is told the bytes of an event that was too long; nil tells nobody.
	Missed func(size int)
	// Room says whether so many bytes may be held, and Free that none are any more;
	// nil holds what Most allows.
	Room func(size int) bool
	Free func()

	cr   bool // the line before ended with one: a line feed is part of that end
	line []byte
	long bool // the line under way is too long
	name string
	data []byte
	some bool // the event has data
	lost int  // bytes of it that were too long
}

// kept is how much room an event leaves to the next one, maxName how long its
// name is at most, in bytes.
const (
	kept    = 64 << 10
	maxName = 256
)

// Write takes the next piece of the stream, which may end anywhere.
func (e *Events) Write(b []byte) {
	for len(b) > 0 {
		if e.cr && b[0] == '\n' {
			b = b[1:]
		}
		e.cr = false
		end := bytes.IndexAny(b, "\r\n")
		if end < 0 {
			e.more(b)
			return
		}
		e.more(b[:end])
		e.cr = b[end] == '\r'
		b = b[end+1:]
		e.endLine()
	}
}

// Close ends a stream whose last event may have no empty line after it.
func (e *Events) Close() {
	if len(e.line) > 0 || e.long {
		e.endLine()
	}
	e.dispatch()
}

// fits says that a line or the data may have so many bytes, and all that is held
// so many.
func (e *Events) fits(size, all int) bool {
	return size <= e.Most && (e.Room == nil || e.Room(all))
}

func (e *Events) more(b []byte) {
	if e.long || !e.fits(len(e.line)+len(b), len(e.data)+len(e.line)+len(b)) {
		e.lost += len(e.line) + len(b)
		e.line, e.long = e.line[:0], true
		return
	}
	e.line = append(e.line, b...)
}

func (e *Events) endLine() {
	line, long := e.line, e.long
	e.line, e.long = e.line[:0], false
	if long {
		return
	}
	if len(line) == 0 {
		e.dispatch()
		return
	}
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "event":
		e.name = string(value[:min(len(value), maxName)])
	case "data":
		if !e.fits(len(e.data)+len(value), len(line)+len(e.data)+len(value)) {
			e.lost += len(value)
			return
		}
		if e.some {
			e.data = append(e.data, '\n')
		}
		e.some = true
		e.data = append(e.data, value...)
	}
}

func (e *Events) dispatch() {
	switch {
	case e.lost > 0 && e.Missed != nil:
		e.Missed(e.lost + len(e.data))
	case e.lost == 0 && (e.some || e.name != ""):
		e.Event(e.name, e.data)
	}
	e.name, e.data, e.some, e.lost = "", e.data[:0], false, 0
	if cap(e.data)+cap(e.line) > kept {
		e.data, e.line = nil, nil
	}
	if e.Free != nil {
		e.Free()
	}
}

// Each calls event with each event of a stream until that, or event, ends with an
// error, which it returns: io.EOF at the stream's end, after which an event that
// was not finished is none. A longer event than most bytes ends it too.
func Each(r io.Reader, most int, event func(name string, data []byte) error) (err error) {
	e := Events{Most: most}
	e.Event = func(name string, data []byte) {
		if err == nil {
			err = event(name, data)
		}
	}
	e.Missed = func(int) {
		if err == nil {
			err = fmt.Errorf("an event is longer than %d bytes", most)
		}
	}
	piece := make([]byte, 32<<10)
	for err == nil {
		n, failed := r.Read(piece)
		if e.Write(piece[:n]); e.lost > 0 {
			e.Missed(e.lost) // its end may never come
		}
		if err == nil {
			err = failed
		}
	}
	return err
}
