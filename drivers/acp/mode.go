package acp

import (
	"context"
	"fmt"
	"strings"

	acp "github.com/coder/acp-go-sdk"

	"swarmdeck/drivers/jsonrpc"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
)

// mode is one of the permission modes that an agent offers.
type mode struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// opened is what the agent answers when a session begins or goes on.
type opened struct {
	SessionID string `json:"sessionId"`
	Modes     *struct {
		Available []mode `json:"availableModes"`
		Current   string `json:"currentModeId"`
	} `json:"modes"`
	ConfigOptions []configOption `json:"configOptions"`
}

// configOption is one setting of a session; the permission mode is one in some
// agents.
type configOption struct {
	ID       string   `json:"id"`
	Category string   `json:"category"`
	Current  core.Raw `json:"currentValue"`
	Options  core.Raw `json:"options"`
}

// modes is what is known of a session's permission modes.
type modes struct {
	now     string // as the agent last said, "" while it has not
	offered []mode
	option  string // the setting that holds the mode, "" when it has real modes
	set     bool   // by us, since the session was opened
	setting bool   // by us, right now
}

// learn takes what the agent said about its modes.
func (s *session) learn(o opened) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o.Modes != nil {
		s.modes = modes{offered: o.Modes.Available, now: o.Modes.Current}
		return
	}
	id, now, offered := modeOption(o.ConfigOptions)
	s.modes = modes{option: id, now: now, offered: offered}
}

// modeOption finds the setting that is the permission mode.
func modeOption(options []configOption) (id, now string, offered []mode) {
	type value struct {
		Value   string   `json:"value"`
		Name    string   `json:"name"`
		Options core.Raw `json:"options"` // of a group
	}
	for _, o := range options {
		if o.Category != "mode" || jsonrpc.Decode(o.Current, &now) != nil {
			continue
		}
		var list []value
		_ = jsonrpc.Decode(o.Options, &list)
		for _, v := range list {
			var group []value
			if len(v.Options) == 0 || jsonrpc.Decode(v.Options, &group) != nil {
				group = []value{v}
			}
			for _, v := range group {
				offered = append(offered, mode{v.Value, v.Name})
			}
		}
		return o.ID, now, offered
	}
	return "", "", nil
}

// setMode puts the agent into the mode that was asked for, each time it is in
// another: what it asks about depends on it. An agent with modes but none
// chosen is not used, since nobody knows what its own choice lets pass.
func (s *session) setMode(ctx context.Context) error {
	want := s.a.place.Mode
	s.mu.Lock()
	m := s.modes
	s.mu.Unlock()
	var names []string
	known := len(m.offered) == 0
	for _, o := range m.offered {
		names = append(names, fmt.Sprintf("%s (%s)", o.ID, o.Name))
		known = known || o.ID == want
	}
	switch {
	case want == "" && len(names) == 0:
		return nil
	case !known:
		return core.Invalid("options.mode", want, "one of these, and one in which it asks: "+core.ClipTo(strings.Join(names, ", "), 500))
	case m.set && m.now == want:
		return nil
	}
	s.mu.Lock()
	s.modes.setting = true
	s.mu.Unlock()
	var err error
	id := acp.SessionId(s.id)
	if m.option == "" {
		err = s.pe.conn.Call(ctx, acp.AgentMethodSessionSetMode, acp.SetSessionModeRequest{SessionId: id, ModeId: acp.SessionModeId(want)}, nil)
	} else {
		err = s.pe.conn.Call(ctx, acp.AgentMethodSessionSetConfigOption, acp.SetSessionConfigOptionValueId{
			SessionId: id, ConfigId: acp.SessionConfigId(m.option), Value: acp.SessionConfigValueId(want),
		}, nil)
	}
	s.settle(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.modes.setting = false
	if err != nil {
		return fmt.Errorf("set the agent's mode to %s: %w", want, s.pe.explain(err))
	}
	if s.modes.now != m.now && s.modes.now != want {
		return core.Errorf(core.Unavailable, "the agent went into mode %s although %s was set", core.ClipTo(s.modes.now, 80), want)
	}
	s.modes.now, s.modes.set = want, true
	return nil
}

// changed takes the agent's word for a change of its mode, and reports one
// that nobody asked for: the gate's strength has changed.
func (s *session) changed(now string) {
	s.mu.Lock()
	before := s.modes.now
	s.modes.now = now
	news := now != before && !s.modes.setting
	s.mu.Unlock()
	if !news {
		return
	}
	want := s.a.place.Mode
	e := fleet.Event{
		Type: "mode", Args: core.MustEncode(map[string]string{"mode": core.ClipTo(now, 128), "wanted": want}),
		Text: fmt.Sprintf("the agent changed its permission mode from %q to %q; %q was set", core.ClipTo(before, 128), core.ClipTo(now, 128), want),
	}
	if now != want {
		e.Status = "weaker"
	}
	s.a.hear(e)
}
