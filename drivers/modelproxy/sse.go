package modelproxy

import "bytes"

// maxEventBytes bounds one server-sent event; a longer one is passed on but not
// looked at.
const maxEventBytes = 1 << 20

// sse finds the events in a stream (WHATWG HTML, server-sent events).
type sse struct {
	event func(name string, data []byte)

	cr   bool // the line before ended with one: a line feed is part of that end
	line []byte
	long bool // the line under way is too long
	name string
	data []byte
	some bool // the event has data
	bad  bool // some of it was too long
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
	if len(s.line)+len(b) > maxEventBytes {
		s.long = true
		return
	}
	s.line = append(s.line, b...)
}

func (s *sse) endLine() {
	line, long := s.line, s.long
	s.line, s.long = s.line[:0], false
	if long {
		s.bad = true
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
		if len(s.data)+len(value) > maxEventBytes {
			s.bad = true
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
	if s.some && !s.bad {
		s.event(s.name, s.data)
	}
	s.name, s.data, s.some, s.bad = "", s.data[:0], false, false
}

// close ends a stream whose last event has no empty line after it.
func (s *sse) close() {
	if len(s.line) > 0 {
		s.endLine()
	}
	s.dispatch()
}
