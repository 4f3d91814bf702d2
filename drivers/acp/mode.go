package acp

import (
	"context"
	"fmt"
	"slices"

	acp "github.com/coder/acp-go-sdk"

	"swarmdeck/drivers/jsonrpc"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
)

// knob is what is known of one thing that a session can be set to.
type knob struct {
	now     string // as the agent last said, "" while it has not
	offered []fleet.Choice
	option  string // the setting that holds it, "" when it has a method of its own
	set     bool   // by us, since the session was opened
	setting bool   // by us, right now
}

// wants is what an agent is to be set to, "" for what it chooses by itself.
type wants struct{ mode, model string }

func (*Runtime) Configures(fleet.Setting) bool { return true }

func (a *agent) Choose(ctx context.Context, what fleet.Setting, value string) error {
	a.Mu.Lock()
	if what == fleet.SetModel {
		a.want.model = value
	} else {
		a.want.mode = value
	}
	s := a.talk
	a.Mu.Unlock()
	if s == nil {
		return nil
	}
	ctx, stop := context.WithTimeoutCause(ctx, a.r.Patience, fmt.Errorf("no answer within %v", a.r.Patience))
	defer stop()
	return s.adjust(ctx)
}

func (a *agent) wanted() wants {
	a.Mu.Lock()
	defer a.Mu.Unlock()
	return a.want
}

// adjust puts the agent into the mode and to the model that were asked for, each time it
// has another. The mode comes last, as what it asks about depends on it: an
// agent with modes but none chosen is not used, since nobody knows what its own
// choice lets pass.
func (s *session) adjust(ctx context.Context) error {
	s.adjusting.Lock()
	defer s.adjusting.Unlock()
	defer s.publish()
	want := s.a.wanted()
	if err := s.setModel(ctx, want.model); err != nil {
		return err
	}
	return s.setMode(ctx, want.mode)
}

func (s *session) setMode(ctx context.Context, want string) error {
	m := s.look(&s.mode)
	switch {
	case want == "" && len(m.offered) == 0:
		return nil
	case !m.has(want):
		return core.Invalid("options.mode", want, "one of these, and one in which it asks: "+fleet.Allowed(m.offered))
	case m.set && m.now == want:
		return nil
	}
	if err := s.set(ctx, &s.mode, want, acp.AgentMethodSessionSetMode, acp.SetSessionModeRequest{SessionId: acp.SessionId(s.id), ModeId: acp.SessionModeId(want)}); err != nil {
		return fmt.Errorf("set the agent's mode to %s: %w", want, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mode.now != m.now && s.mode.now != want {
		return core.Errorf(core.Unavailable, "the agent went into mode %s although %s was set", core.ClipTo(s.mode.now, 80), want)
	}
	s.mode.now, s.mode.set = want, true
	return nil
}

// setModel sets the model; what the agent makes of it is its own affair.
func (s *session) setModel(ctx context.Context, want string) error {
	m := s.look(&s.model)
	switch {
	case want == "", m.set && m.now == want:
		return nil
	case !m.has(want):
		return core.Invalid("options.model", want, "one of: "+fleet.Allowed(m.offered))
	}
	if err := s.set(ctx, &s.model, want, acp.AgentMethodSessionSetModel, acp.UnstableSetSessionModelRequest{SessionId: acp.SessionId(s.id), ModelId: acp.UnstableModelId(want)}); err != nil {
		return fmt.Errorf("set the agent's model to %s: %w", want, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.model.now, s.model.set = want, true
	return nil
}

// set has the agent set one of both, by the setting that holds it, or by a method of its own.
func (s *session) set(ctx context.Context, c *knob, want, method string, request any) error {
	s.mu.Lock()
	c.setting = true
	option := c.option
	s.mu.Unlock()
	if option != "" {
		method, request = acp.AgentMethodSessionSetConfigOption, acp.SetSessionConfigOptionValueId{
			SessionId: acp.SessionId(s.id), ConfigId: acp.SessionConfigId(option), Value: acp.SessionConfigValueId(want),
		}
	}
	err := s.pe.conn.Call(ctx, method, request, nil)
	s.settle(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	c.setting = false
	if err != nil {
		return s.pe.explain(err)
	}
	return nil
}

func (s *session) look(c *knob) knob {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *c
}

// has reports whether an agent that says what it offers offers this.
func (c *knob) has(id string) bool {
	return len(c.offered) == 0 || slices.ContainsFunc(c.offered, func(o fleet.Choice) bool { return o.ID == id })
}

// publish tells what the session can be set to, and is.
func (s *session) publish() {
	s.mu.Lock()
	o := &fleet.Offers{Modes: s.mode.offered, Mode: s.mode.now, Models: s.model.offered, Model: s.model.now, Commands: s.commands}
	s.mu.Unlock()
	s.a.Mu.Lock()
	defer s.a.Mu.Unlock()
	s.a.Keep.Offer(o)
}

// changed takes the agent's word for a change of its mode, and reports one
// that nobody asked for: the gate's strength has changed.
func (s *session) changed(now string) {
	s.mu.Lock()
	before := s.mode.now
	s.mode.now = now
	news := now != before && !s.mode.setting
	s.mu.Unlock()
	if !news {
		return
	}
	want := s.a.wanted().mode
	e := fleet.Event{
		Type: "mode", Args: core.MustEncode(map[string]string{"mode": core.ClipTo(now, 128), "wanted": want}),
		Text: fmt.Sprintf("the agent changed its permission mode from %q to %q; %q was set", core.ClipTo(before, 128), core.ClipTo(now, 128), want),
	}
	if now != want {
		e.Status = "weaker"
	}
	s.a.hear(e)
	s.publish()
}

// optionsChanged takes what the agent says of its settings.
func (s *session) optionsChanged(options []configOption) {
	if c := optionOf(options, "model"); c.option != "" {
		s.mu.Lock()
		news := !s.model.setting && s.model.now != c.now
		s.model.now, s.model.offered = c.now, c.offered
		s.mu.Unlock()
		if news {
			s.a.hear(fleet.Event{Type: "log", Level: "INFO", Text: fmt.Sprintf("the agent uses the model %q now", core.ClipTo(c.now, 128))})
			s.publish()
		}
	}
	if c := optionOf(options, "mode"); c.option != "" {
		s.changed(c.now)
	}
}

// opened is what the agent answers when a session begins or goes on.
type opened struct {
	SessionID string `json:"sessionId"`
	Modes     *struct {
		Available []fleet.Choice `json:"availableModes"`
		Current   string         `json:"currentModeId"`
	} `json:"modes"`
	Models        core.Raw       `json:"models"` // read leniently: its place in the protocol is not settled
	ConfigOptions []configOption `json:"configOptions"`
}

// configOption is one setting of a session. The permission mode and the model are
// settings in some agents.
type configOption struct {
	ID       string   `json:"id"`
	Category string   `json:"category"`
	Current  core.Raw `json:"currentValue"`
	Options  core.Raw `json:"options"`
}

// learn takes what the agent said when the session began.
func (s *session) learn(o opened) {
	mode, model := optionOf(o.ConfigOptions, "mode"), optionOf(o.ConfigOptions, "model")
	if o.Modes != nil {
		mode = knob{offered: o.Modes.Available, now: o.Modes.Current}
	}
	var models struct {
		Available []struct {
			ID   string `json:"modelId"`
			Name string `json:"name"`
		} `json:"availableModels"`
		Current string `json:"currentModelId"`
	}
	if model.option == "" && len(o.Models) > 0 && jsonrpc.Decode(o.Models, &models) == nil {
		model.now = models.Current
		for _, m := range models.Available {
			model.offered = append(model.offered, fleet.Choice{ID: m.ID, Name: m.Name})
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mode, s.model, s.learned = mode, model, true
}

// optionOf finds the setting of a category.
func optionOf(options []configOption, category string) (c knob) {
	type value struct {
		Value   string   `json:"value"`
		Name    string   `json:"name"`
		Options core.Raw `json:"options"` // of a group
	}
	for _, o := range options {
		if o.Category != category || jsonrpc.Decode(o.Current, &c.now) != nil {
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
				c.offered = append(c.offered, fleet.Choice{ID: v.Value, Name: v.Name})
			}
		}
		c.option = o.ID
		return c
	}
	return knob{}
}
