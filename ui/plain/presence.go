package plain

import (
	"cmp"
	"fmt"
	"strings"

	"swarmdeck/engine/presence"
	"swarmdeck/ui/command"
	"swarmdeck/ui/pane"
)

// enter tells others that somebody is here: who types is, and so is a pipe
// from where it reads an approval on.
func (r *reader) enter() {
	if r.stay == nil {
		r.stay = r.eng.Presence.Enter(r.by.Tenant, presence.Visitor{Name: r.by.Name, Role: string(cmp.Or(r.env.Role, command.Admin)), Door: r.by.Door})
	}
}

// look tells them which approval is before the operator; "" for none.
func (r *reader) look(approval string) {
	if approval != "" {
		r.enter()
	}
	if r.stay != nil {
		r.stay.Look(approval)
	}
}

func (r *reader) depart() {
	if r.stay != nil {
		r.stay.Leave()
	}
}

// company announces who comes, who goes, and who looks at what somebody has to
// answer. self is the operator's own visit; 0 tells nothing.
func (a *announcer) company(visitors []presence.Visitor) {
	if a.self == 0 {
		return
	}
	now := make(map[uint64]presence.Visitor, len(visitors))
	for _, v := range visitors {
		now[v.ID] = v
		before, known := a.here[v.ID]
		switch {
		case v.ID == a.self:
		case !known:
			a.tell(fmt.Sprintf("%s is here as %s, by %s; here now: %d", v.Name, v.Role, v.Door, len(visitors)))
		case v.Approval != "" && v.Approval != before.Approval:
			a.tell(fmt.Sprintf("%s looks at approval %s", v.Name, v.Approval))
		}
	}
	for id, v := range a.here {
		if _, stays := now[id]; !stays && id != a.self {
			a.tell(fmt.Sprintf("%s left; here now: %d", v.Name, len(visitors)))
		}
	}
	a.here = now
}

// needs lists what waits for the operator, the most urgent first.
func (r *reader) needs() {
	s := r.eng.Snapshot(r.by.Tenant)
	n := 0
	say := func(text string) {
		n++
		r.out.line("%s", text)
	}
	for _, ap := range s.Approvals {
		ends, how := ap.Ends()
		say(fmt.Sprintf("approval %s waits: %s; risk: %s; %stime left: %s; type answer %s",
			ap.ApprovalID, pane.Headline(ap), ap.Risk, byAgent(ap), pane.Until(r.now(), ends, how), ap.ApprovalID))
	}
	for _, ag := range s.Agents {
		if state := told(ag); loud(state) && state != "paused" {
			say(fmt.Sprintf("agent %s; state: %s%s; type agent show %s", ag.Name, state, why(ag), ag.Name))
		}
	}
	if s.EStop.On {
		say(strings.TrimSpace("emergency stop: on; by " + s.EStop.By + ": " + s.EStop.Reason + "; type estop off --reason R"))
	}
	if s.Bus.Dead > 0 {
		say(fmt.Sprintf("dead letters: %d; type bus list --status dead", s.Bus.Dead))
	}
	if n == 0 {
		r.out.line("nothing needs you")
	}
}
