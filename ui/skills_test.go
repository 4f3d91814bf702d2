package ui

import (
	"fmt"
	"strings"
	"testing"

	"swarmdeck/ui/screen/screentest"
)

// TestSkillsAndMessagesLookRight draws every pane of skills, subagents and the
// bus at both sizes that must be complete.
func TestSkillsAndMessagesLookRight(t *testing.T) {
	views := []struct {
		name string
		keys []string
	}{
		{"skills", []string{"8"}},
		{"skill", []string{"8", "j", "j", "enter"}},
		{"skill-composite", []string{"8", "j", "enter", "z"}},
		{"skill-form", []string{"8", "j", "j", "r"}},
		{"executions", []string{"8", "x"}},
		{"execution", []string{"8", "x", "j", "enter"}},
		{"execution-failed", []string{"8", "x", "j", "j", "enter"}},
		{"fleet-subagents", []string{"1", "j", "j", "j", "j"}},
		{"subagents", []string{"8", "A"}},
		{"subagent", []string{"8", "A", "enter"}},
		{"subagent-failed", []string{"8", "A", "j", "j", "j", "enter"}},
		{"bus", []string{"9"}},
		{"bus-held", []string{"9", "f"}},
		{"bus-message", []string{"9", "j", "j", "enter"}},
		{"bus-message-expired", []string{"9", "enter"}},
		{"dead", []string{"9", "D"}},
		{"subscriptions", []string{"9", "L"}},
	}
	for _, size := range [][2]int{{80, 24}, {120, 40}} {
		for _, v := range views {
			name := fmt.Sprintf("%s-%dx%d", v.name, size[0], size[1])
			t.Run(name, func(t *testing.T) {
				r := rigOn(t, newTalk(), size[0], size[1], Options{})
				r.keys(v.keys...)
				r.wait(deadTime)
				r.golden(name)
			})
		}
	}
}

func TestSkillsAndMessagesWithoutUTF8AreASCII(t *testing.T) {
	for _, keys := range []string{"1", "8", "8 j enter", "8 j j r", "8 x", "8 A", "8 A enter", "9", "9 enter", "9 D", "9 L"} {
		r := rigOn(t, newTalk(), 120, 40, Options{ASCII: true})
		r.keys(strings.Fields(keys)...)
		screentest.ASCII(t, r.m.Frame())
	}
}
