package acp

import (
	"os"
	"testing"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/drivertest"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/expect"
)

func newRuntime(t *testing.T, opt Options) *Runtime {
	t.Helper()
	if opt.State == "" {
		opt.State = t.TempDir()
	}
	if opt.Dir == "" {
		opt.Dir = t.TempDir()
	}
	return expect.Of(NewRuntime(drivertest.Cells(t, cell.Options{}), opt))(t)
}

// fakeAgent is the test binary as an agent.
func fakeAgent(t *testing.T, as traits, options settings) fleet.Agent {
	t.Helper()
	self := expect.Of(os.Executable())(t)
	return fleet.Agent{
		Name: "actor", TenantID: "t_test", Runtime: "acp", Command: []string{self},
		Env: map[string]string{"ACP_TEST_AS": string(core.MustEncode(as))}, Options: core.MustEncode(options),
	}
}

func subject(t *testing.T, as traits, options settings) drivertest.Subject {
	actor := fakeAgent(t, as, options)
	actor.Dir = t.TempDir()
	return drivertest.Subject{
		Runtime: newRuntime(t, Options{}), Actor: actor, Lasting: true, Greets: true, FixedArgs: true,
		Input: func(args core.Raw) core.Raw {
			var in struct {
				Input core.Raw `json:"input"`
			}
			if err := core.DecodeStored(args, &in); err != nil {
				return args
			}
			return in.Input
		},
	}
}

func TestConformance(t *testing.T) {
	drivertest.Run(t, func(t *testing.T) drivertest.Subject { return subject(t, traits{}, settings{}) })
}

func TestConformanceOfAnAgentWithModesInASharedProcess(t *testing.T) {
	drivertest.Run(t, func(t *testing.T) drivertest.Subject {
		return subject(t, traits{Modes: []string{"ask", "auto"}, Load: true}, settings{Mode: "ask", Shared: true})
	})
}
