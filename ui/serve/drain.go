package serve

import "time"

// A line that began less than young ago has as long as grace to come to its end when
// the engine does: of a write that is cut off its caller can't tell whether it happened.
const (
	young = 2 * time.Second
	grace = 2 * time.Second
)

// line takes a session down that may be such a line, until over is called.
func (s *Server) line(t *Session) (over func()) {
	if t.Terminal != nil || s.opt.Reads != nil && s.opt.Reads(t.Args) {
		return func() {}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines[t] = time.Now()
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.lines, t)
	}
}

// ends says that no session begins any more.
func (s *Server) ends() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

// drain waits for the writes that have just begun.
func (s *Server) drain() {
	brisk := func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, began := range s.lines {
			if time.Since(began) < young {
				return true
			}
		}
		return false
	}
	for end := time.Now().Add(grace); brisk() && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
}
