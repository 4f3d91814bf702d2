package coder

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/coder/coder/v2/codersdk"
	"github.com/google/uuid"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
)

// The parameters that make a template a project.
const (
	promptParameter = "ai_prompt"
	systemParameter = "system_prompt"
)

// project is a template that agents can be made of.
type project struct {
	codersdk.Template
	offer
}

// offer is what a template version has; it never changes.
type offer struct {
	parameters []codersdk.TemplateVersionParameter
	presets    []codersdk.Preset
}

func (o offer) parameter(name string) *codersdk.TemplateVersionParameter {
	if i := slices.IndexFunc(o.parameters, func(p codersdk.TemplateVersionParameter) bool { return p.Name == name }); i >= 0 {
		return &o.parameters[i]
	}
	return nil
}

// isProject holds for a template with a display name and both parameters.
func (p project) isProject() bool {
	return strings.TrimSpace(p.DisplayName) != "" && p.parameter(promptParameter) != nil && p.parameter(systemParameter) != nil
}

// list reads the templates of the deployment, projects or not. What is no older than
// age is taken as it is.
func (s *site) list(ctx context.Context, age time.Duration) ([]project, error) {
	s.mu.Lock()
	known, read := s.projects, s.read
	s.mu.Unlock()
	if time.Since(read) < age {
		return known, nil
	}
	templates, err := call(ctx, "list the templates", func(ctx context.Context) ([]codersdk.Template, error) {
		return s.client.Templates(ctx, codersdk.TemplateFilter{})
	})
	if err != nil {
		return nil, err
	}
	all := make([]project, 0, len(templates))
	for _, t := range templates {
		o, err := s.offer(ctx, t.ActiveVersionID)
		if err != nil {
			return nil, fmt.Errorf("template %s: %w", core.OneLine(t.Name, 64), err)
		}
		all = append(all, project{t, o})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.projects, s.read = all, time.Now()
	return all, nil
}

// offer reads a template version once.
func (s *site) offer(ctx context.Context, version uuid.UUID) (offer, error) {
	s.mu.Lock()
	o, known := s.versions[version]
	s.mu.Unlock()
	if known {
		return o, nil
	}
	var err error
	if o.parameters, err = call(ctx, "read the parameters", func(ctx context.Context) ([]codersdk.TemplateVersionParameter, error) {
		return s.client.TemplateVersionRichParameters(ctx, version)
	}); err != nil {
		return o, err
	}
	if o.presets, err = call(ctx, "read the presets", func(ctx context.Context) ([]codersdk.Preset, error) {
		return s.client.TemplateVersionPresets(ctx, version)
	}); err != nil {
		return o, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.versions[version] = o
	return o, nil
}

// find is the project that an agent names, and its role in it. What is not known is
// looked for anew before it is refused.
func (s *site) find(ctx context.Context, name, template, role string) (project, codersdk.Preset, error) {
	all, err := s.list(ctx, catalogAge)
	if err == nil {
		p, preset, missing := pick(all, name, template, role)
		if missing == nil {
			return p, preset, nil
		}
		all, err = s.list(ctx, 0)
	}
	if err != nil {
		return project{}, codersdk.Preset{}, err
	}
	return pick(all, name, template, role)
}

// pick is find among these.
func pick(all []project, name, template, role string) (project, codersdk.Preset, error) {
	var found []project
	var names []string
	for _, p := range all {
		if template != "" && p.Name == template || template == "" && p.isProject() && p.DisplayName == name {
			found = append(found, p)
		}
		if p.isProject() {
			names = append(names, core.OneLine(p.DisplayName, 64))
		}
	}
	slices.Sort(names)
	switch {
	case len(found) == 0 && template != "":
		return project{}, codersdk.Preset{}, core.Invalid("options.template", template, "a template of the deployment")
	case len(found) == 0:
		return project{}, codersdk.Preset{}, core.Invalid("project", name, nameList(names, "no template has a display name, ai_prompt and system_prompt"))
	case len(found) > 1:
		return project{}, codersdk.Preset{}, core.Invalid("project", name, fmt.Sprintf("a name that only one template has, not %d: options.template says which", len(found)))
	}
	p := found[0]
	var roles []string
	for _, preset := range p.presets {
		if preset.Name == role {
			return p, preset, nil
		}
		roles = append(roles, core.OneLine(preset.Name, 64))
	}
	slices.Sort(roles)
	return p, codersdk.Preset{}, core.Invalid("role", role, nameList(roles, "the template has no presets"))
}

func nameList(names []string, none string) string {
	if len(names) == 0 {
		return none
	}
	const most = 20
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}

var _ fleet.Catalog = (*Runtime)(nil)

// Catalog implements fleet.Catalog. Names that a list could not show are left
// out, and of two templates with the same display name there is one.
func (r *Runtime) Catalog(ctx context.Context, options core.Raw) ([]fleet.Offer, error) {
	s, err := readSettings(options)
	if err != nil {
		return nil, err
	}
	site, done, err := r.site(s)
	if err != nil {
		return nil, err
	}
	defer done()
	all, err := site.list(ctx, catalogAge)
	if err != nil {
		return nil, err
	}
	var offers []fleet.Offer
	for _, p := range all {
		if !p.isProject() || slices.ContainsFunc(offers, func(o fleet.Offer) bool { return o.Project.Name == p.DisplayName }) {
			continue
		}
		o := fleet.Offer{Project: fleet.Project{ID: p.ID.String(), Name: p.DisplayName, Description: core.OneLine(p.Description, 500)}}
		for _, preset := range p.presets {
			o.Roles = append(o.Roles, fleet.Role{
				ID: preset.ID.String(), Name: preset.Name, ProjectID: o.Project.ID, ProjectName: o.Project.Name,
			})
		}
		offers = append(offers, o)
	}
	return offers, nil
}

// fits reports settings that a template and its preset can't be used with: what the
// server would refuse later, when the agent is there.
func (s *site) fits(ctx context.Context, p project, preset codersdk.Preset, set settings) error {
	if set.Via == "task" {
		if len(set.Parameters) > 0 {
			return core.Invalid("options.parameters", strings.Join(slices.Sorted(maps.Keys(set.Parameters)), ", "), "none: a Task takes no parameters")
		}
		return s.hasTask(ctx, p)
	}
	given := map[string]bool{promptParameter: true}
	for _, v := range preset.Parameters {
		given[v.Name] = true
	}
	var names []string
	for _, v := range p.parameters {
		if v.Name != promptParameter && v.Name != systemParameter {
			names = append(names, core.OneLine(v.Name, 64))
		}
	}
	slices.Sort(names)
	for _, name := range slices.Sorted(maps.Keys(set.Parameters)) {
		if given[name] = true; p.parameter(name) == nil {
			return core.Invalid("options.parameters", name, nameList(names, "the template has no other parameters than ai_prompt and system_prompt"))
		}
	}
	for _, v := range p.parameters {
		if v.Required && !given[v.Name] {
			return core.Invalid("options.parameters", "", "with "+core.OneLine(v.Name, 64)+": the template needs it, and the role does not say it")
		}
	}
	return nil
}

// hasTask reports a template that no Task can be made of. A server that can't tell
// refuses nothing.
func (s *site) hasTask(ctx context.Context, p project) error {
	with, err := call(ctx, "list the templates for Tasks", func(ctx context.Context) ([]codersdk.Template, error) {
		return s.client.Templates(ctx, codersdk.TemplateFilter{SearchQuery: "has-ai-task:true"})
	})
	if err != nil || slices.ContainsFunc(with, func(t codersdk.Template) bool { return t.ID == p.ID }) {
		return nil
	}
	return core.Invalid("options.via", "task", `"workspace": the template has no coder_ai_task`)
}
