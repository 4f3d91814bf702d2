package coder

import (
	"os"
	"testing"
)

// TestMain is also the agent of the real tests: the binary started again.
func TestMain(m *testing.M) {
	if as, ok := os.LookupEnv(actorEnv); ok {
		os.Exit(act(as))
	}
	code := m.Run()
	theDeployment.shut()
	os.Exit(code)
}
