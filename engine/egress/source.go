package egress

import (
	"strings"

	"swarmdeck/engine/judge"
)

// Work is what an agent does just now, as far as it tells.
type Work struct {
	Project string
	Runtime string
	Task    string         // "" while it works on none
	Unready bool           // it can't work yet
	Calls   []judge.During // its open tool calls
}

// source is what is known of where a connection comes from.
type source struct {
	agent  judge.AgentRef
	driver string
	agents []string // whose process it is
	task   string   // "" also where it may be one of several
	during []judge.During
	// unready is a process whose agents can't work yet, as far as they are known.
	unready bool
}

// Bounds of what a card says about it.
const (
	maxAgents = 8
	maxDuring = 8
)

// source finds what is known. A process that several agents share works on a
// task where only one of them is at work; else each is named with its own.
func (s *Service) source(from *Origin) source {
	out := source{agent: judge.AgentRef{Name: from.Agent, Role: from.Role, Profile: from.Profile}, task: from.Task}
	switch {
	case from.Agent != "":
		out.agents = []string{from.Agent}
	case from.Agents != nil:
		out.agents = from.Agents()
	}
	type worker struct {
		name string
		Work
	}
	var busy []worker
	for _, name := range out.agents {
		w, ok := s.work(from.Tenant, name)
		if !ok {
			continue
		}
		out.unready = w.Unready && (out.driver == "" || out.unready)
		out.driver = w.Runtime
		if from.Agent != "" {
			out.agent.Project = w.Project
		}
		if w.Task != "" {
			busy = append(busy, worker{name, w})
		}
	}
	if len(busy) == 1 && out.task == "" {
		out.task = busy[0].Task
	}
	for _, w := range busy {
		calls := w.Calls
		if len(calls) == 0 && len(busy) > 1 {
			calls = []judge.During{{}}
		}
		for _, c := range calls {
			if from.Agent == "" {
				c.Agent = w.name
			}
			if len(busy) > 1 {
				c.TaskID = w.Task
			}
			if len(out.during) < maxDuring {
				out.during = append(out.during, c)
			}
		}
	}
	return out
}

// who names whose process it is, in a sentence.
func (s *source) who(from *Origin) string {
	if from.Agent != "" || len(s.agents) == 0 {
		return speaker(from).Name
	}
	names := s.agents
	if len(names) > maxAgents {
		names = append(append([]string{}, names[:maxAgents]...), "others")
	}
	return strings.Join(names, " or ")
}
