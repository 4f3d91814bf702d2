package fleet

// Known reports whether a tenant has an agent of this name.
func (f *Fleet) Known(tenant, name string) bool { return f.member(tenant, name) != nil }

// Elsewhere reports whether another tenant has one.
func (f *Fleet) Elsewhere(tenant, name string) bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	for other, fleet := range f.fleet {
		if other != tenant && fleet[name] != nil {
			return true
		}
	}
	return false
}

// All lists the names of a tenant's agents, in order.
func (f *Fleet) All(tenant string) []string {
	members := f.members(tenant)
	names := make([]string, len(members))
	for i, m := range members {
		names[i] = m.name
	}
	return names
}
