package cell

import (
	"os"
	"strings"

	"swarmdeck/drivers/origin"
	"swarmdeck/engine/operator"
)

// Whose tells whom a run works for. A run without a tenant, or with neither
// agent nor task, is nobody's: the engine takes no orders from it.
type Whose struct {
	Tenant string `allow:"at most 64 bytes without control characters"`
	Agent  string `allow:"at most 128 bytes without control characters"`  // name; "" for a process that several agents share
	Role   string `allow:"at most 4096 bytes without control characters"` // of the agent
	Task   string `allow:"at most 128 bytes without control characters"`  // id, of a task's or a skill's own command
}

func (w Whose) run(name string) operator.Run {
	return operator.Run{Name: name, Tenant: w.Tenant, Agent: w.Agent, Task: w.Task}
}

var _ origin.Runs = (*Supervisor)(nil)

func (s *Supervisor) Self() int { return os.Getpid() }

// Lookup implements origin.Runs: every process of a cell descends from its init.
func (s *Supervisor) Lookup(pid int) (operator.Run, bool) {
	p := s.inits()[pid]
	if p == nil {
		return operator.Run{}, false
	}
	return p.whose, true
}

// maxName bounds what a mark can say, in bytes.
const maxName = 120

// Marked implements origin.Runs: by the name of an init, which that of an
// earlier engine has too, else by the variable.
func (s *Supervisor) Marked(pid int) (operator.Run, bool) {
	mark, _ := ofInit(pid)
	if mark == "" {
		mark = markOf(pid)
	}
	name, ours := strings.CutPrefix(mark, s.opt.Instance+"/")
	if !ours || len(name) > maxName || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return operator.Run{}, ours
	}
	for _, p := range s.inits() {
		if p.run == mark {
			return p.whose, true
		}
	}
	return operator.Run{Name: name}, true
}
