package policy

import (
	"os"
	"testing"
)

const jailWord = "-policy-jail"

// TestMain is also the process of a jail, as main is.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == jailWord {
		os.Exit(Enter(os.Args[2:], os.Stderr))
	}
	os.Exit(m.Run())
}
