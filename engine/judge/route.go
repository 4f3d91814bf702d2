package judge

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"swarmdeck/engine/core"
)

// Route is who answers what a rule asks about, and when. Its zero value is anyone
// whose role allows it, within the time that the risk gives.
type Route struct {
	Approvers []string `yaml:"approvers" json:"approvers,omitempty"` // operators and groups of whom one answers
	Groups    []string `yaml:"groups" json:"groups,omitempty"`       // more of them
	Quorum    int      `yaml:"quorum" json:"quorum,omitempty"`       // persons who must approve, 1-5; one denial denies
	Deadline  string   `yaml:"deadline" json:"deadline,omitempty"`   // 1m-24h; the risk's own without it
	Escalate  []string `yaml:"escalate" json:"escalate,omitempty"`   // [after, to]: from then on only "to" answers
	Window    *Window  `yaml:"window" json:"window,omitempty"`       // when its approvers are at work
}

// Window is when somebody answers; else others do.
type Window struct {
	Days  []string `yaml:"days" json:"days,omitempty"` // mon, tue, …; all without it
	Hours string   `yaml:"hours" json:"hours"`         // "09:00-17:00"
	Zone  string   `yaml:"zone" json:"zone,omitempty"` // of the IANA database; UTC without it
	Else  string   `yaml:"else" json:"else"`           // the operator or group that answers outside of it
}

// Limits of a route.
const (
	maxApprovers = 16 // names in one rule
	maxQuorum    = 5
)

var weekdays = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// check reports the first bad field; at names it in its rule.
func (r *Route) check(asks bool, at func(string) string) error {
	names := slices.Concat(r.Approvers, r.Groups)
	switch {
	case !asks && (len(names) > 0 || r.Quorum != 0 || r.Deadline != "" || len(r.Escalate) > 0 || r.Window != nil):
		return core.Errorf(core.InvalidInput, "%s: who answers, and when, only in a rule that asks a person (decision: hitl)", at("approvers")).With("field", at("approvers"))
	case len(names) > maxApprovers:
		return core.Invalid(at("approvers"), len(names), fmt.Sprintf("at most %d operators and groups", maxApprovers))
	case slices.ContainsFunc(names, func(name string) bool { return !goodName(name) }):
		return core.Invalid(at("approvers"), names, "names of operators or groups")
	case r.Quorum < 0 || r.Quorum > maxQuorum:
		return core.Invalid(at("quorum"), r.Quorum, fmt.Sprintf("1-%d persons", maxQuorum))
	case len(r.Groups) == 0 && len(r.Approvers) > 0 && r.Quorum > len(r.Approvers): // a name may be a group's, too
		return core.Invalid(at("quorum"), r.Quorum, fmt.Sprintf("at most as many as the %d approvers; name a group in groups", len(r.Approvers)))
	}
	if r.Deadline != "" {
		if d, err := time.ParseDuration(r.Deadline); err != nil || CheckDeadline("", d) != nil {
			return core.Invalid(at("deadline"), r.Deadline, DeadlineAllowed)
		}
	}
	if len(r.Escalate) > 0 {
		if len(r.Escalate) != 2 || !goodName(r.Escalate[1]) {
			return core.Invalid(at("escalate"), r.Escalate, "[after, to]: a time and an operator or group")
		}
		if d, err := time.ParseDuration(r.Escalate[0]); err != nil || CheckDeadline("", d) != nil {
			return core.Invalid(at("escalate"), r.Escalate[0], DeadlineAllowed)
		}
	}
	if w := r.Window; w != nil {
		return w.check(at)
	}
	return nil
}

func goodName(name string) bool {
	return name != "" && strings.TrimSpace(name) == name && core.ClipTo(name, 64) == name
}

func (w *Window) check(at func(string) string) error {
	for _, d := range w.Days {
		if !slices.Contains(weekdays, d) {
			return core.Invalid(at("window.days"), d, strings.Join(weekdays, ", "))
		}
	}
	if from, to, ok := w.hours(); !ok || from == to {
		return core.Invalid(at("window.hours"), w.Hours, `"09:00-17:00"; "22:00-06:00" goes past midnight`)
	}
	if _, err := time.LoadLocation(w.Zone); err != nil {
		return core.Invalid(at("window.zone"), w.Zone, "a zone of the IANA database that this system has, such as Europe/Berlin, or UTC")
	}
	if !goodName(w.Else) {
		return core.Invalid(at("window.else"), w.Else, "the operator or group that answers outside of it")
	}
	return nil
}

// hours are the minutes of a day that the window begins and ends at.
func (w *Window) hours() (from, to int, ok bool) {
	a, b, ok := strings.Cut(w.Hours, "-")
	start, errA := time.Parse("15:04", a)
	end, errB := time.Parse("15:04", b)
	return start.Hour()*60 + start.Minute(), end.Hour()*60 + end.Minute(), ok && errA == nil && errB == nil
}

// open says whether a time is within the window. One that goes past midnight is of the
// day that it begins on.
func (w *Window) open(at time.Time) bool {
	zone, err := time.LoadLocation(w.Zone)
	from, to, ok := w.hours()
	if err != nil || !ok {
		return false
	}
	at = at.In(zone)
	minute, day := at.Hour()*60+at.Minute(), at
	in := minute >= from && minute < to
	if from > to {
		if in = minute >= from || minute < to; minute < to {
			day = at.AddDate(0, 0, -1)
		}
	}
	return in && (len(w.Days) == 0 || slices.Contains(w.Days, weekdays[day.Weekday()]))
}

// lasts reports whether the question holds up nobody who could go on after a no: what it is
// about has stopped, or is an operator's and has not begun. It waits for a person without end,
// unless its rule says otherwise.
func (a *Approval) lasts(doubt bool) bool {
	return a.Gate == GateResult || a.Gate == GateBudget || a.Gate == GateStart && (doubt || a.RequestedKind != core.Agent)
}

// route has the approval answered as a rule says; nil says nothing. The usual time is 0 for
// one that lasts.
func (a *Approval) route(r *Route, usual time.Duration) {
	left, after := usual, usual/2
	a.Approvers, a.Quorum, a.EscalateTo = nil, 0, ""
	if r != nil {
		a.Approvers, a.Quorum = slices.Concat(r.Approvers, r.Groups), r.Quorum
		if w := r.Window; w != nil && !w.open(a.CreatedAt) {
			a.Approvers = []string{w.Else}
		}
		if d, err := time.ParseDuration(r.Deadline); err == nil {
			left, after = d, d/2
		}
		if len(r.Escalate) == 2 {
			after, _ = time.ParseDuration(r.Escalate[0])
			a.EscalateTo = r.Escalate[1]
		}
	}
	a.DeadlineAt, a.EscalateAt = time.Time{}, time.Time{}
	if left > 0 {
		a.DeadlineAt, a.AtDeadline = a.CreatedAt.Add(left), string(Deny)
	}
	if after > 0 {
		a.EscalateAt = a.CreatedAt.Add(after)
	}
}

// reroute has an edited approval answered as the rule of what it became says too: it
// never needs fewer than before.
func (a *Approval) reroute(r *Route) {
	was := a.Quorum
	if r != nil {
		now := *a
		now.route(r, 0)
		if len(now.Approvers) > 0 {
			a.Approvers = now.Approvers
		}
		a.Quorum = max(was, now.Quorum)
	}
}

// Needed is how many persons must approve. At critical risk it is two or more.
func (a *Approval) Needed() int {
	if a.Risk == Critical {
		return max(a.Quorum, 2)
	}
	return max(a.Quorum, 1)
}

// Consent is a person's approval where more than one is needed.
type Consent struct {
	By     string    `json:"by"`
	Person string    `json:"person,omitempty"` // who that is to the door
	For    string    `json:"for,omitempty"`    // whom they stood in for
	At     time.Time `json:"at"`
}

// Consenting are the names of those who have approved so far.
func (a *Approval) Consenting() []string {
	return core.Map(a.Consents, func(c Consent) string { return c.By })
}

// People knows the operators of tenants, by what is in memory: it is asked within
// transactions.
type People interface {
	// Whose tells which operator has a key, by its fingerprint, and since when; ""
	// for nobody.
	Whose(tenant, fingerprint string) (name string, since time.Time)
	// Known says whether there is an operator or a group of that name.
	Known(tenant, name string) bool
	// Belongs says whether an operator is the one of that name, or in the group.
	Belongs(tenant, operator, to string) bool
	// StandsIn names for whom an operator answers at a time what is for another, who is
	// away; "" for nobody.
	StandsIn(tenant, operator, to string, at time.Time) string
}

// whose tells whose a key is now, and since when.
func (j *answers) whose(tenant, fingerprint string) (name string, since time.Time) {
	if j.people == nil {
		return "", since
	}
	return j.people.Whose(tenant, fingerprint)
}

// answerers are who may answer the approval: operators and groups; none is everyone
// whose role allows it.
func (a *Approval) answerers() []string {
	if a.EscalatedTo != "" {
		return []string{a.EscalatedTo}
	}
	return a.Approvers
}

// barred refuses who is none of those that the approval is for; nil is that they may
// answer it, put it off or hand it on, for whom they stand in, if for anybody. Nobody
// stands in for another at critical risk.
func (j *answers) barred(by core.Caller, a *Approval, now time.Time) (standsFor string, denied error) {
	to := a.answerers()
	if len(to) == 0 {
		return "", nil
	}
	for _, name := range to {
		if j.people == nil && by.Name == name || j.people != nil && j.people.Belongs(a.TenantID, by.Name, name) {
			return "", nil
		}
	}
	for _, name := range to {
		if j.people == nil || a.Risk == Critical {
			break
		}
		if who := j.people.StandsIn(a.TenantID, by.Name, name, now); who != "" {
			return who, nil
		}
	}
	return "", core.Errorf(core.Denied, "approval %s: it is for %s to answer, not for %s", a.ApprovalID, strings.Join(to, " or "), by.Name).With("approvers", to)
}
