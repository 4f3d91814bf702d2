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
	out := source{agent: judge.AgentRef{Name: from.Agent, Role: from.Role, Profile: from.Profile}, agents: from.names(), task: from.Task}
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
		out.unready = w.Unready && (out.driver == "" || out.unready) && !strings.HasPrefix(from.Run, Checking)
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

// names are the agents whose process it is.
func (o *Origin) names() []string {
	switch {
	case o.Agent != "":
		return []string{o.Agent}
	case o.Agents != nil:
		return o.Agents()
	}
	return nil
}

// project is that of a process's agents, "" where they have none in common.
func (s *Service) project(from *Origin) (project string) {
	for i, name := range from.names() {
		w, _ := s.work(from.Tenant, name)
		if i > 0 && w.Project != project {
			return ""
		}
		project = w.Project
	}
	return project
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
