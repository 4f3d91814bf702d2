package exec

import (
	"maps"
	"os"
)

// tree lists every live or unreaped process of the run, parents before their
// children, and remembers them. A process belongs to the run when it
// descends from the first one, carries the run's tag or mark, descends from
// one that does, or has been seen in the run before.
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
		q, ok := look(pid)
		if !ok {
			return
		}
		if pid == p.pid && p.reaped() {
			return // the number may be another's by now
		}
		list = append(list, q)
		for _, kid := range p.sup.childrenOf(pid) {
			add(kid)
		}
	}
	if !p.reaped() {
		add(p.pid)
	}
	for _, pid := range p.sup.strays() {
		if !seen[pid] && !p.sup.isMain(pid) && (tagOf(pid) == p.tag || markOf(pid) == p.mark) {
			add(pid)
		}
	}
	for pid, start := range known {
		if q, ok := look(pid); ok && q.start == start {
			add(pid)
		}
	}

	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.known)
	for _, q := range list {
		p.known[q.pid] = q.start
	}
	return list
}

// census names the run's processes of this moment.
func (p *Process) census() map[int]uint64 {
	now := map[int]uint64{}
	for _, q := range p.tree() {
		now[q.pid] = q.start
	}
	return now
}

// strays are the processes among which a run's orphans are to be looked for.
func (s *Supervisor) strays() []int {
	if s.narrow {
		return childrenOf(os.Getpid())
	}
	return numbers("/proc")
}

// childrenOf works without the kernel's children files too: there a child
// still carries its run's tag or mark, and strays finds it.
func (s *Supervisor) childrenOf(pid int) []int { return childrenOf(pid) }
