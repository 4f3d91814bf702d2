package cluster_test

import (
	"strings"
	"testing"

	"swarmdeck/engine/cluster"
)

func TestPatternsOfTenantsMatchWholeNames(t *testing.T) {
	for _, c := range []struct {
		patterns, tenant string
		is               bool
	}{
		{"t_acme", "t_acme", true},
		{"t_acme", "t_acme2", false},
		{"t_a*", "t_acme", true},
		{"t_?b", "t_bb", true},
		{"t_?b", "t_bbb", false},
		{"t_x t_a*", "t_aa", true},
		{"", "t_aa", false},
		{"*", "t_aa", true},
		{"[", "[", false},
	} {
		if got := cluster.Matches(strings.Fields(c.patterns), c.tenant); got != c.is {
			t.Errorf("%q of %q: %t", c.tenant, c.patterns, got)
		}
	}
}

func TestPatternsThatNoTenantHasAreRefused(t *testing.T) {
	if err := cluster.CheckPatterns("prefer", []string{"t_acme", "t_eu-*", "*", "t_?"}); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"", "T_A", "t a", "t_[ab]", "t_a,t_b", strings.Repeat("a", 65)} {
		if err := cluster.CheckPatterns("prefer", []string{"t_acme", bad}); err == nil || !strings.Contains(err.Error(), "prefer") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if err := cluster.CheckPatterns("prefer", make([]string, 33)); err == nil || !strings.Contains(err.Error(), "at most 32") {
		t.Error(err)
	}
}
