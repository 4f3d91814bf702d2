package egress

import (
	"cmp"
	"maps"
	"slices"

	"swarmdeck/engine/core"
)

// Sum is what went between a run and a host.
type Sum struct {
	Connections int   `json:"connections"`
	Refused     int   `json:"refused,omitzero"`
	Sent        int64 `json:"sent_bytes"`     // to the host
	Received    int64 `json:"received_bytes"` // from it
}

func (s *Sum) add(o Sum) {
	s.Connections += o.Connections
	s.Refused += o.Refused
	s.Sent += o.Sent
	s.Received += o.Received
}

// HostSum is the sum of one host; of the others together it has no port.
type HostSum struct {
	Target
	Sum
}

// others is the host of the sum of those that have none of their own.
const others = "others"

// sums are kept by host.
type sums struct {
	hosts map[Target]*Sum
	rest  Sum // of hosts past maxHosts
}

func newSums() *sums { return &sums{hosts: map[Target]*Sum{}} }

func (s *sums) add(to Target, more Sum) {
	one := s.hosts[to]
	switch {
	case one != nil:
	case len(s.hosts) >= maxHosts:
		one = &s.rest
	default:
		one = &Sum{}
		s.hosts[to] = one
	}
	one.add(more)
}

// list is the sums by bytes, the largest first: those of so many hosts, and of
// the others together.
func (s *sums) list(most int) (all []HostSum) {
	rest, more := s.rest, s.rest != Sum{}
	hosts := slices.Collect(maps.Keys(s.hosts))
	core.Sort(hosts, func(a, b Target) int {
		x, y := s.hosts[a], s.hosts[b]
		return cmp.Or(cmp.Compare(y.Sent+y.Received, x.Sent+x.Received), cmp.Compare(a.Host, b.Host), cmp.Compare(a.Port, b.Port))
	})
	for _, to := range hosts {
		if len(all) == most {
			rest.add(*s.hosts[to])
			more = true
			continue
		}
		all = append(all, HostSum{to, *s.hosts[to]})
	}
	if more {
		all = append(all, HostSum{Target{Host: others}, rest})
	}
	return all
}

// conn is an open connection.
type conn struct {
	from  Origin
	task  string // that it was opened for, where that is known
	to    Target
	count func() (sent, received int64)
}

func (c *conn) sum() (now Sum) {
	now.Sent, now.Received = c.count()
	return now
}

// Tally counts what an agent's processes do with the network from its beginning
// to its end, whatever connections were open before or are after. Of a process
// that several share it counts what is known to be of its task.
type Tally struct {
	s             *Service
	tenant, agent string
	task          string
	sums          *sums
	before        map[*conn]Sum
}

// Tally begins one. End it.
func (s *Service) Tally(tenant, agent, task string) *Tally {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &Tally{s: s, tenant: tenant, agent: agent, task: task, sums: newSums(), before: map[*conn]Sum{}}
	for c := range s.conns {
		if t.of(&c.from, c.task) {
			t.before[c] = c.sum()
		}
	}
	s.tallies[t] = struct{}{}
	return t
}

func (t *Tally) of(from *Origin, task string) bool {
	return from.Tenant == t.tenant && (from.Agent == t.agent || from.Agent == "" && task != "" && task == t.task)
}

// End returns the sums by bytes, the largest first: of at most 64 hosts, and of
// the others together, under the host "others".
func (t *Tally) End() []HostSum {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	if _, open := t.s.tallies[t]; open {
		delete(t.s.tallies, t)
		for c := range t.s.conns {
			t.over(c)
		}
	}
	return t.sums.list(maxTally)
}

// over adds what a connection has carried since the beginning; s.mu is held.
func (t *Tally) over(c *conn) {
	if !t.of(&c.from, c.task) {
		return
	}
	now, before := c.sum(), t.before[c]
	now.Connections = 1
	now.Sent, now.Received = max(0, now.Sent-before.Sent), max(0, now.Received-before.Received)
	if _, old := t.before[c]; !old || now.Sent+now.Received > 0 {
		t.sums.add(c.to, now)
	}
}

// Opened is told of a connection to a host. count tells its bytes so far, to the
// host and from it, and may be called at any time; call over once it is over.
func (s *Service) Opened(from Origin, to Target, count func() (sent, received int64)) (over func()) {
	c := &conn{from: from, task: s.source(&from).task, to: to, count: count}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns[c] = struct{}{}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for t := range s.tallies {
			t.over(c)
		}
		delete(s.conns, c)
		if !s.closed {
			now := c.sum()
			now.Connections = 1
			s.run(&c.from).sums(c.task).add(to, now)
		}
	}
}
