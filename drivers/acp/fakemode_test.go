package acp

import (
	"context"

	acp "github.com/coder/acp-go-sdk"
)

// models are those that the fake agent offers; the last one is the current.
func (f *fake) models() *acp.SessionModelState {
	if len(f.Models) == 0 || f.Config {
		return nil
	}
	s := &acp.SessionModelState{}
	for _, id := range f.Models {
		s.AvailableModels = append(s.AvailableModels, acp.ModelInfo{ModelId: acp.ModelId(id), Name: "Model " + id})
		s.CurrentModelId = acp.ModelId(id)
	}
	return s
}

// config is both as settings of the session.
func (f *fake) config() (all []acp.SessionConfigOption) {
	if !f.Config {
		return nil
	}
	for category, ids := range map[string][]string{"mode": f.Modes, "model": f.Models} {
		var values acp.SessionConfigSelectOptionsUngrouped
		o := &acp.SessionConfigOptionSelect{Category: acp.Ptr(acp.SessionConfigOptionCategory(category)), Id: acp.SessionConfigId("the-" + category), Name: category, Type: "select"}
		for _, id := range ids {
			values = append(values, acp.SessionConfigSelectOption{Name: "Named " + id, Value: acp.SessionConfigValueId(id)})
			o.CurrentValue = acp.SessionConfigValueId(id)
		}
		o.Options.Ungrouped = &values
		all = append(all, acp.SessionConfigOption{Select: o})
	}
	return all
}

func (f *fake) UnstableSetSessionModel(_ context.Context, r acp.UnstableSetSessionModelRequest) (acp.UnstableSetSessionModelResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.model = string(r.ModelId)
	return acp.UnstableSetSessionModelResponse{}, nil
}

func (f *fake) SetSessionConfigOption(_ context.Context, r acp.SetSessionConfigOptionRequest) (acp.SetSessionConfigOptionResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch r.ValueId.ConfigId {
	case "the-mode":
		f.mode = string(r.ValueId.Value)
	case "the-model":
		f.model = string(r.ValueId.Value)
	}
	return acp.SetSessionConfigOptionResponse{ConfigOptions: f.config()}, nil
}
