package coder

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/coder/coder/v2/codersdk"

	"swarmdeck/engine/core"
)

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
