package modelproxy

import "bytes"

// sse finds the events in a stream (WHATWG HTML, server-sent events). One that is
// longer than a whole answer may be, or for which there is no room, is missed.
type sse struct {
	event  func(name string, data []byte)
	missed func(size int)
	hold   hold

	cr   bool // the line before ended with one: a line feed is part of that end
	line []byte
	long bool // the line under way is too long
	name string
	data []byte
	some bool // the event has data
	lost int  // bytes of it that were too long
}

func (s *sse) write(b []byte) {
	for len(b) > 0 {
		if s.cr && b[0] == '\n' {
			b = b[1:]
		}
		s.cr = false
		end := bytes.IndexAny(b, "\r\n")
		if end < 0 {
			s.more(b)
			return
		}
		s.more(b[:end])
		s.cr = b[end] == '\r'
		b = b[end+1:]
		s.endLine()
	}
}

func (s *sse) more(b []byte) {
	if s.long || len(s.line)+len(b) > maxWhole || !s.hold.grow(len(s.data)+len(s.line)+len(b)) {
		s.lost += len(s.line) + len(b)
		s.line, s.long = s.line[:0], true
		return
	}
	s.line = append(s.line, b...)
}

func (s *sse) endLine() {
	line, long := s.line, s.long
	s.line, s.long = s.line[:0], false
	if long {
		return
	}
	if len(line) == 0 {
		s.dispatch()
		return
	}
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "event":
		s.name = string(value)
	case "data":
		if len(s.data)+len(value) > maxWhole || !s.hold.grow(len(line)+len(s.data)+len(value)) {
			s.lost += len(value)
			return
		}
		if s.some {
			s.data = append(s.data, '\n')
		}
		s.some = true
		s.data = append(s.data, value...)
	}
}

func (s *sse) dispatch() {
	switch {
	case s.lost > 0:
		s.missed(s.lost + len(s.data))
	case s.some:
		s.event(s.name, s.data)
	}
	s.name, s.data, s.some, s.lost = "", s.data[:0], false, 0
	if cap(s.data)+cap(s.line) > small {
		s.data, s.line = nil, nil
	}
	s.hold.drop()
}

// close ends a stream whose last event has no empty line after it.
func (s *sse) close() {
	if len(s.line) > 0 || s.long {
		s.endLine()
	}
	s.dispatch()
}
