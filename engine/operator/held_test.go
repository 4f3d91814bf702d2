package operator_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/operator"
	"swarmdeck/expect"
)

func TestWhatARunWasRefusedIsToldInWords(t *testing.T) {
	eng := open(t, filepath.Join(t.TempDir(), "s.db"))
	ctx := t.Context()
	tenants := []string{"t_acme", "t_other"}
	for i, tenant := range tenants {
		by := core.Caller{Tenant: tenant, Name: "root", Kind: core.Operator, Door: core.DoorCLI}
		expect.Of(eng.Swarm.CreateTenant(ctx, by, tenant))(t)
		bob := operator.Operator{Name: "bob", Role: operator.Viewer, Keys: []operator.Key{key(t, byte(i))}}
		_, _, err := eng.Operators.Put(ctx, by, bob)
		expect.No(t, err)
	}
	told := func(tenant string) []audit.Event {
		page := expect.Of(eng.Audit.List(ctx, tenant, core.Filter{Kind: "cell.refused", Size: 100}))(t)
		return page.Items
	}
	mount := operator.Held{Deed: "mount", Call: "mount", Severity: operator.High, Tried: "change what is mounted", Program: "sh", PID: 7}
	for _, c := range []struct {
		run   operator.Run
		held  operator.Held
		says  string
		actor string
		in    []string
	}{
		{operator.Run{Name: "r", Tenant: "t_acme", Agent: "eve"}, mount, "sh (pid 7) tried to change what is mounted (mount): refused", "eve", []string{"t_acme"}},
		{
			operator.Run{Name: "r", Tenant: "t_acme", Task: "tk_1"},
			operator.Held{Deed: "spaces", Call: "clone", Severity: operator.Low, Tried: "make name spaces of its own"},
			"a program tried to make name spaces of its own (clone): refused; harmless programs try that too", "tk_1",
			[]string{"t_acme"},
		},
		{operator.Run{Name: "policy"}, mount, "sh (pid 7) tried to change what is mounted (mount): refused", "process", []string{"t_acme", "t_other"}},
	} {
		before := map[string]int{}
		for _, tenant := range tenants {
			before[tenant] = len(told(tenant))
		}
		expect.No(t, eng.Operators.Held(ctx, c.run, c.held))
		for _, tenant := range tenants {
			all := told(tenant)
			switch more := len(all) - before[tenant]; {
			case !slices.Contains(c.in, tenant):
				expect.Is(t, more, 0, tenant, "was told of", c.run)
			case more != 1:
				t.Errorf("%s: %d events of %+v", tenant, more, c.run)
			case operator.HeldIn(&all[0]) != c.says || all[0].Actor != c.actor || !strings.Contains(string(all[0].Payload), `"severity":"`+string(c.held.Severity)):
				t.Errorf("%s by %s: %s", operator.HeldIn(&all[0]), all[0].Actor, all[0].Payload)
			}
		}
	}
}
