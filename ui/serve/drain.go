package serve

import "time"

// A line that began less than young ago has as long as grace to come to its end when
// the engine does: of a write that is cut off its caller can't tell whether it happened.
const (
	young = 2 * time.Second
	grace = 2 * time.Second
)

// take takes a session down, before its client is told that the line was taken, until
// over is called once it was told how it ended. Not ok is that no session begins any more.
func (s *Server) take(t *Session, line string) (over func(), ok bool) {
	writes := t.Terminal == nil
	if args, err := s.opt.Split(line); writes && err == nil && s.opt.Reads != nil {
		writes = !s.opt.Reads(args)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return nil, false
	}
	s.wg.Add(1)
	if writes {
		s.lines[t] = time.Now()
	}
	return func() {
		s.mu.Lock()
		delete(s.lines, t)
		s.mu.Unlock()
		s.wg.Done()
	}, true
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
