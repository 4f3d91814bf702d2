package mcp

import (
	"context"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
)

// The policy's resources: the rules that the judge goes by, and the "always"
// rules that operators made of their answers.
const (
	policyURI = "resource://approval-policy/policy.json"
	rulesURI  = "resource://approval-policy/rules.json"
	jsonType  = "application/json"
)

// lookEvery bounds how often a busy engine is asked whether the policy changed.
const lookEvery = 250 * time.Millisecond

// offerPolicy offers the policy of a tenant and tells its changes until the
// server is closed.
func (s *Server) offerPolicy(server *mcp.Server, tenant string) {
	offer := func(version string) {
		server.AddResource(&mcp.Resource{
			URI: policyURI, Name: "policy.json", Title: "Approval policy", MIMEType: jsonType,
			Description: "The ordered rules that each call, task and result is judged by. Version " + version,
		}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			_, source := s.eng.Judge.Policy(tenant)
			return contents(policyURI, source)
		})
	}
	version := s.eng.Judge.PolicyVersion(tenant)
	offer(version)
	server.AddResource(&mcp.Resource{
		URI: rulesURI, Name: "rules.json", Title: "Always rules", MIMEType: jsonType,
		Description: "What operators allowed from now on, with its scope, uses and end",
	}, func(ctx context.Context, _ *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		rules, err := s.rules(ctx, tenant)
		if err != nil {
			return nil, err
		}
		return contents(rulesURI, rules)
	})
	bell := s.eng.Watch(s.ctx)
	s.done.Go(func() {
		rules, _ := s.rules(s.ctx, tenant)
		for range bell {
			if now := s.eng.Judge.PolicyVersion(tenant); now != version {
				version = now
				offer(version) // tells list_changed
				s.updated(server, policyURI)
			}
			if now, err := s.rules(s.ctx, tenant); err == nil && string(now) != string(rules) {
				rules = now
				s.updated(server, rulesURI)
			}
			select {
			case <-time.After(lookEvery):
			case <-s.ctx.Done():
			}
		}
	})
}

func (s *Server) updated(server *mcp.Server, uri string) {
	if err := server.ResourceUpdated(s.ctx, &mcp.ResourceUpdatedNotificationParams{URI: uri}); err != nil {
		s.opt.Log.Warn("tell that a resource changed", "uri", uri, "error", err)
	}
}

// rules are the always rules of a tenant, newest first.
func (s *Server) rules(ctx context.Context, tenant string) (core.Raw, error) {
	rules, err := s.eng.Judge.Rules(ctx, tenant)
	if err != nil {
		return nil, err
	}
	data, err := core.Encode(map[string]any{"rules": append([]judge.Rule{}, rules...)})
	if err != nil {
		return nil, fmt.Errorf("encode the rules: %w", err)
	}
	return cleanJSON(data)
}

func contents(uri string, data core.Raw) (*mcp.ReadResourceResult, error) {
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: uri, MIMEType: jsonType, Text: string(data)}}}, nil
}
