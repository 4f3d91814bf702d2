package mcp

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
)

// The policy's resources.
const (
	policyURI    = "resource://approval-policy/policy.json"
	sourceURI    = "resource://approval-policy/policy.py"
	rulesURI     = "resource://approval-policy/rules.json"
	policiesURI  = "resource://approval-policy/proposals.json"
	proposalHead = "resource://approval-policy/proposals/"
	jsonType     = "application/json"
	textType     = "text/plain"
)

// subscribable are the resources that tell their changes.
var subscribable = []string{policyURI, sourceURI, rulesURI, policiesURI}

// lookEvery bounds how often a busy engine is asked whether the policy changed.
const lookEvery = 250 * time.Millisecond

// offerPolicy offers the policies of a tenant and tells their changes until
// the server is closed.
func (s *Server) offerPolicy(server *mcp.Server, tenant string) {
	version, steps := s.eng.Judge.PolicyVersion(tenant), s.eng.Judge.PolicySteps(tenant)
	s.offerActive(server, tenant, version)
	s.offerPolicies(server, tenant)
	server.AddResource(&mcp.Resource{
		URI: rulesURI, Name: "rules.json", Title: "Always rules", MIMEType: jsonType,
		Description: "What operators allowed from now on, with its scope, uses and end",
	}, func(ctx context.Context, _ *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		rules, err := s.rules(ctx, tenant)
		if err != nil {
			return nil, err
		}
		return contents(rulesURI, jsonType, string(rules))
	})
	server.AddResourceTemplate(&mcp.ResourceTemplate{
		URITemplate: proposalHead + "{source_digest}", Name: "proposal", Title: "Source of a policy", MIMEType: textType,
		Description: "The source of a policy by its sha256, as it was proposed",
	}, func(ctx context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		source, err := s.source(ctx, tenant, func(p judge.Policy) bool { return p.URI == r.Params.URI })
		if err == nil && source == "" {
			err = mcp.ResourceNotFoundError(clean(clip(r.Params.URI)))
		}
		if err != nil {
			return nil, err
		}
		return contents(r.Params.URI, textType, clean(source))
	})
	bell := s.eng.Watch(s.ctx)
	s.done.Go(func() {
		rules, _ := s.rules(s.ctx, tenant)
		for range bell {
			if now := s.eng.Judge.PolicySteps(tenant); now != steps {
				steps = now
				s.offerPolicies(server, tenant) // tells list_changed
				s.updated(server, policiesURI)
			}
			if now := s.eng.Judge.PolicyVersion(tenant); now != version {
				version = now
				s.offerActive(server, tenant, version) // tells list_changed
				s.updated(server, policyURI)
				s.updated(server, sourceURI)
			}
			if now, err := s.rules(s.ctx, tenant); err == nil && string(now) != string(rules) {
				rules = now
				s.updated(server, rulesURI)
			}
			core.Within(s.ctx.Done(), lookEvery)
		}
	})
}

// offerActive offers the policy that rules.
func (s *Server) offerActive(server *mcp.Server, tenant, version string) {
	server.AddResource(&mcp.Resource{
		URI: policyURI, Name: "policy.json", Title: "Approval policy", MIMEType: jsonType,
		Description: "The ordered rules, or the program, that each call, task and result is judged by. Version " + version,
	}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		_, source := s.eng.Judge.Policy(tenant)
		return contents(policyURI, jsonType, string(source))
	})
	server.AddResource(&mcp.Resource{
		URI: sourceURI, Name: "policy.py", Title: "Source of the approval policy", MIMEType: textType,
		Description: "The text of the policy that rules: a program in whatever language, or a table of rules in YAML. Version " + version,
	}, func(ctx context.Context, _ *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		source, err := s.source(ctx, tenant, func(p judge.Policy) bool { return p.Status == judge.PolicyActive })
		if err != nil {
			return nil, err
		}
		return contents(sourceURI, textType, clean(cmp.Or(source, string(judge.DefaultPolicy()))))
	})
}

// offerPolicies offers the list of all policies.
func (s *Server) offerPolicies(server *mcp.Server, tenant string) {
	server.AddResource(&mcp.Resource{
		URI: policiesURI, Name: "proposals.json", Title: "Policies", MIMEType: jsonType,
		Description: "The policies that rule, ruled or are proposed, newest first, with how their cases went",
	}, func(ctx context.Context, _ *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		all, err := s.eng.Judge.Policies(ctx, tenant)
		if err != nil {
			return nil, err
		}
		data, err := core.Encode(map[string]any{"policies": append([]judge.Policy{}, all...)})
		if err == nil {
			data, err = cleanJSON(data)
		}
		if err != nil {
			return nil, fmt.Errorf("encode the policies: %w", err)
		}
		return contents(policiesURI, jsonType, string(data))
	})
}

// source is the text of the newest policy that is wanted, "" when there is none.
func (s *Server) source(ctx context.Context, tenant string, wanted func(judge.Policy) bool) (string, error) {
	all, err := s.eng.Judge.Policies(ctx, tenant)
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(all, wanted)
	if i < 0 {
		return "", nil
	}
	d, err := s.eng.Judge.GetPolicy(ctx, tenant, all[i].PolicyID)
	return d.Source, err
}

// subscribe refuses resources that tell no changes.
func subscribe(uri string) error {
	if !slices.Contains(subscribable, uri) {
		return core.Errorf(core.InvalidInput, "uri: %q tells no changes; subscribe to %s", clean(clip(uri)), strings.Join(subscribable, ", "))
	}
	return nil
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

func contents(uri, mime, text string) (*mcp.ReadResourceResult, error) {
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: uri, MIMEType: mime, Text: text}}}, nil
}
