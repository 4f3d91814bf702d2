package exec

import (
	"cmp"
	"maps"
	"os"
	"slices"
)

// tree lists every live or unreaped process of the run, oldest first, and
// remembers them. A process belongs to the run when it carries the run's tag,
// descends from one that does, or has been seen in the run before. Where the
// tag could not be set, the mark in the environment stands for it.
func (p *Process) tree() []proc {
	p.mu.Lock()
	known := maps.Clone(p.known)
	p.mu.Unlock()

	var list []proc
	seen := map[int]bool{os.Getpid(): true}
	var add func(pid int)
	add = func(pid int) {
		if seen[pid] {
			return
		}
		seen[pid] = true
		if pid == p.pid && p.reaped() {
			return // the number may be another's by now
		}
		q, ok := look(pid)
		if !ok {
			return
		}
		list = append(list, q)
		for _, kid := range childrenOf(pid) {
			add(kid)
		}
	}
	add(p.pid)
	for _, pid := range p.sup.strays(p.tagged) {
		if seen[pid] || p.sup.isMain(pid) {
			continue
		}
		if p.tagged && tagOf(pid) == p.tag || !p.tagged && markOf(pid) == p.mark {
			add(pid)
		}
	}
	for pid, start := range known {
		if q, ok := look(pid); ok && q.start == start {
			add(pid)
		}
	}
	slices.SortStableFunc(list, func(a, b proc) int { return cmp.Compare(a.start, b.start) })

	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.known)
	for _, q := range list {
		p.known[q.pid] = q.start
	}
	return list
}

// Census is processes by pid, with their start times.
type Census map[int]uint64

// Has reports whether exactly this process is in it.
func (c Census) Has(pid int, start uint64) bool {
	was, ok := c[pid]
	return ok && was == start
}

// Census names the run's processes of this moment.
func (p *Process) Census() Census {
	now := Census{}
	for _, q := range p.tree() {
		now[q.pid] = q.start
	}
	return now
}

// strays are the processes among which a run's orphans are to be looked for.
// A tag is read with one system call, so all processes are asked; environments
// cost more, so only our own children's are read where orphans become that.
func (s *Supervisor) strays(tagged bool) []int {
	if !tagged && s.narrow {
		return childrenOf(os.Getpid())
	}
	return numbers("/proc")
}
