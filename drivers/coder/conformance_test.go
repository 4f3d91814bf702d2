package coder

import (
	"testing"

	"swarmdeck/drivers/drivertest"
)

func TestRealConformance(t *testing.T) {
	d := realCoder(t)
	drivertest.Run(t, func(t *testing.T) drivertest.Subject {
		m := newMachine(t, d, nil)
		return drivertest.Subject{Runtime: newRuntime(t, Options{}), Actor: m.record(t, settings{}), Lasting: false}
	}, drivertest.Gate, drivertest.Process)
}

func TestRealConformanceOfTasks(t *testing.T) {
	d := realCoder(t)
	drivertest.Run(t, func(t *testing.T) drivertest.Subject {
		m := newMachine(t, d, map[string]any{"task": true})
		return drivertest.Subject{Runtime: newRuntime(t, Options{}), Actor: m.record(t, settings{Via: "task"})}
	}, drivertest.Gate, drivertest.Process)
}
