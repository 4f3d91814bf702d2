package coder

import (
	"testing"

	"swarmdeck/drivers/drivertest"
)

func TestRealConformance(t *testing.T) {
	d := realCoder(t)
	drivertest.Run(t, func(t *testing.T) drivertest.Subject {
		m := newMachine(t, d, nil)
		return drivertest.Subject{Runtime: newRuntime(t, Options{}), Actor: m.record(t, settings{}), Outlasts: true}
	}, drivertest.Gate, drivertest.Process)
}

func TestRealConformanceOfTasks(t *testing.T) {
	d := realCoder(t)
	drivertest.Run(t, func(t *testing.T) drivertest.Subject {
		m := newMachine(t, d, map[string]any{"task": true})
		return drivertest.Subject{Runtime: newRuntime(t, Options{}), Actor: m.record(t, settings{Via: "task"}), Outlasts: true}
	}, drivertest.Gate, drivertest.Process)
}
