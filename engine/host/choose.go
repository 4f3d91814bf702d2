package host

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"swarmdeck/engine/core"
)

// Selector are the labels that a host must have to be chosen.
type Selector map[string]string

// ParseSelector reads LABEL=VALUE, several with commas between them.
func ParseSelector(field, text string) (Selector, error) {
	s := Selector{}
	for term := range strings.SplitSeq(text, ",") {
		k, v, is := strings.Cut(strings.TrimSpace(term), "=")
		if _, twice := s[k]; !is || k == "" || twice || !label(k) || !label(v) || len(s) == maxLabels {
			return nil, core.Invalid(field, text, "LABEL=VALUE, several with commas between them, each label once")
		}
		s[k] = v
	}
	return s, nil
}

// String is what ParseSelector reads, in one order.
func (s Selector) String() string {
	terms := core.Map(slices.Sorted(maps.Keys(s)), func(k string) string { return k + "=" + s[k] })
	return strings.Join(terms, ",")
}

// lacks is the first label by name that a host does not have; "" if it has all.
func (s Selector) lacks(h *Host) string {
	for _, k := range slices.Sorted(maps.Keys(s)) {
		switch v, has := h.Labels[k]; {
		case !has:
			return "it has no label " + k
		case v != s[k]:
			return fmt.Sprintf("its label %s is %s", k, v)
		}
	}
	return ""
}

// maxWhy is of how many hosts an error says why they take no agent.
const maxWhy = 20

// Choose chooses the host that an agent gets its place on: among those with the
// labels that take one and have room, one with a link before one without, then
// that of which the smallest part is taken, then the first by name. The error says
// of each host why it is not it.
func (s *Hosts) Choose(ctx context.Context, tenant, selector string) (name string, err error) {
	want, err := ParseSelector("on", selector)
	if err != nil {
		return "", err
	}
	all, err := s.List(ctx, tenant)
	if err != nil {
		return "", fmt.Errorf("choose a host: %w", err)
	}
	var why []string
	var fit []Status
	for _, h := range all {
		if no := h.refusal(want); no != "" {
			why = append(why, h.Name+": "+no)
		} else {
			fit = append(fit, h)
		}
	}
	if len(fit) > 0 {
		return slices.MinFunc(fit, before).Name, nil
	}
	said := strings.Join(why[:min(len(why), maxWhy)], "; ")
	switch {
	case len(all) == 0:
		said = "there is none; host add makes one"
	case len(why) > maxWhy:
		said += fmt.Sprintf("; and %d more", len(why)-maxWhy)
	}
	return "", core.Errorf(core.Conflict, "on %s: no host takes the agent: %s", core.Clip(want.String()), said).With("field", "on")
}

// refusal is why a host is not chosen; "" says that it may be.
func (h *Status) refusal(want Selector) string {
	no := want.lacks(&h.Host)
	switch {
	case no != "":
		return no
	case h.Removing:
		return "it is being removed"
	case h.Draining:
		return "it is draining"
	case len(h.Agents) >= h.Slots:
		return fmt.Sprintf("it is full, with %d of %d agents", len(h.Agents), h.Slots)
	}
	return ""
}

// before orders hosts as Choose does.
func before(a, b Status) int {
	rank := func(h *Status) int {
		if h.State == Up {
			return 0
		}
		return 1
	}
	if d := rank(&a) - rank(&b); d != 0 {
		return d
	}
	if d := len(a.Agents)*b.Slots - len(b.Agents)*a.Slots; d != 0 {
		return d
	}
	return strings.Compare(a.Name, b.Name)
}
