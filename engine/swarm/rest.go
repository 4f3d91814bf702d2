package swarm

// Rest has no task of a tenant started until again is called. Those that run go on.
func (s *shared) Rest(tenant string) (again func()) {
	s.resting.Store(tenant, true)
	return func() {
		s.resting.Delete(tenant)
		s.ring()
	}
}

func (s *shared) rests(tenant string) bool {
	_, rests := s.resting.Load(tenant)
	return rests
}
